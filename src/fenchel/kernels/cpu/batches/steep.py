"""entmax of short rows, BATCH at a time (see `batch`), for alpha > 2, in float64 inside.

t = e (x - edge) is at most one, and p = t^(1/e) >= t. So the edge of sparsemax of the scores e x is not
above the edge sought, needs no powers, and few scores are above it. They are listed for all rows
together, the first ones of all, then the second ones, ..., and `steep_support` visits these lists in
vectors across the rows.
"""

from __future__ import annotations

import math

from fenchel.kernels.cpu.batches.batch import (
    ALPHA,
    BATCH,
    CLIMBING,
    LARGEST,
    LOST,
    MASS,
    OFFSET,
    SHORT,
    SLOPE,
    climb,
    solve_batches,
    wide_data,
)
from fenchel.kernels.cpu.batches.steep_support import BELOW, COUNT, INVERSE, find_probabilities
from fenchel.kernels.cpu.columns.selection import list_above
from fenchel.kernels.cpu.columns.whole_vectors import fill
from fenchel.kernels.cpu.launch.compilation import outlined, scalar
from fenchel.kernels.cpu.launch.memory import advance, as_indices, load, maximum, store

STEEPEST = 1000.0  # alpha
LOOSE = 1e-2  # tolerance of the lower bound
MARGIN = 1e-12  # of the lower bound, for rounding
LISTS = 3  # times the memory of the scores: they, the lists, and where in the rows these are


def is_steep_batched(columns: int, alpha: float) -> bool:
    """Whether such a row is solved in a batch."""
    return columns <= SHORT and 2.0 < alpha <= STEEPEST


_is_batched = scalar(is_steep_batched)


@scalar
def _above(x, largest, edge):
    return (x - largest) - edge


@outlined
def _visit(data, size, place, state):
    """The sum of what is above the edge, and how many that are."""
    largest, edge = load(state, LARGEST + place), load(state, OFFSET + place)
    mass, count = 0.0, 0.0
    for i in range(size):
        t = maximum(_above(load(data, i), largest, edge), 0.0)
        mass += t
        count += 1.0 if t > 0.0 else 0.0
    store(state, MASS + place, mass)
    store(state, SLOPE + place, count)


@outlined
def _take_steps(state):
    """Move every row that climbs, by Newton's method; how many climb on."""
    climbing = 0.0
    for i in range(BATCH):
        edge, excess = load(state, OFFSET + i), load(state, MASS + i) - load(state, INVERSE + i)
        moves = load(state, CLIMBING + i) > 0.0 and excess > LOOSE
        store(state, OFFSET + i, edge + excess / load(state, SLOPE + i) if moves else edge)
        store(state, CLIMBING + i, 1.0 if moves else 0.0)
        climbing += 1.0 if moves else 0.0
    return climbing


@outlined
def _list(data, size, rows, state, listed, places):
    """List the scores above the edges, and where they are; returns the length of the longest list."""
    spare, longest = as_indices(advance(data, BATCH * size)), 0
    fill(advance(state, COUNT), BATCH, 0.0)
    for i in range(rows):
        if load(state, LOST + i) == 0.0:
            row = advance(data, i * size)
            bound = load(state, LARGEST + i) + (load(state, OFFSET + i) - MARGIN)
            bound -= MARGIN * abs(bound)
            count = list_above(row, size, bound, spare)
            for j in range(count):
                store(listed, j * BATCH + i, load(row, load(spare, j)))
                store(places, j * BATCH + i, load(spare, j))
            store(state, COUNT + i, count)
            store(state, BELOW + i, bound)
            longest = max(longest, count)
    for i in range(BATCH):
        for j in range(int(load(state, COUNT + i)), longest):
            store(listed, j * BATCH + i, -math.inf)
    return longest


@outlined
def _begin(data, size, rows, state):
    for i in range(BATCH):
        inverse = 1.0 / (load(state, ALPHA + i) - 1.0)
        store(state, INVERSE + i, inverse)
        store(state, OFFSET + i, -inverse)
    climb(_visit, _take_steps, data, size, rows, state)


@outlined
def _search(data, size, columns, rows, state):
    listed = advance(data, (BATCH + 1) * size)
    places = advance(listed, BATCH * size)
    find_probabilities(listed, _list(data, size, rows, state, listed, places), state)


@outlined
def _write(data, out, columns, size, spare, place, state):
    listed = advance(spare, size + place)
    places = advance(listed, BATCH * size)
    fill(out, columns, 0.0)
    for j in range(int(load(state, COUNT + place))):
        store(out, int(load(places, j * BATCH)), load(listed, j * BATCH))


def solve_steep_batches(arguments):
    """See `solve_batches`. The scores are not centred, because their differences must be exact."""
    solve_batches(arguments, wide_data, False, _is_batched, _begin, _search, _write)
