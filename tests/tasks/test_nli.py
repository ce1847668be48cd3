"""Natural-language inference through the command line."""

from __future__ import annotations

import json
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from rich.console import Console

from fenchel.cli import main
from tests.cli import conftest as cli
from tests.tasks.test_documents import ENVIRONMENT, UNTIL_KILLED, contents

fenchel = cli.fenchel
ANIMALS = ["dog", "cat", "horse", "bird", "cow", "fish"]
FILLERS = ["a", "the", "is", "here", "and", "there", "now"]
TINY = ["embedding_size=16", "hidden_size=12", "dropout=0", "min_count=1", "batch_size=16"]
TINY += ["learning_rate=0.02", "accelerator=cpu", "threads=1", "checkpoint_every=4"]
SETTINGS = [word for setting in TINY for word in ("--set", setting)]


def pairs(count: int, seed: int) -> list[tuple[str, str, str]]:
    """A premise with an animal, and a hypothesis that affirms or denies it."""
    draw = random.Random(seed)
    rows = []
    for place in range(count):
        animal = draw.choice(ANIMALS)
        premise = [animal if k == 2 else draw.choice(FILLERS) for k in range(5)]
        hypothesis = f"{('no', 'a')[place % 2]} {animal} ."
        rows.append((("no", "yes")[place % 2], " ".join(premise), hypothesis))
    return rows


def write(path: Path, rows: list[tuple[str, ...]]) -> Path:
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nli")
    for seed, (name, count) in enumerate({"train": 240, "dev": 24, "test": 24}.items()):
        write(folder / f"{name}.tsv", pairs(count, seed))
    return folder


def training(files: Path, out: Path, *changes: object, epochs: int = 1) -> list[str]:
    given = [f"--{name}={files / name}.tsv" for name in ("train", "dev", "test")]
    command = ["train", "nli", *given, "--out", out, "--epochs", epochs, *SETTINGS, *changes]
    return [str(argument) for argument in command]


def trained(files: Path, folder: Path, *changes: object, epochs: int = 1) -> Path:
    with pytest.raises(SystemExit) as left:
        main(training(files, folder, *changes, epochs=epochs))
    assert left.value.code in (0, None)
    return folder


@pytest.fixture(scope="module")
def run(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(files, tmp_path_factory.mktemp("runs") / "tiny", epochs=4)


def test_a_trained_model_is_evaluated(fenchel, run):
    outcome = fenchel("evaluate", run, "--json")
    assert outcome.code == 0
    metrics = json.loads(outcome.out)
    assert metrics["accuracy"] > 75
    assert 1 <= metrics["attention_support"] <= 5
    assert metrics["attention_share"] == pytest.approx(20 * metrics["attention_support"])
    assert metrics["examples"] == 24


def test_predictions_have_the_label_and_the_words_of_the_premise(fenchel, run, tmp_path):
    path = write(tmp_path / "new.tsv", [("a dog is here", "a dog ."), ("the cat", "a bird .")])
    lines = fenchel("predict", run, path).out.splitlines()
    assert [len(line.split("\t")) for line in lines] == [3, 3]
    words = {pair.rpartition(":")[0] for pair in lines[0].split("\t")[2].split()}
    assert words <= {"a", "dog", "is", "here"}
    first, last = map(json.loads, fenchel("predict", run, path, "--json").out.splitlines())
    assert first["premise"] == "a dog is here"
    assert last["hypothesis"] == "a bird ."
    assert [word for word, _ in last["words"]] == ["the", "cat"]
    assert sum(weight for _, weight in first["words"]) == pytest.approx(1)


@pytest.mark.parametrize(
    ("name", "extra", "page"),
    [
        ("none", (), None),
        ("logistic", (), "<mark "),
        ("fusedmax", (), 'class="segment"'),
        ("oscarmax", (), 'class="cluster s0"'),
        ("entmax", ("--set", "attention_alpha=learned"), "<mark "),
    ],
)
def test_every_kind_of_attention_is_shown(fenchel, files, tmp_path, monkeypatch, name, extra, page):
    run = trained(files, tmp_path / name, "--set", f"attention_map={name}", *extra)
    assert fenchel("report", run, "--out", tmp_path / "page.html").code == 0
    html = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert html.count("<article>") > 2
    assert "<mark " not in html if page is None else page in html
    monkeypatch.setattr(
        "fenchel.cli.predict.out", Console(force_terminal=True, width=200, color_system="standard")
    )
    shown = fenchel("predict", run, files / "test.tsv").out
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert all(premise in plain for _, premise, _ in pairs(24, 2))
    assert ("\x1b[4m" in shown) == (name == "fusedmax")


def test_an_unknown_label_is_a_bad_item(fenchel, run, files, tmp_path):
    rows = [*pairs(4, 7), ("maybe", "a dog", "a cat ."), ("yes", "a dog", "a dog .")]
    path = write(tmp_path / "odd.tsv", rows)
    outcome = fenchel("evaluate", run, "--data", path)
    assert outcome.code == 2
    rule = "label must be one of those in training (no, yes), got 'maybe' for 'a dog'"
    assert outcome.err == f"fenchel: {path}:5: {rule}\n"
    outcome = fenchel("evaluate", run, "--data", path, "--skip-bad", "--json")
    assert outcome.code == 0
    assert json.loads(outcome.out)["examples"] == 5
    assert f"1 bad item was skipped: {path}:5: label" in outcome.err
    out = tmp_path / "run"
    command = ["train", "nli", "--train", files / "train.tsv", "--dev", path, "--out", out]
    outcome = fenchel(*command, *SETTINGS)
    assert outcome.code == 2
    assert f"{path}:5: label must be one of those in training" in outcome.err
    assert not out.exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("yes\ta dog\n", ":1: line must have the columns label<tab>premise<tab>hypothesis"),
        ("yes\ta dog\ta dog\nno\ta dog\t \n", ":2: hypothesis must not be blank, got ' '"),
        ("yes\ta dog\ta dog\nno\t\ta dog\n", ":2: premise must not be blank, got ''"),
    ],
)
def test_bad_input_is_named(fenchel, run, tmp_path, text, message):
    (tmp_path / "a.tsv").write_text(text, encoding="utf-8")
    outcome = fenchel("evaluate", run, "--data", tmp_path / "a.tsv")
    assert outcome.code == 2
    assert f"a.tsv{message}" in outcome.err


@pytest.mark.slow
def test_a_killed_run_resumes_and_ends_with_the_same_metrics(fenchel, files, tmp_path):
    whole, killed = trained(files, tmp_path / "whole", epochs=3), tmp_path / "killed"
    command = training(files, killed, epochs=3)
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
    outcome = fenchel(*command)
    assert outcome.code == 0
    assert "resuming " in outcome.err
    assert contents(killed) == contents(whole)
    weights = [torch.load(each / "best.pt", weights_only=True) for each in (killed, whole)]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[1])
