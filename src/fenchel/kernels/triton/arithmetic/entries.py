"""One entry of a row: p, s = p^(2 - alpha) = -dp/dA and t = p^(alpha - 1) = 1 + e (x - A) of (N.2).

A row is solved at points that float32 represents; the rest of the normalizer is `low`. For alpha = 2
and 3/2, and for alpha > 2, the point is the edge of the support A - 1/e: near it, x - point and so t
are exact. For any other alpha the point is A, because e (x - A) is the argument of log(1 + .) near t =
1, and `low` is applied to first order; t comes from the edge, held as a sum of two numbers. For alpha =
1 the point is A too, p = s = exp(x - A) and t = 1.
"""

from __future__ import annotations

# ruff: noqa: RET505 (what is known when a kernel is compiled needs if and else)
import triton
import triton.language as tl

from fenchel.kernels.triton.arithmetic.elementary import (
    SMALLEST_NORMAL,
    exp,
    exp2,
    fast_log2,
    log2,
    log2_near_one,
    rough_log2_near_one,
    saturate,
    split,
)
from fenchel.kernels.triton.launch.parameters import (
    ABOVE_1_45,
    ABOVE_2,
    ENTMAX15,
    FAST_POWERS,
    GENERAL,
    SOFTMAX,
    SPARSEMAX,
)

HUGE: tl.constexpr = tl.constexpr(2.0**126)  # makes one of whatever is not zero, saturated
FINITE_MINUS_INF: tl.constexpr = tl.constexpr(-1e30)  # stands for -inf where t must be finite
LARGE_BASE: tl.constexpr = tl.constexpr(1e6)  # above any t for alpha > 1
MIN_EXPONENT: tl.constexpr = tl.constexpr(6e-8)  # alpha = 2 among others: 0 to it is still 0


@triton.jit
def lowest_normalizer(e, KIND: tl.constexpr):
    """A point at or to the left of the root, relative to the largest score."""
    if KIND == SPARSEMAX:
        return e * 0.0 - 1.0
    elif KIND == ENTMAX15:
        return e * 0.0 - 2.0
    elif KIND == ABOVE_2:
        return -1.0 / e
    else:
        return e * 0.0


@triton.jit
def entry_above_2(z, point, low, e):
    """alpha > 2, from the edge of the support, point + low"""
    t = ((z - point) - low) * e
    inside = t > 0.0
    p = exp2(log2(t) / e)
    return tl.where(inside, p, 0.0), tl.where(inside, p / t, 0.0), tl.where(inside, t, 0.0)


@triton.jit
def max_base(e):
    """An upper bound of t for finite scores; at -inf, t has a power for the smallest alphas."""
    return tl.maximum(e * (0.5 * FINITE_MINUS_INF), LARGE_BASE)


@triton.jit
def general_entry(z, point, low, e, KIND: tl.constexpr = GENERAL):
    """alpha <= 2"""
    t, p, s, _ = exact_powers(tl.maximum(z, FINITE_MINUS_INF), point, e, KIND)
    p -= low * s
    inside = (t < max_base(e)) & (p > 0.0)
    return tl.where(inside, p, 0.0), tl.where(inside, s, 0.0), tl.where(inside, t, 0.0)


@triton.jit
def fast_powers(t, e, KIND: tl.constexpr):
    """(p, p/t, p/t^2) of t >= 0 by one power, the smallest; ABOVE_1_45: p/t in place of the last."""
    log_t = fast_log2(t)
    if KIND == ABOVE_1_45:
        s = tl.exp2(log_t * tl.maximum(1.0 / e - 1.0, MIN_EXPONENT))
        return s * t, s, s
    else:
        q = tl.exp2(log_t * (1.0 / e - 2.0))
        s = q * t
        return s * t, s, q


@triton.jit
def exact_base(z, point, e):
    """t at A = point, from the edge as the sum of two numbers; z is finite."""
    edge, edge_low = split(point.to(tl.float64) - 1.0 / e.to(tl.float64))
    return (z - edge) * e - edge_low * e


@triton.jit
def exact_entry(z, point, e, KIND: tl.constexpr):
    """(t, p, 1/t) for alpha <= 2 at A = point, to the last bits; p = 0 where t <= 0."""
    t = exact_base(z, point, e)
    log_t = log2_near_one(tl.maximum(t, SMALLEST_NORMAL), tl.fma(z, e, -point * e))
    p = tl.exp2(log_t * (1.0 / e))
    if KIND == GENERAL:  # of no other kind is alpha so near 2 that SMALLEST has a power
        p = tl.where(t > 0.0, p, 0.0)
    return t, p, tl.exp2(-log_t)


@triton.jit
def exact_powers(z, point, e, KIND: tl.constexpr):
    """(t, p, p/t, p/t^2) for alpha <= 2 at A = point, as accurate as the kind of alpha requires."""
    if KIND >= FAST_POWERS:
        t = exact_base(z, point, e)
        p, s, q = fast_powers(tl.maximum(t, 0.0), e, KIND)
        return t, p, s, q
    else:
        t, p, r = exact_entry(z, point, e, KIND)
        return t, p, p * r, p * r * r


@triton.jit
def rough_powers(z, point, e, KIND: tl.constexpr):
    """(p, p/t, p/t^2) for alpha <= 2 to 1e-5, 0 off the support: accurate enough for the first steps."""
    less_one = tl.fma(z, e, -point * e)
    if KIND == GENERAL:
        log_t = rough_log2_near_one(tl.maximum(less_one + 1.0, SMALLEST_NORMAL), less_one)
        p = tl.where(less_one > -1.0, tl.exp2(log_t * (1.0 / e)), 0.0)
        r = tl.exp2(-log_t)
        return p, p * r, p * r * r
    else:
        return fast_powers(tl.maximum(tl.fma(z, e, 1.0 - point * e), 0.0), e, KIND)


@triton.jit
def entry(z, point, low, e, KIND: tl.constexpr):
    """(p, s, t) of every score z, relative to the largest one."""
    if KIND == SPARSEMAX:
        t = saturate((z - point) - low)
        return t, saturate(t * HUGE), t
    elif KIND == ENTMAX15:
        t = saturate((z - point) * 0.5 - low * 0.5)
        return t * t, t, t
    elif KIND == ABOVE_2:
        return entry_above_2(z, point, low, e)
    elif KIND == SOFTMAX:
        p = exp((z - point) - low)
        return p, p, p * 0.0 + 1.0
    else:
        return general_entry(z, point, low, e, KIND)
