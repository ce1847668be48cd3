"""Visual question answering through the command line."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from fenchel.cli import main
from tests.cli import conftest as cli
from tests.pictures import bomb, drawing

fenchel = cli.fenchel
ROOT = Path(__file__).parents[2]
PATHS = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
COLOURS = {"red": (210, 30, 30), "green": (20, 160, 40), "blue": (30, 40, 210), "black": (5, 5, 5)}
TINY = ["task.grid=2", "embedding_size=8", "hidden_size=16", "heads=2", "layers=1", "dropout=0"]
TINY += ["feedforward_size=16", "attention_bases=9", "basis_width=0.3", "min_count=1"]
TINY += ["training.batch_size=8", "learning_rate=0.02", "warmup_steps=0", "accelerator=cpu"]
SETTINGS = [word for setting in (*TINY, "threads=1") for word in ("--set", setting)]
QUESTIONS = ("what colour is it ?", "which colour is the drawing ?", "what colour is the drawing ?")


@pytest.fixture(scope="module", autouse=True)
def _own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Questions about the colours of drawings, in a folder with the drawings."""
    folder = tmp_path_factory.mktemp("questions")
    (folder / "drawings").mkdir()
    for name, colour in COLOURS.items():
        for place in range(2):
            shade = tuple(min(part + 12 * place, 255) for part in colour)
            drawing(folder / "drawings" / f"{name}{place}.png", shade)
    rows = [
        f"drawings/{name}{place}.png\t{question}\t{name}"
        for question in QUESTIONS
        for place in range(2)
        for name in COLOURS
    ]
    for name, part in (("train", rows), ("dev", rows[::3]), ("test", rows[1::3])):
        (folder / f"{name}.tsv").write_text("\n".join(part) + "\n", encoding="utf-8")
    return folder


def training(files: Path, out: Path, *changes: object, epochs: int = 6) -> list[str]:
    """The arguments of a training."""
    given = [f"--{name}={files / name}.tsv" for name in ("train", "dev", "test")]
    command = ["train", "vqa", *given, "--out", out, "--epochs", epochs, *SETTINGS, *changes]
    return [str(argument) for argument in command]


