"""oscarmax of every row: sort, shift, pool adjacent violators, project onto the simplex.

With ranks k = 0, 1, ... among the n entries that are there, u_k = x_k + strength k is pooled to be
non-increasing: a group takes the mean of its u. Two bounds spare most rows the sort of all entries.

* If strength n >= 2 (max x - min x), no beginning of the row has a larger mean than the row: it is one
  group. (The mean of the first k exceeds that of all by at most max x - mean, and by at most
  (n - k)/k (mean - min x); one of them is below strength (n - k)/2 for every k.)
* The largest u of a group with an entry of score X is at most X + strength (n - 1), the largest z at
  least max x: an entry with X <= max x - 1 - strength (n - 1) is zero, and so is all below it.
"""

from __future__ import annotations

import math

from numba import float64

from fenchel.kernels.cpu.columns.largest import largest_in
from fenchel.kernels.cpu.columns.selection import ROUNDING, list_above
from fenchel.kernels.cpu.columns.whole_vectors import fill
from fenchel.kernels.cpu.launch.compilation import reducing, sequential
from fenchel.kernels.cpu.launch.memory import (
    TENSORS,
    advance,
    as_floats,
    as_indices,
    indices_at,
    load,
    real,
    store,
)
from fenchel.kernels.cpu.launch.sharing import for_each_row, matrix_row
from fenchel.kernels.cpu.structured.bucket_pooling import buckets_workspace, solve_many
from fenchel.kernels.cpu.structured.pooling import push_ordered, settle
from fenchel.kernels.cpu.structured.sorting import FEW, sort_falling


@reducing
def _present(row, columns):
    """How many entries are not -inf, and the smallest of them."""
    count, smallest = real(row, 0.0), real(row, math.inf)
    for i in range(columns):
        x = load(row, i)
        there = x > real(row, -math.inf)
        count += real(row, 1.0) if there else real(row, 0.0)
        smallest = x if there and x < smallest else smallest
    return float64(count), float64(smallest)


@sequential
def _write(places, groups, z, sizes, tau, out, first):
    start = 0
    for group in range(groups):
        value, end = load(z, group) - tau, start + int(load(sizes, group))
        if value <= 0.0:
            return
        for i in range(start, end):
            store(out, load(places, i), value)
            store(first, load(places, i), start)
        start = end


@sequential
def _name_absent(row, columns, first):
    """-1 for what is not there, 0 for all else until it is written."""
    for i in range(columns):
        store(first, i, -1 if load(row, i) == real(row, -math.inf) else 0)


@sequential
def _write_one_group(row, columns, count, out):
    share, zero = real(out, 1.0 / count), real(out, 0.0)
    for i in range(columns):
        store(out, i, share if load(row, i) > real(row, -math.inf) else zero)


@sequential
def _solve_few(row, places, count, largest, strength, out, first, workspace):
    stack = (workspace, advance(workspace, count))
    ordered = sort_falling(row, places, count, advance(workspace, 2 * count))
    groups = push_ordered(row, ordered, count, largest, strength, 0.0, stack, 0)
    tau = settle(stack, groups)
    _write(ordered, groups, stack[0], stack[1], tau, out, first)


@sequential
def _forward_row(arguments, row, strength, columns, workspace):
    scores, out = matrix_row(arguments, 0, row, columns), matrix_row(arguments, 1, row, columns)
    first = advance(indices_at(arguments, TENSORS + 2), row * columns)
    largest = float64(largest_in(scores, columns))
    _name_absent(scores, columns, first)
    if not math.isfinite(largest):
        fill(out, columns, 0.0 if largest < 0.0 else math.nan)
        return
    present, smallest = _present(scores, columns)
    if strength > 0.0 and strength * present >= 2.0 * (largest - smallest):
        _write_one_group(scores, columns, present, out)
        return
    fill(out, columns, 0.0)
    floor = largest - 1.0 - strength * (present - 1.0)
    places = as_indices(workspace)
    count = list_above(scores, columns, floor - ROUNDING * abs(floor), places)
    rest = advance(as_floats(workspace), (columns + 1) // 2)
    if count <= FEW:
        _solve_few(scores, places, count, largest, strength, out, first, rest)
    else:
        reach = min(largest - smallest, largest - floor)
        solve_many(scores, places, count, largest, reach, strength, out, first, rest)


def oscarmax_rows(arguments):
    """Probabilities and first ranks of every row."""
    for_each_row(arguments, _forward_row)


def oscarmax_workspace(columns: int, itemsize: int) -> int:
    """Numbers of scratch memory, of `itemsize` bytes each, that a thread needs."""
    floats = (columns + 1) // 2 + buckets_workspace(columns)
    return floats * (8 // itemsize)
