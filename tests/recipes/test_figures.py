"""The figures of a run: what several processes find is kept, whoever comes first."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as StillWaiting
from pathlib import Path

import pytest

from fenchel.recipes.figures import keep_figures
from fenchel.training import Run, TrainingConfig
from fenchel.training.files import save_json
from fenchel.training.lock import alone_with
from tests.training.small import CODEC, MODEL


def test_figures_wait_for_those_that_are_being_written(tmp_path: Path) -> None:
    """A thread stands for a process: each opens the folder for itself."""
    run = Run(tmp_path, MODEL, TrainingConfig(), CODEC)
    save_json(run.metrics_path, {"dev": {"loss": 1.0}})
    with ThreadPoolExecutor(1) as pool:
        with alone_with(run.metrics_path):
            before = run.metrics
            kept = pool.submit(keep_figures, run, "test", {"bleu": 1.0})
            with pytest.raises(StillWaiting):
                kept.result(timeout=0.3)
            save_json(run.metrics_path, before | {"dev_search": {"bleu": 2.0}})
        kept.result()
    found = {"dev": {"loss": 1.0}, "dev_search": {"bleu": 2.0}, "test_search": {"bleu": 1.0}}
    assert run.metrics == found
