"""Training: it learns, keeps its folder whole, and goes on after anything."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from lightning.pytorch import Trainer
from lightning.pytorch.plugins import MixedPrecision

from fenchel import FenchelError
from fenchel.training import Run, TrainingConfig, fit, predict, score
from fenchel.training import trainer as trainer_file
from fenchel.training.progress import Record, in_words
from tests.implementations import needs_gpu
from tests.training import small
from tests.training.small import CODEC, DEV, MODEL, fit_small

ROOT = Path(__file__).parents[2]
SETTINGS = {"epochs": 8, "checkpoint_every": 5, "monitor": "exact"}  # three segments an epoch


def _contents(folder: Path) -> dict[str, Any]:
    """What must not depend on interruptions: figures and weights."""
    with (folder / "log.csv").open() as file:
        rows = [{k: v for k, v in row.items() if k != "seconds"} for row in csv.DictReader(file)]
    return {
        "metrics": json.loads((folder / "metrics.json").read_text()),
        "log": rows,
        "weights": torch.load(folder / "best.pt", weights_only=True),
    }


def _assert_same(first: Path, second: Path) -> None:
    ours, theirs = _contents(first), _contents(second)
    for name, weight in ours.pop("weights").items():
        assert torch.equal(weight, theirs["weights"][name]), name
    del theirs["weights"]
    assert ours == theirs


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was never interrupted."""
    folder = tmp_path_factory.mktemp("runs") / "trained"
    fit_small(folder, **SETTINGS)
    return folder


def test_training_learns_the_task(trained: Path):
    run = Run.load(trained)
    answers = predict(run, None, DEV, max_length=10)
    scores = score(answers, DEV, CODEC)
    assert scores.main > 60, scores
    assert set(scores.groups) == {"low", "high"}
    assert run.metrics["dev"]["exact"] > 0.6
    assert run.recipe == {"name": "small"}


def test_a_finished_run_is_left_as_it_is(trained: Path):
    before = {p: p.stat().st_mtime_ns for p in trained.rglob("*") if p.is_file()}
    result = fit_small(trained, **SETTINGS)
    assert result.finished
    assert {p: p.stat().st_mtime_ns for p in trained.rglob("*") if p.is_file()} == before


def _segments(checkpoint: Path) -> int:
    """How many segments were done when the checkpoint was written; the first one is of none."""
    if not checkpoint.exists():
        return 0
    return torch.load(checkpoint, weights_only=True)["progress"]["segments"]


@pytest.mark.slow
def test_a_killed_run_goes_on_and_ends_with_the_same_figures(trained: Path, tmp_path: Path):
    folder = tmp_path / "killed"
    changes = json.dumps(SETTINGS)
    script = str(Path(small.__file__))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen([sys.executable, script, str(folder), changes], env=environment)
    checkpoint, deadline = folder / "checkpoints" / "last.ckpt", time.monotonic() + 600
    while not _segments(checkpoint) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert 0 < _segments(checkpoint) < 8 * 3
    result = fit_small(folder, **SETTINGS)
    assert result.finished
    _assert_same(folder, trained)


def test_a_second_training_into_the_same_folder_is_refused(trained: Path, tmp_path: Path):
    folder = tmp_path / "shared"

    def come_second(_: Record) -> None:
        with pytest.raises(FenchelError, match=r"one process trains into .*shared at a time"):
            fit_small(folder, **SETTINGS)

    assert fit_small(folder, report=come_second, **SETTINGS).finished
    _assert_same(folder, trained)


