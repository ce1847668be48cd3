"""`--skip-bad` skips bad lines of a person's files in every command, and says which."""

from __future__ import annotations

import json
import shutil

import pytest

from fenchel.tasks import load_run
from tests.cli.conftest import WORDS, settings


@pytest.fixture
def damaged(tmp_path):
    """Files with the words of `run` and bad lines: one, two and one of them."""
    lines = ["\t".join(word) for word in WORDS]
    files = {
        "train": [*lines[:5], "walk", *lines[5:14]],
        "dev": ["walk\twalked\t;", *lines[14:17], "\tsaw\tV;PST"],
        "test": [lines[17], "play", *lines[18:]],
    }
    for name, part in files.items():
        (tmp_path / f"{name}.tsv").write_text("\n".join(part) + "\n", encoding="utf-8")
    return tmp_path


def test_a_run_skips_bad_lines_now_and_later(fenchel, run, damaged):
    """Its model is that of the good lines alone."""
    files = [f"--{name}={damaged / name}.tsv" for name in ("train", "dev", "test")]
    folder = damaged / "run"
    command = ["train", "inflection", *files, "--out", folder, "--epochs", 2, *settings()]
    outcome = fenchel(*command)
    assert outcome.code == 2
    assert f"{damaged}/train.tsv:6: line must have the columns" in outcome.err
    assert not folder.exists()
    outcome = fenchel(*command, "--skip-bad")
    assert outcome.code == 0
    assert f"4 bad items were skipped: {damaged}/train.tsv:6: line must have" in outcome.err
    stored, other = load_run(folder), load_run(run)
    assert stored.digest == other.digest
    for name, value in stored.model.state_dict().items():
        assert value.equal(other.model.state_dict()[name])
    outcome = fenchel("evaluate", folder)
    assert outcome.code == 0
    assert f"1 bad item was skipped: {damaged}/test.tsv:2: line must have" in outcome.err
    assert fenchel("resume", folder).code == 0


@pytest.mark.parametrize("command", ["evaluate", "report"])
def test_evaluations_skip_bad_lines(fenchel, run, damaged, command):
    copy = shutil.copytree(run, damaged / "copy")
    data = damaged / "test.tsv"
    outcome = fenchel(command, copy, f"--data={data}")
    assert (outcome.code, outcome.out) == (2, "")
    assert f"{data}:2: line must have the columns" in outcome.err
    outcome = fenchel(command, copy, f"--data={data}", "--skip-bad")
    assert outcome.code == 0
    assert f"1 bad item was skipped: {data}:2: " in outcome.err


def test_a_file_of_bad_lines_alone_is_an_error(fenchel, run, tmp_path):
    path = tmp_path / "bad.tsv"
    path.write_text("walk\n", encoding="utf-8")
    outcome = fenchel("evaluate", run, f"--data={path}", "--skip-bad")
    assert outcome.code == 2
    assert "bad.tsv must have at least one example; 1 bad item was skipped:" in outcome.err


def test_predictions_leave_an_empty_row_for_a_bad_line(fenchel, run, tmp_path):
    path = tmp_path / "words.tsv"
    path.write_text("walk\tV;PST\nplay\t;\nplay\tV;PRS\n", encoding="utf-8")
    outcome = fenchel("predict", run, path)
    assert (outcome.code, outcome.out) == (2, "")
    outcome = fenchel("predict", run, path, "--skip-bad", "--json")
    assert outcome.code == 0
    rows = [json.loads(line) for line in outcome.out.splitlines()]
    assert [row and row["source"] for row in rows] == ["walk", None, "play"]
    assert "blank and bad lines have no prediction: 1 of 3 lines" in outcome.err
    assert f"1 bad item was skipped: {path}:2: tags must not be blank" in outcome.err
