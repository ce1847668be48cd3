"""softmax, which is entmax at alpha = 1: p = exp(x - peak)/sum, in closed form.

Rows that fit on chip are read once. A longer one is cut into parts: `softmax_parts` finds the largest
score of each and the sum of exp(x - it), and whatever needs the row's own adds them up; so it is read
twice and written once.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportOperatorIssue=false
import torch
import triton
import triton.language as tl
from torch import Tensor

from fenchel.kernels.triton.arithmetic.elementary import exp
from fenchel.kernels.triton.launch.addressing import Rows, Strides, row_offset
from fenchel.kernels.triton.launch.kernel import kernel
from fenchel.kernels.triton.launch.long_row_shapes import Parts, parts_shape
from fenchel.kernels.triton.tiles.across_threads import row_sums, shared_sum
from fenchel.kernels.triton.tiles.combining import larger
from fenchel.kernels.triton.tiles.memory import finite_peak, load_scores, tile_rows
from fenchel.kernels.triton.tiles.within_threads import even_slab_sum


@triton.jit
def inverse(total):
    """1/total, rounded once; 0 in a row with nothing in it."""
    return tl.where(total == 0.0, 0.0, tl.div_rn(1.0, total))


@triton.jit
def _large(p):
    """What is not `_small`. The largest is 1: added to it one by one, small ones are rounded off."""
    return tl.where(p > 0.5, p, 0.0)


@triton.jit
def _small(p):
    return tl.where(p > 0.5, 0.0, p)


@triton.jit
def softmax_tile(x, peak):
    """p of a tile of rows."""
    p = exp(x - peak)
    large, small = row_sums(_large(p), _small(p))
    return p * inverse(large + small)


@triton.jit
def log_sum(peak, others, own):
    """A = log sum exp x in float64. `own`, the target's summand, comes apart: where it is 1 the loss is
    log(1 + others), and a float32 sum would have rounded small others off."""
    return peak.to(tl.float64) + tl.log(others.to(tl.float64) + own.to(tl.float64))


@triton.jit
def softmax_and_log_sum(x, column, target, peak):
    """p of a tile of rows and their normaliser A."""
    p = exp(x - peak)
    others = even_slab_sum(tl.where(column == target, 0.0, p))
    others, own = row_sums(others, even_slab_sum(tl.where(column == target, p, 0.0)))
    return p * inverse(others + own), log_sum(peak, others, own)


@kernel
def softmax_parts(
    scores, mask, target, parts, columns, middle, inner, steps, mask_steps, target_steps,
    LEVELS: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """Of every part the largest score, then of every part the sum, without the target if there is one."""
    row = tile_rows(tl.program_id(0), 1)
    part, count = tl.program_id(1), tl.num_programs(1)
    column = part * K + tl.arange(0, K)
    wide = column.to(tl.int64)
    places = row_offset(row, middle, inner, steps, LEVELS) + wide * steps[3]
    mask_places = row_offset(row, middle, inner, mask_steps, LEVELS) + wide * mask_steps[3]
    x = load_scores(scores, mask, places, mask_places, column < columns)
    peak = tl.reduce(x, 0, larger)
    p = exp(x - finite_peak(peak))
    if target is not None:
        wanted = tl.load(target + row_offset(row, middle, inner, target_steps, LEVELS))
        p = tl.where(column == wanted, 0.0, p)
    parts += row * (2 * count) + part
    tl.store(parts, peak)
    tl.store(parts + count, tl.sum(_large(p), axis=0) + tl.sum(_small(p), axis=0))


@triton.jit
def peak_and_sum(parts, row, count, WIDTH: tl.constexpr):
    """The largest score of a row, as it is, and the sum of exp(x - `finite_peak`), from its parts."""
    parts += row * (2 * count)
    part = tl.arange(0, WIDTH)
    peak = float("-inf")
    for start in range(0, count, WIDTH):
        held = tl.load(parts + start + part, mask=start + part < count, other=float("-inf"))
        peak = larger(peak, tl.reduce(held, 0, larger))
    total = 0.0
    for start in range(0, count, WIDTH):
        inside = start + part < count
        held = tl.load(parts + start + part, mask=inside, other=float("-inf"))
        added = tl.load(parts + count + start + part, mask=inside, other=0.0)
        total += shared_sum(added * exp(held - finite_peak(peak)))
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
    peak, total = peak_and_sum(parts, row, tl.num_programs(1), WIDTH)
    peak = finite_peak(peak)
    p = exp(x - peak) * inverse(total)
    p += peak - peak  # NaN in a row that holds one
    out_places = row_offset(row, middle, inner, out_steps, LEVELS) + wide * out_steps[3]
    tl.store(out + out_places, p, mask=inside)


def add_long_rows(
    scores: Tensor, mask: Tensor | None, target: Tensor | None, rows: Rows,
    steps: Strides, mask_steps: Strides, target_steps: Strides,
) -> tuple[Parts, Tensor]:  # fmt: skip
    """For α = 1, of every part of a row its largest score and the sum of what is not the target's."""
    shape = parts_shape(rows.columns)
    wide = (rows.count, 2, shape.count)
    parts = torch.empty(wide, dtype=torch.float32, device=scores.device)
    softmax_parts[(rows.count, shape.count)](
        scores, mask, target, parts, rows.columns, rows.middle, rows.inner,
        steps, mask_steps, target_steps,
        LEVELS=rows.levels, K=shape.block, num_warps=shape.warps,
    )  # fmt: skip
    return shape, parts
