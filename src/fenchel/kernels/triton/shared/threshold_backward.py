"""The Jacobians of normmax at alpha = 2, (N.21), and of budget, (N.25), times a vector, from p alone.

g is read only where p can change. Rows that fit on chip are read once; longer rows twice, in blocks.
WIDE rows are computed in float64: for a gradient in k, and for float32 gradients of normmax if
registers allow it, because those of a row with a large p nearly cancel.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
# pyright: reportCallIssue=false
# ruff: noqa: RET505 (what is known when a kernel is compiled needs if and else)
from torch import Tensor

from fenchel.kernels.triton.arithmetic.elementary import (
    split,
)
from fenchel.kernels.triton.launch.addressing import (
    address,
    copy_back,
    row_offset,
)
from fenchel.kernels.triton.launch.kernel import (
    kernel,
)
from fenchel.kernels.triton.launch.parameters import (
    SPARSEMAX,
)
from fenchel.kernels.triton.launch.tile_shapes import (
    BACKWARD_BLOCK_COLUMNS,
    MAX_BACKWARD_TILE_COLUMNS,
    backward_tile_shape,
    ceil_div,
)
from fenchel.kernels.triton.tiles.layout import (
    tile_columns,
    tile_inside,
    tile_places,
    tile_rows,
)
from fenchel.kernels.triton.tiles.reductions import (
    row_sums,
    slab_sum,
)

NORMMAX: tl.constexpr = tl.constexpr(0)
BUDGET: tl.constexpr = tl.constexpr(1)
MAX_COLUMNS = MAX_BACKWARD_TILE_COLUMNS  # longest rows that a program has in registers
MAX_FLOAT64_COLUMNS = 2048  # the same in float64


@triton.jit
def _can_move(p, KIND: tl.constexpr):
    """Where p changes with the scores; NaN counts as true."""
    if KIND == NORMMAX:
        return p != 0.0
    else:
        return ((p > 0.0) & (p < 1.0)) | (p != p)


@triton.jit
def _load(p, grad, p_places, grad_places, inside, KIND: tl.constexpr):
    """p and g in float32, with g = 0 where p does not move."""
    p_tile = tl.load(p + p_places, mask=inside, other=0.0).to(tl.float32)
    g_tile = tl.load(grad + grad_places, mask=inside & _can_move(p_tile, KIND), other=0.0)
    return p_tile, g_tile.to(tl.float32)


@triton.jit
def _terms(p, g, KIND: tl.constexpr, WIDE: tl.constexpr):
    """The terms of the number of entries that can change, the sum of g and, with NORM, of p g, p^2."""
    moves = tl.where(_can_move(p, KIND), 1.0, 0.0)
    if WIDE:
        p = p.to(tl.float64)
        g = g.to(tl.float64)
    if KIND == NORMMAX:
        return moves, g, p * g, p * p
    else:
        return moves, g, g, moves + (p - p)


@triton.jit
def _row_values(moves, total, dot, squares, KIND: tl.constexpr):
    """(m, N, N sum(g - m)) of every row, in float64."""
    size, whole = row_sums(slab_sum(moves).to(tl.float64), slab_sum(total).to(tl.float64))
    mean, norm = row_sums(slab_sum(dot).to(tl.float64), slab_sum(squares).to(tl.float64))
    if KIND == NORMMAX:
        norm = tl.sqrt(norm)
        return mean, norm, norm * (whole - size * mean)
    else:
        mean = whole / tl.maximum(size, 1.0) + (norm - norm)  # NaN in a row that is NaN
        return mean, norm, norm


@triton.jit
def _gradient(p, g, mean, norm, along, KIND: tl.constexpr, WIDE: tl.constexpr):
    if KIND == NORMMAX and WIDE:
        by_scores = ((g.to(tl.float64) - mean) * norm - p.to(tl.float64) * along).to(tl.float32)
    else:
        high, low = split(mean)
        by_scores = (g - high) - low
        if KIND == NORMMAX:
            by_scores = by_scores * norm.to(tl.float32) - p * along.to(tl.float32)
    return tl.where(_can_move(p, KIND), by_scores, 0.0)


@kernel
def threshold_backward_tile(
    p, grad, out, in_k, count, columns, middle, inner, steps, grad_steps, out_steps, in_steps,
    LEVELS: tl.constexpr, KIND: tl.constexpr, WIDE: tl.constexpr,
    J: tl.constexpr, R: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    row = tile_rows(tl.program_id(0), R)
    column = tile_columns(J, K)
    inside = tile_inside(row, column, count, columns, R)
    p_places = tile_places(row, column, middle, inner, steps, LEVELS)
    grad_places = tile_places(row, column, middle, inner, grad_steps, LEVELS)
    p_tile, g = _load(p, grad, p_places, grad_places, inside, KIND)
    moves, total, dot, squares = _terms(p_tile, g, KIND, WIDE)
    mean, norm, along = _row_values(moves, total, dot, squares, KIND)
    places = tile_places(row, column, middle, inner, out_steps, LEVELS)
    tl.store(out + places, _gradient(p_tile, g, mean, norm, along, KIND, WIDE), mask=inside)
    if in_k is not None:
        place = row_offset(row, middle, inner, in_steps, LEVELS)
        tl.store(in_k + place, mean, mask=row < count)


@triton.jit
def _load_block(p, grad, start, columns, step, grad_step, KIND: tl.constexpr, K: tl.constexpr):
    column = start + tile_columns(1, K)
    place = column.to(tl.int64)
    inside = column < columns
    p_tile, g = _load(p, grad, place * step, place * grad_step, inside, KIND)
    return place, inside, p_tile, g


@kernel
def threshold_backward_blocks(
    p, grad, out, in_k, count, columns, middle, inner, steps, grad_steps, out_steps, in_steps,
    LEVELS: tl.constexpr, KIND: tl.constexpr, WIDE: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    row = tile_rows(tl.program_id(0), 1)
    p += row_offset(row, middle, inner, steps, LEVELS)
    grad += row_offset(row, middle, inner, grad_steps, LEVELS)
    out += row_offset(row, middle, inner, out_steps, LEVELS)
    moves = tl.zeros([1, 1, K], tl.float32)
    total = tl.zeros([1, 1, K], tl.float64 if WIDE else tl.float32)
    dot = tl.zeros([1, 1, K], tl.float64 if WIDE else tl.float32)
    squares = tl.zeros([1, 1, K], tl.float64 if WIDE else tl.float32)
    for start in range(0, columns, K):
        place, inside, p_tile, g = _load_block(
            p, grad, start, columns, steps[3], grad_steps[3], KIND, K
        )
        more = _terms(p_tile, g, KIND, WIDE)
        moves += more[0]
        total += more[1]
        dot += more[2]
        squares += more[3]
    mean, norm, along = _row_values(moves, total, dot, squares, KIND)
    for start in range(0, columns, K):
        place, inside, p_tile, g = _load_block(
            p, grad, start, columns, steps[3], grad_steps[3], KIND, K
        )
        by_scores = _gradient(p_tile, g, mean, norm, along, KIND, WIDE)
        tl.store(out + place * out_steps[3], by_scores, mask=inside)
    if in_k is not None:
        tl.store(in_k + row_offset(row, middle, inner, in_steps, LEVELS), mean)


def threshold_backward(
    grad: Tensor, p: Tensor, kind: int, dim: int, in_k: Tensor | None = None
) -> Tensor:
    """J g, and the gradient in k into `in_k`, which has size 1 along `dim`."""
    out = torch.empty_like(p)
    rows, tensors, steps = address(dim, p, grad, out, in_k)
    arguments = *tensors, rows.count, rows.columns, rows.middle, rows.inner, *steps
    wide = in_k is not None or (kind == NORMMAX.value and _uses_float64(out, rows.columns))
    options = {"LEVELS": rows.levels, "KIND": kind, "WIDE": wide}
    if rows.columns > MAX_COLUMNS:
        block = BACKWARD_BLOCK_COLUMNS // 2 if wide else BACKWARD_BLOCK_COLUMNS
        threshold_backward_blocks[(rows.count,)](*arguments, **options, K=block, num_warps=16)
    else:
        itemsize = min(p.element_size(), grad.element_size())
        tile = backward_tile_shape(rows, itemsize, SPARSEMAX.value)
        threshold_backward_tile[(ceil_div(rows.count, tile.rows),)](
            *arguments, **options, J=tile.slabs, R=tile.rows, K=tile.width, num_warps=tile.warps
        )
    if in_k is not None:
        copy_back(in_k, tensors[3])
    return copy_back(out, tensors[2])


def _uses_float64(out: Tensor, columns: int) -> bool:
    """Whether float32 gradients of rows of this length are computed in float64."""
    return out.dtype == torch.float32 and not MAX_FLOAT64_COLUMNS < columns <= MAX_COLUMNS
