"""Text classification through the command line."""

from __future__ import annotations

import csv
import io
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from rich.console import Console
from rich.text import Text

from fenchel.cli import main
from fenchel.cli.console import SafeConsole
from fenchel.tasks import load_run
from tests.cli import conftest as cli
from tests.cli.unsafe import unsafe

fenchel = cli.fenchel
ROOT = Path(__file__).parents[2]
ENVIRONMENT = {
    **os.environ,
    "OMP_NUM_THREADS": "1",
    "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
}

WORDS = ["film", "plot", "actors", "music", "story", "ending", "was", "is", "the", "and"]
OPINIONS = {"good": ["superb", "lovely"], "bad": ["awful", "dull"]}
TINY = ["embedding_size=16", "hidden_size=8", "dropout=0", "min_count=1", "attention_alpha=2"]
TINY += ["training.batch_size=8", "learning_rate=0.02", "accelerator=cpu", "threads=1"]
SETTINGS = [word for setting in TINY for word in ("--set", setting)]


def texts(count: int, seed: int) -> list[tuple[str, str]]:
    """Labels and texts with one opinion, which decides on the label."""
    draw = random.Random(seed)
    rows = []
    for place in range(count):
        label = ("good", "bad")[place % 2]
        words = draw.choices(WORDS, k=draw.randint(3, 7))
        words.insert(draw.randint(0, len(words)), draw.choice(OPINIONS[label]))
        rows.append((label, f"{' '.join(words)}."))
    return rows


