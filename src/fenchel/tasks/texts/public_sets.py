"""Public data sets of labelled texts, split into train, dev and test."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path
from typing import Any

from fenchel.data.official import official_file, official_set
from fenchel.data.records import read_records
from fenchel.data.texts import Document, SentencePair, iterate_labelled_texts
from fenchel.errors import unknown

LINGNLI_COLUMNS = ("label", "round", "id", "premise", "hypothesis")
HELD_OUT = 10  # one of so many groups of the training examples is for development
Splits = dict[str, Any]


def read_public(name: str, folder: str | Path) -> Splits:
    """The splits of a public data set: "train", "dev", "test", and "others" by their names."""
    readers = {"imdb": imdb, "lingnli": lingnli}
    if name not in readers:
        raise unknown("data set of labelled texts", name, readers)
    return readers[name](folder)


def imdb(folder: str | Path) -> Splits:
    """IMDB reviews; every tenth of the training reviews is for development."""
    train, test = (
        list(
            iterate_labelled_texts(
                official_file(official_set("imdb"), folder, f"{split}.jsonl"), Document
            )
        )
        for split in ("train", "test")
    )
    return {**_held_out(train, range(len(train))), "test": test}


def lingnli(folder: str | Path) -> Splits:
    """LingNLI, tested on its validation set, and the development and test sets of SNLI.

    Every tenth premise of the training pairs is for development, with all of its pairs.
    """
    data = official_set("lingnli")
    train, test = (
        [
            SentencePair(record.text("premise"), record.text("hypothesis"), record.label("label"))
            for record in read_records(official_file(data, folder, path), LINGNLI_COLUMNS)
        ]
        for path in ("lingnli/train.tsv", "lingnli/val.tsv")
    )
    others = {
        f"snli-{split}": list(
            iterate_labelled_texts(
                official_file(data, folder, f"snli_devtest/{split}.tsv"), SentencePair
            )
        )
        for split in ("dev", "test")
    }
    premises = (pair.premise for pair in train)
    return {**_held_out(train, premises), "test": test, "others": others}


def _held_out(examples: Sequence[Any], groups: Iterable[Hashable]) -> Splits:
    """Training examples, and for development those of every tenth group."""
    numbers: dict[Hashable, int] = {}
    parts: dict[str, list[Any]] = {"train": [], "dev": []}
    for example, group in zip(examples, groups, strict=True):
        number = numbers.setdefault(group, len(numbers))
        parts["dev" if number % HELD_OUT == HELD_OUT - 1 else "train"].append(example)
    return parts
