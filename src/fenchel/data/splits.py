"""The public data sets as examples, split as published."""

from __future__ import annotations

from inspect import signature
from pathlib import Path
from typing import Any

from fenchel.data.example import Example
from fenchel.data.inflection import read_inflection
from fenchel.data.lines import plain_or_packed
from fenchel.data.official import OfficialSet, base_folder, named
from fenchel.data.parallel import read_parallel
from fenchel.data.summarization import reuters_headlines
from fenchel.errors import rule, unknown

Splits = dict[str, list[Example]]


def read_official(name: str, folder: str | Path, **options: Any) -> Splits:
    """The examples of a set under "train", "dev" and "test"; `options` are those of its function."""
    readers = {
        "sigmorphon2018": sigmorphon2018,
        "multi30k": multi30k,
        "small_parallel_enja": small_parallel_enja,
        "reuters21578": reuters21578,
    }
    reader = readers[named(name).name]
    known = [parameter for parameter in signature(reader).parameters if parameter != "folder"]
    for option in options:
        if option not in known:
            raise unknown(f"option of {name}", option, known)
    return reader(folder, **options)


def sigmorphon2018(folder: str | Path, *, setting: str = "medium") -> Splits:
    """Inflection in all languages that have training data in a setting, as one multilingual set.

    Args:
        folder: The folder `task1` of the shared task, or the one that holds it.
        setting: "high" (86 languages), "medium" (102) or "low" (103).
    """
    data = named("sigmorphon2018")
    ending = f"-train-{setting}"
    stems = [path.removesuffix(ending) for path in data.lines if path.endswith(ending)]
    if not stems:
        raise rule("there is no such setting", expected="high, medium or low", got=repr(setting))
    endings = {"train": ending, "dev": "-dev", "test": "-test"}
    return {
        split: read_inflection(
            [_file(data, folder, stem + end) for stem in stems], need_targets=True
        )
        for split, end in endings.items()
    }


def multi30k(
    folder: str | Path, *, source: str = "de", target: str = "en", test: str = "test_2016_flickr"
) -> Splits:
    """Captions in two of the languages de, en, fr, cs; `test` names the test set."""
    names = {"train": "train", "dev": "val", "test": test}
    return _parallel(named("multi30k"), folder, names, source, target)


def small_parallel_enja(folder: str | Path, *, source: str = "ja", target: str = "en") -> Splits:
    """Japanese and English sentences, words between spaces."""
    names = {split: split for split in ("train", "dev", "test")}
    return _parallel(named("small_parallel_enja"), folder, names, source, target)


def reuters21578(folder: str | Path) -> Splits:
    """Headlines: see `reuters_headlines`."""
    return reuters_headlines(_file(named("reuters21578"), folder, "reuters21578.jsonl"))


def _parallel(
    data: OfficialSet, folder: str | Path, names: dict[str, str], source: str, target: str
) -> Splits:
    return {
        split: read_parallel(*(_file(data, folder, f"{name}.{side}") for side in (source, target)))
        for split, name in names.items()
    }


def _file(data: OfficialSet, folder: str | Path, path: str) -> Path:
    base = base_folder(data, folder)
    file = plain_or_packed(base / path)
    if file is None:
        statement = f"{base} holds {data.name}, unpacked"
        raise rule(statement, expected=f"{path} ({data.url})", got="no such file")
    return file
