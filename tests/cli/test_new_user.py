"""What new users tried and expected to work, beside what the other files of this folder test."""

from __future__ import annotations

import html
import io
import json
import os
import pickle
import re
import shutil
import subprocess
import sys
import threading
from dataclasses import fields, replace
from pathlib import Path
from types import ModuleType

import pytest
import torch

import fenchel as library
from fenchel.cli.evaluate import show
from fenchel.recipes import RECIPES, make_recipe
from fenchel.search import Answer, Hypothesis
from fenchel.tasks import load_run
from fenchel.training import Evaluation
from tests.cli.conftest import STEMS, settings

EMPTY_ANSWER = Answer((Hypothesis.of((), -0.1, finished=True),), dropped=0.5)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def typed(monkeypatch):
    """What comes on standard input, from a pipe or from a person."""

    def give(text: str, *, person: bool = False) -> None:
        stream = Terminal(text) if person else io.TextIOWrapper(io.BytesIO(text.encode()))
        monkeypatch.setattr(sys, "stdin", stream)

    return give


@pytest.fixture(scope="module")
def pairs(tmp_path_factory) -> Path:
    """Two columns of strings: words and the same read backwards."""
    path = tmp_path_factory.mktemp("pairs") / "train.tsv"
    path.write_text("".join(f"{stem}\t{stem[::-1]}\n" for stem in STEMS), encoding="utf-8")
    return path


def training(words: Path, out: Path, *changes: str, epochs: int = 2) -> list[object]:
    """The command that made the run of these tests, into another folder."""
    files = [f"--{name}={words / name}.tsv" for name in ("train", "dev", "test")]
    return [
        *("train", "inflection", *files, "--out", out, "--epochs", epochs),
        *settings("threads=1", *changes),
    ]


# Predictions


def test_a_blank_line_in_a_file_has_an_empty_row(fenchel, run, tmp_path):
    path = tmp_path / "words.tsv"
    path.write_text("walk\tV;PST\n\nplay\tV;PRS\n", encoding="utf-8")
    outcome = fenchel("predict", run, path)
    assert outcome.code == 0
    first, blank, last = outcome.out.splitlines()
    assert (first.split("\t")[0], blank, last.split("\t")[0]) == ("walk V;PST", "", "play V;PRS")
    assert outcome.err == "blank lines have no prediction: 1 of 3 lines\n"
    objects = [
        json.loads(line) for line in fenchel("predict", run, path, "--json").out.splitlines()
    ]
    assert [each and each["source"] for each in objects] == ["walk", None, "play"]


def test_a_picture_without_matplotlib_fails_before_the_search(
    fenchel, run, words, tmp_path, monkeypatch
):
    def search(*_, **__):
        raise AssertionError("searched")

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr("fenchel.tasks.sequences.predictor.decode", search)
    path = tmp_path / "picture.svg"
    outcome = fenchel("predict", run, words / "test.tsv", "--lattice", "--picture", path)
    assert outcome.code == 2
    assert "matplotlib must be installed" in outcome.err
    assert "fenchel[plot]" in outcome.err
    assert outcome.out == ""
    assert not path.exists()


def test_an_empty_answer_is_shown(fenchel, run, words, tmp_path, monkeypatch):
    def nothing(models, codec, examples, **_):
        return [EMPTY_ANSWER] * len(examples)

    monkeypatch.setattr("fenchel.tasks.sequences.predictor.decode", nothing)
    for line in fenchel("predict", run, words / "test.tsv").out.splitlines():
        assert line.split("\t")[1] == "(empty)"
    shown = json.loads(fenchel("predict", run, words / "test.tsv", "--json").out.splitlines()[0])
    assert shown["answers"][0]["text"] == ""
    monkeypatch.setattr("fenchel.tasks.sequences.task.decode", nothing)
    assert fenchel("report", run, "--out", tmp_path / "page.html").code == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    headings = re.findall(r"<h3>(.*?)</h3>", page)
    assert len(headings) == 3
    assert all(heading.endswith(" → <bdi>(empty)</bdi>") for heading in headings)


