"""The public data sets of the papers: where they come from, and whether a folder holds them.

Nothing is downloaded: every set has its own terms. `fenchel data` prints what stands here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from fenchel.data.lines import count_lines, plain_or_packed
from fenchel.errors import rule

ARCHIVES = (".tar", ".tgz", ".tar.gz", ".tar.xz", ".tar.bz2", ".zip")
INFLECTION_SPLITS = ("train-high", "train-medium", "train-low", "dev", "test")


@dataclass(frozen=True)
class OfficialSet:
    """A public data set.

    Attributes:
        name: As `fenchel data` calls it.
        title: What it is.
        url: Where it comes from.
        licence: Under which terms, as its source states them.
        lines: How many lines every file has, by its path in the unpacked folder.
        folder: The folder that the files are in when unpacked, "" if they are at the top.
    """

    name: str
    title: str
    url: str
    licence: str
    lines: Mapping[str, int]
    folder: str = ""


@dataclass(frozen=True)
class Check:
    """What a folder holds of a data set.

    Attributes:
        data: The set.
        folder: The folder looked at.
        whole: The files that are there with as many lines as published.
        missing: The files that are not there.
        different: The files that have another number of lines: (path, published, found).
    """

    data: OfficialSet
    folder: Path
    whole: tuple[str, ...]
    missing: tuple[str, ...]
    different: tuple[tuple[str, int, int], ...]

    @property
    def complete(self) -> bool:
        """Whether every file is there and whole."""
        return not self.missing and not self.different

    def report(self, most: int = 8) -> list[str]:
        """The result as sentences, naming at most so many files of each kind."""
        total = len(self.data.lines)
        sentences = [f"{self.folder}: {len(self.whole)} of {total} files of {self.data.name}."]
        if not self.whole and not self.different:
            packed = sorted(p.name for p in self.folder.iterdir() if p.name.endswith(ARCHIVES))
            sentences += [f"{name} is there, and is to be unpacked first." for name in packed]
        sentences += [f"{path} is missing." for path in self.missing[:most]]
        if len(self.missing) > most:
            sentences.append(f"{len(self.missing) - most} more are missing.")
        for path, published, found in self.different[:most]:
            sentences.append(f"{path} has {found} lines instead of {published}.")
        if len(self.different) > most:
            sentences.append(f"{len(self.different) - most} more have other numbers of lines.")
        return sentences


def check(name: str, folder: str | Path) -> Check:
    """Look whether `folder` holds the set `name`, unpacked; files may be compressed."""
    data = named(name)
    base = base_folder(data, folder)
    whole, missing, different = [], [], []
    for path, published in data.lines.items():
        file = plain_or_packed(base / path)
        if file is None:
            missing.append(path)
        elif (found := count_lines(file)) != published:
            different.append((path, published, found))
        else:
            whole.append(path)
    return Check(data, base, tuple(whole), tuple(missing), tuple(different))


def named(name: str) -> OfficialSet:
    """The set of this name."""
    sets = official_sets()
    if name not in sets:
        raise rule("there is no such data set", expected=", ".join(sets), got=repr(name))
    return sets[name]


def base_folder(data: OfficialSet, folder: str | Path) -> Path:
    """The folder that the files are in: `folder`, or the one inside it that comes with unpacking."""
    base = Path(folder)
    if not base.is_dir():
        got = "a file" if base.exists() else "nothing"
        raise rule(f"{base} holds {data.name}, unpacked", expected="a folder", got=got)
    return base / data.folder if data.folder and (base / data.folder).is_dir() else base


@cache
def official_sets() -> dict[str, OfficialSet]:
    """All sets, by name."""
    sets = (_sigmorphon2018(), _multi30k(), _small_parallel_enja(), _reuters21578())
    return {data.name: data for data in sets}


def _sigmorphon2018() -> OfficialSet:
    table = files("fenchel.data") / "counts" / "sigmorphon2018.tsv"
    lines = {}
    for row in table.read_text(encoding="utf-8").splitlines()[1:]:
        folder, language, *counts = row.split("\t")
        for split, count in zip(INFLECTION_SPLITS, map(int, counts), strict=True):
            if count:
                lines[f"{folder}/{language}-{split}"] = count
    return OfficialSet(
        name="sigmorphon2018",
        title="CoNLL–SIGMORPHON 2018, task 1: inflection in 103 languages (102 medium, 86 high)",
        url="https://github.com/sigmorphon/conll2018",
        licence="none stated there; from Wiktionary through UniMorph, CC BY-SA 3.0: attribute",
        lines=lines,
        folder="task1",
    )


def _multi30k() -> OfficialSet:
    lines = {}
    for language in ("cs", "de", "en", "fr"):
        lines |= {f"train.{language}": 29000, f"val.{language}": 1014}
        lines |= {f"test_2016_flickr.{language}": 1000, f"test_2018_flickr.{language}": 1071}
        if language != "cs":
            lines |= {f"test_2017_flickr.{language}": 1000, f"test_2017_mscoco.{language}": 461}
    return OfficialSet(
        name="multi30k",
        title="Multi30k, task 1: captions of pictures in English, German, French, Czech",
        url="https://github.com/multi30k/dataset",
        licence="research use",
        lines=dict(sorted(lines.items())),
        folder="data/task1/raw",
    )


def _small_parallel_enja() -> OfficialSet:
    counts = {"train": 50000, "dev": 500, "test": 500}
    return OfficialSet(
        name="small_parallel_enja",
        title="small_parallel_enja: short sentences in Japanese and English, tokenised",
        url="https://github.com/odashi/small_parallel_enja",
        licence="none stated; from the Tanaka corpus",
        lines={f"{split}.{side}": n for split, n in counts.items() for side in ("en", "ja")},
    )


def _reuters21578() -> OfficialSet:
    return OfficialSet(
        name="reuters21578",
        title="Reuters-21578: news of 1987 with titles and topics, as one JSON object a line",
        url="http://www.daviddlewis.com/resources/testcollections/reuters21578/",
        licence="research only",
        lines={"reuters21578.jsonl": 21578},
    )
