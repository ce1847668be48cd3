"""`fenchel train` and `fenchel evaluate`, as a person uses them on their own files."""

from __future__ import annotations

import errno
import json
import shutil
from unicodedata import normalize

import pytest

from fenchel.tasks import load_run
from tests.cli.conftest import settings


def test_a_run_is_made_from_a_persons_files_and_the_same_command_ends_at_once(fenchel, run, words):
    again = ["train", "inflection", *(f"--{n}={words / n}.tsv" for n in ("train", "dev", "test"))]
    before = (run / "best.pt").stat().st_mtime_ns
    outcome = fenchel(*again, "--out", run, "--epochs", 2, *settings())
    assert outcome.code == 0
    assert (run / "best.pt").stat().st_mtime_ns == before
    assert "accuracy" in outcome.out
    assert "training on 14 examples" in outcome.err
    assert "epoch" not in outcome.err
    assert f"fenchel predict {run}" in outcome.err


def test_another_configuration_does_not_overwrite_a_run(fenchel, run, words):
    files = [f"--{n}={words / n}.tsv" for n in ("train", "dev")]
    before = (run / "config.json").read_bytes()
    outcome = fenchel(
        "train", "inflection", *files, "--out", run, "--epochs", 2, *settings("output_alpha=2")
    )
    assert outcome.code == 2
    setting = "task.model.output_alpha"
    assert f"holds a run with {setting}=1.5, got {setting}=2.0: use the stored" in outcome.err
    assert (run / "config.json").read_bytes() == before


def test_a_finished_run_without_checkpoints_is_not_trained_again(fenchel, run, words, tmp_path):
    copy = shutil.copytree(run, tmp_path / "copy")
    shutil.rmtree(copy / "checkpoints")
    before = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    files = [f"--{n}={words / n}.tsv" for n in ("train", "dev", "test")]
    outcome = fenchel("train", "inflection", *files, "--out", copy, "--epochs", 2, *settings())
    assert outcome.code == 2
    assert "without checkpoints/last.ckpt" in outcome.err
    assert {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()} == before
    assert fenchel("evaluate", copy).code == 0


def test_a_finished_run_takes_another_search_and_another_test_set(fenchel, words, tmp_path):
    folder, files = tmp_path / "run", [f"--{n}={words / n}.tsv" for n in ("train", "dev")]
    command = ["train", "inflection", *files, "--out", folder, "--epochs", 1, *settings()]
    assert fenchel(*command).code == 0
    asked = fenchel(*command, "--test", words / "test.tsv", "--set", "max_length=1")
    assert asked.code == 0, asked.err
    assert "epoch" not in asked.err
    run = load_run(folder)
    assert run.evaluation_examples()[0] == "test"
    assert run.task.search.max_length == 1
    kept = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))["test_evaluation"]
    assert json.loads(fenchel("evaluate", folder, "--json").out) == kept


def test_several_files_may_follow_one_option(fenchel, tmp_path):
    for language in ("english", "german"):
        text = "".join(f"a{k}\tb{k}\tV\n" for k in range(4))
        (tmp_path / f"{language}-train").write_text(text, encoding="utf-8")
    files = [tmp_path / f"{language}-train" for language in ("english", "german")]
    outcome = fenchel(
        "train",
        "inflection",
        "--train",
        *files,
        "--out",
        tmp_path / "run",
        "--epochs",
        1,
        *settings(),
    )
    assert outcome.code == 0, outcome.err
    assert "training on 8 examples" in outcome.err
    assert "no --dev: 1 of them are held out" in outcome.err
    codec = json.loads((tmp_path / "run" / "processor.json").read_text(encoding="utf-8"))
    assert codec["languages"] == ["english", "german"]
    (tmp_path / "words.tsv").write_text("a1\tV\n", encoding="utf-8")
    unsaid = fenchel("predict", tmp_path / "run", tmp_path / "words.tsv")
    assert unsaid.code == 2
    assert "the language must be one of english, german, in a column or as --language" in unsaid.err
    said = fenchel("predict", tmp_path / "run", tmp_path / "words.tsv", "--language", "german")
    assert said.out.startswith("a1 german;V\t")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["inflexion"], "unknown recipe 'inflexion', did you mean 'inflection'? All recipes: "),
        (
            ["inflection", "--set", "hiden_size=3"],
            "unknown setting 'hiden_size', did you mean 'hidden_size'? All ",
        ),
        (["inflection", "--set", "hidden_size=three"], "must be a whole number, got 'three'"),
        (["inflection", "--set", "hidden_size=3"], "hidden_size must be even, got 3"),
        (["inflection", "--seed", str(2**64)], "seed must be at most"),
        (["translation"], "--train FILE with the columns source<tab>target"),
        (["inflection", "--train", "nowhere.tsv"], "nowhere.tsv"),
    ],
)
def test_a_mistake_is_one_message_and_nothing_is_written(
    fenchel, tmp_path, monkeypatch, arguments, message
):
    monkeypatch.chdir(tmp_path)
    outcome = fenchel("train", *arguments)
    assert outcome.code == 2
    assert message in outcome.err
    assert outcome.err.startswith("fenchel: ")
    assert "Traceback" not in outcome.err
    assert outcome.out == ""
    assert list(tmp_path.iterdir()) == []


