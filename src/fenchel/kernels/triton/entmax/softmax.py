"""softmax, which is entmax at alpha = 1: p = exp(x - peak)/sum, in closed form.

Rows that fit on chip are read once. Longer rows are divided into parts: `softmax_parts` finds the
largest score of each part and the sum of exp(x - peak), which the next kernel combines. Such rows are
read twice and written once.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportOperatorIssue=false
from torch import Tensor

from fenchel.kernels.triton.arithmetic.elementary import (
    exp,
)
from fenchel.kernels.triton.launch.addressing import (
    Rows,
    Strides,
    row_offset,
)
from fenchel.kernels.triton.launch.kernel import (
    kernel,
)
from fenchel.kernels.triton.launch.tile_shapes import (
    Parts,
    parts_shape,
)
from fenchel.kernels.triton.tiles.layout import (
    finite_peak,
    load_scores,
    tile_rows,
)
from fenchel.kernels.triton.tiles.reductions import (
    nan_max,
    pairwise_slab_sum,
    row_sums,
    vector_sum,
)


def launch_long_softmax(tensors: list[Any], rows: Rows, steps: list[Strides]) -> None:
    scores, out, mask, _alphas = tensors
    shape, parts = sum_softmax_parts(scores, mask, None, rows, steps[0], steps[2], steps[2])
    write_softmax[(rows.count, shape.count)](
        scores, out, mask, parts, rows.columns, rows.middle, rows.inner, *steps[:3],
        LEVELS=rows.levels, K=shape.block, WIDTH=shape.width, num_warps=shape.warps,
    )  # fmt: skip


@triton.jit
def safe_inverse(total):
    """1/total, rounded once; 0 in an empty row."""
    return tl.where(total == 0.0, 0.0, tl.div_rn(1.0, total))


@triton.jit
def _large_part(p):
    """The complement of `_small_part`. The largest is 1; small ones added to it would be lost."""
    return tl.where(p > 0.5, p, 0.0)


@triton.jit
def _small_part(p):
    return tl.where(p > 0.5, 0.0, p)


@triton.jit
def softmax_tile(x, peak):
    """p of a tile of rows."""
    p = exp(x - peak)
    large, small = row_sums(_large_part(p), _small_part(p))
    return p * safe_inverse(large + small)


@triton.jit
def log_sum(peak, others, own):
    """A = log sum exp x in float64. `own`, the term of the target, is separate: where it is 1 the loss is
    log(1 + others), and a float32 sum would lose small others."""
    return peak.to(tl.float64) + tl.log(others.to(tl.float64) + own.to(tl.float64))


@triton.jit
def softmax_and_log_sum(x, column, target, peak):
    """p of a tile of rows and their normalizer A."""
    p = exp(x - peak)
    others = pairwise_slab_sum(tl.where(column == target, 0.0, p))
    others, own = row_sums(others, pairwise_slab_sum(tl.where(column == target, p, 0.0)))
    return p * safe_inverse(others + own), log_sum(peak, others, own)


@kernel
def softmax_parts(
    scores, mask, target, parts, columns, middle, inner, steps, mask_steps, target_steps,
    LEVELS: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """The largest score of every part, then the sum of every part, without the target if there is one."""
    row = tile_rows(tl.program_id(0), 1)
    part, count = tl.program_id(1), tl.num_programs(1)
    column = part * K + tl.arange(0, K)
    wide = column.to(tl.int64)
    places = row_offset(row, middle, inner, steps, LEVELS) + wide * steps[3]
    mask_places = row_offset(row, middle, inner, mask_steps, LEVELS) + wide * mask_steps[3]
    x = load_scores(scores, mask, places, mask_places, column < columns)
    peak = tl.reduce(x, 0, nan_max)
    p = exp(x - finite_peak(peak))
    if target is not None:
        wanted = tl.load(target + row_offset(row, middle, inner, target_steps, LEVELS))
        p = tl.where(column == wanted, 0.0, p)
    parts += row * (2 * count) + part
    tl.store(parts, peak)
    tl.store(parts + count, tl.sum(_large_part(p), axis=0) + tl.sum(_small_part(p), axis=0))


@triton.jit
def combine_parts(parts, row, count, WIDTH: tl.constexpr):
    """The largest score of a row, as it is, and the sum of exp(x - `finite_peak`), from its parts."""
    parts += row * (2 * count)
    part = tl.arange(0, WIDTH)
    peak = float("-inf")
    for start in range(0, count, WIDTH):
        held = tl.load(parts + start + part, mask=start + part < count, other=float("-inf"))
        peak = nan_max(peak, tl.reduce(held, 0, nan_max))
    total = 0.0
    for start in range(0, count, WIDTH):
        inside = start + part < count
        held = tl.load(parts + start + part, mask=inside, other=float("-inf"))
        added = tl.load(parts + count + start + part, mask=inside, other=0.0)
        total += vector_sum(added * exp(held - finite_peak(peak)))
    return peak, total


@kernel
def write_softmax(
    scores, out, mask, parts, columns, middle, inner, steps, out_steps, mask_steps,
    LEVELS: tl.constexpr, K: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    row = tile_rows(tl.program_id(0), 1)
    column = tl.program_id(1) * K + tl.arange(0, K)
    inside = column < columns
    wide = column.to(tl.int64)
    places = row_offset(row, middle, inner, steps, LEVELS) + wide * steps[3]
    mask_places = row_offset(row, middle, inner, mask_steps, LEVELS) + wide * mask_steps[3]
    x = load_scores(scores, mask, places, mask_places, inside)
    peak, total = combine_parts(parts, row, tl.num_programs(1), WIDTH)
    peak = finite_peak(peak)
    p = exp(x - peak) * safe_inverse(total)
    p += peak - peak  # NaN in a row that has NaN
    out_places = row_offset(row, middle, inner, out_steps, LEVELS) + wide * out_steps[3]
    tl.store(out + out_places, p, mask=inside)


def sum_softmax_parts(
    scores: Tensor, mask: Tensor | None, target: Tensor | None, rows: Rows,
    steps: Strides, mask_steps: Strides, target_steps: Strides,
) -> tuple[Parts, Tensor]:  # fmt: skip
    """For α = 1, the largest score of every part of a row, and its sum without the target."""
    shape = parts_shape(rows.columns)
    wide = (rows.count, 2, shape.count)
    parts = torch.empty(wide, dtype=torch.float32, device=scores.device)
    softmax_parts[(rows.count, shape.count)](
        scores, mask, target, parts, rows.columns, rows.middle, rows.inner,
        steps, mask_steps, target_steps,
        LEVELS=rows.levels, K=shape.block, num_warps=shape.warps,
    )  # fmt: skip
    return shape, parts
