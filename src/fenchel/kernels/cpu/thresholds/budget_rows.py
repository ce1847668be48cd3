"""budget of rows of any length, one by one: p = clip(x - tau, 0, 1) with the sum k, in float64 inside.

With x_(m) the m-th largest score and m = ceil(k), tau lies in [x_(m) - 1, x_(m)]. The m-th largest of the
maxima of blocks of columns is not above x_(m), so for a small k most blocks hold only zeros, and are
not looked at again. Around x_(m) the sum is piecewise linear in tau: Newton's method with a bracket
ends on the right piece, where it is exact.
"""

from __future__ import annotations

import math

from numba import float64

from fenchel.kernels.cpu.columns.largest import largest_in
from fenchel.kernels.cpu.columns.selection import ROUNDING
from fenchel.kernels.cpu.columns.whole_vectors import fill
from fenchel.kernels.cpu.launch.compilation import reducing, scalar, sequential
from fenchel.kernels.cpu.launch.memory import (
    advance,
    as_floats,
    as_type_of,
    load,
    maximum,
    real,
    store,
)
from fenchel.kernels.cpu.launch.sharing import for_each_row, is_left, matrix_row
from fenchel.kernels.cpu.thresholds.ranking import ranked

BLOCK = 64  # columns


@sequential
def _block_maxima(row, columns, maxima):
    """Fill `maxima`; returns the largest of all, NaN if there is one."""
    largest = real(row, -math.inf)
    for start in range(0, columns, BLOCK):
        peak = largest_in(advance(row, start), min(BLOCK, columns - start))
        store(maxima, start // BLOCK, peak)
        largest = maximum(largest, peak)
    return largest


@sequential
def _lower_bound(maxima, columns, rank):
    """A number below which p is zero, -inf if the maxima are too few to tell."""
    blocks = (columns + BLOCK - 1) // BLOCK
    bottom = float64(ranked(maxima, blocks, rank)) if rank <= blocks else -math.inf
    if not math.isfinite(bottom):
        return -math.inf
    return bottom - 1.0 - ROUNDING * abs(bottom - 1.0)


@sequential
def _gather(row, columns, maxima, bound, values):
    """Collect the scores above `bound`; returns how many there are."""
    filled = 0
    for start in range(0, columns, BLOCK):
        if load(maxima, start // BLOCK) > bound:
            for i in range(start, min(start + BLOCK, columns)):
                store(values, filled, load(row, i))
                filled += 1 if load(row, i) > bound else 0
    return filled


@sequential
def _recentre(values, count, anchor, near):
    """Collect x - anchor where tau decides; returns how many there are, and how many are at one."""
    filled, ones = 0, 0.0
    for i in range(count):
        x = float64(load(values, i)) - anchor
        store(near, filled, x)
        filled += 1 if -1.0 < x < 1.0 else 0
        ones += 1.0 if x >= 1.0 else 0.0
    return filled, ones


@reducing
def _evaluate(near, count, tau):
    """The sum of p, how many entries are at one, and how many are between."""
    total, ones, between = 0.0, 0.0, 0.0
    for i in range(count):
        p = load(near, i) - tau
        inside = p > 0.0 and p < 1.0
        total += p if inside else 0.0
        ones += 1.0 if p >= 1.0 else 0.0
        between += 1.0 if inside else 0.0
    return total + ones, ones, between


@sequential
def _solve(near, count, k):
    """tau in [-1, 0]: a Newton step that leaves the bracket or does not halve the error bisects."""
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


@scalar
def _share(x, anchor, tau):
    p = (float64(x) - anchor) - tau
    return 1.0 if p >= 1.0 else (0.0 if p <= 0.0 else p)


@sequential
def _write(row, columns, maxima, bound, anchor, tau, out):
    for start in range(0, columns, BLOCK):
        size = min(BLOCK, columns - start)
        scores, target = advance(row, start), advance(out, start)
        if load(maxima, start // BLOCK) > bound:
            for i in range(size):
                store(target, i, _share(load(scores, i), anchor, tau))
        else:
            fill(target, size, 0.0)


@sequential
def _write_all(row, columns, bound, out):
    """One wherever a score is above `bound`."""
    for i in range(columns):
        store(out, i, 1.0 if load(row, i) > bound else 0.0)


@sequential
def _forward_row(arguments, row, k, columns, workspace):
    if not is_left(arguments, row):
        return
    scores, out = matrix_row(arguments, 0, row, columns), matrix_row(arguments, 1, row, columns)
    near = as_floats(workspace)
    values = as_type_of(scores, advance(near, columns))
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
    anchor, tau = float64(ranked(values, count, rank)), 0.0
    if k > 0.0:
        inside, ones = _recentre(values, count, anchor, near)
        tau = _solve(near, inside, k - ones)
    _write(scores, columns, maxima, bound, anchor, tau, out)


def budget_rows(arguments):
    """p of every row that no other kernel has solved."""
    for_each_row(arguments, _forward_row)


def budget_workspace(columns: int, itemsize: int) -> int:
    """Numbers of scratch memory, of `itemsize` bytes each, that a thread needs."""
    floats = 2 * columns + (columns + BLOCK - 1) // BLOCK
    return floats * (8 // itemsize)
