"""The normaliser of a whole row, from few visits to its columns.

Any subset of the columns has a smaller root A, and A falls as alpha grows. So a cheap problem (the
maxima of blocks of columns; alpha = 3/2 or 2 instead of one that needs powers) gives a lower bound,
and only columns above the threshold A - 1/(alpha - 1) of that bound can be in the support.
"""

from __future__ import annotations

import math
from typing import Any

from numba import float64, int64, types
from numba.extending import overload

from fenchel.kernels.cpu.columns.largest import largest_of
from fenchel.kernels.cpu.columns.whole_vectors import LANES, copy, load_tail, pad
from fenchel.kernels.cpu.launch.compilation import scalar, sequential
from fenchel.kernels.cpu.launch.memory import advance, load, maximum, real, store
from fenchel.kernels.cpu.search.climbing import climb
from fenchel.kernels.cpu.search.steep import solve_steep

SHORT = 256  # up to this many columns a row is swept whole, without block maxima
BLOCK = 2  # multiples of LANES in a block
LOOSE = 1e-2  # tolerance of a lower bound
STEEP = 1e-2  # how much tighter the tolerance is for alpha > 2


def tolerance_of(number) -> Any:
    """How far the sum of a row may be from one before another step is taken."""


@overload(tolerance_of, inline="always")
def _tolerance_of(number):
    tolerance = 1e-7 if number == types.float32 else 1e-15
    return lambda number: tolerance


def workspace_size(columns: int) -> int:
    """Numbers of scratch memory a thread needs: a tail, block maxima, and candidate columns."""
    return columns + columns // (BLOCK * LANES) + 6 * LANES


workspace_end = scalar(workspace_size)


@scalar
def edge_of(offset, rest, alpha):
    """The edge of the support, A - 1/(alpha - 1), relative to the pivot, or the pivot itself."""
    if alpha > 2.0:
        return 0.0
    return (offset + rest) - 1.0 / (alpha - 1.0) if alpha > 1.0 else -math.inf


@scalar
def normalizer_of(offset, rest, alpha):
    """A, relative to the pivot."""
    return (1.0 - offset) / (alpha - 1.0) if alpha > 2.0 else offset + rest


@scalar
def maxima_of(workspace):
    return advance(workspace, LANES)


@sequential
def _block_maxima(row, columns, tail, has_tail, maxima):
    """Fill `maxima` (the tail's last, then padding); returns its multiples of LANES and largest."""
    groups = columns // LANES
    count = 0
    for start in range(0, groups, BLOCK):
        size = min(BLOCK, groups - start)
        store(maxima, count, largest_of(advance(row, start * LANES), size))
        count += 1
    if has_tail:
        store(maxima, count, largest_of(tail, 1))
        count += 1
    padded = pad(maxima, count, -math.inf)
    return padded, largest_of(maxima, padded)


@scalar
def _append_above(source, size, largest, edge, target):
    filled = 0
    for i in range(size):
        x = load(source, i)
        store(target, filled, x)
        filled += 1 if x - largest > edge else 0
    return filled


@sequential
def _gather(row, columns, tail, has_tail, maxima, largest, edge, one_by_one, target):
    """Collect the columns above largest + edge, or the blocks that hold any; padded.

    Returns how many columns that makes.
    """
    whole = columns // LANES * LANES
    filled = 0
    for start in range(0, whole, BLOCK * LANES):
        if columns <= SHORT or load(maxima, start // (BLOCK * LANES)) - largest > edge:
            source, place = advance(row, start), advance(target, filled)
            size = min(BLOCK * LANES, whole - start)
            if one_by_one:
                filled += _append_above(source, size, largest, edge, place)
            else:
                copy(source, place, size)
                filled += size
    if has_tail:
        filled += _append_above(tail, LANES, largest, edge, advance(target, filled))
    pad(target, filled, -math.inf)
    return filled


@sequential
def solve(row, columns, alpha, workspace):
    """(pivot, offset, rest) of a row: its largest score, and A = pivot + offset + rest, rest tiny.

    For alpha > 2 they are the smallest score of the support, p^(alpha - 1) of it and the logarithm
    of that (see `steep`). A largest score that is not finite is the pivot, and has no A.
    Rows longer than SHORT leave their block maxima in `maxima_of(workspace)`.
    """
    tail, maxima = workspace, maxima_of(workspace)
    has_tail = load_tail(row, columns, tail, -math.inf)
    groups = columns // LANES
    padded = 0
    if columns <= SHORT:
        largest = maximum(largest_of(row, groups), largest_of(tail, has_tail))
    else:
        padded, largest = _block_maxima(row, columns, tail, has_tail, maxima)
    if not math.isfinite(largest):
        return largest, 0.0, 0.0
    tolerance = tolerance_of(largest)
    polynomial = alpha == 1.5 or alpha == 2.0
    if alpha <= 1.0 or (polynomial and columns <= SHORT):
        offset, rest = climb(row, groups, tail, has_tail, largest, 0.0, alpha, tolerance)
        return largest, offset, rest
    offset = 0.0
    if alpha <= 2.0:
        easier = 2.0 if alpha > 1.5 else 1.5
        if columns <= SHORT:
            offset, _ = climb(row, groups, tail, has_tail, largest, 0.0, easier, LOOSE)
        else:
            offset, _ = climb(maxima, padded, tail, int64(0), largest, 0.0, easier, LOOSE)
    edge = real(row, offset - 1.0 / (alpha - 1.0))
    candidates = advance(maxima, padded * LANES)
    count = _gather(row, columns, tail, has_tail, maxima, largest, edge, not polynomial, candidates)
    if alpha > 2.0:
        bottom, offset, rest = solve_steep(
            candidates, count, float64(largest), alpha, STEEP * tolerance
        )
        return real(row, bottom), offset, rest
    padded = (count + LANES - 1) // LANES
    offset, rest = climb(candidates, padded, tail, int64(0), largest, offset, alpha, tolerance)
    return largest, offset, rest
