"""softmax of a row: e^(x - m) divided by its sum, with m the largest score.

e^(x - m) of a block of columns is written while the block is in the nearest cache, with m the largest
score so far. At the end every block is scaled, to the largest score of the row and to the sum.
"""

from __future__ import annotations

import math

from numba import float64

from fenchel.kernels.cpu.arithmetic.elementary import exp
from fenchel.kernels.cpu.launch.compilation import inlined, reducing
from fenchel.kernels.cpu.launch.memory import advance, load, maximum, real, store
from fenchel.kernels.cpu.shared.columns import VECTOR, copy, fill, largest_of_vectors, load_tail

EXP_SUM_VECTORS = 4  # vectors summed in the precision of the row, before a float64 total
SOFTMAX_BLOCK_VECTORS = 32  # vectors of columns that are scaled together


@reducing
def _exp_vectors(data, out, vectors, largest):
    """Write e^(x - largest) of `vectors` vectors of columns; returns their sum."""
    total = real(data, 0.0)
    for i in range(vectors * VECTOR):
        share = exp(load(data, i) - largest)
        store(out, i, share)
        total += share
    return total


@inlined
def _exp_block(data, out, vectors, largest, total):
    """Write e^(x - m) of one more block; returns (the largest score m so far, the sum relative to it)."""
    peak = maximum(largest, largest_of_vectors(data, vectors))
    if not math.isfinite(peak):
        fill(out, vectors * VECTOR, 0.0)
        return peak, total
    if peak > largest and total > 0.0:
        total *= math.exp(float64(largest) - float64(peak))
    for start in range(0, vectors, EXP_SUM_VECTORS):
        source, target = advance(data, start * VECTOR), advance(out, start * VECTOR)
        total += _exp_vectors(source, target, min(EXP_SUM_VECTORS, vectors - start), peak)
    return peak, total


@inlined
def _scale(data, vectors, peak, largest, total):
    share = 1.0 if peak == largest else math.exp(float64(peak) - float64(largest))
    factor = real(data, share / total)
    for i in range(vectors * VECTOR):
        store(data, i, load(data, i) * factor)


@inlined
def softmax_row(row, out, columns, workspace):
    """p of a row: zero if all scores are -inf, NaN if one is NaN or +inf."""
    tail, last = workspace, advance(workspace, VECTOR)
    peaks, vectors = advance(workspace, 2 * VECTOR), columns // VECTOR
    has_tail = load_tail(row, columns, tail, -math.inf)
    largest, total = real(row, -math.inf), 0.0
    if has_tail:
        largest, total = _exp_block(tail, last, 1, largest, total)
    last_peak = largest
    for start in range(0, vectors, SOFTMAX_BLOCK_VECTORS):
        size, place = min(SOFTMAX_BLOCK_VECTORS, vectors - start), start * VECTOR
        source, target = advance(row, place), advance(out, place)
        largest, total = _exp_block(source, target, size, largest, total)
        store(peaks, start // SOFTMAX_BLOCK_VECTORS, largest)
    if not math.isfinite(largest):
        fill(out, columns, 0.0 if largest < 0.0 else math.nan)
        return
    for start in range(0, vectors, SOFTMAX_BLOCK_VECTORS):
        block, size = advance(out, start * VECTOR), min(SOFTMAX_BLOCK_VECTORS, vectors - start)
        _scale(block, size, load(peaks, start // SOFTMAX_BLOCK_VECTORS), largest, total)
    if has_tail:
        _scale(last, 1, last_peak, largest, total)
        copy(last, advance(out, vectors * VECTOR), columns - vectors * VECTOR)
