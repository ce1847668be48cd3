"""Compiles kernels before they are timed, in one process per core.

Compiled kernels go into the caches of Triton and Numba on disk, where the measuring process finds them.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from dataclasses import replace

import torch

from benchmarks.inputs import make_inputs
from benchmarks.peers import OPERATIONS
from benchmarks.problems import Case
from benchmarks.registry import VIA_CPU, Operation

COMPILED = (VIA_CPU, "adasplash.", "fenchel.", "F.linear, fenchel.")  # what takes longest first
ROWS = 64  # few, and divisible by whatever kernels are specialised for


Task = tuple[Case, str]


def processes() -> Executor:
    """One process per core, started when there is work and kept, since each has to import torch."""
    context = multiprocessing.get_context("spawn")  # CUDA does not survive a fork
    return ProcessPoolExecutor(os.cpu_count() or 1, context)


def compile_ahead(pool: Executor, tasks: Sequence[Task]) -> Iterator[str]:
    """Compile the kernels of all tasks, and yield the name of each task when it is done.

    Errors are ignored here: the call fails again, and is reported, when it is measured.
    """
    running = {pool.submit(_run_once, *task): task for task in tasks}
    for finished in as_completed(running):
        case, name = running[finished]
        yield f"{name}, {case}"


def tasks_of(problems: Sequence[tuple[Case, Sequence[Operation]]]) -> list[Task]:
    """Each case and operation once; with gradients if both directions are measured."""
    wanted: dict[Task, bool] = {}
    for case, operations in problems:
        small = replace(case, rows=min(case.rows, ROWS), backward=False)
        for operation in operations:
            if case.device.startswith("cuda") and operation.name.startswith(COMPILED):
                key = small, operation.name
                wanted[key] = wanted.get(key, False) or case.backward
    tasks = [(replace(case, backward=back), name) for (case, name), back in wanted.items()]
    return sorted(tasks, key=lambda task: _place(task[1]))


def _place(name: str) -> int:
    return next(i for i, prefix in enumerate(COMPILED) if name.startswith(prefix))


def _run_once(case: Case, name: str) -> None:
    OPERATIONS[case.family, name].build(make_inputs(case), backward=case.backward)()
    if case.device.startswith("cuda"):
        torch.cuda.synchronize()
