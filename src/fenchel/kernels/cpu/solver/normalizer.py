"""The normalizer A of a whole row, from few visits to its columns, and the probabilities.

By (N.8), a cheap problem gives a lower bound of A: the maxima of blocks of columns, or alpha = 3/2 or 2
instead of an alpha that needs powers. Only columns above the edge A - 1/(alpha - 1) of that bound can
be in the support. They are gathered, and the search runs on them alone.
"""

from __future__ import annotations

import math
from typing import Any

from numba import float64, int64, types
from numba.extending import overload

from fenchel.kernels.cpu.launch.compilation import inlined
from fenchel.kernels.cpu.launch.memory import advance, load, maximum, real, store
from fenchel.kernels.cpu.shared.columns import VECTOR, copy, largest_of_vectors, load_tail, pad
from fenchel.kernels.cpu.solver.alpha_above_2 import entry_above_2, solve_above_2
from fenchel.kernels.cpu.solver.entries import (
    coefficients,
    entmax15_entry,
    entmax_entry,
    sparsemax_entry,
)
from fenchel.kernels.cpu.solver.newton import newton_search

WHOLE_ROW_COLUMNS = 256  # longest rows that are visited as a whole, without block maxima
BLOCK_VECTORS = 2  # vectors of columns in a block
LOWER_BOUND_TOLERANCE = 1e-2  # |F - 1| at which the search for a lower bound ends
TOLERANCE_RATIO_ABOVE_2 = 1e-2  # factor on the tolerance for alpha > 2


def tolerance_of(number) -> Any:
    """|F - 1| at which the search ends, for the precision of `number`."""


@overload(tolerance_of, inline="always")
def _tolerance_of(number):
    tolerance = 1e-7 if number == types.float32 else 1e-15
    return lambda number: tolerance


def normalizer_workspace(columns: int) -> int:
    """Scratch memory of a thread, in numbers: a tail, block maxima, and candidate columns."""
    return columns + columns // (BLOCK_VECTORS * VECTOR) + 6 * VECTOR


normalizer_workspace_end = inlined(normalizer_workspace)


@inlined
def edge_of(offset, rest, alpha):
    """The edge of the support, A - 1/(alpha - 1), relative to the pivot, which it is for alpha > 2."""
    if alpha > 2.0:
        return 0.0
    return (offset + rest) - 1.0 / (alpha - 1.0) if alpha > 1.0 else -math.inf


@inlined
def normalizer_of(offset, rest, alpha):
    """A, relative to the pivot."""
    return (1.0 - offset) / (alpha - 1.0) if alpha > 2.0 else offset + rest


@inlined
def block_maxima_in(workspace):
    return advance(workspace, VECTOR)


@inlined
def _block_maxima(row, columns, tail, has_tail, maxima):
    """Fill `maxima`, that of the tail last, and pad it; returns its number of vectors and its maximum."""
    vectors = columns // VECTOR
    count = 0
    for start in range(0, vectors, BLOCK_VECTORS):
        size = min(BLOCK_VECTORS, vectors - start)
        store(maxima, count, largest_of_vectors(advance(row, start * VECTOR), size))
        count += 1
    if has_tail:
        store(maxima, count, largest_of_vectors(tail, 1))
        count += 1
    padded = pad(maxima, count, -math.inf)
    return padded, largest_of_vectors(maxima, padded)


@inlined
def _append_above(source, size, largest, edge, target):
    filled = 0
    for i in range(size):
        x = load(source, i)
        store(target, filled, x)
        filled += 1 if x - largest > edge else 0
    return filled


