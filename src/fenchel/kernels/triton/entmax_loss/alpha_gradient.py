"""The derivative of the loss in alpha, dOmega(q)/dalpha - dOmega(p)/dalpha, with the terms of (N.31)."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

# A kernel is launched with options that its parameters do not name.
# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false
# pyright: reportCallIssue=false
from torch import Tensor

from fenchel.kernels.triton.arithmetic.elementary import (
    LN_2,
    expm1_ratio,
    expm1_ratio_slope,
    log2,
)
from fenchel.kernels.triton.entmax_loss.forward import (
    or_none,
    saved_or_new_support,
)
from fenchel.kernels.triton.entmax_loss.saved_for_backward import (
    load_support,
    saved_probability,
)
from fenchel.kernels.triton.launch.addressing import (
    address,
    row_offset,
)
from fenchel.kernels.triton.launch.kernel import (
    kernel,
)
from fenchel.kernels.triton.launch.parameters import (
    ABOVE_2,
    GENERAL,
    kind_of,
)
from fenchel.kernels.triton.launch.tile_shapes import (
    groups_shape,
    walk_shape,
)
from fenchel.kernels.triton.tiles.layout import (
    load_scores,
    row_epsilon,
    tile_rows,
)
from fenchel.kernels.triton.tiles.reductions import (
    row_sum,
)


def entmax_loss_alpha(
    scores: Tensor,
    target: Tensor,
    alpha: Tensor,
    normalizer: Tensor,
    ignore_index: int,
    smoothing: float,
    listed: Tensor | None = None,
    support: Tensor | None = None,
) -> Tensor:
    """∂L/∂α = ∂Ω_α(q)/∂α − ∂Ω_α(p)/∂α, one per row, in float32, by the envelope theorem."""
    slopes = torch.zeros(normalizer.shape, dtype=torch.float32, device=scores.device)
    if scores.numel() == 0:
        return slopes
    classes = not target.dtype.is_floating_point
    kind, _, alphas = kind_of(alpha)
    rows, tensors, steps = address(
        -1, scores, target.unsqueeze(-1) if classes else target, alphas, normalizer.unsqueeze(-1)
    )  # fmt: skip
    shape = groups_shape(rows.columns)
    block, warps = walk_shape(rows.columns)
    alpha_gradient_rows[(rows.count,)](
        *tensors, saved_or_new_support(scores, target, alpha, ignore_index, support),
        or_none(listed) if classes else None, slopes, ignore_index, smoothing,
        rows.count, rows.columns, shape.groups, rows.middle, rows.inner, *steps,
        LEVELS=rows.levels, KIND=kind, CLASSES=classes, GROUP=shape.size,
        BLOCK=max(1, block // shape.size), num_warps=warps,
    )  # fmt: skip
    return slopes


@triton.jit
def _omega_derivative(p, e):
    """d/dalpha of p l phi1(e l)/alpha, l = log p: one term of dOmega(p)/dalpha."""
    length = log2(tl.where(p > 0.0, p, 1.0)) * LN_2
    z = e * length
    alpha = 1.0 + e
    return p * length * (length * expm1_ratio_slope(z) - expm1_ratio(z) / alpha) / alpha


@triton.jit
def _sum_omega_derivatives(
    scores, target, listed, found, a, bottom, least, e, columns, step, target_step,
    KIND: tl.constexpr, CLASSES: tl.constexpr, GROUP: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """-dOmega(p)/dalpha of a row, plus dOmega(q)/dalpha where q is read."""
    total = tl.zeros([BLOCK, GROUP], tl.float32)
    for start in range(0, found, BLOCK):
        group = start + tl.arange(0, BLOCK)[:, None]
        here = group < found
        if listed is not None:
            group = tl.load(listed + group, mask=here, other=0)
        column = group * GROUP + tl.arange(0, GROUP)[None, :]
        inside = here & (column < columns)
        wide = column.to(tl.int64)
        x = load_scores(scores, None, wide * step, wide, inside)
        total -= _omega_derivative(saved_probability(x, a, bottom, least, e, KIND, 1), e)
        if not CLASSES:
            q = tl.load(target + wide * target_step, mask=inside, other=0.0)
            total += _omega_derivative(q.to(tl.float32), e)
    return row_sum(tl.reshape(total, [1, 1, BLOCK * GROUP]))


@kernel
def alpha_gradient_rows(
    scores, target, alpha, normalizers, support, listed, slopes, ignore, smoothing,
    count, columns, groups, middle, inner, steps, target_steps, alpha_steps, normalizer_steps,
    LEVELS: tl.constexpr, KIND: tl.constexpr, CLASSES: tl.constexpr,
    GROUP: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """One program per row; for class indices, `listed` has the groups of columns to visit."""
    row = tile_rows(tl.program_id(0), 1)
    e = row_epsilon(0.0, alpha, alpha_steps, row, count, middle, inner, LEVELS, KIND, 1)
    scores += row_offset(row, middle, inner, steps, LEVELS)
    target += row_offset(row, middle, inner, target_steps, LEVELS)
    a = tl.load(normalizers + row_offset(row, middle, inner, normalizer_steps, LEVELS))
    lives = a != float("-inf")
    finite = tl.where(lives, a, 0.0)
    bottom, least = load_support(support, row, row < count)
    found = groups
    if listed is not None:
        listed += row * (groups + 1)
        found = tl.load(listed + groups)
    if e > 1.0:
        slope = _sum_omega_derivatives(
            scores, target, listed, found, finite, bottom, least, e, columns, steps[3],
            target_steps[3], ABOVE_2, CLASSES, GROUP, BLOCK,
        )  # fmt: skip
    else:
        slope = _sum_omega_derivatives(
            scores, target, listed, found, finite, bottom, least, e, columns, steps[3],
            target_steps[3], GENERAL, CLASSES, GROUP, BLOCK,
        )  # fmt: skip
    if CLASSES:
        uniform = smoothing / columns
        slope += _omega_derivative(1.0 - smoothing + uniform, e)
        slope += (columns - 1) * _omega_derivative(uniform, e)
        lives = lives & (tl.load(target) != ignore)
    slope = tl.where(a == a, slope, float("nan"))
    tl.store(slopes + row, tl.where(lives, slope, 0.0))