def test_the_same_line_is_understood_typed_and_piped(fenchel, run, words, tmp_path, typed):
    for line in ("walk V;PST", "walk\tV;PST", "  walk  V;PST  "):
        typed(f"{line}\n", person=True)
        by_hand = fenchel("predict", run, "-")
        typed(f"{line}\n")
        piped = fenchel("predict", run, "-")
        assert piped.code == by_hand.code == 0, piped.err
        assert piped.out == by_hand.out != ""
    for language in ("english", "german"):
        shutil.copy(words / "train.tsv", tmp_path / f"{language}-train.tsv")
    files = sorted(tmp_path.glob("*-train.tsv"))
    out = tmp_path / "run"
    command = ["train", "inflection", "--train", *files, "--out", out, "--epochs", 1, *settings()]
    assert fenchel(*command).code == 0
    typed("walk V;PST german\nplay V;PRS english\n")
    shown = fenchel("predict", out, "-").out.splitlines()
    asked = [line.split("\t")[0] for line in shown]
    assert asked == ["walk german;V;PST", "play english;V;PRS"]
    for line in ("walk V;PST german", "walk\tV;PST\tgerman"):
        typed(f"{line}\n", person=True)
        by_hand = fenchel("predict", out, "-")
        typed(f"{line}\n")
        assert fenchel("predict", out, "-").out == by_hand.out
        assert by_hand.out.startswith("walk german;V;PST\t")


def test_the_only_language_of_a_run_may_be_typed(fenchel, words, tmp_path, typed):
    file, out = shutil.copy(words / "train.tsv", tmp_path / "german-train.tsv"), tmp_path / "run"
    command = ["train", "inflection", "--train", file, "--out", out, "--epochs", 1, *settings()]
    assert fenchel(*command).code == 0
    answers = []
    for line in ("walk V;PST", "walk V;PST german"):
        typed(f"{line}\n")
        answers.append(fenchel("predict", out, "-").out)
    assert answers[0] == answers[1] != ""


def test_a_picture_shows_the_first_line_of_a_pipe(run, tmp_path):
    path, stored = tmp_path / "picture.svg", load_run(run)
    predictor = stored.task.predictor(
        stored, stored.task.predict_options(lattice=True, picture=path)
    )
    predictor.finish([], [])
    for line, is_drawn in (("walk V;PST", True), ("play V;PST", False)):
        examples = [predictor.parse(line)]
        predictor.finish(examples, predictor.predict(examples))
        assert path.exists() == is_drawn
        path.unlink(missing_ok=True)


def test_a_long_text_is_below_the_table_of_metrics(run, capsys):
    stored = load_run(run)
    signature = "bleu: " + "nrefs:1|case:mixed|" * 6
    show(stored, Evaluation({"accuracy": 50.0, "signature": signature}, []), "dev")
    printed = capsys.readouterr().out.splitlines()
    assert printed[-1] == f"signature: {signature}"
    assert any(line.split()[:2] == ["accuracy", "50"] for line in printed)


def test_a_page_names_the_command_that_makes_it_again(fenchel, run, words, tmp_path):
    data, page = tmp_path / "data.tsv", tmp_path / "page.html"
    rows = (words / "test.tsv").read_text(encoding="utf-8")
    data.write_text(f"lemma\tinflected\ttags\n{rows}", encoding="utf-8")
    chosen = [f"--data={data}", "--columns=form=inflected"]
    assert fenchel("report", run, "--out", page, *chosen).code == 0
    assert " ".join(chosen) in html.unescape(page.read_text(encoding="utf-8"))
    other = shutil.copytree(run, tmp_path / "other")
    assert fenchel("compare", run, other, "--html", page, *chosen).code == 0
    assert " ".join(chosen) in html.unescape(page.read_text(encoding="utf-8"))