@inlined
def _gather(row, columns, tail, has_tail, maxima, largest, edge, one_by_one, target):
    """Collect the scores above largest + edge, or whole blocks with such scores, and pad the list.

    Returns the number of scores.
    """
    whole = columns // VECTOR * VECTOR
    filled = 0
    for start in range(0, whole, BLOCK_VECTORS * VECTOR):
        if (
            columns <= WHOLE_ROW_COLUMNS
            or load(maxima, start // (BLOCK_VECTORS * VECTOR)) - largest > edge
        ):
            source, place = advance(row, start), advance(target, filled)
            size = min(BLOCK_VECTORS * VECTOR, whole - start)
            if one_by_one:
                filled += _append_above(source, size, largest, edge, place)
            else:
                copy(source, place, size)
                filled += size
    if has_tail:
        filled += _append_above(tail, VECTOR, largest, edge, advance(target, filled))
    pad(target, filled, -math.inf)
    return filled


@inlined
def find_normalizer(row, columns, alpha, workspace):
    """(pivot, offset, rest) of a row: its largest score, and A = pivot + offset + rest with a tiny rest.

    For alpha > 2 they are the smallest score b of the support, u^(alpha - 1) and its logarithm: see
    `alpha_above_2`. If the largest score is not finite, it is the pivot, and there is no A. For rows
    longer than WHOLE_ROW_COLUMNS, the block maxima are in `block_maxima_in(workspace)` afterwards.
    """
    tail, maxima = workspace, block_maxima_in(workspace)
    has_tail = load_tail(row, columns, tail, -math.inf)
    vectors = columns // VECTOR
    padded = 0
    if columns <= WHOLE_ROW_COLUMNS:
        largest = maximum(largest_of_vectors(row, vectors), largest_of_vectors(tail, has_tail))
    else:
        padded, largest = _block_maxima(row, columns, tail, has_tail, maxima)
    if not math.isfinite(largest):
        return largest, 0.0, 0.0
    tolerance = tolerance_of(largest)
    polynomial = alpha == 1.5 or alpha == 2.0
    if alpha <= 1.0 or (polynomial and columns <= WHOLE_ROW_COLUMNS):
        offset, rest = newton_search(row, vectors, tail, has_tail, largest, 0.0, alpha, tolerance)
        return largest, offset, rest
    offset = 0.0
    if alpha <= 2.0:
        easier = 2.0 if alpha > 1.5 else 1.5
        if columns <= WHOLE_ROW_COLUMNS:
            offset, _ = newton_search(
                row, vectors, tail, has_tail, largest, 0.0, easier, LOWER_BOUND_TOLERANCE
            )
        else:
            offset, _ = newton_search(
                maxima, padded, tail, int64(0), largest, 0.0, easier, LOWER_BOUND_TOLERANCE
            )
    edge = real(row, offset - 1.0 / (alpha - 1.0))
    candidates = advance(maxima, padded * VECTOR)
    count = _gather(row, columns, tail, has_tail, maxima, largest, edge, not polynomial, candidates)
    if alpha > 2.0:
        bottom, offset, rest = solve_above_2(
            candidates, count, float64(largest), alpha, TOLERANCE_RATIO_ABOVE_2 * tolerance
        )
        return real(row, bottom), offset, rest
    padded = (count + VECTOR - 1) // VECTOR
    offset, rest = newton_search(
        candidates, padded, tail, int64(0), largest, offset, alpha, tolerance
    )
    return largest, offset, rest


@inlined
def _write_entries(entry, data, out, vectors, row, scale):
    for i in range(vectors * VECTOR):
        p, _, _ = entry(load(data, i), row)
        store(out, i, p * scale)


@inlined
def _write_above_2(data, out, vectors, pivot, threshold, rest, e, scale):
    for i in range(vectors * VECTOR):
        p, _ = entry_above_2(load(data, i), pivot, threshold, rest, e, 1.0 / e)
        store(out, i, p * scale)


@inlined
def write_probabilities(data, out, vectors, pivot, offset, rest, alpha, scale):
    """`scale` times p for `vectors` vectors of columns, from what `find_normalizer` returns."""
    if alpha > 2.0:
        e = alpha - 1.0
        _write_above_2(data, out, vectors, float64(pivot), offset, rest, e, scale)
        return
    row = coefficients(pivot, offset, rest, alpha)
    factor = real(data, scale)
    if alpha == 2.0:
        _write_entries(sparsemax_entry, data, out, vectors, row, factor)
    elif alpha == 1.5:
        _write_entries(entmax15_entry, data, out, vectors, row, factor)
    else:
        _write_entries(entmax_entry, data, out, vectors, row, factor)
