"""A tiny run, trained once through the command line, and a way to call commands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from fenchel.cli import main

TINY = ["embedding_size=8", "hidden_size=8", "layers=1", "dropout=0", "width=2", "max_length=8"]
TINY += ["training.batch_size=16", "accelerator=cpu"]
STEMS = ["walk", "talk", "call", "jump", "play", "look", "ask", "help", "work", "open"]
WORDS = [
    (stem, stem + end, tag) for stem in STEMS for end, tag in (("ed", "V;PST"), ("s", "V;PRS"))
]


@dataclass(frozen=True)
class Outcome:
    """What a command did."""

    code: int
    out: str
    err: str


Call = Callable[..., Outcome]


@pytest.fixture
def fenchel(capsys) -> Call:
    def call(*arguments: object) -> Outcome:
        with pytest.raises(SystemExit) as left:
            main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        code = left.value.code
        return Outcome(code if isinstance(code, int) else int(bool(code)), printed.out, printed.err)

    return call


def settings(*changes: str) -> list[str]:
    return [word for change in (*TINY, *changes) for word in ("--set", change)]


@pytest.fixture(scope="session")
def words(tmp_path_factory) -> Path:
    """A folder with a person's own files."""
    folder = tmp_path_factory.mktemp("words")
    lines = ["\t".join(word) for word in WORDS]
    for name, part in (("train", lines[:14]), ("dev", lines[14:17]), ("test", lines[17:])):
        (folder / f"{name}.tsv").write_text("\n".join(part) + "\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def run(words, tmp_path_factory) -> Path:
    """A run of the recipe `inflection` on these files."""
    folder = tmp_path_factory.mktemp("runs") / "tiny"
    files = [f"--{name}={words / name}.tsv" for name in ("train", "dev", "test")]
    with pytest.raises(SystemExit) as left:
        main(["train", "inflection", *files, "--out", str(folder), "--epochs", "2", *settings()])
    assert left.value.code in (0, None)
    return folder
