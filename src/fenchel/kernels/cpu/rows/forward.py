"""entmax of every row: in batches where rows are short, or else one by one.

p_i = [1 + (alpha-1)(x_i - A)]_+^(1/(alpha-1)) with A such that the row sums to one.
Work is proportional to the columns, with one visit to each where few can be in the support.
"""

from __future__ import annotations

import math

import torch
from numba import float64
from torch import Tensor

from fenchel.kernels.cpu.batches.batch import BATCH, batch_workspace
from fenchel.kernels.cpu.batches.entmax import LONGER, is_batched, solve_entmax_batches
from fenchel.kernels.cpu.batches.steep import LISTS, is_steep_batched, solve_steep_batches
from fenchel.kernels.cpu.batches.steps import needs_no_powers
from fenchel.kernels.cpu.columns.whole_vectors import LANES, copy, fill
from fenchel.kernels.cpu.launch.compilation import Kernel, sequential
from fenchel.kernels.cpu.launch.memory import advance, load
from fenchel.kernels.cpu.launch.sharing import for_each_row, is_left, matrix_row
from fenchel.kernels.cpu.launch.threads import launch
from fenchel.kernels.cpu.rows.softmax import softmax_row
from fenchel.kernels.cpu.search.normalizer import (
    BLOCK,
    SHORT,
    edge_of,
    maxima_of,
    solve,
    workspace_size,
)
from fenchel.kernels.cpu.search.probabilities import write


@sequential
def _write_row(row, out, columns, largest, offset, rest, alpha, workspace):
    edge = edge_of(offset, rest, alpha)
    maxima = maxima_of(workspace)
    groups = columns // LANES
    for start in range(0, groups, BLOCK):
        size = min(BLOCK, groups - start)
        block, target = advance(row, start * LANES), advance(out, start * LANES)
        if float64(load(maxima, start // BLOCK)) - largest >= edge:
            write(block, target, size, largest, offset, rest, alpha, 1.0)
        else:
            fill(target, size * LANES, 0.0)


@sequential
def _forward_row(arguments, row, alpha, columns, workspace):
    scores, out = matrix_row(arguments, 0, row, columns), matrix_row(arguments, 1, row, columns)
    if alpha == 1.0:
        softmax_row(scores, out, columns, workspace)
        return
    largest, offset, rest = solve(scores, columns, alpha, workspace)
    if not math.isfinite(largest):
        fill(out, columns, 0.0 if largest < 0.0 else math.nan)
        return
    if columns <= SHORT:
        write(scores, out, columns // LANES, largest, offset, rest, alpha, 1.0)
    else:
        _write_row(scores, out, columns, largest, offset, rest, alpha, workspace)
    whole = columns // LANES * LANES
    if whole < columns:
        tail, last = workspace, maxima_of(workspace)
        write(tail, last, 1, largest, offset, rest, alpha, 1.0)
        copy(last, advance(out, whole), columns - whole)


@sequential
def _left_row(arguments, row, alpha, columns, workspace):
    if is_left(arguments, row):
        _forward_row(arguments, row, alpha, columns, workspace)


def _forward(arguments):
    for_each_row(arguments, _left_row)


_forward_kernel = Kernel(_forward)
_batch_kernel, _steep_kernel = Kernel(solve_entmax_batches), Kernel(solve_steep_batches)


def entmax(scores: Tensor, alpha: float | Tensor) -> Tensor:
    """Probabilities of every row; a tensor `alpha` holds one float64 a row."""
    out, columns, itemsize = torch.empty_like(scores), scores.shape[1], scores.element_size()
    number = None if isinstance(alpha, Tensor) else alpha
    left: Tensor | int = 0
    kernel, size = None, 0
    if columns <= LONGER and (number is None or is_batched(columns, number)):
        kernel, size = _batch_kernel, batch_workspace(columns, itemsize, itemsize)
    elif number is not None and is_steep_batched(columns, number):
        kernel, size = _steep_kernel, batch_workspace(columns, itemsize, 8 * LISTS)
    if kernel is not None:
        if number is None or not needs_no_powers(number):
            left = torch.empty(scores.shape[0], dtype=torch.float64)
        if launch(kernel, scores, alpha, size, scores, out, left, together=BATCH) == 0:
            return out
    launch(_forward_kernel, scores, alpha, workspace_size(columns), scores, out, left)
    return out