def write(path: Path, rows: list[tuple[str, str]]) -> Path:
    path.write_text("".join(f"{label}\t{text}\n" for label, text in rows), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("documents")
    for seed, (name, count) in enumerate({"train": 96, "dev": 16, "test": 16}.items()):
        write(folder / f"{name}.tsv", texts(count, seed))
    return folder


def training(files: Path, out: Path, *changes: object, epochs: int = 3) -> list[str]:
    """The arguments of a training."""
    given = [f"--{name}={files / name}.tsv" for name in ("train", "dev", "test")]
    command = ["train", "documents", *given, "--out", out, "--epochs", epochs, *SETTINGS, *changes]
    return [str(argument) for argument in command]


@pytest.fixture(scope="module")
def run(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "tiny"
    with pytest.raises(SystemExit) as left:
        main(training(files, folder))
    assert left.value.code in (0, None)
    return folder


@pytest.fixture
def piped(monkeypatch: pytest.MonkeyPatch):
    def give(text: str) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    return give


def test_a_trained_classifier_is_evaluated(fenchel, run):
    outcome = fenchel("evaluate", run, "--json")
    assert outcome.code == 0
    metrics = json.loads(outcome.out)
    assert metrics["accuracy"] > 80
    assert metrics["f1_macro"] > 80
    assert 1 <= metrics["attention_support"] < 8
    assert metrics["examples"] == 16
    assert json.loads((run / "metrics.json").read_text())["test_evaluation"] == metrics
    shown = fenchel("evaluate", run).out
    assert "% correct labels" in shown
    assert "words attended, on average" in shown


def test_labels_may_be_numbers_in_jsonl(fenchel, files, run, tmp_path):
    paths = {}
    for name in ("train", "dev", "test"):
        rows = [line.split("\t") for line in (files / f"{name}.tsv").read_text().splitlines()]
        objects = [{"text": text, "label": int(label == "good")} for label, text in rows]
        paths[name] = tmp_path / f"{name}.jsonl"
        paths[name].write_text("".join(json.dumps(each) + "\n" for each in objects))
    given = [f"--{name}={path}" for name, path in paths.items()]
    out = tmp_path / "run"
    outcome = fenchel("train", "documents", *given, "--out", out, "--epochs", 3, *SETTINGS)
    assert outcome.code == 0, outcome.err
    assert load_run(out).processor.labels == ["0", "1"]
    figures = [json.loads(fenchel("evaluate", each, "--json").out) for each in (run, out)]
    assert figures[0]["accuracy"] == figures[1]["accuracy"]
    (first, *_) = fenchel("predict", out, paths["test"]).out.splitlines()
    assert first.split("\t")[0] in ("0", "1")


def test_every_line_of_a_file_gets_a_label_and_the_words_attended(fenchel, run, tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("the superb story\n\nan awful, awful plot\n", encoding="utf-8")
    outcome = fenchel("predict", run, path)
    assert outcome.code == 0
    assert outcome.err == "blank lines have no prediction: 1 of 3 lines\n"
    first, blank, last = outcome.out.splitlines()
    assert blank == ""
    for line, label, words in (
        (first, "good", "the superb story"),
        (last, "bad", "an awful , plot"),
    ):
        best, probability, attended = line.split("\t")
        assert best == label
        assert 0.5 <= float(probability) <= 1
        pairs = [pair.rpartition(":") for pair in attended.split()]
        assert {word for word, _, _ in pairs} <= set(words.split())
        weights = [float(weight) for _, _, weight in pairs]
        assert weights == sorted(weights, reverse=True)
        assert sum(weights) == pytest.approx(1, abs=0.05)


def test_json_has_the_labels_by_probability_and_the_weight_of_every_word(fenchel, run, tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("The superb story.\n\nmusic\n", encoding="utf-8")
    first, blank, last = map(json.loads, fenchel("predict", run, path, "--json").out.splitlines())
    assert blank is None
    assert first["text"] == "The superb story."
    assert [word for word, _ in first["words"]] == ["the", "superb", "story", "."]
    assert last["words"] == [["music", 1]]
    for each in (first, last):
        probabilities = list(each["labels"].values())
        assert probabilities == sorted(probabilities, reverse=True)
        assert sum(probabilities) == pytest.approx(1)
        assert sum(weight for _, weight in each["words"]) == pytest.approx(1)
    assert next(iter(first["labels"])) == "good"


def test_a_pipe_a_labelled_file_and_bare_texts_get_the_same_predictions(fenchel, run, files, piped):
    rows = [line.split("\t") for line in (files / "test.tsv").read_text().splitlines()]
    labelled = fenchel("predict", run, files / "test.tsv")
    assert labelled.code == 0, labelled.err
    piped("".join(f"{text}\n" for _, text in rows))
    assert fenchel("predict", run, "-").out == labelled.out
    correct = [line.split("\t")[0] for line in labelled.out.splitlines()]
    accuracy = sum(a == b for a, (b, _) in zip(correct, rows, strict=True)) / len(rows)
    assert 100 * accuracy == json.loads(fenchel("evaluate", run, "--json").out)["accuracy"]


def test_a_terminal_shows_words_without_weight_dimmed(fenchel, run, files, monkeypatch):
    monkeypatch.setattr(
        "fenchel.cli.predict.out", Console(force_terminal=True, width=200, color_system="standard")
    )
    shown = fenchel("predict", run, files / "test.tsv").out
    dim, predictions = set(re.findall(r"\x1b\[2m(\w+) ", shown)), shown.splitlines()
    assert len(predictions) == 16
    assert dim
    assert dim <= set(WORDS)


def test_a_terminal_shows_unsafe_characters_escaped(fenchel, run, tmp_path, monkeypatch):
    path = tmp_path / "texts.jsonl"
    path.write_text(json.dumps({"text": "a \x1b[31m superb \x9b5m film \u202e"}), encoding="utf-8")
    monkeypatch.setattr("fenchel.cli.predict.out", SafeConsole(force_terminal=True, width=150))
    shown = Text.from_ansi(fenchel("predict", run, path).out).plain
    assert not unsafe(shown)
    assert r"\x1b" in shown
    assert r"\u202e" in shown


def test_a_report_highlights_words_and_dims_those_of_weight_zero(fenchel, run, files, tmp_path):
    outcome = fenchel("report", run, "--out", tmp_path / "page.html", "--examples", 16)
    assert outcome.code == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.count("<article>") == 16
    predictions = [
        json.loads(line)
        for line in fenchel("predict", run, files / "test.tsv", "--json").out.splitlines()
    ]
    weights = [weight for each in predictions for _, weight in each["words"]]
    assert 0 in weights
    assert page.count('class="zero"') == weights.count(0)
    assert page.count("<mark ") == len(weights) - weights.count(0)
    assert "dimmed words have weight exactly zero" in page
    for heading in ("Results", "Training", "Settings"):
        assert f">{heading}<" in page


def test_a_report_without_examples_does_not_announce_any(fenchel, run, tmp_path):
    fenchel("report", run, "--out", tmp_path / "page.html", "--examples", 0)
    assert ">Examples<" not in (tmp_path / "page.html").read_text(encoding="utf-8")


def contents(folder: Path) -> tuple[list[dict[str, str]], dict[str, object]]:
    """The log without times, and the metrics."""
    with (folder / "log.csv").open() as file:
        rows = [{k: v for k, v in row.items() if k != "seconds"} for row in csv.DictReader(file)]
    return rows, json.loads((folder / "metrics.json").read_text())


UNTIL_KILLED = """
import sys, time
from fenchel import cli
from fenchel.cli import train

def wait(record):
    while record["epoch"] == 3:
        time.sleep(1)

train.on_validation = lambda describe: wait
cli.main(sys.argv[1:])
"""


@pytest.mark.slow
def test_a_killed_run_resumes_and_ends_with_the_same_metrics(fenchel, files, tmp_path):
    changes = ("--set", "checkpoint_every=5")
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert fenchel(*training(files, whole, *changes)).code == 0
    command = training(files, killed, *changes)
    process = subprocess.Popen(
        [sys.executable, "-c", UNTIL_KILLED, *command], env=ENVIRONMENT, stderr=subprocess.PIPE
    )
    checkpoint, deadline = killed / "checkpoints" / "last.ckpt", time.monotonic() + 240
    done = 0
    while not done and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
        if checkpoint.exists():
            done = torch.load(checkpoint, weights_only=True)["progress"]["segments"]
    process.send_signal(signal.SIGKILL)
    _, told = process.communicate()
    assert process.returncode == -signal.SIGKILL, told.decode()
    assert 0 < done < 9
    outcome = fenchel(*command)
    assert outcome.code == 0
    assert "resuming " in outcome.err
    assert contents(killed) == contents(whole)
    weights = [torch.load(each / "best.pt", weights_only=True) for each in (killed, whole)]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[1])


@pytest.mark.slow
def test_two_processes_train_as_one_does_with_batches_of_twice_the_size(fenchel, files, tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    assert fenchel(*training(files, one, "--set", "training.batch_size=16", epochs=2)).code == 0
    command = training(files, two, "--devices", 2, "--strategy", "ddp", epochs=2)
    subprocess.run(
        [sys.executable, "-m", "fenchel", *command],
        env={**ENVIRONMENT, "PYTHONWARNINGS": "error::FutureWarning"},
        check=True,
        timeout=240,
    )
    ours, theirs = contents(one)[0], contents(two)[0]
    for row, other in zip(ours, theirs, strict=True):
        for name in ("loss", "accuracy", "attention_support"):
            assert float(row[name]) == pytest.approx(float(other[name]), rel=1e-3), name


def save_text(path: Path, vectors: dict[str, np.ndarray]) -> Path:
    path = path.with_suffix(".txt")
    lines = [f"{word} {' '.join(map(str, vector.tolist()))}\n" for word, vector in vectors.items()]
    path.write_text("".join(lines), encoding="utf-8")
    return path


def save_npz(path: Path, vectors: dict[str, np.ndarray]) -> Path:
    path = path.with_suffix(".npz")
    words = np.frombuffer("\n".join(vectors).encode(), np.uint8)
    np.savez(path, words=words, vectors=np.stack([*vectors.values()]))
    return path


@pytest.mark.parametrize("save", [save_text, save_npz])
def test_pretrained_embeddings_are_copied_to_their_words(fenchel, files, tmp_path, save):
    draw = np.random.default_rng(0)
    vectors = {word: draw.standard_normal(16).astype(np.float32) for word in [*WORDS, "unseen"]}
    path, out = save(tmp_path / "vectors", vectors), tmp_path / "run"
    changes = ("--set", f"embeddings={path}", "--set", "freeze_embeddings=true")
    outcome = fenchel(*training(files, out, *changes, epochs=1))
    assert outcome.code == 0, outcome.err
    trained = load_run(out)
    weight, vocabulary = trained.model.embedding.weight, trained.processor.vocabulary
    for word in WORDS:
        (row,) = vocabulary.ids([word])
        np.testing.assert_array_equal(weight[row].numpy(), vectors[word])
    (own,) = vocabulary.ids(["superb"])
    assert 0 < weight[own].abs().max() <= 0.1  # as it was drawn

    wrong = fenchel(*training(files, tmp_path / "w", *changes, "--set", "embedding_size=8"))
    assert wrong.code == 2
    assert path.name in wrong.err
    assert "size 8" in wrong.err or "8 numbers" in wrong.err
    assert not (tmp_path / "w").exists()


def test_embeddings_that_are_missing_are_named(fenchel, files, tmp_path):
    for name in ("nowhere.txt", "nowhere.npz"):
        wrong = fenchel(*training(files, tmp_path / "w", "--set", f"embeddings={tmp_path / name}"))
        assert wrong.code == 2
        assert name in wrong.err
        assert "No such file" in wrong.err


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "a.tsv",
            "good\tfine\nneutral\tthe film\n",
            "must be one of those in training (bad, good), got 'neutral' for 'the film'",
        ),
        ("a.tsv", "good\tfine\nbad\t \n", "a.tsv:2: text must not be blank"),
        ("a.tsv", "good\tfine\nbad\n", "a.tsv:2: line must have the columns label<tab>text"),
        ("a.jsonl", '{"label": "good"}\n', "a.jsonl:1: object must have the key 'text'"),
        ("a.jsonl", '{"label": "good", "text": ""}\n', "a.jsonl:1: text must not be blank"),
    ],
)
def test_bad_input_is_named(fenchel, run, tmp_path, name, text, message):
    (tmp_path / name).write_text(text, encoding="utf-8")
    outcome = fenchel("evaluate", run, "--data", tmp_path / name)
    assert outcome.code == 2
    assert message in outcome.err
    assert len(outcome.err.splitlines()) == 1
    assert outcome.out == ""


def test_a_single_label_cannot_be_learned(fenchel, tmp_path):
    path = write(tmp_path / "one.tsv", [("good", f"text {k}") for k in range(4)])
    outcome = fenchel("train", "documents", "--train", path, "--out", tmp_path / "run")
    assert outcome.code == 2
    assert outcome.err.endswith("examples must have at least two labels, got good\n")
    assert not (tmp_path / "run").exists()
    assert "label<tab>text" in fenchel("train", "documents").err


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("predict", ["--lattice"]),
        ("predict", ["--exact"]),
        ("predict", ["--answers", "2"]),
        ("predict", ["--language", "english"]),
        ("evaluate", ["--beam", "2"]),
    ],
)
def test_an_option_of_another_task_is_refused(fenchel, run, files, command, option):
    arguments = [files / "test.tsv"] if command == "predict" else []
    outcome = fenchel(command, run, *arguments, *option)
    assert outcome.code == 2
    name, message = option[0], "cannot be used with a run of the task documents"
    assert outcome.err == f"fenchel: {name} {message}\n"
    assert outcome.out == ""


def test_two_classifiers_are_compared(fenchel, run, tmp_path):
    other = shutil.copytree(run, tmp_path / "other")
    page = tmp_path / "page.html"
    outcome = fenchel("compare", run, other, "--json", "--html", page)
    assert outcome.code == 0, outcome.err
    metrics = json.loads(outcome.out)
    assert metrics["tiny"] == metrics["other"]
    assert "accuracy: % correct labels" in page.read_text(encoding="utf-8")
