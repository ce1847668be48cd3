"""Transformers through the command line: training, resuming, accumulation, bad input."""

from __future__ import annotations

import csv
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from fenchel import FenchelError
from fenchel.cli import main
from fenchel.recipes import make_recipe
from fenchel.tasks import load_run
from tests.cli import conftest as cli

fenchel = cli.fenchel
ROOT = Path(__file__).parents[3]
ENVIRONMENT = {
    **os.environ,
    "OMP_NUM_THREADS": "1",
    "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
}

WORDS = {"eins": "one", "zwei": "two", "drei": "three", "vier": "four", "fünf": "five"}
TINY = [
    "metric=accuracy",
    "segmentation=words",
    "hidden_size=32",
    "heads=2",
    "layers=2",
    "feedforward_size=64",
]
TINY += ["dropout=0", "training.batch_size=8", "batch_tokens=none", "learning_rate=0.01"]
TINY += ["warmup_steps=40", "average=3", "width=2", "max_length=8", "accelerator=cpu", "threads=1"]
UNTIL_KILLED = """
import sys, time
from fenchel.cli import main
from fenchel.training import recorder

write_log = recorder.write_log

def wait(run, history):
    write_log(run, history)
    while history[-1]["epoch"] == run.training.epochs:
        time.sleep(1)

recorder.write_log = wait
main(sys.argv[1:])
"""


def sentences(count: int, seed: int) -> list[tuple[str, str]]:
    """Numbers in German and in English, in the same order."""
    draw = random.Random(seed)
    numbers = [draw.choices([*WORDS], k=draw.randint(1, 3)) for _ in range(count)]
    return [(" ".join(each), " ".join(map(WORDS.get, each))) for each in numbers]  # pyright: ignore


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("numbers")
    for seed, (name, count) in enumerate({"train": 160, "dev": 16, "test": 16}.items()):
        pairs = sentences(count, seed)
        for ending, side in zip(("de", "en"), zip(*pairs, strict=True), strict=True):
            (folder / f"{name}.{ending}").write_text("\n".join(side) + "\n", encoding="utf-8")
    return folder


def training(files: Path, out: Path, *changes: str, epochs: int = 12, **more: object) -> list[str]:
    words = ["train", "transformer"]
    for name in ("train", "dev", "test"):
        words += [f"--{name}", str(files / f"{name}.de"), str(files / f"{name}.en")]
    words += ["--out", str(out), "--epochs", str(epochs)]
    words += [word for name, value in more.items() for word in (f"--{name}", str(value))]
    return words + [word for change in (*TINY, *changes) for word in ("--set", change)]


