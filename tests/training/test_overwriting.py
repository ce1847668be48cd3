"""Training never overwrites the results of a run that it cannot resume."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch

from fenchel import FenchelError
from fenchel.training.progress import ValidationRecord
from tests.training.small import fit_small

CHECKPOINT = "checkpoints/last.ckpt"
RESULTS = ("best.pt", "metrics.json", "log.csv")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "finished"
    fit_small(folder, epochs=2)
    return folder


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    """A copy of a finished run, from which files may be removed."""
    return Path(shutil.copytree(finished, tmp_path / "run"))


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("removed", "missing"),
    [
        ([CHECKPOINT], CHECKPOINT),
        ([CHECKPOINT, "best.pt"], CHECKPOINT),
        ([CHECKPOINT, "metrics.json"], CHECKPOINT),
        ([CHECKPOINT, "metrics.json", "log.csv"], CHECKPOINT),
        ([CHECKPOINT, "best.pt", "log.csv"], CHECKPOINT),
        (["config.json"], "config.json"),
        (["config.json", "processor.json", CHECKPOINT], f"config.json, {CHECKPOINT}"),
        (["best.pt"], "best.pt"),
    ],
)
@pytest.mark.parametrize("epochs", [2, 3])
def test_results_that_cannot_be_resumed_are_left_unchanged(
    run: Path, removed: list[str], missing: str, epochs: int
):
    """Neither by the same call nor by one for more epochs."""
    for name in removed:
        (run / name).unlink()
    before = contents(run)
    with pytest.raises(FenchelError, match=f"must hold a whole run or none, .* without {missing}"):
        fit_small(run, epochs=epochs)
    assert contents(run) == before


def test_a_run_without_its_folder_of_checkpoints_is_left_unchanged(run: Path):
    shutil.rmtree(run / "checkpoints")
    before = contents(run)
    with pytest.raises(FenchelError, match=f"got best.pt, .* without {CHECKPOINT}"):
        fit_small(run, epochs=2)
    assert contents(run) == before


def test_an_interrupted_run_without_checkpoints_is_left_unchanged(tmp_path: Path):
    run = tmp_path / "run"
    assert not fit_small(run, epochs=3, max_seconds=1e-3).finished
    shutil.rmtree(run / "checkpoints")
    before = contents(run)
    with pytest.raises(FenchelError, match=f"without {CHECKPOINT}"):
        fit_small(run, epochs=3)
    assert contents(run) == before


def test_a_run_without_results_starts_again(run: Path, finished: Path):
    for name in (*RESULTS, CHECKPOINT):
        (run / name).unlink()
    assert fit_small(run, epochs=2).finished
    assert_same_weights(run, finished)


def test_a_run_stopped_before_its_first_checkpoint_was_due_resumes(finished: Path, tmp_path: Path):
    class Stopped(Exception):
        pass

    def stop(_: ValidationRecord) -> None:
        raise Stopped

    with pytest.raises(Stopped):
        fit_small(tmp_path / "run", epochs=2, checkpoint_seconds=1e9, on_validation=stop)
    assert (tmp_path / "run" / "best.pt").exists()
    assert fit_small(tmp_path / "run", epochs=2).finished
    assert_same_weights(tmp_path / "run", finished)


def test_a_run_that_another_process_has_finished_meanwhile_is_left_unchanged(
    run: Path, monkeypatch: pytest.MonkeyPatch
):
    """The folder was looked at before the other process had written anything."""
    monkeypatch.setattr("fenchel.training.fitting._checkpoint", lambda _: None)
    before = contents(run)
    with pytest.raises(FenchelError, match="another process has trained into"):
        fit_small(run, epochs=2)
    assert contents(run) == before


def assert_same_weights(one: Path, other: Path) -> None:
    ours, theirs = (torch.load(run / "best.pt", weights_only=True) for run in (one, other))
    assert all(torch.equal(weight, theirs[name]) for name, weight in ours.items())
