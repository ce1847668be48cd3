"""Training: it learns, keeps its folder whole, and resumes after any interruption."""

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
from fenchel.tasks import load_run
from fenchel.tasks.sequences import Seq2SeqTask, decode, evaluate_answers
from fenchel.tasks.sequences.example import Example
from fenchel.training import DataSource, Splits, fit, validate
from fenchel.training import trainer as trainer_file
from fenchel.training.checkpoint import load_checkpoint
from fenchel.training.progress import Progress, ValidationRecord, validation_line
from tests.implementations import needs_gpu
from tests.training import small
from tests.training.small import CODEC, DEV, MODEL, SPLITS, TASK, TRAIN, fit_small, small_recipe

ROOT = Path(__file__).parents[2]
SOURCES = {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}  # for other processes
SETTINGS = {"epochs": 8, "checkpoint_every": 5, "monitor": "exact"}  # three segments per epoch
GROUPED = {"epochs": 8, "checkpoint_every": 2, "accumulate": 3, "average": 3}  # likewise


def _contents(folder: Path) -> dict[str, Any]:
    """What must not depend on interruptions: metrics and weights."""
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
    run = load_run(trained)
    answers = decode(run.model, run.processor, DEV, max_length=10)
    metrics = evaluate_answers(answers, DEV, run.processor)
    assert metrics.main > 60, metrics
    assert set(metrics.groups) == {"low", "high"}
    assert run.metrics["dev"]["exact"] > 0.6
    assert run.recipe == replace(small_recipe(**SETTINGS), task=TASK)


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
@pytest.mark.parametrize("changes", [SETTINGS, GROUPED], ids=["plain", "accumulated and averaged"])
def test_a_killed_run_resumes_and_ends_with_the_same_metrics(
    changes: dict[str, Any], tmp_path: Path
):
    folder, whole = tmp_path / "killed", tmp_path / "whole"
    script = str(Path(small.__file__))
    environment = {**os.environ, **SOURCES, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, script, str(folder), json.dumps(changes)]
    process = subprocess.Popen(command, env=environment)
    checkpoint, deadline = folder / "checkpoints" / "last.ckpt", time.monotonic() + 600
    while _segments(checkpoint) < 8 and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert 8 <= _segments(checkpoint) < 8 * 3
    for path in (folder, whole):
        assert fit_small(path, **changes).finished
    _assert_same(folder, whole)
    assert _names(folder / "checkpoints") == _names(whole / "checkpoints")


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_second_training_into_the_same_folder_is_refused(trained: Path, tmp_path: Path):
    folder = tmp_path / "shared"

    def come_second(_: ValidationRecord) -> None:
        with pytest.raises(FenchelError, match=r"one process can train into .*shared at a time"):
            fit_small(folder, **SETTINGS)

    assert fit_small(folder, on_validation=come_second, **SETTINGS).finished
    _assert_same(folder, trained)


@pytest.mark.parametrize("choices", [{}, {"attention_map": "combined", "attention_alpha": 2.0}])
def test_more_epochs_continue_a_finished_run(choices: dict[str, Any], tmp_path: Path):
    model = replace(MODEL, **choices)
    fit_small(tmp_path / "parts", model=model, epochs=1)
    result = fit_small(tmp_path / "parts", model=model, epochs=3)
    assert [record["epoch"] for record in result.history] == [1, 2, 3]
    fit_small(tmp_path / "whole", model=model, epochs=3)
    _assert_same(tmp_path / "parts", tmp_path / "whole")


@pytest.mark.slow
def test_two_processes_train_as_one_does_with_batches_of_twice_the_size(tmp_path: Path):
    """Without dropout both take the same steps; only sums are ordered differently."""
    fit_small(tmp_path / "one", model=replace(MODEL, dropout=0.0), epochs=2, batch_size=16)
    _fit_in_two_processes(tmp_path / "two", epochs=2, batch_size=8)
    _assert_close(tmp_path / "one", tmp_path / "two")


@pytest.mark.slow
def test_two_processes_accumulate_as_one_takes_all_examples_at_once(tmp_path: Path):
    model = replace(MODEL, dropout=0.0)
    fit_small(tmp_path / "one", model=model, epochs=6, batch_size=len(TRAIN))
    _fit_in_two_processes(tmp_path / "two", epochs=6, batch_size=7, accumulate=8, average=2)
    fit_small(tmp_path / "averaged", model=model, epochs=6, batch_size=len(TRAIN), average=2)
    _assert_close(tmp_path / "averaged", tmp_path / "two")
    with pytest.raises(AssertionError):
        _assert_close(tmp_path / "one", tmp_path / "two")


@pytest.mark.slow
def test_two_processes_resume_with_the_same_metrics(tmp_path: Path):
    """Also with those of training, of which each process has a part when the first one dies."""
    changes = {"epochs": 2, "batch_size": 4, "checkpoint_every": 2, "log_every": 1}
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    _fit_in_two_processes(whole, **changes)
    with pytest.raises(subprocess.CalledProcessError):
        _fit_in_two_processes(stopped, dies_after=2, **changes)
    assert _segments(stopped / "checkpoints" / "last.ckpt") == 2
    assert not (stopped / "log.csv").exists()
    _fit_in_two_processes(stopped, **changes)
    _assert_same(whole, stopped)