@pytest.fixture(scope="module")
def run(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "numbers"
    with pytest.raises(SystemExit) as left:
        main(training(files, folder))
    assert left.value.code in (0, None)
    return folder


def log_of(folder: Path) -> list[dict[str, str]]:
    with (folder / "log.csv").open(encoding="utf-8", newline="") as file:
        return [{k: v for k, v in row.items() if k != "seconds"} for row in csv.DictReader(file)]


def test_it_learns_and_answers(fenchel, run, tmp_path):
    metrics = json.loads(fenchel("evaluate", run, "--json").out)
    assert metrics["accuracy"] > 60
    assert metrics["token_accuracy"] > 80
    assert 1 < metrics["alpha"] < 2
    (tmp_path / "numbers.txt").write_text("".join(f"{word}\n" for word in WORDS), encoding="utf-8")
    answers = fenchel("predict", run, tmp_path / "numbers.txt").out.splitlines()
    found = [tuple(line.split("\t")[:2]) for line in answers]
    assert len(set(found) & {*WORDS.items()}) >= 4


def test_alpha_of_every_head_is_in_the_log_the_metrics_and_the_report(fenchel, run, tmp_path):
    names = {f"alpha.{kind}.{layer}.{head}" for kind in ("encoder", "context", "decoder")
             for layer in (0, 1) for head in (0, 1)}  # fmt: skip
    for row in log_of(run):
        found = {name: float(value) for name, value in row.items() if name.startswith("alpha.")}
        assert found.keys() == names
        assert all(1 < alpha < 2 for alpha in found.values())
    first, last = log_of(run)[0], log_of(run)[-1]
    assert all(first[name] != last[name] for name in names)
    best = json.loads((run / "metrics.json").read_text(encoding="utf-8"))["dev"]
    stored = {name: float(best[name]) for name in names}
    learned = load_run(run).task.model_values(load_run(run).model)
    assert stored == pytest.approx(learned)
    page = tmp_path / "report.html"
    assert fenchel("report", run, "--out", page, "--examples", 2).code == 0
    text = page.read_text(encoding="utf-8")
    assert "Learned alpha: encoder, layer 0" in text
    assert "Learned alpha: context, layer 1" in text


def test_a_validation_is_printed_with_the_range_of_alpha_only(fenchel, files, tmp_path):
    outcome = fenchel(*training(files, tmp_path / "run", "alpha_start=1.25", epochs=1))
    (line,) = (line for line in outcome.err.splitlines() if line.startswith("epoch 1"))
    assert line.count("alpha ") == 1
    assert "alpha.encoder" not in line
    fixed = fenchel(*training(files, tmp_path / "fixed", "attention_alpha=1.5", epochs=1))
    assert "alpha" not in fixed.err
    assert not any(name.startswith("alpha.") for name in log_of(tmp_path / "fixed")[0])


@pytest.mark.slow
def test_a_killed_run_resumes_and_ends_with_the_same_metrics(fenchel, files, tmp_path):
    """With dropout, accumulation, averages, and several checkpoints per epoch."""
    changes = ("dropout=0.1", "accumulate=2", "checkpoint_every=1", "training.batch_size=20")
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert fenchel(*training(files, whole, *changes, epochs=6)).code == 0
    command = training(files, killed, *changes, epochs=6)
    process = subprocess.Popen(
        [sys.executable, "-c", UNTIL_KILLED, *command], env=ENVIRONMENT, stderr=subprocess.PIPE
    )
    checkpoint, deadline = killed / "checkpoints" / "last.ckpt", time.monotonic() + 240
    done = 0
    while done < 8 and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
        if checkpoint.exists():
            done = torch.load(checkpoint, weights_only=True)["progress"]["segments"]
    process.send_signal(signal.SIGKILL)
    _, told = process.communicate()
    assert process.returncode == -signal.SIGKILL, told.decode()
    assert 8 <= done < 6 * 3
    outcome = fenchel(*command)
    assert outcome.code == 0
    assert "resuming after epoch" in outcome.err
    assert log_of(killed) == log_of(whole)
    metrics = [(each / "metrics.json").read_text(encoding="utf-8") for each in (killed, whole)]
    assert metrics[0] == metrics[1]
    weights = [torch.load(each / "best.pt", weights_only=True) for each in (killed, whole)]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[1])


@pytest.mark.slow
def test_two_processes_accumulate_as_one_takes_larger_batches(fenchel, files, tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    assert fenchel(*training(files, one, "training.batch_size=160", epochs=4)).code == 0
    changes = ("training.batch_size=7", "accumulate=100")
    command = training(files, two, *changes, epochs=4, devices=2, strategy="ddp")
    subprocess.run(
        [sys.executable, "-m", "fenchel", *command],
        env={**ENVIRONMENT, "PYTHONWARNINGS": "error::FutureWarning"},
        check=True,
        timeout=240,
    )
    for row, other in zip(log_of(one), log_of(two), strict=True):
        for name in ("loss", "accuracy", "attention_support", "alpha.context.1.0"):
            assert float(row[name]) == pytest.approx(float(other[name]), rel=2e-3), name


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("attention_map=entmaxx", "attention_map must be one of softmax, entmax, got 'entmaxx'"),
        ("heads=3", "hidden_size must be divisible by heads, got 32 and 3 heads"),
        ("attention_alpha=-1", "attention_alpha must be above 0 and finite, got -1"),
        ("attention_alpha=learnt", 'attention_alpha must be a positive number or "learned"'),
        ("context_alpha=0", "context_alpha must be above 0 and finite, got 0"),
        ("alpha_start=2", "alpha_start must be strictly between 1 and 2"),
        ("joint=false", 'share_embeddings="joint" requires data.joint=true'),
        ("max_positions=8", "search.max_length must be below max_positions = 8, got 8"),
        ("schedule=sqrt", "schedule must be one of halve, cosine, inverse-sqrt, got 'sqrt'"),
        ("accumulate=0", "accumulate must be a whole number of at least 1, got 0"),
        ("average=0", "average must be a whole number of at least 1, got 0"),
    ],
)
def test_a_wrong_setting_is_one_message_and_nothing_is_written(
    fenchel, files, tmp_path, change, message
):
    outcome = fenchel(*training(files, tmp_path / "run", change))
    assert outcome.code == 2
    assert message in outcome.err
    assert outcome.err.startswith("fenchel: ")
    assert not (tmp_path / "run").exists()


