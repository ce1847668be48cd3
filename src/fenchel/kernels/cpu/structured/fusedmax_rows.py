"""fusedmax of every row: the projection onto the simplex of the prox of total variation.

|z - x| is at most 2 strength, so the threshold tau of the projection is at least that of sparsemax less
2 strength, and an entry more than 4 strength below that is zero. Those that are left fall into stretches
of neighbours, each with a prox of its own. What lies between them is lower: at every level that matters
it costs `strength` to end there, which is x - strength at the end of a stretch.
"""

from __future__ import annotations

import math

from numba import float64

from fenchel.kernels.cpu.columns.selection import ROUNDING, list_above
from fenchel.kernels.cpu.columns.whole_vectors import fill
from fenchel.kernels.cpu.launch.compilation import sequential
from fenchel.kernels.cpu.launch.memory import (
    TENSORS,
    advance,
    as_bytes,
    as_floats,
    as_indices,
    bytes_at,
    load,
    real,
    store,
)
from fenchel.kernels.cpu.launch.sharing import for_each_row, matrix_row
from fenchel.kernels.cpu.search.normalizer import edge_of, solve, workspace_size
from fenchel.kernels.cpu.structured.simplex_threshold import threshold
from fenchel.kernels.cpu.structured.total_variation import prox, prox_workspace

JOINED, WALL, BORDER = 0, 1, 2  # what lies before an entry: its neighbour, zeros, or nothing


@sequential
def _next_present(row, start, stop):
    """The first column from `start` on that is not -inf, or `stop`."""
    while start < stop and load(row, start) == real(row, -math.inf):
        start += 1
    return start


@sequential
def _relate(row, columns, places, count, before):
    """Note what lies before every entry; returns what lies behind the last."""
    previous = -1
    for i in range(count):
        place = load(places, i)
        kind = BORDER if i == 0 else JOINED
        if place > previous + 1 and _next_present(row, previous + 1, place) < place:
            kind = WALL
        store(before, i, kind)
        previous = place
    return WALL if _next_present(row, previous + 1, columns) < columns else BORDER


@sequential
def _solve_stretches(x, before, behind, count, strength, z, signs, workspace):
    """Fill z, and the sign of every entry that is joined to the one before it."""
    first = 0
    while first < count:
        last = first + 1
        while last < count and load(before, last) == JOINED:
            last += 1
        if load(before, first) == WALL:
            store(x, first, load(x, first) - strength)
        if last < count or behind == WALL:
            store(x, last - 1, load(x, last - 1) - strength)
        if last - first == 1:
            store(z, first, load(x, first))
        else:
            stretch = advance(x, first), advance(z, first), advance(signs, first)
            prox(stretch[0], last - first, strength, stretch[1], stretch[2], workspace)
        first = last


@sequential
def _fall(row, jumps, place, columns):
    """After a stretch: the next entry that is there lies below it, at zero."""
    after = _next_present(row, place + 1, columns)
    if after < columns:
        store(jumps, after, -1)


@sequential
def _write(row, columns, places, before, behind, count, z, signs, tau, out, jumps):
    fill(out, columns, 0.0)
    fill(jumps, columns, 0)
    above = False
    for i in range(count):
        place, kind, value = load(places, i), load(before, i), load(z, i) - tau
        if kind != JOINED and above:
            _fall(row, jumps, load(places, i - 1), columns)
        if value > 0.0:
            store(out, place, value)
        if kind == JOINED and (above or value > 0.0):
            store(jumps, place, load(signs, i))
        elif kind == WALL and value > 0.0:
            store(jumps, place, 1)
        above = value > 0.0
    if above and behind == WALL:
        _fall(row, jumps, load(places, count - 1), columns)


@sequential
def _forward_row(arguments, row, strength, columns, workspace):
    scores, out = matrix_row(arguments, 0, row, columns), matrix_row(arguments, 1, row, columns)
    jumps = advance(bytes_at(arguments, TENSORS + 2), row * columns)
    largest, offset, rest = solve(scores, columns, 2.0, workspace)
    if not math.isfinite(largest):
        fill(out, columns, 0.0 if largest < 0.0 else math.nan)
        fill(jumps, columns, 0)
        return
    floor = largest + (edge_of(offset, rest, 2.0) - 4.0 * strength)
    places = as_indices(workspace)
    count = list_above(scores, columns, floor - ROUNDING * (1.0 + abs(floor)), places)
    before = as_bytes(advance(places, columns))
    signs = advance(before, columns)
    x = advance(as_floats(workspace), (3 * columns + 3) // 4)
    z = advance(x, count)
    for i in range(count):
        store(x, i, float64(load(scores, load(places, i))) - largest)
    behind = _relate(scores, columns, places, count, before)
    _solve_stretches(x, before, behind, count, strength, z, signs, advance(z, count))
    tau = threshold(z, count)
    _write(scores, columns, places, before, behind, count, z, signs, tau, out, jumps)


def fusedmax_rows(arguments):
    """Probabilities and jumps of every row."""
    for_each_row(arguments, _forward_row)


def fusedmax_workspace(columns: int, itemsize: int) -> int:
    """Numbers of scratch memory, of `itemsize` bytes each, that a thread needs."""
    floats = (3 * columns + 3) // 4 + 2 * columns + prox_workspace(columns)
    return max(floats * (8 // itemsize), workspace_size(columns))
