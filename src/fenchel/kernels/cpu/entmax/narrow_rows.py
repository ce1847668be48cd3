"""Normalizers of a batch of narrow rows for alpha = 2 and 3/2, one row per lane of a vector.

With one row per lane, no sum goes across a vector, which would cost more than the columns of a narrow
row themselves.

p is a polynomial of d = x - edge, where edge = A - 1/(alpha - 1) is the lower end of the support: p = d
for alpha = 2, and p = d^2/4 for alpha = 3/2. While no entry leaves the support, the sum of p is a
polynomial in A, whose root is known in closed form. If the step to that root is not longer than the
smallest d > 0, the root is exact, and the visit that would confirm it is saved.
"""

from __future__ import annotations

import math

from fenchel.kernels.cpu.arithmetic.lanes import (
    any_above,
    lanes_like,
    larger,
    load_lanes,
    narrowed,
    smaller,
    square_root,
    store_lanes,
    transpose_block,
    where_above,
    widened,
)
from fenchel.kernels.cpu.launch.compilation import inlined, outlined
from fenchel.kernels.cpu.launch.memory import advance, load
from fenchel.kernels.cpu.shared.batch import ACTIVE, BATCH, OFFSET, ROW_PARAMETER

# In wider rows, sums across a vector cost less than visits to rows that are finished.
NARROW_COLUMNS = 64
COLUMNS_PER_SUM = 16  # columns summed in the precision of the row before a float64 total takes over
# The closed form is used when the sum of p is at most this: its rounding error is relative to the sum.
CLOSED_FORM_MASS = 2.0


@inlined
def _add_columns(scores, start, edge, edge_low, alpha, sums):
    """Sums over every second one of COLUMNS_PER_SUM columns (see `_visit`)."""
    mass, slope, count, nearest = sums
    zero, one = lanes_like(edge, 0.0), lanes_like(edge, 1.0)
    for i in range(start, start + COLUMNS_PER_SUM, 2):
        d = (load_lanes(scores, i * BATCH) - edge) - edge_low
        nearest = smaller(nearest, where_above(d, zero, d, lanes_like(edge, math.inf)))
        count = count + where_above(d, zero, one, zero)
        d = larger(d, zero)
        if alpha == 2.0:
            mass = mass + d
        else:
            mass = mass + d * d
            slope = slope + d
    return mass, slope, count, nearest


@inlined
def _visit(scores, size, edge, edge_low, alpha):
    """Sums over the columns: of p, of its slope in A, and of the support; and the least d > 0 there."""
    zero, infinity = lanes_like(edge, 0.0), lanes_like(edge, math.inf)
    mass, slope, count = widened(zero), widened(zero), widened(zero)
    nearest = infinity
    for start in range(0, size, COLUMNS_PER_SUM):
        even = _add_columns(scores, start, edge, edge_low, alpha, (zero, zero, zero, nearest))
        odd = _add_columns(scores, start + 1, edge, edge_low, alpha, (zero, zero, zero, even[3]))
        mass = mass + widened(even[0] + odd[0])
        slope = slope + widened(even[1] + odd[1])
        count = count + widened(even[2] + odd[2])
        nearest = odd[3]
    if alpha == 2.0:
        return mass, count, count, widened(nearest)
    quarter, half = lanes_like(mass, 0.25), lanes_like(mass, 0.5)
    return mass * quarter, slope * half, count, widened(nearest)


@inlined
def _steps(mass, slope, count, alpha):
    """Newton's step of A, and that to the root while the support stays; NaN where there is none."""
    one = lanes_like(mass, 1.0)
    excess = mass - one
    if alpha == 2.0:
        newton = excess / slope
        return newton, newton
    two = one + one
    newton = two * (mass - square_root(mass)) / slope
    return newton, two * excess / (slope + square_root(slope * slope - count * excess))


@inlined
def _search(scores, size, state, alpha, tolerance):
    """Move the offsets of the rows with this alpha to their normalizers."""
    offset = load_lanes(state, OFFSET)
    zero, one = lanes_like(offset, 0.0), lanes_like(offset, 1.0)
    model, reach = load_lanes(scores, 0), lanes_like(offset, 1.0 / (alpha - 1.0))
    previous = lanes_like(offset, math.inf)
    alphas, kind = load_lanes(state, ROW_PARAMETER), lanes_like(offset, alpha)
    unfinished = load_lanes(state, ACTIVE)
    active = where_above(alphas, kind, zero, where_above(kind, alphas, zero, unfinished))
    store_lanes(state, ACTIVE, unfinished - active)
    while any_above(active, zero):
        end = offset - reach
        edge = narrowed(model, end)
        edge_low = narrowed(model, end - widened(edge))
        mass, slope, count, nearest = _visit(scores, size, edge, edge_low, alpha)
        newton, last = _steps(mass, slope, count, alpha)
        excess = larger(mass - one, one - mass)
        moves = where_above(excess, lanes_like(offset, tolerance), active, zero)
        moves = where_above(previous, excess, moves, zero)
        closes = where_above(last, zero, moves, zero)
        closes = where_above(last, nearest, zero, closes)
        closes = where_above(mass, lanes_like(offset, CLOSED_FORM_MASS), zero, closes)
        step = where_above(closes, zero, last, newton)
        offset = offset + where_above(moves, zero, step, zero)
        active = where_above(closes, zero, zero, moves)
        previous = excess
    store_lanes(state, OFFSET, offset)


@outlined
def _search_sparsemax(scores, size, state, tolerance):
    _search(scores, size, state, 2.0, tolerance)


@outlined
def _search_entmax15(scores, size, state, tolerance):
    _search(scores, size, state, 1.5, tolerance)


@outlined
def solve_narrow_rows(data, size, state, scores, tolerance):
    """Find the offsets of the rows with these alphas; the others stay active.

    `scores` is memory for the transposed scores of the batch.
    """
    sparsemax, entmax15 = False, False
    for i in range(BATCH):
        if load(state, ACTIVE + i) > 0.0:
            sparsemax = sparsemax or load(state, ROW_PARAMETER + i) == 2.0
            entmax15 = entmax15 or load(state, ROW_PARAMETER + i) == 1.5
    if sparsemax or entmax15:
        for start in range(0, size, BATCH):
            transpose_block(advance(data, start), size, advance(scores, start * BATCH))
    if sparsemax:
        _search_sparsemax(scores, size, state, tolerance)
    if entmax15:
        _search_entmax15(scores, size, state, tolerance)
