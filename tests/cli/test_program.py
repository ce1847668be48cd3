"""The commands that the program prints can be run as they are printed."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from fenchel.cli.program import program
from tests.cli.conftest import settings


def executable(folder: Path) -> Path:
    """A console script of this interpreter."""
    folder.mkdir(parents=True)
    path = folder / "fenchel"
    path.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m fenchel "$@"\n')
    path.chmod(0o755)
    return path


@pytest.fixture
def script(tmp_path, monkeypatch) -> Path:
    """The console script of this installation, in a folder that is not on PATH."""
    path = executable(tmp_path / "a checkout" / ".venv" / "bin")
    monkeypatch.setattr(sysconfig, "get_path", lambda *_: str(path.parent))
    monkeypatch.setenv("PATH", os.defpath)
    return path


def test_a_script_on_the_path_is_named_alone(script, monkeypatch):
    monkeypatch.setenv("PATH", str(script.parent))
    assert program() == "fenchel"


def test_a_script_below_the_working_directory_is_named_from_there(script, monkeypatch):
    monkeypatch.chdir(script.parents[2])
    assert program() == ".venv/bin/fenchel"


def test_a_script_elsewhere_is_named_in_full_and_quoted(script, monkeypatch, tmp_path_factory):
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert program() == f"'{script}'"


def test_in_its_own_folder_a_script_has_more_than_its_name(script, monkeypatch):
    monkeypatch.chdir(script.parent)
    assert program() == f"'{script}'"


def test_the_script_of_another_installation_is_not_meant(script, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(executable(tmp_path / "other").parent))
    monkeypatch.chdir(script.parents[2])
    assert program() == ".venv/bin/fenchel"


def test_without_a_script_the_module_is_run(script, monkeypatch):
    script.unlink()
    assert program() == shlex.join([sys.executable, "-m", "fenchel"])


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (["--help"], "{} train inflection --out runs/first"),
        (["predict", "--help"], "Usage: {} predict "),
        (["predict", "--beem"], "Try '{} predict "),
        (["list"], "recipes: {} train RECIPE"),
        (["list"], "papers: {} reproduce PAPER/TABLE"),
        (["data"], "public data sets: {} data NAME"),
        (["data", "multi30k"], "{} data multi30k FOLDER"),
        (["--show-completion", "bash"], "complete -o default -F _fenchel_completion fenchel"),
    ],
)
def test_commands_that_are_printed_name_the_script(script, arguments, command):
    """In a process of its own: help is made when the commands are imported."""
    code = (
        f"import sysconfig; sysconfig.get_path = lambda *_: {str(script.parent)!r}\n"
        f"from fenchel.cli import main; main({arguments!r})"
    )
    detection = "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION"
    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd=script.parents[2],
        env={**os.environ, "COLUMNS": "200", detection: "1"},
        capture_output=True,
        text=True,
    )
    assert command.format(".venv/bin/fenchel") in ran.stdout + ran.stderr


def test_the_next_steps_run_as_they_are_printed(fenchel, script, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = "my runs"
    outcome = fenchel(
        "train", "inflection", "--train", words / "train.tsv", "--out", folder, "--epochs", 1,
        *settings(),
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    (commands,) = re.findall(r"^next: (.*)$", outcome.err, flags=re.MULTILINE)
    predict, report = commands.split(", ")
    for command in (predict.replace("FILE", shlex.quote(f"{words / 'test.tsv'}")), report):
        ran = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
