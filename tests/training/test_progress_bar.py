"""The progress bar counts the steps of the whole training and estimates the time that is left."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from fenchel.training.progress_bar import MetricsProgress
from tests.training.small import fit_small


def shown(bar: MetricsProgress, width: int) -> str:
    console = Console(width=width, file=io.StringIO())
    console.print(bar.get_renderable())
    return console.file.getvalue()  # pyright: ignore[reportAttributeAccessIssue]


def test_the_remaining_time_follows_from_the_speed_of_this_sitting():
    bar = MetricsProgress(Console(file=io.StringIO()))
    seconds = 0.0
    bar.get_time = lambda: seconds
    task = bar.add_task(
        "epoch 3/10", completed=200, total=1000, metrics=["loss 1.014", "accuracy 0.1"]
    )
    for completed in range(210, 410, 10):
        seconds += 5.0
        bar.update(task, completed=completed)
    text = shown(bar, 60)
    assert "400/1000 0:01:40 • 05:00 left" in text
    assert "loss 1.014  accuracy 0.1" in text


def test_metrics_that_do_not_fit_on_a_line_are_not_cut():
    bar = MetricsProgress(Console(file=io.StringIO()))
    metrics = ["loss 1.014", "accuracy 0.092", "attended 3.1", "considered 12.2"]
    bar.add_task("epoch 1/1", total=10, metrics=metrics)
    text = shown(bar, 32)
    assert all(metric in text for metric in metrics)


def test_a_training_that_goes_on_begins_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    fit_small(tmp_path / "run", epochs=1)  # of 14 steps
    terminal = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr("sys.stderr", terminal)
    fit_small(tmp_path / "run", epochs=2)
    assert "14/28" in terminal.getvalue()
    assert "28/28" in terminal.getvalue()
    assert " 0/28" not in terminal.getvalue()
