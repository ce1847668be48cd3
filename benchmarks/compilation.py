"""Kernels compiled before anything is timed, by as many processes as there are cores.

A compiled kernel goes into Triton's cache on disk, where the process that measures finds it.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace

import torch

from benchmarks.peers import OPERATIONS
from benchmarks.problems import Case, make_inputs
from benchmarks.registry import Operation

COMPILED = ("fenchel.", "adasplash.", "F.linear, fenchel.")
ROWS = 64  # few, and divisible by whatever kernels are specialised for


Task = tuple[Case, str]


def compile_ahead(tasks: Sequence[Task], on_done: Callable[[str], None]) -> None:
    """Compile what the races will need. A call that fails here fails there again, and is reported."""
    if not tasks:
        return
    workers = min(os.cpu_count() or 1, len(tasks))
    context = multiprocessing.get_context("spawn")  # CUDA does not survive a fork
    with ProcessPoolExecutor(workers, context) as pool:
        running = {pool.submit(_run_once, *task): task for task in tasks}
        for finished in as_completed(running):
            on_done(running[finished][1])


def tasks_of(problems: Sequence[tuple[Case, Sequence[Operation]]]) -> list[Task]:
    """Each case and operation once; with gradients where both directions are wanted."""
    wanted: dict[Task, bool] = {}
    for case, operations in problems:
        small = replace(case, rows=min(case.rows, ROWS), backward=False)
        for operation in operations:
            if case.device.startswith("cuda") and operation.name.startswith(COMPILED):
                key = small, operation.name
                wanted[key] = wanted.get(key, False) or case.backward
    return [(replace(case, backward=back), name) for (case, name), back in wanted.items()]


def _run_once(case: Case, name: str) -> None:
    OPERATIONS[name].build(make_inputs(case), backward=case.backward)()
    torch.cuda.synchronize()