@pytest.fixture(scope="module")
def run(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a truncated paraboloid over the image and sparse weights of the cells."""
    folder = tmp_path_factory.mktemp("runs") / "tiny"
    changes = ("--set", "attention=moments", "--set", "attention_map=sparsemax")
    with pytest.raises(SystemExit) as left:
        main(training(files, folder, *changes))
    assert left.value.code in (0, None)
    return folder


def test_a_trained_model_is_evaluated(fenchel, run):
    metrics = json.loads(fenchel("evaluate", run, "--json").out)
    assert metrics["accuracy"] > 80
    assert metrics["accuracy"] <= metrics["wups"] <= metrics["wups_0"] <= 100
    assert 1 <= metrics["attention_support"] <= 4
    assert metrics["examples"] == 8
    assert "% WUPS at 0.9" in fenchel("evaluate", run).out


def test_every_question_gets_an_answer_and_what_was_attended(fenchel, run, files):
    outcome = fenchel("predict", run, files / "test.tsv")
    rows = [line.split("\t") for line in outcome.out.splitlines()]
    expected = [line.split("\t")[2] for line in (files / "test.tsv").read_text().splitlines()]
    correct = sum(row[0] == answer for row, answer in zip(rows, expected, strict=True))
    metrics = json.loads(fenchel("evaluate", run, "--json").out)
    assert 100 * correct / len(rows) == metrics["accuracy"]
    for line in fenchel("predict", run, files / "test.tsv", "--json").out.splitlines():
        found = json.loads(line)
        assert [word for word, _ in found["words"]] == found["question"].split()
        assert sum(weight for _, weight in found["words"]) == pytest.approx(1)
        assert sum(map(sum, found["cells"])) == pytest.approx(1)
        assert [len(row) for row in found["cells"]] == [2, 2]
        assert all(0 < place < 1 for place in found["density"]["mean"])
        probabilities = list(found["answers"].values())
        assert probabilities == sorted(probabilities, reverse=True)


def test_a_report_draws_weights_and_ellipses_on_the_photographs(fenchel, run, tmp_path):
    page = tmp_path / "page.html"
    assert fenchel("report", run, "--out", page, "--examples", 4).code == 0
    text = page.read_text(encoding="utf-8")
    assert text.count("<article>") == 4
    assert text.count("data:image/jpeg;base64,") == 8
    assert text.count('stroke="#ff3b30"') == 4 * 4  # a boundary and three rings
    assert text.count('fill="black"') == 4 * 4  # the cells


def test_an_answer_that_training_did_not_have_counts_as_wrong(fenchel, run, files, tmp_path):
    path = tmp_path / "a.tsv"
    drawing = files / "drawings" / "red0.png"
    path.write_text(f"{drawing}\t{QUESTIONS[0]}\tviolet\n{drawing}\t{QUESTIONS[0]}\tred\n")
    metrics = json.loads(fenchel("evaluate", run, "--data", path, "--json").out)
    assert metrics["accuracy"] in (0, 50)
    assert metrics["examples"] == 2


BAD = {
    "missing": ("nowhere.png\twhat colour ?\tred", "image must be readable, got "),
    "damaged": ("damaged.png\twhat colour ?\tred", "image must be readable, got "),
    "bomb": ("bomb.png\twhat colour ?\tred", "image must have at most 50,000,000 pixels, got "),
    "empty": ("red.png\t \tred", "question must not be blank"),
    "unknown": ("red.png\twieso weshalb warum\tred", "question must have a word that occurs in"),
    "columns": (
        "red.png\twhat colour ?",
        "line must have the columns image<tab>question<tab>answer",
    ),
}


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    whole = drawing(tmp_path / "red.png", COLOURS["red"]).read_bytes()
    (tmp_path / "damaged.png").write_bytes(whole[:60])
    bomb(tmp_path / "bomb.png")
    return tmp_path


@pytest.mark.parametrize("kind", BAD)
def test_bad_input_is_named_with_its_line(fenchel, run, pictures, kind):
    line, message = BAD[kind]
    good = f"red.png\t{QUESTIONS[0]}\tred"
    path = pictures / "a.tsv"
    path.write_text(f"{good}\n{line}\n{good}\n", encoding="utf-8")
    for command in (("evaluate", run, "--data", path), ("predict", run, path)):
        outcome = fenchel(*command)
        assert outcome.code == 2
        assert f"{path}:2: {message}" in outcome.err
        assert outcome.out == ""


def test_bad_lines_are_skipped_and_counted_on_request(fenchel, run, files, pictures):
    good = f"red.png\t{QUESTIONS[0]}\tred"
    lines = [good, *(line for line, _ in BAD.values()), good]
    path = pictures / "a.tsv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    outcome = fenchel("evaluate", run, "--data", path, "--skip-bad", "--json")
    assert json.loads(outcome.out)["examples"] == 2
    assert f"6 bad items were skipped: {path}:2: " in outcome.err
    outcome = fenchel("predict", run, path, "--skip-bad")
    assert outcome.out.count("\n") == 8
    assert "6 bad items were skipped" in outcome.err
    out = pictures / "run"
    command = ["train", "vqa", "--train", files / "train.tsv", "--dev", path, "--out", out]
    outcome = fenchel(*command, "--epochs", 1, *SETTINGS)
    assert outcome.code == 2
    assert f"{path}:2: image must be readable" in outcome.err
    assert not out.exists()
    outcome = fenchel(*command, "--epochs", 1, *SETTINGS, "--skip-bad")
    assert outcome.code == 0
    assert "6 bad items were skipped" in outcome.err


def test_a_grid_that_would_fill_the_memory_is_refused(fenchel, files, tmp_path):
    outcome = fenchel(*training(files, tmp_path / "run", "--set", "task.grid=65"))
    assert (outcome.code, outcome.err) == (2, "fenchel: grid must be at most 64, got 65\n")


def contents(folder: Path) -> tuple[list[dict[str, str]], dict[str, object]]:
    """The log without times, and the metrics."""
    with (folder / "log.csv").open() as file:
        rows = [{k: v for k, v in row.items() if k != "seconds"} for row in csv.DictReader(file)]
    return rows, json.loads((folder / "metrics.json").read_text())


@pytest.mark.slow
def test_a_killed_run_resumes_and_ends_with_the_same_metrics(fenchel, files, tmp_path):
    changes = ("--set", "checkpoint_every=1", "--set", "attention=combined")
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert fenchel(*training(files, whole, *changes, epochs=2)).code == 0
    command = training(files, killed, *changes, epochs=2)
    process = subprocess.Popen(
        [sys.executable, "-m", "fenchel", *command],
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": PATHS},
        stderr=subprocess.PIPE,
    )
    checkpoint, deadline = killed / "checkpoints" / "last.ckpt", time.monotonic() + 240
    done = 0
    while not done and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
        if checkpoint.exists():
            done = torch.load(checkpoint, weights_only=True)["progress"]["segments"]
    process.send_signal(signal.SIGKILL)
    _, told = process.communicate()
    assert process.returncode == -signal.SIGKILL, told.decode()
    assert done < 6
    outcome = fenchel(*command)
    assert outcome.code == 0
    assert "resuming " in outcome.err
    assert contents(killed) == contents(whole)
