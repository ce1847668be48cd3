"""softmax of a row: e^(x - m) over its sum, m the largest score.

A block of columns, while it is in the nearest cache, becomes e^(x - m) with m the largest score so far.
At the end every block is scaled: to the largest score of all, and to the sum. Sums of runs are float64.
"""

from __future__ import annotations

import math

from numba import float64

from fenchel.kernels.cpu.arithmetic.elementary import exp
from fenchel.kernels.cpu.columns.largest import largest_of
from fenchel.kernels.cpu.columns.whole_vectors import LANES, copy, fill, load_tail
from fenchel.kernels.cpu.launch.compilation import reducing, scalar, sequential
from fenchel.kernels.cpu.launch.memory import advance, load, maximum, real, store

RUN = 4  # multiples of LANES summed in the row's own precision
BLOCK = 32  # multiples of LANES


@reducing
def _exp_run(data, out, groups, largest):
    """Write e^(x - largest) of `groups` multiples of LANES columns; returns their sum."""
    total = real(data, 0.0)
    for i in range(groups * LANES):
        share = exp(load(data, i) - largest)
        store(out, i, share)
        total += share
    return total


@scalar
def _exp_block(data, out, groups, largest, total):
    """(the largest score so far, the sum of e^(x - it)) with one block more, which is written."""
    peak = maximum(largest, largest_of(data, groups))
    if not math.isfinite(peak):
        fill(out, groups * LANES, 0.0)
        return peak, total
    if peak > largest and total > 0.0:
        total *= math.exp(float64(largest) - float64(peak))
    for start in range(0, groups, RUN):
        source, target = advance(data, start * LANES), advance(out, start * LANES)
        total += _exp_run(source, target, min(RUN, groups - start), peak)
    return peak, total


@scalar
def _scale(data, groups, peak, largest, total):
    share = 1.0 if peak == largest else math.exp(float64(peak) - float64(largest))
    factor = real(data, share / total)
    for i in range(groups * LANES):
        store(data, i, load(data, i) * factor)


@sequential
def softmax_row(row, out, columns, workspace):
    """p of a row: zero where all scores are -inf, NaN where one is NaN or +inf."""
    tail, last = workspace, advance(workspace, LANES)
    peaks, groups = advance(workspace, 2 * LANES), columns // LANES
    has_tail = load_tail(row, columns, tail, -math.inf)
    largest, total = real(row, -math.inf), 0.0
    if has_tail:
        largest, total = _exp_block(tail, last, 1, largest, total)
    last_peak = largest
    for start in range(0, groups, BLOCK):
        size, place = min(BLOCK, groups - start), start * LANES
        source, target = advance(row, place), advance(out, place)
        largest, total = _exp_block(source, target, size, largest, total)
        store(peaks, start // BLOCK, largest)
    if not math.isfinite(largest):
        fill(out, columns, 0.0 if largest < 0.0 else math.nan)
        return
    for start in range(0, groups, BLOCK):
        block, size = advance(out, start * LANES), min(BLOCK, groups - start)
        _scale(block, size, load(peaks, start // BLOCK), largest, total)
    if has_tail:
        _scale(last, 1, last_peak, largest, total)
        copy(last, advance(out, groups * LANES), columns - groups * LANES)
