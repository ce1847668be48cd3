"""Probabilities of BATCH rows of scores at a time, by the solver of entmax of short rows (1 < alpha ≤ 2).

The search for a single normalizer waits for every sum and every step; those of several rows do not wait
for each other.
"""

from __future__ import annotations

import math

from fenchel.kernels.cpu.entmax.guesses import guess_offsets
from fenchel.kernels.cpu.entmax.short_rows_up_to_2 import ONE_HOT_TOLERANCES, find_normalizers
from fenchel.kernels.cpu.launch.compilation import inlined, outlined
from fenchel.kernels.cpu.launch.memory import advance, load, real, store
from fenchel.kernels.cpu.shared.batch import (
    ACTIVE,
    BATCH,
    LARGEST,
    OFFSET,
    PREVIOUS,
    REST,
    ROW_PARAMETER,
    UNSOLVED,
)
from fenchel.kernels.cpu.shared.columns import VECTOR, fill, largest_of_vectors, pad
from fenchel.kernels.cpu.solver.entries import is_polynomial
from fenchel.kernels.cpu.solver.normalizer import tolerance_of, write_probabilities


@inlined
def begin_batch(state):
    """Empty the batch."""
    for i in range(BATCH):
        store(state, UNSOLVED + i, 1.0)
        store(state, ACTIVE + i, 0.0)
        store(state, ROW_PARAMETER + i, 2.0)


@outlined
def add_row(scores, count, alpha, offset, data, size, place, state):
    """Copy a row of scores, relative to the largest one and padded with -inf to `size`.

    `offset` is where the search for A begins, or A itself. `scores` must have room for whole vectors. A
    row with another alpha, or with scores that are not numbers, is not added.
    """
    groups = pad(scores, count, -math.inf)
    largest = largest_of_vectors(scores, groups)
    if not (1.0 < alpha <= 2.0 and math.isfinite(largest)):
        return
    row = advance(data, place * size)
    for i in range(groups * VECTOR):
        store(row, i, load(scores, i) - largest)
    fill(advance(row, groups * VECTOR), size - groups * VECTOR, -math.inf)
    store(state, ROW_PARAMETER + place, alpha)
    store(state, LARGEST + place, largest)
    store(state, OFFSET + place, offset)
    store(state, REST + place, 0.0)
    store(state, PREVIOUS + place, math.inf)
    store(state, ACTIVE + place, 1.0)
    store(state, UNSOLVED + place, 0.0)


@outlined
def solve_batch(data, size, rows, state, guesses):
    """Find the normalizers, from first guesses or from the offsets of the rows.

    `data` has room for BATCH rows, or for 2 BATCH + 1 rows of up to NARROW_COLUMNS numbers.
    """
    if guesses:
        guess_offsets(data, size, rows, state)
    find_normalizers(data, size, size, rows, state)


@inlined
def is_solved(state, place):
    """Whether the normalizer of a row is known; other rows have to be solved alone."""
    return load(state, UNSOLVED + place) == 0.0


@inlined
def offset_of(state, place):
    """A - largest of a row."""
    return load(state, OFFSET + place) + load(state, REST + place)


@outlined
def write_solved_row(data, p, size, place, state):
    """Write p of a row whose normalizer is known."""
    offset, alpha = offset_of(state, place), load(state, ROW_PARAMETER + place)
    row, zero = advance(data, place * size), real(data, 0.0)
    if not is_polynomial(alpha) and abs(offset) <= ONE_HOT_TOLERANCES * tolerance_of(zero):
        offset = 0.0  # that p is exactly 1
    write_probabilities(row, p, size // VECTOR, zero, offset, 0.0, alpha, 1.0)
