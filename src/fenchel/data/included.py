"""The inflection set that comes with the package: English, Finnish, Spanish, Turkish."""

from __future__ import annotations

from importlib.resources import as_file, files

from fenchel.data.example import Example
from fenchel.data.inflection import read_inflection

LANGUAGES = ("english", "finnish", "spanish", "turkish")
SPLITS = ("train", "dev", "test")


def shipped() -> dict[str, list[Example]]:
    """The included examples: for each language 1000 to train, 250 to develop, 250 to test with.

    >>> {split: len(examples) for split, examples in shipped().items()}
    {'train': 4000, 'dev': 1000, 'test': 1000}

    They are parts of the sets of the CoNLL–SIGMORPHON 2018 shared task (the medium setting), which
    UniMorph made from Wiktionary; licence and authors stand in the folder `shipped` of this package.
    """
    with as_file(files("fenchel.data") / "shipped") as folder:
        return {
            split: read_inflection([folder / f"{language}-{split}.tsv" for language in LANGUAGES])
            for split in SPLITS
        }
