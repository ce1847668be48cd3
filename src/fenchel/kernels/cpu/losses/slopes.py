"""The gradient g (p - q) of the entmax loss, from the scores and the normaliser."""

from __future__ import annotations

import math

from numba import float64

from fenchel.kernels.cpu.columns.largest import largest_of
from fenchel.kernels.cpu.columns.whole_vectors import LANES, copy, fill, load_tail
from fenchel.kernels.cpu.launch.compilation import scalar, sequential
from fenchel.kernels.cpu.launch.memory import (
    TENSORS,
    advance,
    floats_at,
    load,
    real,
    rows_at,
    store,
)
from fenchel.kernels.cpu.launch.sharing import for_each_row, matrix_row
from fenchel.kernels.cpu.losses.targets import (
    class_of,
    is_ignored,
    is_soft,
    smoothing_of,
)
from fenchel.kernels.cpu.search.normalizer import BLOCK, edge_of, solve
from fenchel.kernels.cpu.search.probabilities import write


@scalar
def _write_row(scores, out, columns, pivot, offset, rest, alpha, grad, spare):
    edge = edge_of(offset, rest, alpha)
    groups = columns // LANES
    for start in range(0, groups, BLOCK):
        size = min(BLOCK, groups - start)
        block, target = advance(scores, start * LANES), advance(out, start * LANES)
        if float64(largest_of(block, size)) - pivot >= edge:
            write(block, target, size, pivot, offset, rest, alpha, grad)
        else:
            fill(target, size * LANES, 0.0)
    if load_tail(scores, columns, spare, -math.inf):
        write(spare, spare, 1, pivot, offset, rest, alpha, grad)
        copy(spare, advance(out, groups * LANES), columns - groups * LANES)


@scalar
def _subtract_target(arguments, row, out, columns, grad):
    if is_soft(arguments):
        target = matrix_row(arguments, 1, row, columns)
        for i in range(columns):
            store(out, i, load(out, i) - grad * load(target, i))
    else:
        smoothing = smoothing_of(arguments)
        if smoothing > 0.0:
            uniform = real(out, grad * (smoothing / columns))
            for i in range(columns):
                store(out, i, load(out, i) - uniform)
        label = class_of(arguments, row)
        store(out, label, load(out, label) - grad * (1.0 - smoothing))


@sequential
def _slope_row(arguments, row, alpha, columns, workspace):
    scores, out = matrix_row(arguments, 0, row, columns), matrix_row(arguments, 7, row, columns)
    grad = load(rows_at(arguments, TENSORS + 5), row)
    normalizer = load(floats_at(arguments, TENSORS + 6), row)
    if is_ignored(arguments, row) or normalizer == -math.inf:
        fill(out, columns, 0.0)
    elif not math.isfinite(normalizer):
        fill(out, columns, math.nan)
    else:
        pivot = real(scores, normalizer)
        offset, rest = normalizer - pivot, 0.0
        if alpha > 2.0:  # a float64 A is not enough: see `search/steep`
            pivot, offset, rest = solve(scores, columns, alpha, workspace)
        _write_row(scores, out, columns, pivot, offset, rest, alpha, grad, workspace)
        _subtract_target(arguments, row, out, columns, grad)


def slope_rows(arguments):
    """g (p - q); zero for a row that is ignored or has nothing in it."""
    for_each_row(arguments, _slope_row)