DYING = """
import sys, json, os
from dataclasses import replace
from pathlib import Path
from fenchel.training.recorder import RunRecorder
from tests.training.small import MODEL, fit_small

changes = json.loads(sys.argv[2])
dies_after, write = changes.pop("dies_after"), RunRecorder._write_checkpoint

def write_and_die(recorder, *parts):
    write(recorder, *parts)
    if recorder.progress.segments == dies_after:
        os._exit(1)

RunRecorder._write_checkpoint = write_and_die
fit_small(Path(sys.argv[1]), model=replace(MODEL, dropout=0.0), **changes)
"""


def _fit_in_two_processes(folder: Path, dies_after: int | None = None, **changes: Any) -> None:
    """Train without dropout; the first process may die after a number of segments."""
    script = folder.with_suffix(".py")
    script.write_text(DYING)
    changes["dies_after"] = dies_after
    changes |= {"devices": 2, "strategy": "ddp"}
    subprocess.run(
        [sys.executable, str(script), str(folder), json.dumps(changes)],
        env={
            **os.environ,
            **SOURCES,
            "OMP_NUM_THREADS": "1",
            "PYTHONWARNINGS": "error::FutureWarning",
        },
        check=True,
        timeout=240,
    )


def _assert_close(first: Path, second: Path) -> None:
    one, two = (_contents(folder)["log"] for folder in (first, second))
    for ours, theirs in zip(one, two, strict=True):
        for name in ("loss", "accuracy", "exact", "output_support"):
            assert float(ours[name]) == pytest.approx(float(theirs[name]), rel=1e-3), name


@pytest.mark.parametrize("batch_size", [9, 16, 64])
def test_accumulated_batches_train_as_one_large_batch_does(batch_size: int, tmp_path: Path):
    """The last batch of 16 or 64 is smaller, so a mean of means would differ."""
    model = replace(MODEL, dropout=0.0)
    settings: dict[str, Any] = {"model": model, "epochs": 6}
    fit_small(tmp_path / "one", batch_size=len(TRAIN), **settings)
    fit_small(tmp_path / "several", batch_size=batch_size, accumulate=100, **settings)
    _assert_close(tmp_path / "one", tmp_path / "several")


def test_the_mean_of_the_last_validations_is_measured_and_kept(tmp_path: Path):
    weights = []
    for epoch in range(1, 5):
        run = fit_small(tmp_path / "plain", epochs=epoch).run
        weights.append(load_checkpoint(run.checkpoint_path)["model"])
    result = fit_small(tmp_path / "averaged", epochs=4, average=3)
    model = TASK.build_model()
    for last, record in enumerate(result.history, start=1):
        parts = weights[max(0, last - 3) : last]
        model.load_state_dict({n: sum(p[n] for p in parts) / len(parts) for n in parts[0]})
        means = validate(TASK, model, CODEC.encode(DEV))
        for name, value in means.items():
            assert record[name] == pytest.approx(value, rel=1e-4), (last, name)
    for name, weight in load_checkpoint(result.run.checkpoint_path)["model"].items():
        assert torch.equal(weight, weights[-1][name]), name
    assert result.best is result.history[-1]
    for name, weight in result.run.model.state_dict().items():
        torch.testing.assert_close(weight, model.state_dict()[name])


def test_mixed_precision_trains(tmp_path: Path):
    records: list[dict[str, float]] = []
    fit_small(tmp_path / "run", epochs=2, precision="bf16-mixed", on_validation=records.append)
    assert [record["epoch"] for record in records] == [1, 2]
    assert records[-1]["loss"] < 1.5


def _half_on_the_cpu(**options: Any) -> Any:
    """Lightning takes bfloat16 instead unless it is given the plugin itself."""
    plugin = MixedPrecision(options.pop("precision"), device="cpu")
    return Trainer(**options, plugins=[plugin])


