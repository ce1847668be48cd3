"""The stored metrics of a run: concurrent processes do not lose any."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as StillWaiting
from pathlib import Path

import pytest

from fenchel.training import Run
from fenchel.training.files import save_json
from fenchel.training.lock import exclusive_access
from tests.training.small import CODEC, small_recipe


def test_metrics_wait_for_those_that_are_being_written(tmp_path: Path) -> None:
    """A thread stands for a process: each opens the folder for itself."""
    run = Run(tmp_path, small_recipe(), CODEC)
    save_json(run.metrics_path, {"dev": {"loss": 1.0}})
    with ThreadPoolExecutor(1) as pool:
        with exclusive_access(run.metrics_path):
            before = run.metrics
            saved = pool.submit(run.save_metrics, "test_evaluation", {"bleu": 1.0})
            with pytest.raises(StillWaiting):
                saved.result(timeout=0.3)
            save_json(run.metrics_path, before | {"dev_evaluation": {"bleu": 2.0}})
        saved.result()
    found = {
        "dev": {"loss": 1.0},
        "dev_evaluation": {"bleu": 2.0},
        "test_evaluation": {"bleu": 1.0},
    }
    assert run.metrics == found