@pytest.mark.parametrize("choices", [{}, {"attention_map": "combined", "attention_alpha": 2.0}])
def test_more_epochs_go_on_from_a_finished_run(
    choices: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(small, "MODEL", replace(MODEL, **choices))
    fit_small(tmp_path / "parts", epochs=1)
    result = fit_small(tmp_path / "parts", epochs=3)
    assert [record["epoch"] for record in result.history] == [1, 2, 3]
    fit_small(tmp_path / "whole", epochs=3)
    _assert_same(tmp_path / "parts", tmp_path / "whole")


@pytest.mark.slow
def test_two_processes_train_as_one_does_with_batches_of_twice_the_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Without dropout both take the same steps; only sums are ordered differently."""
    monkeypatch.setattr(small, "MODEL", replace(MODEL, dropout=0.0))
    fit_small(tmp_path / "one", epochs=2, batch_size=16)
    script = tmp_path / "program.py"
    script.write_text(
        "import sys, json; from pathlib import Path; from dataclasses import replace\n"
        "from tests.training import small; small.MODEL = replace(small.MODEL, dropout=0.0)\n"
        "small.fit_small(Path(sys.argv[1]), **json.loads(sys.argv[2]))\n"
    )
    changes = json.dumps({"epochs": 2, "batch_size": 8, "devices": 2, "strategy": "ddp"})
    subprocess.run(
        [sys.executable, str(script), str(tmp_path / "two"), changes],
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "OMP_NUM_THREADS": "1",
            "PYTHONWARNINGS": "error::FutureWarning",
        },
        check=True,
        timeout=240,
    )
    one, two = (_contents(tmp_path / name)["log"] for name in ("one", "two"))
    for ours, theirs in zip(one, two, strict=True):
        for name in ("loss", "accuracy", "exact", "output_support"):
            assert float(ours[name]) == pytest.approx(float(theirs[name]), rel=1e-3), name


def test_mixed_precision_trains(tmp_path: Path):
    records: list[dict[str, float]] = []
    fit_small(tmp_path / "run", epochs=2, precision="bf16-mixed", report=records.append)
    assert [record["epoch"] for record in records] == [1, 2]
    assert records[-1]["loss"] < 1.5


def _half_on_the_cpu(**options: Any) -> Any:
    """Lightning takes bfloat16 instead unless it is given the plugin itself."""
    plugin = MixedPrecision(options.pop("precision"), device="cpu")
    return Trainer(**options, plugins=[plugin])


def test_half_precision_scales_its_loss_and_goes_on_with_the_same_scale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(trainer_file.lightning, "Trainer", _half_on_the_cpu)
    changes = {"precision": "16-mixed", "accelerator": "cpu"}
    fit_small(tmp_path / "parts", epochs=1, **changes)
    fit_small(tmp_path / "parts", epochs=2, **changes)
    result = fit_small(tmp_path / "whole", epochs=2, **changes)
    assert result.best["loss"] < 1.5
    _assert_same(tmp_path / "parts", tmp_path / "whole")
    checkpoint = tmp_path / "parts" / "checkpoints" / "last.ckpt"
    scaler = torch.load(checkpoint, weights_only=True)["precision"]
    assert scaler["scale"] > 1
    assert 0 < scaler["_growth_tracker"] <= 2 * 14


@pytest.mark.parametrize("device", [pytest.param("gpu", marks=needs_gpu)])
def test_half_precision_trains_on_a_gpu(device: str, tmp_path: Path):
    changes = {"precision": "16-mixed", "monitor": "exact"}
    result = fit_small(tmp_path / "run", epochs=8, accelerator=device, **changes)
    assert result.best["exact"] > 0.6


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.usefixtures("trained")  # so that nothing is first imported while the bar has stdout
def test_a_terminal_shows_a_bar_with_loss_accuracy_and_supports_and_every_validation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    terminal = _Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setattr(sys, "stderr", terminal)
    result = fit_small(tmp_path / "run", epochs=2)
    shown = terminal.getvalue()
    for word in ("epoch 2/2", "loss", "accuracy", "attended", "considered"):
        assert word in shown
    for record in result.history:
        assert shown.count(in_words(record)) == 1


@pytest.mark.usefixtures("trained")
def test_on_a_narrow_terminal_the_bar_still_says_how_far_training_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    terminal = _Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(sys, "stderr", terminal)
    fit_small(tmp_path / "run", epochs=1, log_every=50)
    last = terminal.getvalue().rpartition("epoch 1/1")[2]
    assert "14/14" in last
    assert "loss" in last
    assert "…" not in terminal.getvalue()


def test_time_that_is_up_ends_with_a_validation_and_the_same_call_goes_on(tmp_path: Path):
    for epoch in (1, 2, 3):
        result = fit_small(tmp_path / "run", epochs=3, max_seconds=1e-3)
        assert [record["epoch"] for record in result.history] == list(range(1, epoch + 1))
        assert result.finished == (epoch == 3)


def test_patience_stops_and_waits_for_more_patience(tmp_path: Path):
    result = fit_small(tmp_path / "run", epochs=40, patience=1, learning_rate=1e-9)
    assert result.finished
    assert len(result.history) == 2


def test_a_loss_that_is_not_a_number_stops_training(tmp_path: Path):
    with pytest.raises(FenchelError, match=r"must not diverge.*lower learning_rate"):
        fit_small(tmp_path / "run", learning_rate=3e37, clip=None)
    assert not (tmp_path / "run" / "best.pt").exists()


def test_other_settings_or_data_are_another_run(trained: Path):
    with pytest.raises(FenchelError, match=r"batch_size=8.*batch_size=9"):
        fit_small(trained, **{**SETTINGS, "batch_size": 9})
    config = TrainingConfig(**{**small.TRAINING, **SETTINGS})
    with pytest.raises(FenchelError, match="other data"):
        fit(trained, MODEL, config, CODEC, small.TRAIN[1:], DEV)


def test_examples_without_targets_or_none_at_all_are_refused(tmp_path: Path):
    config = TrainingConfig(**small.TRAINING)
    with pytest.raises(FenchelError, match="train has examples"):
        fit(tmp_path, MODEL, config, CODEC, [], DEV)
    untold = [type(DEV[0])("ab")]
    with pytest.raises(FenchelError, match="dev has targets"):
        fit(tmp_path, MODEL, config, CODEC, small.TRAIN, untold)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("devices", [0, "many"])
def test_devices_that_lightning_refuses_are_told(tmp_path: Path, devices: int | str):
    with pytest.raises(FenchelError, match="Lightning refuses these devices"):
        fit_small(tmp_path / "run", devices=devices)


def test_no_more_processes_are_started_than_there_are_cores(tmp_path: Path):
    with pytest.raises(FenchelError, match=r"devices of at most \d+.* got devices=9999"):
        fit_small(tmp_path / "run", devices=9999)
    assert not (tmp_path / "run" / "config.json").exists()
