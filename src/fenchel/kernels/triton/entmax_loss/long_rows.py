"""The loss of long rows that `solve_groups` has solved, and g (p - q) in place of their scores.

`solve_groups` leaves the largest score of every group of columns, and (peak, point, low) of every row.
A group whose largest score has p = 0 has p = 0 everywhere and is written without being read, so a
sparse row costs one read (for its maxima) and one write. For alpha = 1, the loss log sum exp x - x_k
comes from the sums of `softmax_parts`.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
from torch import Tensor

from fenchel.kernels.triton.arithmetic.elementary import (
    exp,
)
from fenchel.kernels.triton.arithmetic.entries import (
    entry,
    entry_above_2,
)
from fenchel.kernels.triton.entmax.long_rows import (
    solve_long_rows,
)
from fenchel.kernels.triton.entmax.softmax import (
    combine_parts,
    log_sum,
    sum_softmax_parts,
)
from fenchel.kernels.triton.entmax_loss.class_loss import (
    class_gradient,
    normalizer_float64,
    store_class_loss,
    target_score,
)
from fenchel.kernels.triton.entmax_loss.saved_for_backward import (
    save_support,
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
    ABOVE_2,
    ALPHA_PER_ROW,
    FAST_STEPS,
    GENERAL,
    SOFTMAX,
    with_fast_logarithms,
)
from fenchel.kernels.triton.launch.tile_shapes import (
    ceil_div,
)
from fenchel.kernels.triton.solver.groups import (
    STATE_NUMBERS,
    listed_indices,
    load_listed_groups,
    zeros_like_listed,
)
from fenchel.kernels.triton.tiles.layout import (
    SLAB_AXIS,
    finite_peak,
    load_scores,
    row_epsilon,
    tile_rows,
)
from fenchel.kernels.triton.tiles.reductions import (
    row_sum,
)

LOSS_BLOCKS, LOSS_WARPS = 1, 8  # of the program that sums the loss of a long row
GRADIENT_BLOCKS, GRADIENT_WARPS = 2, 8  # of one that writes its gradient


def launch_long_rows(
    tensors: list[Any], loss: Tensor, normalizer: Tensor, kind: int, eps: float,
    ignore_index: int, classes: bool, rows: Rows, steps: list[Strides],
    listed: Tensor | None, support: Tensor | None,
) -> None:  # fmt: skip
    scores, target, alphas, grad = tensors
    quick = with_fast_logarithms(kind, eps)
    solver = quick if quick == FAST_STEPS.value else kind  # the last step is exact then
    shape, maxima, listed, state = solve_long_rows(
        scores, None, alphas, solver, eps, rows, steps[0], Strides(0, 0, 0, 0), steps[2],
        listed=listed,
    )  # fmt: skip
    loss_groups[(rows.count,)](
        scores, target, alphas, listed, state, loss, normalizer, support, eps, ignore_index,
        rows.count, rows.columns, shape.groups, rows.middle, rows.inner, *steps[:3],
        LEVELS=rows.levels, KIND=kind, CLASSES=classes, GROUP=shape.size,
        BLOCK=LOSS_BLOCKS * shape.listed, num_warps=LOSS_WARPS,
    )  # fmt: skip
    if grad is not None:
        loss_gradient_groups[(rows.count, ceil_div(shape.groups, GRADIENT_BLOCKS * shape.listed))](
            scores, target, alphas, grad, maxima, state, listed, eps, ignore_index,
            rows.count, rows.columns, shape.groups, rows.middle, rows.inner, *steps,
            LEVELS=rows.levels, KIND=kind, GROUP=shape.size, BLOCK=GRADIENT_BLOCKS * shape.listed,
            num_warps=GRADIENT_WARPS,
        )  # fmt: skip


def launch_long_softmax(
    tensors: list[Any], loss: Tensor, normalizer: Tensor, ignore_index: int, classes: bool,
    rows: Rows, steps: list[Strides],
) -> None:  # fmt: skip
    scores, target, _alphas, _grad = tensors
    own = target if classes else None
    shape, parts = sum_softmax_parts(scores, None, own, rows, steps[0], steps[2], steps[1])
    softmax_loss_rows[(rows.count,)](
        scores, target, parts, loss, normalizer, ignore_index,
        rows.count, rows.columns, shape.count, rows.middle, rows.inner, *steps[:2],
        LEVELS=rows.levels, CLASSES=classes, WIDTH=shape.width, num_warps=1,
    )  # fmt: skip


@triton.jit
def _listed_class_loss(data, target, point, low, e, KIND: tl.constexpr):
    total = zeros_like_listed(data)
    for start in range(0, data[3], data[8].shape[SLAB_AXIS]):
        x, column = load_listed_groups(data, start)
        if KIND == ABOVE_2:
            p, _, t = entry_above_2(x, point, low, e)
        else:
            p, _, t = entry(x - data[7], point, low, e, KIND)
        total += tl.where(column == target, 0.0, t * p)
    return row_sum(total)


@kernel
def loss_groups(
    scores, target, alpha, listed, state, loss, normalizers, support, eps, ignore,
    count, columns, groups, middle, inner, steps, target_steps, alpha_steps,
    LEVELS: tl.constexpr, KIND: tl.constexpr, CLASSES: tl.constexpr,
    GROUP: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """`loss_tile` for rows that `solve_groups` has solved."""
    row = tile_rows(tl.program_id(0), 1)
    e = row_epsilon(eps, alpha, alpha_steps, row, count, middle, inner, LEVELS, KIND, 1)
    scores += row_offset(row, middle, inner, steps, LEVELS)
    listed += row * (groups + 1)
    found = tl.load(listed + groups)
    peak = tl.load(state + row * STATE_NUMBERS)
    point = tl.load(state + row * STATE_NUMBERS + 1)
    low = tl.load(state + row * STATE_NUMBERS + 2)
    places, within = listed_indices(GROUP, BLOCK)
    data = (scores, None, listed, found, columns, steps[3], 0, peak, places, within)
    wanted = row * 0 - 1
    if CLASSES:
        place = row_offset(row, middle, inner, target_steps, LEVELS)
        wanted = tl.load(target + place).to(tl.int64)
    own = target_score(scores, wanted, row < count, columns, steps[3])
    others = peak * 0.0
    if KIND == ALPHA_PER_ROW:
        if e > 1.0:
            a = normalizer_float64(peak, point, low, e, ABOVE_2)
            if CLASSES:
                others = _listed_class_loss(data, wanted, point, low, e, ABOVE_2)
        else:
            a = normalizer_float64(peak, point, low, e, GENERAL)
            if CLASSES:
                others = _listed_class_loss(data, wanted, point, low, e, GENERAL)
    else:
        a = normalizer_float64(peak, point, low, e, KIND)
        if CLASSES:
            others = _listed_class_loss(data, wanted, point, low, e, KIND)
    dead = (found == 0) & (peak == peak)
    if support is not None:
        save_support(support, row, point, tl.load(state + row * STATE_NUMBERS + 3), row < count)
    if CLASSES:
        store_class_loss(
            loss, normalizers, row, own, others, peak, dead, a, e, wanted != ignore, row < count,
            KIND, 1,
        )  # fmt: skip
    else:
        a = tl.where(dead, float("-inf"), a + (peak - peak).to(tl.float64))
        tl.store(normalizers + row, a)


@triton.jit
def _probability(x, peak, point, low, e, KIND: tl.constexpr):
    if KIND == ABOVE_2:
        p, _, _ = entry_above_2(x, point, low, e)
    else:
        p, _, _ = entry(x - peak, point, low, e, KIND)
    return p


@triton.jit
def _group_probabilities(
    scores, held, places, inside, peak, point, low, e, KIND: tl.constexpr
):  # fmt: skip
    lives = _probability(held, peak, point, low, e, KIND) > 0.0
    x = load_scores(scores, None, places, places, inside & lives[:, None])
    return _probability(x, peak, point, low, e, KIND)


@kernel
def loss_gradient_groups(
    scores, target, alpha, grad, maxima, state, listed, eps, ignore,
    count, columns, groups, middle, inner, steps, target_steps, alpha_steps, grad_steps,
    LEVELS: tl.constexpr, KIND: tl.constexpr, GROUP: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tile_rows(tl.program_id(0), 1)
    e = row_epsilon(eps, alpha, alpha_steps, row, count, middle, inner, LEVELS, KIND, 1)
    wanted = tl.load(target + row_offset(row, middle, inner, target_steps, LEVELS)).to(tl.int64)
    g = tl.load(grad + row_offset(row, middle, inner, grad_steps, LEVELS)).to(tl.float32)
    peak = tl.load(state + row * STATE_NUMBERS)
    point = tl.load(state + row * STATE_NUMBERS + 1)
    low = tl.load(state + row * STATE_NUMBERS + 2)
    found = tl.load(listed + row * (groups + 1) + groups)
    group = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    held = tl.load(maxima + row * groups + group, mask=group < groups, other=float("-inf"))
    column = group[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    inside = column < columns
    places = row_offset(row, middle, inner, steps, LEVELS) + column.to(tl.int64) * steps[3]
    if KIND == ALPHA_PER_ROW:
        if e > 1.0:
            p = _group_probabilities(scores, held, places, inside, peak, point, low, e, ABOVE_2)
        else:
            p = _group_probabilities(scores, held, places, inside, peak, point, low, e, GENERAL)
    else:
        p = _group_probabilities(scores, held, places, inside, peak, point, low, e, KIND)
    lives = (wanted != ignore) & ((found != 0) | (peak != peak))
    slope = class_gradient(p, column, wanted, g, peak, lives)
    tl.store(scores + places, slope, mask=inside)


@kernel
def softmax_loss_rows(
    scores, target, parts, loss, normalizers, ignore, count, columns, pieces, middle, inner,
    steps, target_steps,
    LEVELS: tl.constexpr, CLASSES: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Loss and normalizer for class indices; only the normalizer without CLASSES."""
    row = tile_rows(tl.program_id(0), 1)
    peak, others = combine_parts(parts, row, pieces, WIDTH)
    dead = peak == float("-inf")
    peak = finite_peak(peak)
    if CLASSES:
        scores += row_offset(row, middle, inner, steps, LEVELS)
        wanted = tl.load(target + row_offset(row, middle, inner, target_steps, LEVELS)).to(tl.int64)
        x = target_score(scores, wanted, row < count, columns, steps[3])
        a = log_sum(peak, others, exp(x - peak))
        store_class_loss(
            loss, normalizers, row, x, others, peak, dead, a, 0.0, wanted != ignore, row < count,
            SOFTMAX, 1,
        )  # fmt: skip
    else:
        a = log_sum(peak, others, 0.0 * others)
        a = tl.where(dead, float("-inf"), a + (peak - peak).to(tl.float64))
        tl.store(normalizers + row, a)
