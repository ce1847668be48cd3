"""budget of rows of any length, one by one, in float64: p = clip(x - tau, 0, 1) with the sum k, (N.36).

With x_(m) the m-th largest score and m = ceil(k), tau lies in [x_(m) - 1, x_(m)]. The m-th largest of
the maxima of blocks of columns is not above x_(m), so for a small k most blocks have p = 0 and are not
visited again. Newton's method in a bracket ends on the linear piece of the root, where it is exact.
"""

from __future__ import annotations

import math

from numba import float64

from fenchel.kernels.cpu.budget.order_statistic import order_statistic
from fenchel.kernels.cpu.launch.compilation import inlined, reducing
from fenchel.kernels.cpu.launch.memory import (
    advance,
    as_floats,
    as_pointer_like,
    load,
    maximum,
    real,
    store,
)
from fenchel.kernels.cpu.launch.threads import for_each_row, is_unsolved, matrix_row
from fenchel.kernels.cpu.shared.columns import BOUND_ROUNDING, fill, largest_of_row

BLOCK_COLUMNS = 64


@inlined
def _block_maxima(row, columns, maxima):
    """Fill `maxima`; returns the largest score, NaN if there is one."""
    largest = real(row, -math.inf)
    for start in range(0, columns, BLOCK_COLUMNS):
        peak = largest_of_row(advance(row, start), min(BLOCK_COLUMNS, columns - start))
        store(maxima, start // BLOCK_COLUMNS, peak)
        largest = maximum(largest, peak)
    return largest


@inlined
def _lower_bound(maxima, columns, rank):
    """A score below which p is zero; -inf if there are fewer blocks than `rank`."""
    blocks = (columns + BLOCK_COLUMNS - 1) // BLOCK_COLUMNS
    bottom = float64(order_statistic(maxima, blocks, rank)) if rank <= blocks else -math.inf
    if not math.isfinite(bottom):
        return -math.inf
    return bottom - 1.0 - BOUND_ROUNDING * abs(bottom - 1.0)


@inlined
def _gather(row, columns, maxima, bound, values):
    """Collect the scores above `bound`; returns their number."""
    filled = 0
    for start in range(0, columns, BLOCK_COLUMNS):
        if load(maxima, start // BLOCK_COLUMNS) > bound:
            for i in range(start, min(start + BLOCK_COLUMNS, columns)):
                store(values, filled, load(row, i))
                filled += 1 if load(row, i) > bound else 0
    return filled


@inlined
def _subtract_anchor(values, count, anchor, near):
    """Collect x - anchor where p depends on tau; returns their number, and how many scores have p = 1."""
    filled, ones = 0, 0.0
    for i in range(count):
        x = float64(load(values, i)) - anchor
        store(near, filled, x)
        filled += 1 if -1.0 < x < 1.0 else 0
        ones += 1.0 if x >= 1.0 else 0.0
    return filled, ones


@reducing
def _evaluate(near, count, tau):
    """The sum of p, the number of entries at one, and the number between 0 and 1."""
    total, ones, between = 0.0, 0.0, 0.0
    for i in range(count):
        p = load(near, i) - tau
        inside = p > 0.0 and p < 1.0
        total += p if inside else 0.0
        ones += 1.0 if p >= 1.0 else 0.0
        between += 1.0 if inside else 0.0
    return total + ones, ones, between


@inlined
def _solve(near, count, k):
    """tau in [-1, 0], by Newton's method in a bracket; a step that does not halve the error bisects."""
    low, high, tau, previous = -1.0, 0.0, -1.0, math.inf
    same_ones, same_between = -1.0, -1.0
    while True:
        total, ones, between = _evaluate(near, count, tau)
        excess = total - k
        if excess == 0.0 or (ones == same_ones and between == same_between):
            return tau
        low, high = (tau, high) if excess > 0.0 else (low, tau)
        step = tau + excess / between
        same_ones, same_between = ones, between
        if not low <= step <= high or 2.0 * abs(excess) > previous:
            step = 0.5 * (low + high)
            same_ones = -1.0
            if not low < step < high:
                return tau
        if step == tau:
            return tau
        previous, tau = abs(excess), step


@inlined
def _clipped(x, anchor, tau):
    p = (float64(x) - anchor) - tau
    return 1.0 if p >= 1.0 else (0.0 if p <= 0.0 else p)


@inlined
def _write(row, columns, maxima, bound, anchor, tau, out):
    for start in range(0, columns, BLOCK_COLUMNS):
        size = min(BLOCK_COLUMNS, columns - start)
        scores, target = advance(row, start), advance(out, start)
        if load(maxima, start // BLOCK_COLUMNS) > bound:
            for i in range(size):
                store(target, i, _clipped(load(scores, i), anchor, tau))
        else:
            fill(target, size, 0.0)


@inlined
def _write_all(row, columns, bound, out):
    """One wherever a score is above `bound`."""
    for i in range(columns):
        store(out, i, 1.0 if load(row, i) > bound else 0.0)


@inlined
def _forward_row(arguments, row, k, columns, workspace):
    if not is_unsolved(arguments, row):
        return
    scores, out = matrix_row(arguments, 0, row, columns), matrix_row(arguments, 1, row, columns)
    near = as_floats(workspace)
    values = as_pointer_like(scores, advance(near, columns))
    maxima = advance(values, columns)
    largest = _block_maxima(scores, columns, maxima)
    if not largest < math.inf:
        fill(out, columns, math.nan)
        return
    rank = max(math.ceil(min(k, float64(columns))), 1)
    bound = real(scores, _lower_bound(maxima, columns, rank))
    count = _gather(scores, columns, maxima, bound, values)
    if count <= k:
        _write_all(scores, columns, bound, out)
        return
    anchor, tau = float64(order_statistic(values, count, rank)), 0.0
    if k > 0.0:
        inside, ones = _subtract_anchor(values, count, anchor, near)
        tau = _solve(near, inside, k - ones)
    _write(scores, columns, maxima, bound, anchor, tau, out)


def budget_rows(arguments):
    """p of every row that an earlier kernel has not solved."""
    for_each_row(arguments, _forward_row)


def budget_workspace(columns: int, itemsize: int) -> int:
    """Scratch memory of a thread, in numbers of `itemsize` bytes."""
    floats = 2 * columns + (columns + BLOCK_COLUMNS - 1) // BLOCK_COLUMNS
    return floats * (8 // itemsize)
