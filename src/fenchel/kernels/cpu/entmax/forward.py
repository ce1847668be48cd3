"""entmax of every row: short rows in batches, others one by one.

A long row is visited once to find the maxima of blocks; only blocks that can be in the support are
visited again.
"""

from __future__ import annotations

import math
from functools import lru_cache

import torch
from numba import float64
from torch import Tensor

from fenchel.kernels.cpu.entmax.short_rows_above_2 import (
    SCORE_COPIES,
    is_batched_above_2,
    solve_batches_above_2,
)
from fenchel.kernels.cpu.entmax.short_rows_up_to_2 import (
    DENSE_COLUMNS,
    entmax_workspace,
    is_batched,
    solve_entmax_batches,
)
from fenchel.kernels.cpu.launch.compilation import Kernel, inlined
from fenchel.kernels.cpu.launch.memory import advance, load
from fenchel.kernels.cpu.launch.threads import for_each_row, is_unsolved, launch, matrix_row
from fenchel.kernels.cpu.shared.batch import BATCH, batch_workspace
from fenchel.kernels.cpu.shared.columns import VECTOR, copy, fill
from fenchel.kernels.cpu.shared.softmax import softmax_row
from fenchel.kernels.cpu.solver.entries import has_polynomial
from fenchel.kernels.cpu.solver.normalizer import (
    BLOCK_VECTORS,
    WHOLE_ROW_COLUMNS,
    block_maxima_in,
    edge_of,
    find_normalizer,
    normalizer_workspace,
    write_probabilities,
)


@inlined
def _write_row(row, out, columns, largest, offset, rest, alpha, workspace):
    edge = edge_of(offset, rest, alpha)
    maxima = block_maxima_in(workspace)
    vectors = columns // VECTOR
    for start in range(0, vectors, BLOCK_VECTORS):
        size = min(BLOCK_VECTORS, vectors - start)
        block, target = advance(row, start * VECTOR), advance(out, start * VECTOR)
        if float64(load(maxima, start // BLOCK_VECTORS)) - largest >= edge:
            write_probabilities(block, target, size, largest, offset, rest, alpha, 1.0)
        else:
            fill(target, size * VECTOR, 0.0)


@inlined
def _forward_row(arguments, row, alpha, columns, workspace):
    scores, out = matrix_row(arguments, 0, row, columns), matrix_row(arguments, 1, row, columns)
    if alpha == 1.0:
        softmax_row(scores, out, columns, workspace)
        return
    largest, offset, rest = find_normalizer(scores, columns, alpha, workspace)
    if not math.isfinite(largest):
        fill(out, columns, 0.0 if largest < 0.0 else math.nan)
        return
    if columns <= WHOLE_ROW_COLUMNS:
        write_probabilities(scores, out, columns // VECTOR, largest, offset, rest, alpha, 1.0)
    else:
        _write_row(scores, out, columns, largest, offset, rest, alpha, workspace)
    whole = columns // VECTOR * VECTOR
    if whole < columns:
        tail, last = workspace, block_maxima_in(workspace)
        write_probabilities(tail, last, 1, largest, offset, rest, alpha, 1.0)
        copy(last, advance(out, whole), columns - whole)


@inlined
def _unsolved_row(arguments, row, alpha, columns, workspace):
    if is_unsolved(arguments, row):
        _forward_row(arguments, row, alpha, columns, workspace)


def _forward(arguments):
    for_each_row(arguments, _unsolved_row)


_forward_kernel = Kernel(_forward)
_batch_kernel, _above_2_kernel = Kernel(solve_entmax_batches), Kernel(solve_batches_above_2)


@lru_cache(maxsize=1024)
def _choose(columns: int, itemsize: int, number: float | None) -> tuple[Kernel | None, int, bool]:
    """The kernel for batches of short rows, its workspace, and whether it may leave rows unsolved.

    Without such a kernel, rows are solved one by one. `number` is α, or None for one α per row.
    """
    kernel, size = None, 0
    if columns <= DENSE_COLUMNS and (number is None or is_batched(columns, number)):
        kernel, size = _batch_kernel, entmax_workspace(columns, itemsize)
    elif number is not None and is_batched_above_2(columns, number):
        kernel, size = _above_2_kernel, batch_workspace(columns, itemsize, 8 * SCORE_COPIES)
    return kernel, size, number is None or not has_polynomial(number)


def entmax(scores: Tensor, alpha: float | Tensor) -> Tensor:
    """Probabilities of every row; a tensor `alpha` has one float64 per row."""
    out, columns = torch.empty_like(scores), scores.shape[1]
    number = None if isinstance(alpha, Tensor) else alpha
    kernel, size, may_leave_rows = _choose(columns, scores.element_size(), number)
    unsolved: Tensor | int = 0
    if kernel is not None:
        if may_leave_rows:
            unsolved = torch.empty(scores.shape[0], dtype=torch.float64)
        if launch(kernel, scores, alpha, size, scores, out, unsolved, together=BATCH) == 0:
            return out
    launch(_forward_kernel, scores, alpha, normalizer_workspace(columns), scores, out, unsolved)
    return out
