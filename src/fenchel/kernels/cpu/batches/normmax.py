"""normmax of short rows, BATCH at a time (see `batch`), for alpha = 2, in float64 inside.

There p = u/sum u with u = (x - tau)_+, and the norm of u is one. It is convex and falls with tau, so
Newton's method climbs from 1 below the largest score.
"""

from __future__ import annotations

import math

from fenchel.kernels.cpu.batches.batch import (
    BATCH,
    CLIMBING,
    MASS,
    OFFSET,
    PREVIOUS,
    SLOPE,
    climb,
    solve_batches,
    wide_data,
)
from fenchel.kernels.cpu.launch.compilation import outlined, scalar
from fenchel.kernels.cpu.launch.memory import load, store

LONGEST = 1024  # columns
TOLERANCE = 1e-15


def is_batched(columns: int, alpha: float) -> bool:
    """Whether such a row is solved in a batch."""
    return alpha == 2.0 and columns <= LONGEST


_is_batched = scalar(is_batched)


@outlined
def _visit(data, size, place, state):
    """The sums of u^2 and of u."""
    tau, squares, total = load(state, OFFSET + place), 0.0, 0.0
    for i in range(size):
        u = load(data, i) - tau
        u = u if u > 0.0 else 0.0
        squares += u * u
        total += u
    store(state, MASS + place, squares)
    store(state, SLOPE + place, total)


@outlined
def _take_steps(state):
    """Move every row that climbs; how many climb on."""
    climbing = 0.0
    for i in range(BATCH):
        tau, previous = load(state, OFFSET + i), load(state, PREVIOUS + i)
        squares, total = load(state, MASS + i), load(state, SLOPE + i)
        excess = abs(squares - 1.0)
        here = load(state, CLIMBING + i) > 0.0
        moves = here and excess > TOLERANCE and excess < previous
        step = (squares - math.sqrt(squares)) / total
        store(state, OFFSET + i, tau + step if moves else tau)
        store(state, PREVIOUS + i, excess)
        store(state, CLIMBING + i, 1.0 if moves else 0.0)
        climbing += 1.0 if moves else 0.0
    return climbing


@outlined
def _begin(data, size, rows, state):
    for i in range(BATCH):
        store(state, OFFSET + i, -1.0)


@outlined
def _search(data, size, columns, rows, state):
    climb(_visit, _take_steps, data, size, rows, state)


@outlined
def _write(data, out, columns, size, spare, place, state):
    tau, share = load(state, OFFSET + place), 1.0 / load(state, SLOPE + place)
    for i in range(columns):
        u = load(data, i) - tau
        store(out, i, u * share if u > 0.0 else 0.0)


def solve_normmax_batches(arguments):
    """See `solve_batches`."""
    solve_batches(arguments, wide_data, True, _is_batched, _begin, _search, _write)
