"""Data sets as examples, split into train, dev and test: the shipped one and the public ones."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from fenchel.data.public_set_info import (
    PublicSetInfo,
    public_set_file,
    public_set_info,
    read_by_name,
)
from fenchel.errors import FenchelError
from fenchel.tasks.sequences.example import Example
from fenchel.tasks.sequences.headlines import reuters_headlines
from fenchel.tasks.sequences.inflection import read_inflection
from fenchel.tasks.sequences.parallel import read_parallel

SPLITS = ("train", "dev", "test")
SHIPPED_LANGUAGES = ("english", "finnish", "spanish", "turkish")

ExamplesBySplit = dict[str, list[Example]]


def shipped() -> ExamplesBySplit:
    """Return the inflection data of the package: 1000, 250 and 250 examples per language.

    >>> {split: len(examples) for split, examples in shipped().items()}
    {'train': 4000, 'dev': 1000, 'test': 1000}

    They are part of the data of the CoNLL–SIGMORPHON 2018 shared task (medium setting), which UniMorph
    extracted from Wiktionary; the folder `shipped` of this package has their licence and authors.
    """
    with as_file(files("fenchel.data") / "shipped") as folder:
        return {
            split: read_inflection(
                [folder / f"{language}-{split}.tsv" for language in SHIPPED_LANGUAGES]
            )
            for split in SPLITS
        }


def read_public_set(name: str, folder: str | Path, **options: Any) -> ExamplesBySplit:
    """Read a public data set, split as published; `options` are those of its function below."""
    readers = {
        "sigmorphon2018": sigmorphon2018,
        "multi30k": multi30k,
        "small_parallel_enja": small_parallel_enja,
        "reuters21578": reuters21578,
    }
    return read_by_name(readers, "sequences", name, folder, options)


def sigmorphon2018(folder: str | Path, *, setting: str = "medium") -> ExamplesBySplit:
    """Read the inflection data of all languages with training data in a setting, as one set.

    Args:
        folder: The folder `task1` of the shared task, or the folder that contains it.
        setting: "high" (86 languages), "medium" (102) or "low" (103).
    """
    data = public_set_info("sigmorphon2018")
    ending = f"-train-{setting}"
    stems = [path.removesuffix(ending) for path in data.lines if path.endswith(ending)]
    if not stems:
        raise FenchelError(f"setting must be high, medium or low, got {setting!r}")
    endings = {"train": ending, "dev": "-dev", "test": "-test"}
    return {
        split: read_inflection(
            [public_set_file(data, folder, stem + end) for stem in stems], need_targets=True
        )
        for split, end in endings.items()
    }


def multi30k(
    folder: str | Path, *, source: str = "de", target: str = "en", test: str = "test_2016_flickr"
) -> ExamplesBySplit:
    """Read captions in two of the languages de, en, fr, cs; `test` is the name of the test set."""
    names = {"train": "train", "dev": "val", "test": test}
    return _parallel(public_set_info("multi30k"), folder, names, source, target)


def small_parallel_enja(
    folder: str | Path, *, source: str = "ja", target: str = "en"
) -> ExamplesBySplit:
    """Read Japanese and English sentences, with spaces between words."""
    names = {split: split for split in SPLITS}
    return _parallel(public_set_info("small_parallel_enja"), folder, names, source, target)


def reuters21578(folder: str | Path) -> ExamplesBySplit:
    """Read headlines: see `reuters_headlines`."""
    return reuters_headlines(
        public_set_file(public_set_info("reuters21578"), folder, "reuters21578.jsonl")
    )


def _parallel(
    data: PublicSetInfo, folder: str | Path, names: dict[str, str], source: str, target: str
) -> ExamplesBySplit:
    return {
        split: read_parallel(
            *(public_set_file(data, folder, f"{name}.{side}") for side in (source, target))
        )
        for split, name in names.items()
    }
