"""The other commands, and what all of them share."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from fenchel.bibliography import ENTRIES
from fenchel.cli import bench, main, repeat_options
from fenchel.cli.program import program
from fenchel.recipes import RECIPES
from fenchel.recipes.reproductions import TABLES
from fenchel.tasks.sequences.predict_options import PICTURES

COMMANDS = ("list", "train", "resume", "evaluate", "predict", "report", "compare")
COMMANDS += ("data", "reproduce", "bench", "cite")


def test_help_names_every_command(fenchel):
    outcome = fenchel("--help")
    assert outcome.code == 0
    for command in COMMANDS:
        assert command in outcome.out


def test_help_says_what_a_line_is(fenchel):
    assert "the columns of the training files without the targets" in " ".join(
        fenchel("predict", "--help").out.split()
    )


def test_help_knows_the_defaults(fenchel):
    shown = " ".join(fenchel("evaluate", "--help").out.replace("│", "").split())
    assert "[default: the run's test set, else its development set]" in shown
    assert "[default: the run's search.width]" in shown
    shown = " ".join(fenchel("train", "--help").out.replace("│", "").split())
    for default in ("runs/RECIPE", "the recipe's", "0", "auto", "1"):
        assert f"[default: {default}]" in shown


def test_help_names_every_kind_of_picture(fenchel):
    shown = fenchel("predict", "--help").out
    assert all(suffix in shown for suffix in PICTURES)


@pytest.mark.parametrize("command", [each for each in COMMANDS if each != "bench"])
def test_every_command_explains_itself(fenchel, command):
    outcome = fenchel(command, "--help")
    assert outcome.code == 0
    assert f"Usage: {program()} {command}" in outcome.out


def test_a_wrong_command_is_refused(fenchel):
    outcome = fenchel("trian")
    assert outcome.code == 2
    assert "train" in outcome.err


def test_the_list_has_every_recipe_and_table(fenchel):
    known = json.loads(fenchel("list", "--json").out)
    assert list(known["recipes"]) == list(RECIPES)
    assert list(known["tables"]) == list(TABLES)
    shown = fenchel("list").out
    assert all(name in shown for name in (*RECIPES, *TABLES))


def test_the_settings_of_a_recipe_are_listed(fenchel):
    values = json.loads(fenchel("list", "--settings", "inflection", "--json").out)
    assert values["task.model.hidden_size"] == 300
    shown = fenchel("list", "--settings", "inflection").out
    assert "task.search.width" in shown
    assert "hypotheses that beam search keeps" in " ".join(shown.split())
    assert fenchel("list", "--settings", "nothing").code == 2


def test_citations_are_bibtex(fenchel):
    assert fenchel("cite").out.count("@") == len(ENTRIES)
    one = fenchel("cite", "sparsemax", "sparsemax_loss")
    assert one.out.count("@") == 1
    wrong = fenchel("cite", "sparsmax")
    assert wrong.code == 2
    assert "did you mean 'sparsemax'? All entries: fenchel cite\n" in wrong.err


def test_the_benchmarks_get_their_options(fenchel, monkeypatch):
    received = []
    module = bench.import_module("benchmarks.__main__")
    monkeypatch.setattr(module, "main", received.append)
    assert fenchel("bench", "--quick", "--only", "sparsemax").code == 0
    assert received == [["--quick", "--only", "sparsemax"]]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["bench"], "--only must be a regular expression, got '('"),
        (["reproduce", "2019-peters/table2"], "--only must be a regular expression, got '('"),
    ],
)
def test_a_pattern_that_is_not_valid_is_named(fenchel, command, message):
    outcome = fenchel(*command, "--only", "(")
    assert outcome.code == 2
    (line,) = outcome.err.splitlines()
    assert line.startswith(f"fenchel: {message}")


def test_without_the_repository_the_benchmarks_are_missed(fenchel, monkeypatch, tmp_path):
    monkeypatch.setattr(bench, "REPOSITORY", tmp_path)
    monkeypatch.setattr(bench, "find_spec", lambda name: None)
    outcome = fenchel("bench")
    assert outcome.code == 2
    assert "a checkout of fenchel" in outcome.err


def test_public_data_sets_are_listed_and_checked(fenchel, tmp_path):
    assert "multi30k" in fenchel("data").out
    assert "https://" in fenchel("data", "multi30k").out
    outcome = fenchel("data", "multi30k", tmp_path)
    assert outcome.code == 1
    assert "is missing" in outcome.out
    wrong = fenchel("data", "multi40k")
    assert wrong.code == 2
    assert "did you mean 'multi30k'?" in wrong.err


def test_version(fenchel):
    assert fenchel("--version").out.startswith("fenchel ")


def test_options_are_repeated_only_where_files_cannot_be_mistaken():
    assert repeat_options(["train", "x", "--train", "a", "b", "--set", "k=v"]) == [
        "train", "x", "--train", "a", "--train", "b", "--set", "k=v"
    ]  # fmt: skip
    assert repeat_options(["predict", "run", "-"]) == ["predict", "run", "-"]
    assert repeat_options(["train", "--train", "a", "x"]) == ["train", "--train", "a", "x"]
    assert repeat_options([]) == []


def by_hand(*_):
    raise KeyboardInterrupt


def by_lightning(*_):
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt:
        sys.exit(1)


@pytest.mark.parametrize("interrupt", [by_hand, by_lightning])
def test_an_interruption_says_how_to_resume_where_one_can(fenchel, monkeypatch, interrupt):
    monkeypatch.setattr("fenchel.recipes.make_recipe", interrupt)
    outcome = fenchel("train", "inflection")
    assert outcome.code == 130
    assert "the same command resumes from the last checkpoint" in outcome.err
    monkeypatch.setattr("fenchel.cli.cite.citation", interrupt)
    outcome = fenchel("cite")
    assert outcome.code == 130
    assert outcome.err == "fenchel: interrupted\n"
    monkeypatch.setattr("fenchel.cli.repeat_options", interrupt)
    assert fenchel().err == "fenchel: interrupted\n"


def test_a_file_that_cannot_be_written_is_named(fenchel, run, words):
    inside_a_file = words / "train.tsv" / "page.html"
    outcome = fenchel("report", run, "--out", inside_a_file)
    assert outcome.code == 2
    assert outcome.err.endswith("train.tsv: File exists\n")


def test_what_the_output_cannot_encode_is_escaped():
    command = [sys.executable, "-m", "fenchel", "list"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    found = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert r"\u03b1" in found.stdout


def test_missing_extras_are_named(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "typer", None)
    with pytest.raises(SystemExit) as left:
        main(["list"])
    assert left.value.code == 2
    assert "fenchel[train]" in capsys.readouterr().err


def test_a_reader_that_leaves_early_is_no_error():
    command = f"{sys.executable} -m fenchel cite | head -1"
    found = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)
    assert found.stdout.startswith("@")
    assert found.stderr == ""
