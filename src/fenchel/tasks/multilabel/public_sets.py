"""Public data sets with several labels: those of MULAN, and the topics of Reuters-21578."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from fenchel.data.multilabel import iterate_multilabel
from fenchel.data.multilabel_example import MultilabelExample
from fenchel.data.public_set_info import public_set_file, public_set_info, read_by_name
from fenchel.data.records import read_records
from fenchel.errors import FenchelError, unknown

MULAN_SETS = ("scene", "emotions", "birds", "cal500")
CAL500_TRAIN, CAL500_TEST = 400, 100  # the numbers of the paper; the set has no official split
SPLIT_OF = {"TRAIN": "train", "TEST": "test"}
HELD_OUT = 0.1  # share of the training texts of Reuters-21578

ExamplesBySplit = dict[str, list[MultilabelExample]]


def read_public_set(name: str, folder: str | Path, **options: Any) -> ExamplesBySplit:
    """Read a public data set; `options` are those of its function below."""
    readers = {"mulan": mulan, "reuters21578": reuters21578}
    return read_by_name(readers, "examples with several labels", name, folder, options)


def mulan(folder: str | Path, *, set: str = "scene", split: str = "0") -> ExamplesBySplit:
    """Read a set of MULAN without the examples that have no label.

    Args:
        folder: The folder with one folder per set.
        set: "scene", "emotions", "birds" or "cal500".
        split: The seed of the random split of cal500, which has no official one.
    """
    if set not in MULAN_SETS:
        raise unknown("set of mulan", set, MULAN_SETS)
    if set == "cal500":
        examples = _read_arff(folder, "cal500/cal500.arff")
        generator = torch.Generator().manual_seed(int(split))
        order = torch.randperm(len(examples), generator=generator).tolist()
        shuffled = [examples[place] for place in order[: CAL500_TRAIN + CAL500_TEST]]
        return {"train": shuffled[:CAL500_TRAIN], "dev": [], "test": shuffled[CAL500_TRAIN:]}
    train, test = (_read_arff(folder, f"{set}/{set}-{part}.arff") for part in ("train", "test"))
    return {"train": train, "dev": [], "test": test}


def _read_arff(folder: str | Path, path: str) -> list[MultilabelExample]:
    found = iterate_multilabel(
        public_set_file(public_set_info("mulan"), folder, path), allow_unlabelled=True
    )
    return [example for example in found if example is not None and example.labels]


def reuters21578(folder: str | Path) -> ExamplesBySplit:
    """Read the topics of Reuters-21578 in the ModApte split.

    A text is its title and its body. Texts without a topic are left out, and topics that do not occur
    in both the training and the test texts (90 remain). A tenth of the training texts, drawn at random,
    are development examples.
    """
    path = public_set_file(public_set_info("reuters21578"), folder, "reuters21578.jsonl")
    parts: dict[str, list[tuple[str, tuple[str, ...]]]] = {"train": [], "test": []}
    fields = ("lewis", "topics", "title", "body")
    for record in read_records(path, fields, ("lewis", "topics")):
        split, topics = SPLIT_OF.get(record.text("lewis")), record.fields["topics"]
        text = " ".join(str(record.fields.get(name) or "") for name in ("title", "body")).strip()
        if split is not None and topics and text:
            if not isinstance(topics, list):
                raise record.error(f"topics must be a list, got {topics!r}")
            parts[split].append((text, tuple(topics)))
    common = frozenset.intersection(*(_topics(part) for part in parts.values()))
    kept = {name: _with_topics(part, common) for name, part in parts.items()}
    if not kept["train"]:
        raise FenchelError(f"{path} must have training texts with topics, got none")
    train, generator = kept["train"], torch.Generator().manual_seed(0)
    order = torch.randperm(len(train), generator=generator).tolist()
    held = frozenset(order[: round(HELD_OUT * len(train))])
    return {
        "train": [example for place, example in enumerate(train) if place not in held],
        "dev": [train[place] for place in sorted(held)],
        "test": kept["test"],
    }


def _topics(part: Sequence[tuple[str, tuple[str, ...]]]) -> frozenset[str]:
    return frozenset(topic for _, topics in part for topic in topics)


def _with_topics(
    part: Sequence[tuple[str, tuple[str, ...]]], known: frozenset[str]
) -> list[MultilabelExample]:
    """The texts that have a known topic, with these alone."""
    pairs = ((text, tuple(topic for topic in topics if topic in known)) for text, topics in part)
    return [MultilabelExample(text, topics) for text, topics in pairs if topics]
