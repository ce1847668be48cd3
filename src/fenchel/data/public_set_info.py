"""The public data sets of the papers: their sources, and checks of local copies.

Nothing is downloaded, because each data set has its own terms. `fenchel data` prints the list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from inspect import signature
from pathlib import Path
from typing import TypeVar

from fenchel.data.lines import count_lines, find_file
from fenchel.errors import FenchelError, unknown

T = TypeVar("T")

ARCHIVES = (".tar", ".tgz", ".tar.gz", ".tar.xz", ".tar.bz2", ".zip")
INFLECTION_SPLITS = ("train-high", "train-medium", "train-low", "dev", "test")


@dataclass(frozen=True)
class PublicSetInfo:
    """A public data set.

    Attributes:
        name: The name on the command line.
        title: A description in one line.
        url: The source.
        licence: The terms stated by the source.
        lines: The number of lines of each file, by its path in the unpacked folder.
        folder: The folder with the files in the unpacked archive, "" if there is none.
    """

    name: str
    title: str
    url: str
    licence: str
    lines: Mapping[str, int]
    folder: str = ""


@dataclass(frozen=True)
class Check:
    """The result of `check_public_set`.

    Attributes:
        data: The data set.
        folder: The folder that was checked.
        matching: The files with the published number of lines.
        missing: The files that are missing.
        different: The files with another number of lines: (path, published, found).
    """

    data: PublicSetInfo
    folder: Path
    matching: tuple[str, ...]
    missing: tuple[str, ...]
    different: tuple[tuple[str, int, int], ...]

    @property
    def complete(self) -> bool:
        """Whether all files are there with the published numbers of lines."""
        return not self.missing and not self.different

    def report(self, limit: int = 8) -> list[str]:
        """Return the result as sentences that name at most `limit` files of each kind."""
        total = len(self.data.lines)
        sentences = [f"{self.folder}: {len(self.matching)} of {total} files of {self.data.name}."]
        if not self.matching and not self.different:
            archives = sorted(p.name for p in self.folder.iterdir() if p.name.endswith(ARCHIVES))
            sentences += [f"{name} must be unpacked first." for name in archives]
        sentences += [f"{path} is missing." for path in self.missing[:limit]]
        if len(self.missing) > limit:
            sentences.append(f"{len(self.missing) - limit} more files are missing.")
        for path, published, found in self.different[:limit]:
            sentences.append(f"{path} has {found} lines instead of {published}.")
        if len(self.different) > limit:
            more = len(self.different) - limit
            sentences.append(f"{more} more files have another number of lines.")
        return sentences


def check_public_set(name: str, folder: str | Path) -> Check:
    """Check whether `folder` has all files of a data set, unpacked or each compressed."""
    data = public_set_info(name)
    base = base_folder(data, folder)
    matching, missing, different = [], [], []
    for path, published in data.lines.items():
        file = find_file(base / path)
        if file is None:
            missing.append(path)
        elif (found := count_lines(file)) != published:
            different.append((path, published, found))
        else:
            matching.append(path)
    return Check(data, base, tuple(matching), tuple(missing), tuple(different))


def public_set_info(name: str) -> PublicSetInfo:
    """Return the data set with this name."""
    sets = public_sets()
    if name not in sets:
        raise FenchelError(f"data set must be one of {', '.join(sets)}, got {name!r}")
    return sets[name]


def base_folder(data: PublicSetInfo, folder: str | Path) -> Path:
    """Return the folder with the files: `folder`, or the folder in it that the archive creates."""
    base = Path(folder)
    if not base.is_dir():
        got = "a file" if base.exists() else "no such folder"
        raise FenchelError(f"{base} must be a folder with {data.name}, unpacked, got {got}")
    return base / data.folder if data.folder and (base / data.folder).is_dir() else base


def public_set_file(data: PublicSetInfo, folder: str | Path, path: str) -> Path:
    """Return a file of a data set, perhaps compressed."""
    base = base_folder(data, folder)
    file = find_file(base / path)
    if file is None:
        raise FenchelError(f"{base} must contain {path} of {data.name} ({data.url})")
    return file


def read_by_name(
    readers: Mapping[str, Callable[..., T]],
    contents: str,
    name: str,
    folder: str | Path,
    options: Mapping[str, str],
) -> T:
    """Read a public data set by the function with its name; unknown names and options are errors.

    Args:
        readers: Functions of the folder and of options given by name.
        contents: What the data sets contain, for errors.
        name: The name of the data set.
        folder: Its folder.
        options: The options of its function.
    """
    if name not in readers:
        raise unknown(f"data set of {contents}", name, readers)
    known = [option for option in signature(readers[name]).parameters if option != "folder"]
    for option in options:
        if option not in known:
            raise unknown(f"option of {name}", option, known)
    return readers[name](folder, **options)


@cache
def public_sets() -> dict[str, PublicSetInfo]:
    """Return all data sets by name."""
    sets = (
        _sigmorphon2018(),
        _multi30k(),
        _small_parallel_enja(),
        _reuters21578(),
        _daquar(),
        _easy_vqa(),
        _mulan(),
        _imdb(),
        _lingnli(),
    )
    return {data.name: data for data in sets}


def _sigmorphon2018() -> PublicSetInfo:
    table = files("fenchel.data") / "counts" / "sigmorphon2018.tsv"
    lines = {}
    for row in table.read_text(encoding="utf-8").splitlines()[1:]:
        folder, language, *counts = row.split("\t")
        for split, count in zip(INFLECTION_SPLITS, map(int, counts), strict=True):
            if count:
                lines[f"{folder}/{language}-{split}"] = count
    return PublicSetInfo(
        name="sigmorphon2018",
        title="CoNLL–SIGMORPHON 2018, task 1: inflection in 103 languages (102 medium, 86 high)",
        url="https://github.com/sigmorphon/conll2018",
        licence="none stated there; from Wiktionary through UniMorph, CC BY-SA 3.0: attribute",
        lines=lines,
        folder="task1",
    )


def _multi30k() -> PublicSetInfo:
    lines = {}
    for language in ("cs", "de", "en", "fr"):
        lines |= {f"train.{language}": 29000, f"val.{language}": 1014}
        lines |= {f"test_2016_flickr.{language}": 1000, f"test_2018_flickr.{language}": 1071}
        if language != "cs":
            lines |= {f"test_2017_flickr.{language}": 1000, f"test_2017_mscoco.{language}": 461}
    return PublicSetInfo(
        name="multi30k",
        title="Multi30k, task 1: captions of pictures in English, German, French, Czech",
        url="https://github.com/multi30k/dataset",
        licence="research use",
        lines=dict(sorted(lines.items())),
        folder="data/task1/raw",
    )


def _small_parallel_enja() -> PublicSetInfo:
    counts = {"train": 50000, "dev": 500, "test": 500}
    return PublicSetInfo(
        name="small_parallel_enja",
        title="small_parallel_enja: short sentences in Japanese and English, tokenised",
        url="https://github.com/odashi/small_parallel_enja",
        licence="none stated; from the Tanaka corpus",
        lines={f"{split}.{side}": n for split, n in counts.items() for side in ("en", "ja")},
    )


def _imdb() -> PublicSetInfo:
    return PublicSetInfo(
        name="imdb",
        title="IMDB: 50,000 film reviews, positive or negative, as one JSON object per line",
        url="https://ai.stanford.edu/~amaas/data/sentiment/",
        licence="none stated",
        lines={"train.jsonl": 25000, "test.jsonl": 25000},
    )


def _lingnli() -> PublicSetInfo:
    return PublicSetInfo(
        name="lingnli",
        title="LingNLI to train on, and the development and test sets of SNLI, in two folders",
        url="https://github.com/Alicia-Parrish/ling_in_loop, https://nlp.stanford.edu/projects/snli/",
        licence="LingNLI: none stated; SNLI: CC BY-SA 4.0",
        lines={
            "lingnli/train.tsv": 44983,
            "lingnli/val.tsv": 7371,
            "snli_devtest/dev.tsv": 9842,
            "snli_devtest/test.tsv": 9824,
        },
    )


def _reuters21578() -> PublicSetInfo:
    return PublicSetInfo(
        name="reuters21578",
        title="Reuters-21578: news of 1987 with titles and topics, as one JSON object per line",
        url="http://www.daviddlewis.com/resources/testcollections/reuters21578/",
        licence="research only",
        lines={"reuters21578.jsonl": 21578},
    )


def _daquar() -> PublicSetInfo:
    return PublicSetInfo(
        name="daquar",
        title="DAQUAR: questions about 1,449 photographs of indoor scenes, one JSON object per line",
        url="https://www.mpi-inf.mpg.de/departments/computer-vision-and-machine-learning/research/"
        "vision-and-language/visual-turing-challenge",
        licence="none stated for the questions; photographs of NYU Depth V2, research use",
        lines={"qa.jsonl": 12468},
    )


def _easy_vqa() -> PublicSetInfo:
    return PublicSetInfo(
        name="easy_vqa",
        title="easy-VQA: questions about 5,000 drawings of a single shape, one JSON object per line",
        url="https://github.com/vzhou842/easy-VQA",
        licence="MIT",
        lines={"train_questions.jsonl": 38575, "test_questions.jsonl": 9673},
    )


def _mulan() -> PublicSetInfo:
    counts = {
        "scene/scene-train.arff": 1515,
        "scene/scene-test.arff": 1500,
        "scene/scene.xml": 9,
        "emotions/emotions-train.arff": 473,
        "emotions/emotions-test.arff": 284,
        "emotions/emotions.xml": 9,
        "birds/birds-train.arff": 605,
        "birds/birds-test.arff": 606,
        "birds/birds.xml": 22,
        "cal500/cal500.arff": 748,
        "cal500/cal500.xml": 177,
    }
    return PublicSetInfo(
        name="mulan",
        title="MULAN: scene, emotions, birds and cal500, sets of examples with several labels",
        url="https://mulan.sourceforge.net/datasets-mlc.html",
        licence="none stated there",
        lines=counts,
    )
