"""The normaliser of every row of a tile for 1 < alpha <= 1 + TAME, next to alpha = 1.

Three sums of softmax, of e^z, z e^z and z^2 e^z, give A to first order in e = alpha - 1: with l the
normaliser of softmax and v the mean of (z - l)^2 under it, A = l - e v/2 + O(e^2), written as
l/(1 + x/2 + x^2/12) with x = e v/l, which stays between 0 and 1/e. One step by Halley's method with the
hardware's powers, more where it was long, comes within 1e-3 of the root, and one visit with exact
powers gives the last step. A tile in which that step is too long is left to `normalizer`.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
# ruff: noqa: RET505 (what is known when a kernel is compiled needs if and else)
import triton
import triton.language as tl

from fenchel.kernels.triton.elementary import (
    INTERPRETED,
    LN_2,
    LOG2_E,
    SMALLEST,
    fast_log2,
    fast_reciprocal,
    log2_of_base,
)
from fenchel.kernels.triton.normalizer import near_step, strays
from fenchel.kernels.triton.reductions import any_row, even_slab_sum, row_triples, slab_sum

NEXT_TO_SOFTMAX: tl.constexpr = tl.constexpr(0.05)  # e up to which the first guess may be enough
CURVED: tl.constexpr = tl.constexpr(0.8)  # l x^2 above which it is not
MOST: tl.constexpr = tl.constexpr(3)  # rough visits
EMPTY: tl.constexpr = tl.constexpr(0.5)  # a row with a score in it has a larger sum of e^z


@triton.jit
def softmax_slabs(z):
    """Slabs of e^z, z e^z and z^2 e^z."""
    w = tl.exp2(z * LOG2_E)
    v = w * z
    return slab_sum(w), slab_sum(v), slab_sum(v * z)


@triton.jit
def first_guess(total, first, second, e):
    """(A to first order in e, whether that may be far from it) from three sums over softmax."""
    total = tl.maximum(total, 1.0)
    log_total = fast_log2(total) * LN_2
    spread = (second - 2.0 * log_total * first) * fast_reciprocal(total) + log_total * log_total
    x = e * tl.maximum(spread, 0.0) * fast_reciprocal(tl.maximum(log_total, 1e-6))
    point = log_total * fast_reciprocal(x * (x * (1.0 / 12.0) + 0.5) + 1.0)
    return point, (x * x * log_total > CURVED) | (e > NEXT_TO_SOFTMAX)


@triton.jit
def smooth_step(mass, slope, bend, point, e, inverse):
    """Halley's step, which stays between 0 and the middle of the way to 1/e."""
    flat = fast_reciprocal(slope)
    step = near_step(mass, e, flat)
    half = (0.5 - 0.5 * e) * step * (bend * flat - slope * fast_reciprocal(mass))
    step = step * fast_reciprocal(1.0 - tl.minimum(tl.maximum(half, -0.5), 0.5))
    return tl.maximum(tl.minimum(step, 0.5 * (inverse - point)), -point)


@triton.jit
def _rough_visit(z, point, e, inverse):
    t = tl.maximum(tl.fma(z, e, 1.0 - point * e), 0.0)
    q = tl.exp2(fast_log2(t) * (inverse - 2.0))
    s = q * t
    mass, slope, bend = row_triples(slab_sum(s * t), slab_sum(s), slab_sum(q))
    return smooth_step(mass, slope, bend, point, e, inverse)


@triton.jit
def _base(z, point, e):
    """(t, t - 1), where t is positive so that it has an inverse, but its power is zero."""
    less_one = tl.fma(z, e, -point * e)
    return tl.maximum(less_one + 1.0, SMALLEST), less_one


@triton.jit
def touch_of(e, inverse):
    """The length of the last step after which p is good to the last bits."""
    return tl.minimum(0.04, tl.minimum(1.5e-3, tl.exp2(-23.0 * e)) * inverse)


@triton.jit
def smooth_power(z, point, e, inverse, EXACT: tl.constexpr):
    """p at A = point"""
    t, less_one = _base(z, point, e)
    log_t = log2_of_base(t, less_one) if EXACT else fast_log2(t)
    return tl.exp2(log_t * inverse)


@triton.jit
def power_slabs(z, p, point, e):
    """Slabs of p, p/t and p/t^2."""
    t, _ = _base(z, point, e)
    r = fast_reciprocal(t)
    s = p * r
    return even_slab_sum(p), slab_sum(s), slab_sum(s * r)


@triton.jit
def solve_smooth(z, e, EXACT: tl.constexpr, R: tl.constexpr):
    """(p at `point`, point, step, whether it is the last one) for 0 < e <= TAME.

    The root is point + step.
    """
    inverse = 1.0 / e
    sums = softmax_slabs(z)
    total, first, second = row_triples(sums[0], sums[1], sums[2])
    point, climbing = first_guess(total, first, second, e)
    visits = 0
    while any_row(climbing, R) & (visits < MOST):
        step = _rough_visit(z, point, e, inverse)
        point = tl.where(climbing, point + step, point)
        climbing = climbing & (step * step > (0.05 - 0.1 * e) * (inverse - point))
        visits += 1
    p = smooth_power(z, point, e, inverse, EXACT)
    slabs = power_slabs(z, p, point, e)
    mass, slope, bend = row_triples(slabs[0], slabs[1], slabs[2])
    step = smooth_step(mass, slope, bend, point, e, inverse)
    step = tl.where(total > EMPTY, step, 0.0)
    last = (tl.abs(step) <= touch_of(e, inverse)) & (strays(step, slope, bend, e) == 0)
    return p, point, step, last & (e > 0.0)


@triton.jit
def recalled(number):
    """The number, so that what was made of it is made again rather than kept in registers."""
    if INTERPRETED:
        return number
    else:
        return tl.inline_asm_elementwise(
            "mov.b32 $0, $1;", "=f,f", [number], dtype=tl.float32, is_pure=False, pack=1
        )


@triton.jit
def smooth_entry(z, p, point, step, e):
    """p at point + step from p at `point`, to third order; 1/t^3 is next to 2/t^2 - 1/t there."""
    t, _ = _base(z, recalled(point), e)
    r = fast_reciprocal(t)
    square = (0.5 - 0.5 * e) * step * step
    cube = square * step * (1.0 - 2.0 * e) * (1.0 / 3.0)
    p += p * r * ((square - 2.0 * cube) * r - (step - cube))
    return tl.where(t <= e * step, 0.0, p)