def test_a_sequence_longer_than_the_positions_is_named(fenchel, files, run, tmp_path):
    folder = shutil.copytree(files, tmp_path / "files")
    long = " ".join(["eins"] * 10)
    for name, ending, which, kind in (
        ("train", "de", "source", "training"),
        ("dev", "en", "target", "development"),
    ):
        path = folder / f"{name}.{ending}"
        before = path.read_text(encoding="utf-8")
        path.write_text(
            before.replace("\n", f"\n{long}\n", 1).rpartition("\n")[0].rpartition("\n")[0] + "\n"
        )
        outcome = fenchel(*training(folder, tmp_path / "run", "max_positions=9"))
        assert outcome.code == 2
        assert f"{kind} data: a {which} must have at most max_positions = 9 symbols" in outcome.err
        assert "in example 2: 'eins eins" in outcome.err
        path.write_text(before, encoding="utf-8")
    tiny = tmp_path / "tiny"
    assert fenchel(*training(files, tiny, "max_positions=9", epochs=1)).code == 0
    (tmp_path / "long.txt").write_text(f"zwei\n{long}\n", encoding="utf-8")
    outcome = fenchel("predict", tiny, tmp_path / "long.txt")
    assert outcome.code == 2
    assert (
        "a source must have at most max_positions = 9 symbols, got 10 in example 2" in outcome.err
    )


def test_a_file_without_a_known_symbol_is_refused(fenchel, run, tmp_path):
    (tmp_path / "other.tsv").write_text("один\tone\nдва\ttwo\n", encoding="utf-8")
    outcome = fenchel("evaluate", run, "--data", tmp_path / "other.tsv")
    assert outcome.code == 2
    assert "sources must have symbols that the model knows, got none, as in 'один'" in outcome.err


def test_it_trains_in_mixed_precision_from_a_given_number_of_symbols(fenchel, files, tmp_path):
    changes = ("precision=bf16-mixed", "batch_tokens=40", "training.batch_size=64", "clip=1")
    outcome = fenchel(*training(files, tmp_path / "run", *changes, epochs=2))
    assert outcome.code == 0, outcome.err
    losses = [float(row["loss"]) for row in log_of(tmp_path / "run")]
    assert losses[1] < losses[0] < 3


def test_more_epochs_may_follow(fenchel, files, tmp_path):
    for epochs in (1, 2):
        assert fenchel(*training(files, tmp_path / "parts", epochs=epochs)).code == 0
    assert fenchel(*training(files, tmp_path / "whole", epochs=2)).code == 0
    assert log_of(tmp_path / "parts") == log_of(tmp_path / "whole")


def test_the_recipe_is_the_papers_size():
    made = make_recipe("transformer")
    model, config = made.task.model, made.training
    assert (model.layers, model.heads, model.hidden_size, model.feedforward_size) == (
        6,
        8,
        512,
        2048,
    )
    assert (model.attention_alpha, model.alpha_start, model.output_alpha) == (
        "learned",
        "random",
        1,
    )
    assert (model.label_smoothing, model.share_embeddings, made.task.data.joint) == (
        0.1,
        "joint",
        True,
    )
    assert (config.batch_tokens, config.schedule, config.beta2) == (8192, "inverse-sqrt", 0.98)
    with pytest.raises(FenchelError, match="requires data"):
        make_recipe("transformer", ["joint=false"])