def test_a_malformed_line_is_named_and_nothing_is_written(fenchel, tmp_path):
    (tmp_path / "own.tsv").write_text("walk\twalked\tV;PST\nwalk walked\n", encoding="utf-8")
    outcome = fenchel(
        "train", "inflection", "--train", tmp_path / "own.tsv", "--out", tmp_path / "r"
    )
    assert outcome.code == 2
    assert "own.tsv:2:" in outcome.err
    assert not (tmp_path / "r").exists()


def test_evaluation_prints_one_object_with_the_main_figure(fenchel, run, words):
    outcome = fenchel("evaluate", run, "--json")
    figures = json.loads(outcome.out)
    assert outcome.code == 0
    assert 0 <= figures["accuracy"] <= 100
    assert figures["examples"] == 3
    assert {"single", "complete", "certified", "attention_support", "output_support"} <= set(
        figures
    )
    kept = json.loads((run / "metrics.json").read_text(encoding="utf-8"))
    assert kept["test_evaluation"] == figures
    other = json.loads(fenchel("evaluate", run, "--data", words / "train.tsv", "--json").out)
    assert other["examples"] == 14
    assert fenchel("evaluate", run, "--beam", 1).code == 0
    assert json.loads((run / "metrics.json").read_text(encoding="utf-8")) == kept


def test_a_run_that_cannot_be_written_to_is_measured(fenchel, run, monkeypatch):
    def refuse(*_):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("fenchel.training.run.save_json", refuse)
    outcome = fenchel("evaluate", run, "--json")
    assert outcome.code == 0
    assert json.loads(outcome.out)["examples"] == 3
    assert "the metrics cannot be stored" in outcome.err
    assert "Permission denied" in outcome.err


def test_what_was_held_out_is_measured_again(fenchel, words, tmp_path):
    own = tmp_path / "own.tsv"
    own.write_bytes((words / "train.tsv").read_bytes())
    folder = tmp_path / "run"
    made = fenchel(
        "train", "inflection", "--train", own, "--out", folder, "--epochs", 1, *settings()
    )
    assert made.code == 0, made.err
    kept = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))["dev_evaluation"]
    assert json.loads(fenchel("evaluate", folder, "--json").out) == kept
    own.write_text("walk\twalked\tV;PST\ntalk\ttalked\tV;PST\n", encoding="utf-8")
    changed = fenchel("report", folder)
    assert changed.code == 2
    assert "the training files of the run have changed" in changed.err
    assert "pass --data FILE" in changed.err


def test_how_a_file_spells_its_letters_does_not_matter(fenchel, tmp_path):
    lines = [f"{stem}é{k}\t{stem}és{k}\tV;PST\n" for stem in "abcd" for k in range(3)]
    own, other = tmp_path / "train.tsv", tmp_path / "dev.tsv"
    own.write_text(normalize("NFC", "".join(lines)), encoding="utf-8")
    other.write_text(normalize("NFD", "".join(lines)), encoding="utf-8")
    made = fenchel(
        "train", "inflection", "--train", own, "--dev", other, "--out", tmp_path / "run",
        "--epochs", 1, *settings(),
    )  # fmt: skip
    assert made.code == 0, made.err
    assert "12 of the 12 dev examples also occur in the training examples" in made.err
    figures = [
        json.loads(fenchel("evaluate", tmp_path / "run", "--data", file, "--json").out)
        for file in (own, other)
    ]
    assert figures[0] == figures[1]
    answers = [fenchel("predict", tmp_path / "run", file) for file in (own, other)]
    assert "does not know" not in answers[1].err
    texts = [[line.split("\t")[1:] for line in each.out.splitlines()] for each in answers]
    assert texts[0] == texts[1]


def test_evaluation_needs_answers_to_compare_with(fenchel, run, tmp_path):
    (tmp_path / "bare.tsv").write_text("walk\tV;PST\n", encoding="utf-8")
    outcome = fenchel("evaluate", run, "--data", tmp_path / "bare.tsv")
    assert outcome.code == 2
    assert "bare.tsv:1:" in outcome.err


def test_a_folder_that_is_no_run_is_named(fenchel, tmp_path):
    for command in ("evaluate", "predict", "report"):
        outcome = fenchel(command, tmp_path)
        assert outcome.code == 2
        assert "config.json is missing" in outcome.err


def test_a_run_cut_short_is_told(fenchel, run, tmp_path):
    copy = shutil.copytree(run, tmp_path / "copy")
    (copy / "best.pt").write_bytes((copy / "best.pt").read_bytes()[:100])
    outcome = fenchel("evaluate", copy)
    assert outcome.code == 2
    assert "best.pt must be a whole file of tensors" in outcome.err
