"""Calls side by side: results come back, failures stay apart, no process is left behind."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import time
from functools import partial

import pytest
import torch

from fenchel import FenchelError
from fenchel.recipes.reproductions.process_pool import Failure, ProcessPool

LEFT_ALONE = """
import os, time
from functools import partial
from fenchel.recipes.reproductions.process_pool import ProcessPool
with ProcessPool(2) as pool:
    pool.add("quick", partial(abs, -1))
    pool.add("sleeper", partial(time.sleep, 600))
    for name, outcome in pool.outcomes():
        os.kill(os.getpid(), 9)
"""


def break_a_rule():
    raise FenchelError("a call must return a result, got none")


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_failure_is_told_and_touches_no_other(jobs):
    calls = {"good": partial(pow, 2, 3), "wrong": partial(divmod, 1, 0)}
    if jobs > 1:
        calls["crash"] = partial(os._exit, 7)
    calls["late"] = torch.get_num_threads
    with ProcessPool[str](jobs) as pool:
        for name, call in calls.items():
            pool.add(name, call)
        found = dict(pool.outcomes())
    assert found["good"] == 8
    assert found["wrong"].reason.startswith("ZeroDivisionError")
    assert "Traceback" in found["wrong"].message
    assert found["late"] == max(1, torch.get_num_threads() // jobs)
    if jobs > 1:
        assert found["crash"] == Failure("the process exited with code 7 and no result")


def test_a_broken_rule_needs_no_traceback():
    with ProcessPool[str](1) as pool:
        pool.add("rule", break_a_rule)
        ((_, failure),) = pool.outcomes()
    assert failure == Failure("a call must return a result, got none")


def test_an_interruption_ends_what_runs():
    def interrupted():
        with ProcessPool[str](2) as pool:
            pool.add("quick", partial(abs, -1))
            pool.add("sleeper", partial(time.sleep, 600))
            for _ in pool.outcomes():
                raise KeyboardInterrupt

    others = set(multiprocessing.active_children())  # such as the workers of joblib
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert set(multiprocessing.active_children()) <= others


def test_no_process_outlives_a_killed_parent():
    """The pipe for the output is shared by all processes: it ends when the last of them does."""
    command = [sys.executable, "-c", LEFT_ALONE]
    found = subprocess.run(command, capture_output=True, timeout=120, check=False)
    assert found.returncode == -9
