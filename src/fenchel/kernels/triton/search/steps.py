"""A step towards the root of F(A) = sum_i p_i(A) = 1, and whether it may miss that.

With e = alpha - 1 the norm G = (F^e - 1)/e is convex and decreasing in A, so Newton's method on G,
started where F >= 1, climbs to the root and never passes it: a step is (F - F^(1-e))/(e S) with
S = sum_i p_i^(2-alpha). A third sum, of p_i^(3-2 alpha), makes it Halley's method.
"""

from __future__ import annotations

# ruff: noqa: RET505 (what is known when a kernel is compiled needs if and else)
import triton
import triton.language as tl

from fenchel.kernels.triton.arithmetic.divided_differences import expm1_ratio
from fenchel.kernels.triton.arithmetic.elementary import (
    LN_2,
    SMALLEST,
    fast_log2,
    fast_reciprocal,
    log2_near_one,
)
from fenchel.kernels.triton.launch.alpha import ENTMAX15, GENERAL, SPARSEMAX

MISSED: tl.constexpr = tl.constexpr(2.5e-9)  # what `strays` finds where A is missed by 5e-8
CROWDED: tl.constexpr = tl.constexpr(0.05)  # share of the slope
UNNOTICED: tl.constexpr = tl.constexpr(5e-8)  # error of A that p does not show


@triton.jit
def newton_step(mass, slope, e, KIND: tl.constexpr):
    """(F - F^(1-e))/(e S), in the form that does not cancel."""
    if KIND == SPARSEMAX:
        return (mass - 1.0) / slope
    elif KIND == ENTMAX15:
        root = tl.sqrt(mass)
        return 2.0 * root * (mass - 1.0) / ((root + 1.0) * slope)
    else:
        log_mass = log2_near_one(mass, mass - 1.0) * LN_2
        return mass * log_mass * expm1_ratio(-e * log_mass) / slope


@triton.jit
def quick_step(mass, slope, e):
    """Newton's step for alpha not near 1, by the hardware's powers or a series where F is near 1."""
    more = mass - 1.0
    series = (1.0 - e) * more * (0.5 - (1.0 + e) * (1.0 / 6.0) * more)
    near = more + more * series
    far = (mass - mass * tl.exp2(-e * fast_log2(mass))) / e
    return tl.where(tl.abs(more) < 0.02, near, far) / slope


@triton.jit
def near_step(mass, e, inverse_slope):
    """Newton's step where F is near 1: (F - F^(1-e))/e = m (1 + (1-e)/2 m/(1 + (1+e)/3 m)) + O(m^4)
    with m = F - 1. Elsewhere it is shorter where F > 1, and longer where F < 1."""
    more = mass - 1.0
    ratio = more * fast_reciprocal(more * ((1.0 + e) * (1.0 / 3.0)) + 1.0)
    return (more * ((0.5 - 0.5 * e) * ratio) + more) * inverse_slope


@triton.jit
def halley_step(mass, slope, bend, point, e, KIND: tl.constexpr):
    """Newton's step, lengthened by the curvature of G: at most twofold, and at most half the way to
    the point where the largest score leaves. A step back is shortened, by a third at most. 0 in a
    row with nothing in it."""
    quick: tl.constexpr = KIND != GENERAL
    step = quick_step(mass, slope, e) if quick else newton_step(mass, slope, e, GENERAL)
    half = 0.5 * (1.0 - e) * step * (bend / slope - slope / mass)
    longer = step / (1.0 - tl.minimum(tl.maximum(half, -0.5), 0.5))
    room = tl.where(e > 0.0, 0.5 * (1.0 / e - point), float("inf"))
    return tl.where(mass > 0.0, tl.maximum(step, tl.minimum(longer, room)), 0.0)


@triton.jit
def strays(step, slope, bend, e):
    """Whether Halley's step may miss the root by more than 5e-8: where the slope is that of many small
    entries, A may move little before it is another one."""
    flat = bend * fast_reciprocal(slope)
    move = tl.abs(e * step)
    return flat * flat * move * move * move > MISSED


@triton.jit
def sharp_strays(step, slope, bend, e):
    """The same of Newton's step. In `bend` no t is below what `sharp_touch` may move it by; where most of
    the slope is from there, the bend is not known."""
    unknown = bend * (e * sharp_touch(e)) > CROWDED * slope
    return unknown | ((0.5 - 0.5 * e) * step * step * bend > UNNOTICED * slope)


@triton.jit
def brings_in(step, slope, e, count):
    """Whether a step back may bring in scores, up to `count`, that together move the root."""
    power = tl.exp2(fast_log2(tl.maximum(-e * step, SMALLEST)) / e)
    return (e > 0.0) & (step < 0.0) & (count * power > UNNOTICED * slope)


@triton.jit
def still_bends(step, slope, last_slope, e):
    """The same from two visits: what Newton's method left to this step is the slope's change times half
    the way, and this step leaves less by the square of that change's share."""
    share = (slope - last_slope) * fast_reciprocal(slope)
    missed = 0.5 * share * share * tl.abs(step)
    return (missed > UNNOTICED) | (tl.abs(step) > sharp_touch(e))


@triton.jit
def leap_of(e):
    """The length of Halley's step after which A is good to about 1e-3."""
    return tl.minimum(0.1 / tl.maximum(tl.abs(e), 0.05), 2.0)


@triton.jit
def sharp_touch(e):
    """The length of Newton's step after which p is good to 1e-7, also where it moves the support.

    A score that comes in misses (e step)^(1/e); one that goes out takes at most about half of that too
    much off the others.
    """
    return tl.minimum(tl.exp2(-23.0 * e), 2e-4)
