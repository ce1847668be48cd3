"""The derivative of the loss in alpha, dOmega(q)/dalpha - dOmega(p)/dalpha (envelope theorem)."""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false
import triton
import triton.language as tl

from fenchel.kernels.triton.arithmetic.divided_differences import expm1_ratio, expm1_ratio_slope
from fenchel.kernels.triton.arithmetic.elementary import LN_2, log2
from fenchel.kernels.triton.launch.addressing import row_offset
from fenchel.kernels.triton.launch.alpha import GENERAL, STEEP
from fenchel.kernels.triton.launch.kernel import kernel
from fenchel.kernels.triton.losses.kept import kept_probability, kept_support
from fenchel.kernels.triton.tiles.across_threads import row_sum
from fenchel.kernels.triton.tiles.memory import load_scores, row_epsilon, tile_rows


@triton.jit
def _omega_slope(p, e):
    """d/dalpha of p l phi1(e l)/alpha, l = log p: one class's part of dOmega(p)/dalpha."""
    length = log2(tl.where(p > 0.0, p, 1.0)) * LN_2
    z = e * length
    alpha = 1.0 + e
    return p * length * (length * expm1_ratio_slope(z) - expm1_ratio(z) / alpha) / alpha


@triton.jit
def _omega_slopes(
    scores, target, listed, found, a, bottom, least, e, columns, step, target_step,
    KIND: tl.constexpr, CLASSES: tl.constexpr, GROUP: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Of a row, -dOmega(p)/dalpha, and dOmega(q)/dalpha with it where q is read."""
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
        total -= _omega_slope(kept_probability(x, a, bottom, least, e, KIND, 1), e)
        if not CLASSES:
            q = tl.load(target + wide * target_step, mask=inside, other=0.0)
            total += _omega_slope(q.to(tl.float32), e)
    return row_sum(tl.reshape(total, [1, 1, BLOCK * GROUP]))


@kernel
def alpha_rows(
    scores, target, alpha, normalizers, support, listed, slopes, ignore, smoothing,
    count, columns, groups, middle, inner, steps, target_steps, alpha_steps, normalizer_steps,
    LEVELS: tl.constexpr, KIND: tl.constexpr, CLASSES: tl.constexpr,
    GROUP: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """A program a row; `listed`, for class indices alone, says in which groups of columns to look."""
    row = tile_rows(tl.program_id(0), 1)
    e = row_epsilon(0.0, alpha, alpha_steps, row, count, middle, inner, LEVELS, KIND, 1)
    scores += row_offset(row, middle, inner, steps, LEVELS)
    target += row_offset(row, middle, inner, target_steps, LEVELS)
    a = tl.load(normalizers + row_offset(row, middle, inner, normalizer_steps, LEVELS))
    lives = a != float("-inf")
    finite = tl.where(lives, a, 0.0)
    bottom, least = kept_support(support, row, row < count)
    found = groups
    if listed is not None:
        listed += row * (groups + 1)
        found = tl.load(listed + groups)
    if e > 1.0:
        slope = _omega_slopes(scores, target, listed, found, finite, bottom, least, e, columns,
                              steps[3], target_steps[3], STEEP, CLASSES, GROUP, BLOCK)  # fmt: skip
    else:
        slope = _omega_slopes(scores, target, listed, found, finite, bottom, least, e, columns,
                              steps[3], target_steps[3], GENERAL, CLASSES, GROUP, BLOCK)  # fmt: skip
    if CLASSES:
        uniform = smoothing / columns
        slope += _omega_slope(1.0 - smoothing + uniform, e)
        slope += (columns - 1) * _omega_slope(uniform, e)
        lives = lives & (tl.load(target) != ignore)
    slope = tl.where(a == a, slope, float("nan"))
    tl.store(slopes + row, tl.where(lives, slope, 0.0))
