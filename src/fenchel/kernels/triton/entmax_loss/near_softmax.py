"""The loss of rows too long for the chip, for alpha slightly above 1, where no score is left out.

A program visits its row once for the sums over softmax of (N.13), and once or twice with accurate
powers for the last step to the normalizer A. That visit adds up p, p/t, p/t^2 and t p over the classes
except the target; the loss follows from them by (N.30). A thread takes J neighbours of a block and
needs one register per sum.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
from torch import Tensor

from fenchel.kernels.triton.arithmetic.elementary import (
    two_sum,
)
from fenchel.kernels.triton.arithmetic.entries import (
    FINITE_MINUS_INF,
    exact_entry,
)
from fenchel.kernels.triton.entmax_loss.class_loss import (
    normalizer_float64,
    store_class_loss,
    target_score,
)
from fenchel.kernels.triton.launch.addressing import (
    Rows,
    Strides,
    row_offset,
)
from fenchel.kernels.triton.launch.kernel import (
    kernel,
)
from fenchel.kernels.triton.launch.parameters import (
    GENERAL,
    NEAR_1,
)
from fenchel.kernels.triton.launch.tile_shapes import (
    near_softmax_loss_tile,
)
from fenchel.kernels.triton.solver.alpha_up_to_1_45 import (
    final_step,
)
from fenchel.kernels.triton.solver.guesses import (
    LOWEST_SCORE,
    MAX_EMPTY_ROW_SUM,
    guess_normalizer,
    shift_moments,
    softmax_moments,
)
from fenchel.kernels.triton.tiles.layout import (
    along_slabs,
    finite_peak,
    load_scores,
    tile_rows,
)
from fenchel.kernels.triton.tiles.reductions import (
    nan_max,
    pairwise_slab_sum,
    row_max,
    row_sums,
    row_sums3,
    slab_max,
    slab_sum,
)


def launch_near_softmax(
    tensors: list[Any], loss: Tensor, normalizer: Tensor, eps: float, ignore_index: int,
    classes: bool, rows: Rows, steps: list[Strides],
) -> None:  # fmt: skip
    scores, target, _alphas, _grad = tensors
    tile = near_softmax_loss_tile()
    loss_near_softmax[(rows.count,)](
        scores, target, loss, normalizer, eps, ignore_index,
        rows.columns, rows.middle, rows.inner, *steps[:2],
        LEVELS=rows.levels, CLASSES=classes, J=tile.slabs, K=tile.width,
        num_warps=tile.warps, maxnreg=tile.registers,
    )  # fmt: skip


@triton.jit
def _load(scores, column, columns, step):
    wide = column.to(tl.int64)
    return load_scores(scores, None, wide * step, wide, column < columns)


@triton.jit
def _softmax_sums(scores, column, columns, step):
    """(the largest score, the three sums); threads work independently until the end."""
    SIZE: tl.constexpr = column.shape[0] * column.shape[1] * column.shape[2]
    peak = slab_max(column).to(tl.float32) * 0.0 + LOWEST_SCORE
    total, first, second = peak * 0.0, peak * 0.0, peak * 0.0
    for start in range(0, columns, SIZE):
        x = _load(scores, start + column, columns, step)
        top = nan_max(peak, slab_max(x))
        total, first, second = shift_moments(total, first, second, peak - top)
        more = softmax_moments(tl.maximum(x - top, FINITE_MINUS_INF))
        total, first, second = total + more[0], first + more[1], second + more[2]
        peak = top
    highest = finite_peak(row_max(peak))
    total, first, second = shift_moments(total, first, second, peak - highest)
    total, first, second = row_sums3(total, first, second)
    return highest, total, first, second


@triton.jit
def _visit(scores, target, peak, point, e, column, columns, step):
    """The sums of p, t p, p/t and p/t^2 over the other classes."""
    SIZE: tl.constexpr = column.shape[0] * column.shape[1] * column.shape[2]
    mass = slab_max(column).to(tl.float32) * 0.0
    low, power, slope, bend = mass, mass, mass, mass
    for start in range(0, columns, SIZE):
        here = start + column
        x = _load(scores, here, columns, step)
        t, p, r = exact_entry(tl.maximum(x - peak, FINITE_MINUS_INF), point, e, GENERAL)
        p = tl.where(here == target, 0.0, p)
        s = p * r
        mass, rounded_off = two_sum(mass, pairwise_slab_sum(p))
        low += rounded_off
        power += slab_sum(p * t)
        slope += slab_sum(s)
        bend += slab_sum(s * r)
    mass, power = row_sums(mass + low, power)
    slope, bend = row_sums(slope, bend)
    return mass, power, slope, bend


@kernel
def loss_near_softmax(
    scores, target, loss, normalizers, eps, ignore, columns, middle, inner, steps, target_steps,
    LEVELS: tl.constexpr, CLASSES: tl.constexpr, J: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """Loss and normalizer for class indices; only the normalizer without CLASSES."""
    row = tile_rows(tl.program_id(0), 1)
    e = eps + 0.0
    inverse = 1.0 / e
    scores += row_offset(row, middle, inner, steps, LEVELS)
    wanted = row * 0 - 1
    if CLASSES:
        wanted = tl.load(target + row_offset(row, middle, inner, target_steps, LEVELS)).to(tl.int64)
    known = (wanted >= 0) & (wanted < columns)
    column = along_slabs(tl.arange(0, J)) + tl.arange(0, K)[None, None, :] * J
    peak, total, first, second = _softmax_sums(scores, column, columns, steps[3])
    own = target_score(scores, wanted, known, columns, steps[3])
    place = tl.where(known, wanted, -1).to(tl.int32)
    point = guess_normalizer(total, first, second, e, NEAR_1)[0]
    step, others, visits = e * 0.0, e * 0.0, 0
    solving = total > MAX_EMPTY_ROW_SUM
    while solving:
        point += step
        rest, power, slope, bend = _visit(scores, place, peak, point, e, column, columns, steps[3])
        _, p, r = exact_entry(tl.maximum(own - peak, FINITE_MINUS_INF), point, e, GENERAL)
        p = tl.where(known, p, 0.0)
        mass, slopes, bends = rest + p, slope + p * r, bend + p * r * r
        step, solving = final_step(mass, slopes, bends, point, e, inverse, visits, NEAR_1)
        visits += 1
        curve = step * (0.5 * slope - (1.0 - e) * (1.0 / 6.0) * step * bend)
        others = power - (1.0 + e) * step * (rest - curve)
    point, low = two_sum(point, step)
    a = normalizer_float64(peak, point, low, e, GENERAL)
    dead = (total == 0.0) & (peak == peak)
    if CLASSES:
        store_class_loss(
            loss, normalizers, row, own, others, peak, dead, a, e, wanted != ignore, row >= 0,
            GENERAL, 1,
        )  # fmt: skip
    else:
        a = tl.where(dead, float("-inf"), a + (peak - peak).to(tl.float64))
        tl.store(normalizers + row, a)