@pytest.mark.slow
def test_a_pipe_is_answered_line_by_line(run):
    process = subprocess.Popen(
        [sys.executable, "-m", "fenchel", "predict", str(run), "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    late = threading.Timer(120, process.kill)  # a command that waits for more would never answer
    late.start()
    try:
        for word in ("walk", "play", "jump"):
            process.stdin.write(f"{word} V;PST\n")
            assert process.stdout.readline().startswith(f"{word} V;PST\t")
        process.stdin.close()
        assert process.stdout.read() == ""
        assert process.wait() == 0
    finally:
        late.cancel()
        process.kill()
        process.stdout.close()
        process.wait()


def test_a_language_for_a_run_without_languages_is_refused(fenchel, run, words):
    outcome = fenchel("predict", run, words / "test.tsv", "--language", "german")
    assert outcome.code == 2
    assert outcome.err == f"fenchel: --language cannot be used: {run} has no languages\n"
    assert outcome.out == ""


# Training and resuming


def test_the_same_command_says_whether_it_resumes_or_the_run_is_finished(fenchel, words, tmp_path):
    command = training(words, tmp_path / "run", "max_seconds=1e-6")
    first = fenchel(*command)
    assert "time ran out before the last epoch; the same command resumes training" in first.err
    assert "resuming" not in first.err
    second = fenchel(*command)
    assert "resuming after epoch 1\nepoch 2 " in second.err
    third = fenchel(*command)
    assert "the run is finished" in third.err
    for outcome in (first, second, third):
        assert outcome.code == 0
        assert outcome.err.count("the run is finished") == (outcome is third)
        assert outcome.err.count("epoch 1 ") == (outcome is first)
        assert outcome.err.count("the same command resumes it") == (outcome is not third)


def test_a_run_is_resumed_by_its_folder(fenchel, run, tmp_path):
    copy = shutil.copytree(run, tmp_path / "copy")
    before = {path: path.read_bytes() for path in copy.glob("*.*") if path.name != "metrics.json"}
    outcome = fenchel("resume", copy)
    assert outcome.code == 0
    assert "the run is finished" in outcome.err
    assert {path: path.read_bytes() for path in before} == before

    outcome = fenchel("resume", copy, "--set", "epochs=3", "--set", "threads=1")
    assert outcome.code == 0
    assert "resuming after epoch 2\nepoch 3 " in outcome.err
    assert "the run is finished" not in outcome.err
    resumed = load_run(copy)
    assert (resumed.training.epochs, resumed.training.threads) == (3, 1)
    assert [row.split(",")[0] for row in resumed.log_path.read_text().splitlines()[1:]] == list(
        "123"
    )

    refused = fenchel("resume", copy, "--set", "hidden_size=10")
    assert refused.code == 2
    assert "task.model.hidden_size=8, got task.model.hidden_size=10" in refused.err
    missing = fenchel("resume", tmp_path / "nowhere")
    assert missing.code == 2
    assert "config.json is missing" in missing.err


def test_the_configuration_of_a_run_trains_an_equal_one(fenchel, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    outcome = fenchel("train", "--config", run / "config.json", "--out", "again")
    assert outcome.code == 0, outcome.err
    again, original = load_run("again"), load_run(run)
    assert again.recipe == original.recipe
    assert (again.source, again.digest) == (original.source, original.digest)
    assert again.metrics == original.metrics

    changed = fenchel("train", "--config", run / "config.json", "--out", "other", "--epochs", 1)
    assert changed.code == 0, changed.err
    training = replace(original.training, epochs=1)
    assert load_run("other").recipe == replace(original.recipe, training=training)


def test_settings_may_be_in_a_file_of_their_own(fenchel, words, tmp_path):
    path = tmp_path / "own.yaml"
    path.write_text("task:\n  model:\n    output_alpha: 2\nlearning_rate: 0.1\n", encoding="utf-8")
    out = tmp_path / "run"
    outcome = fenchel(*training(words, out, "learning_rate=0.2", epochs=1), "--config", path)
    assert outcome.code == 0, outcome.err
    made = load_run(out)
    assert made.task.model.output_alpha == 2
    assert made.training.learning_rate == 0.2
    unnamed = fenchel("train", "--config", path)
    assert unnamed.code == 2
    assert "RECIPE must be given" in unnamed.err
    path.write_text("hiden_size: 8\n", encoding="utf-8")
    wrong = fenchel("train", "inflection", "--config", path)
    assert wrong.code == 2
    assert "unknown setting 'hiden_size', did you mean 'hidden_size'?" in wrong.err


def test_the_small_preset_can_be_changed(fenchel, words, tmp_path):
    out = tmp_path / "run"
    outcome = fenchel(*training(words, out, epochs=1), "--preset", "small")
    assert outcome.code == 0, outcome.err
    made = load_run(out)
    assert (made.training.schedule, made.task.model.attention) == ("cosine", "dot")
    assert made.task.model.hidden_size == 8
    wrong = fenchel("train", "inflection", "--preset", "smal")
    assert wrong.code == 2
    assert "unknown preset 'smal', did you mean 'small'?" in wrong.err


def test_another_segmentation_in_an_old_folder_is_named(fenchel, run, words):
    outcome = fenchel(*training(words, run, "segmentation=words"))
    assert outcome.code == 2
    assert "task.data.segmentation='characters', got task.data.segmentation='words'" in outcome.err
    assert "training data" not in outcome.err


@pytest.mark.parametrize("recipe", RECIPES)
def test_settings_derived_from_the_data_are_neither_listed_nor_set(fenchel, recipe):
    listed = json.loads(fenchel("list", "--settings", recipe, "--json").out)
    names = {path.rpartition(".")[2] for path in listed}
    assert "epochs" in names
    assert ("hidden_size" in names) == (recipe != "multilabel")  # linear models have none
    derived = {
        "source_size",
        "target_size",
        "vocabulary_size",
        "classes",
        "feature_count",
        "label_count",
    }
    assert not names & derived
    model = make_recipe(recipe).task.model  # pyright: ignore[reportAttributeAccessIssue]
    for size in derived & {each.name for each in fields(model)}:
        outcome = fenchel("train", recipe, "--set", f"{size}=9")
        assert outcome.code == 2
        message = f"{size} is derived from the data and cannot be set"
        assert outcome.err == f"fenchel: {message}\n"


def test_threads_are_a_setting(fenchel, words, tmp_path):
    listed = json.loads(fenchel("list", "--settings", "inflection", "--json").out)
    assert listed["training.threads"] is None
    assert fenchel(*training(words, tmp_path / "run", epochs=1)).code == 0
    assert load_run(tmp_path / "run").training.threads == 1
    wrong = fenchel("train", "inflection", "--set", "threads=0")
    assert wrong.code == 2
    assert "threads must be a whole number of at least 1, got 0" in wrong.err


# Data


def test_pairs_of_strings_have_a_recipe_with_accuracy(fenchel, pairs, tmp_path):
    out = tmp_path / "run"
    files = ["--train", pairs, "--dev", pairs]
    outcome = fenchel(
        "train", "transduction", *files, "--out", out, "--epochs", 1, *settings("threads=1")
    )
    assert outcome.code == 0, outcome.err
    assert outcome.out.split("meaning")[1].split()[1] == "accuracy"
    metrics = json.loads(fenchel("evaluate", out, "--json").out)
    assert 0 <= metrics["accuracy"] <= 100
    assert metrics["examples"] == len(STEMS)
    assert len(fenchel("predict", out, pairs).out.splitlines()) == len(STEMS)


def test_pairs_given_to_inflection_name_the_recipe_for_pairs(fenchel, pairs, run):
    for command in (["train", "inflection", "--train", pairs], ["evaluate", run, "--data", pairs]):
        outcome = fenchel(*command)
        assert outcome.code == 2
        assert f"{pairs}:1: line must have the columns lemma<tab>form<tab>tags" in outcome.err
        assert "for pairs of strings use the recipe transduction" in outcome.err


def test_null_is_called_null(fenchel, tmp_path):
    path = tmp_path / "pairs.jsonl"
    path.write_text('{"source": "a", "target": "b"}\n{"source": "a", "target": null}\n')
    outcome = fenchel("train", "transduction", "--train", path, "--out", tmp_path / "run")
    assert outcome.code == 2
    assert outcome.err == f"fenchel: {path}:2: target must not be null\n"


def test_columns_may_have_other_names(fenchel, tmp_path):
    path, out = tmp_path / "pairs.tsv", tmp_path / "run"
    rows = "".join(f"{k}\t{stem[::-1]}\t{stem}\n" for k, stem in enumerate(STEMS))
    path.write_text(f"id\tAnswer\tQuestion\n{rows}", encoding="utf-8")
    named = ["--columns", "source=question", "--columns", "target=answer"]
    command = ["train", "transduction", "--train", path, "--dev", path, "--out", out, "--epochs", 1]
    outcome = fenchel(*command, *named, *settings("threads=1"))
    assert outcome.code == 0, outcome.err
    assert json.loads(fenchel("evaluate", out, "--json").out)["examples"] == len(STEMS)
    shown = fenchel("predict", out, path, "--columns", "source=question").out.splitlines()
    assert [line.split("\t")[0] for line in shown] == STEMS

    for content in ("a\tb\tc\n1\t2\t3\n", '{"a": "1", "b": "2"}\n'):
        others = tmp_path / ("others.jsonl" if content.startswith("{") else "others.tsv")
        others.write_text(content)
        hint = "(--columns FIELD=NAME maps other names)"
        assert hint in fenchel("train", "transduction", "--train", others, "--out", out).err
    unnamed = fenchel(*command, "--columns", "target=answer")
    assert unnamed.code == 2
    assert "pairs.tsv:1: header must have the columns source, answer, got " in unnamed.err
    wrong = fenchel(*command, "--columns", "targt=answer")
    assert "unknown field 'targt', did you mean 'target'?" in wrong.err
    wrong = fenchel(*command, "--columns", "target")
    assert "--columns must be FIELD=NAME, got 'target'" in wrong.err


# Comparisons


def test_runs_are_compared_on_the_same_examples(fenchel, run, tmp_path):
    other, page = shutil.copytree(run, tmp_path / "other"), tmp_path / "pages" / "page.html"
    outcome = fenchel("compare", run, other, "--html", page, "--json", "--examples", 2)
    assert outcome.code == 0, outcome.err
    metrics = json.loads(outcome.out)
    assert list(metrics) == ["tiny", "other"]
    assert metrics["tiny"] == metrics["other"] == json.loads(fenchel("evaluate", run, "--json").out)
    text = page.read_text(encoding="utf-8")
    for heading in ("Side by side", "Settings"):
        assert f">{heading}<" in text
    for name in ("tiny", "other"):
        assert f">{name}<" in text
    assert f"fenchel compare {run} {other}" in text
    assert str(page) in outcome.err

    shown = fenchel("compare", run, other)
    header = next(line for line in shown.out.splitlines() if "metric" in line)
    assert header.split() == ["metric", "tiny", "other"]
    assert "accuracy: % correct answers" in shown.out
    assert "languages" not in shown.out


def test_runs_with_different_main_metrics_are_compared(fenchel, run, tmp_path):
    config = json.loads((run / "config.json").read_text(encoding="utf-8"))
    config["recipe"]["task"]["metric"] = "bleu"
    other, page = shutil.copytree(run, tmp_path / "other"), tmp_path / "page.html"
    (other / "config.json").write_text(json.dumps(config), encoding="utf-8")
    shown = fenchel("compare", run, other, "--html", page)
    assert shown.code == 0, shown.err
    assert re.search(r"\nsignature: how BLEU and chrF were computed: bleu: nrefs:1", shown.out)
    text = page.read_text(encoding="utf-8")
    assert "tiny reaches" in text
    assert "% accuracy" in text
    assert "BLEU, attending" in text


def test_what_cannot_be_compared_is_refused(fenchel, run, tmp_path):
    for folders in ([run], [run, run]):
        outcome = fenchel("compare", *folders)
        assert outcome.code == 2
        assert outcome.err == "fenchel: compare requires at least two different runs, got 1\n"
    assert "no run found in" in fenchel("compare", run, tmp_path).err
    path, other = tmp_path / "train.tsv", tmp_path / "documents"
    path.write_text("good\ta superb film\nbad\ta dull film\n", encoding="utf-8")
    small = ["embedding_size=4", "hidden_size=4", "min_count=1", "accelerator=cpu", "threads=1"]
    command = ["train", "documents", "--train", path, "--dev", path, "--out", other, "--epochs", 1]
    made = fenchel(*command, *(word for each in small for word in ("--set", each)))
    assert made.code == 0, made.err
    outcome = fenchel("compare", run, other)
    assert outcome.code == 2
    rule = "all runs of a comparison must have the same task"
    assert outcome.err == f"fenchel: {rule}, got tiny (sequences), documents (documents)\n"


# The program and the package


def test_a_stored_model_that_asks_for_code_is_refused_without_advice_to_run_it(
    fenchel, run, tmp_path
):
    class Harm:
        def __reduce__(self):
            return Path.touch, (tmp_path / "harmed",)

    copy = shutil.copytree(run, tmp_path / "copy")
    torch.save({"weights": Harm()}, copy / "best.pt")
    outcome = fenchel("evaluate", copy)
    assert outcome.code == 2
    reason = "must be a whole file of tensors, got: a request to run code, which is refused"
    assert outcome.err == f"fenchel: {copy / 'best.pt'} {reason}\n"
    (copy / "best.pt").write_bytes(pickle.dumps(Harm()))
    outcome = fenchel("evaluate", copy)
    assert outcome.code == 2
    assert "weights_only" not in outcome.err
    assert not (tmp_path / "harmed").exists()


def test_the_package_is_a_program():
    command = [sys.executable, "-m", "fenchel", "--version"]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert found.stdout == f"fenchel {library.__version__}\n"


def test_the_package_lists_its_public_names_and_loads_subpackages_when_they_are_used():
    script = "import sys, fenchel; print('fenchel.training' in sys.modules, "
    script += "fenchel.search.beam_search.__name__, fenchel.training.fit.__name__)"
    command = [sys.executable, "-c", script]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert found.stdout == "False beam_search fit\n"

    listed = set(dir(library))
    assert set(library.__all__) <= listed
    others = listed - set(library.__all__) - {"__version__"}
    assert {"data", "models", "search", "tasks", "training"} <= others
    assert all(isinstance(getattr(library, name), ModuleType) for name in others)
    with pytest.raises(AttributeError, match="module 'fenchel' has no attribute 'serach'"):
        library.serach  # noqa: B018


def test_the_benchmarks_explain_themselves(fenchel):
    for flag in ("--help", "-h"):
        outcome = fenchel("bench", flag)
        assert outcome.code == 0
        for option in ("--quick", "--only", "--device"):
            assert option in outcome.out


@pytest.mark.parametrize("command", ["", "list", "predict", "evaluate", "compare", "reproduce"])
def test_flags_are_shown_without_a_type(fenchel, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "120")
    shown = fenchel(*filter(None, [command]), "--help").out
    assert re.search(r"--help\s+-h\s+Show this message", shown)
    assert "<bool>" not in shown
    usage = next(line for line in shown.splitlines() if "Usage:" in line)
    assert not any(mark in usage for mark in ("[[", "{", "…"))
    if command == "predict":
        assert re.search(r"--lattice\s+Draw all answers", shown)
        assert re.search(r"--beam\s+<int>\s+Number of hypotheses", shown)
