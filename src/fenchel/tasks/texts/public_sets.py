"""Public data sets of labelled texts, split into train, dev and test."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path
from typing import Any

from fenchel.data.public_set_info import public_set_file, public_set_info, read_by_name
from fenchel.data.records import read_records
from fenchel.data.texts import Document, SentencePair, iterate_labelled_texts

LINGNLI_COLUMNS = ("label", "round", "id", "premise", "hypothesis")
DEV_EVERY = 10  # every tenth group of the training examples is for development
ExamplesBySplit = dict[str, Any]


def read_public_set(name: str, folder: str | Path, **options: Any) -> ExamplesBySplit:
    """The splits of a public data set: "train", "dev", "test", and "others" by their names."""
    readers = {"imdb": imdb, "lingnli": lingnli}
    return read_by_name(readers, "labelled texts", name, folder, options)


def imdb(folder: str | Path) -> ExamplesBySplit:
    """IMDB reviews; every tenth of the training reviews is for development."""
    train, test = (
        list(
            iterate_labelled_texts(
                public_set_file(public_set_info("imdb"), folder, f"{split}.jsonl"), Document
            )
        )
        for split in ("train", "test")
    )
    return {**_held_out(train, range(len(train))), "test": test}


def lingnli(folder: str | Path) -> ExamplesBySplit:
    """LingNLI, tested on its validation set, and the development and test sets of SNLI.

    Every tenth premise of the training pairs is for development, with all of its pairs.
    """
    data = public_set_info("lingnli")
    train, test = (
        [
            SentencePair(record.text("premise"), record.text("hypothesis"), record.label("label"))
            for record in read_records(public_set_file(data, folder, path), LINGNLI_COLUMNS)
        ]
        for path in ("lingnli/train.tsv", "lingnli/val.tsv")
    )
    others = {
        f"snli-{split}": list(
            iterate_labelled_texts(
                public_set_file(data, folder, f"snli_devtest/{split}.tsv"), SentencePair
            )
        )
        for split in ("dev", "test")
    }
    premises = (pair.premise for pair in train)
    return {**_held_out(train, premises), "test": test, "others": others}


def _held_out(examples: Sequence[Any], groups: Iterable[Hashable]) -> ExamplesBySplit:
    """Training examples, and for development those of every tenth group."""
    numbers: dict[Hashable, int] = {}
    parts: dict[str, list[Any]] = {"train": [], "dev": []}
    for example, group in zip(examples, groups, strict=True):
        number = numbers.setdefault(group, len(numbers))
        parts["dev" if number % DEV_EVERY == DEV_EVERY - 1 else "train"].append(example)
    return parts