def test_half_precision_scales_its_loss_and_resumes_with_the_same_scale(
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
    pytest.importorskip("lightning", reason="the extra 'train' is not installed")
    changes = {"precision": "16-mixed", "monitor": "exact"}
    result = fit_small(tmp_path / "run", epochs=8, accelerator=device, **changes)
    assert result.best["exact"] > 0.6


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.usefixtures("trained")  # so that nothing is first imported while the bar has stdout
def test_a_terminal_shows_a_bar_with_metrics_and_every_validation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    terminal = _Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setattr(sys, "stderr", terminal)
    result = fit_small(tmp_path / "run", epochs=2)
    shown = terminal.getvalue()
    for word in ("epoch 2/2", "loss", "symbols", "sequences", "attended", "considered"):
        assert word in shown
    for record in result.history:
        assert shown.count(validation_line(record, TASK.describe_means)) == 1


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


def test_running_out_of_time_ends_with_a_validation_and_the_same_call_resumes(tmp_path: Path):
    for epoch in (1, 2, 3):
        result = fit_small(tmp_path / "run", epochs=3, max_seconds=1e-3)
        assert [record["epoch"] for record in result.history] == list(range(1, epoch + 1))
        assert result.finished == (epoch == 3)


def test_fewer_epochs_than_were_trained_end_with_the_next(tmp_path: Path):
    fit_small(tmp_path / "run", epochs=5, max_seconds=1e-3)
    fit_small(tmp_path / "run", epochs=5, max_seconds=1e-3)
    result = fit_small(tmp_path / "run", epochs=1)
    assert result.finished
    assert [record["epoch"] for record in result.history] == [1, 2, 3]


def test_patience_stops_and_waits_for_more_patience(tmp_path: Path):
    result = fit_small(tmp_path / "run", epochs=40, patience=1, learning_rate=1e-9)
    assert result.finished
    assert len(result.history) == 2


def test_a_loss_that_is_not_a_number_stops_training(tmp_path: Path):
    with pytest.raises(FenchelError, match=r"loss must be finite, got nan: .*lower learning_rate"):
        fit_small(tmp_path / "run", learning_rate=3e37, clip=None)
    assert not (tmp_path / "run" / "best.pt").exists()


def test_other_settings_or_data_are_another_run(trained: Path):
    with pytest.raises(FenchelError, match=r"training\.batch_size=8, got .*batch_size=9: use the"):
        fit_small(trained, **{**SETTINGS, "batch_size": 9})
    with pytest.raises(FenchelError, match=r"task\.model\.dropout=0\.1, got .*dropout=0\.2: use"):
        fit_small(trained, model=replace(MODEL, dropout=0.2), **SETTINGS)
    with pytest.raises(FenchelError, match="holds a run with other training data"):
        fit(trained, small_recipe(**SETTINGS), Splits(TRAIN[1:], DEV))


def test_examples_without_targets_or_none_at_all_are_refused(tmp_path: Path):
    recipe, folder, untold = small_recipe(), tmp_path / "run", [Example("ab")]
    for train, dev, message in (
        ([], DEV, "at least one"),
        (TRAIN, [], "small requires at least one development example, got none"),
        (untold, DEV, r"none for 'ab' \(number 1\)"),
        (TRAIN, untold, r"none for 'ab' \(number 1\)"),
        (TRAIN, [*DEV, *untold], r"none for 'ab' \(number 10\)"),
    ):
        with pytest.raises(FenchelError, match=message):
            fit(folder, recipe, Splits(train, dev))
    assert not folder.exists()


def test_on_start_is_called_with_the_progress_of_the_folder(tmp_path: Path):
    folder, found = tmp_path / "run", []

    def on_start(progress: Progress, finished: bool) -> None:
        found.append(([record["epoch"] for record in progress.history], finished))

    for epochs in (1, 2, 2):
        fit(folder, small_recipe(epochs=epochs), SPLITS, on_start=on_start)
    assert found == [([], False), ([1], False), ([1, 2], True)]


def test_only_a_new_model_is_initialized_by_its_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    processors = []
    monkeypatch.setattr(
        Seq2SeqTask, "initialize", lambda task, model, processor: processors.append(processor)
    )
    for epochs in (1, 2):
        run = fit_small(tmp_path / "run", epochs=epochs).run
    assert [processor.state() for processor in processors] == [run.processor.state()]


def test_training_uses_the_given_number_of_threads(tmp_path: Path):
    before, seen = torch.get_num_threads(), []
    for threads in (None, before + 1):
        fit_small(
            tmp_path / f"{threads}",
            epochs=1,
            threads=threads,
            on_validation=lambda _: seen.append(torch.get_num_threads()),
        )
        assert torch.get_num_threads() == before
    assert seen == [before, before + 1]


def test_a_finished_run_stores_settings_that_may_change(tmp_path: Path):
    folder, recipe = tmp_path / "run", small_recipe(epochs=1)
    fit(folder, recipe, SPLITS)
    search = replace(recipe.task.search, width=2)
    source = DataSource(files={"train": ["/elsewhere/train.tsv"]})
    fit(folder, replace(recipe, task=replace(recipe.task, search=search)), SPLITS, source=source)
    run = load_run(folder)
    assert run.task.search == search
    assert run.source == source


@pytest.mark.parametrize("devices", [0, "many"])
def test_devices_that_lightning_refuses_are_an_error(tmp_path: Path, devices: int | str):
    with pytest.raises(FenchelError, match="devices must be usable by Lightning, got: "):
        fit_small(tmp_path / "run", devices=devices)


def test_no_more_processes_are_started_than_there_are_cores(tmp_path: Path):
    with pytest.raises(FenchelError, match=r"devices must be at most \d+.* got 9999"):
        fit_small(tmp_path / "run", devices=9999)
    assert not (tmp_path / "run" / "config.json").exists()
