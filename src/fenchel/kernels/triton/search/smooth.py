"""The normaliser of every row of a tile for alpha <= 1 + TAME, also below 1, next to alpha = 1.

From `softmax_guess` one step by Halley's method with the hardware's powers, more where it was long, comes
within 1e-3 of the root, and one visit with exact powers gives the last step; where that is too long, or
`strays`, there are more such visits.

Below alpha = 1 nothing is left out, t >= 1, and A may be far above the normaliser of softmax: then the
norm of which Newton's method seeks the root is nearly straight, and a long step is lengthened by half at
most.
"""

from __future__ import annotations

# ruff: noqa: RET505, SIM109 (what is known when a kernel is compiled needs if and else)
import triton
import triton.language as tl

from fenchel.kernels.triton.arithmetic.elementary import (
    INTERPRETED,
    LN_2,
    LOG2_E,
    SMALLEST,
    fast_log2,
    fast_reciprocal,
)
from fenchel.kernels.triton.arithmetic.entries import base_of_nothing
from fenchel.kernels.triton.arithmetic.fine_powers import fine_power, rounded_point
from fenchel.kernels.triton.launch.alpha import (
    ANY_POWERS,
    COARSE_ABOVE,
    COARSE_BELOW,
    GENERAL,
    POWERS_ABOVE,
    POWERS_BELOW,
)
from fenchel.kernels.triton.search.softmax_guess import (
    EMPTY,
    HEAVY,
    first_guess,
    heavy_bound,
    plain_slabs,
    softmax_slabs,
)
from fenchel.kernels.triton.search.steps import near_step, newton_step, strays
from fenchel.kernels.triton.tiles.across_threads import any_row, fine_triples, row_sums, row_triples
from fenchel.kernels.triton.tiles.within_threads import even_slab_sum, slab_sum

MOST: tl.constexpr = tl.constexpr(3)  # rough visits
CURVED_STEPS: tl.constexpr = tl.constexpr(4)  # by Halley's method; then Newton's, which is safe
MOST_STEPS: tl.constexpr = tl.constexpr(40)
LEAST_BASE: tl.constexpr = tl.constexpr(1e-6)  # t below which p is as good as zero


@triton.jit
def _far_step(mass, e, inverse_slope):
    """Newton's step where F is not near 1: F log F phi1(-e log F)/S, by the hardware's functions."""
    log_mass = fast_log2(mass) * LN_2
    x = -e * log_mass
    series = x * (x * (x * (1.0 / 24.0) + 1.0 / 6.0) + 0.5) + 1.0
    ratio = tl.where(tl.abs(x) < 0.2, series, (tl.exp2(x * LOG2_E) - 1.0) * fast_reciprocal(x))
    return mass * log_mass * ratio * inverse_slope


@triton.jit
def _step_above(step, half, point, inverse):
    """It stays between 0 and the middle of the way to 1/e."""
    step *= fast_reciprocal(1.0 - tl.minimum(tl.maximum(half, -0.5), 0.5))
    return tl.maximum(tl.minimum(step, 0.5 * (inverse - point)), -point)


@triton.jit
def _step_below(step, half, point):
    return tl.maximum(step * (1.0 + half * fast_reciprocal(1.0 + 2.0 * tl.abs(half))), -point)


@triton.jit
def smooth_step(mass, slope, bend, point, e, inverse, POWERS: tl.constexpr):
    """Halley's step, by the curvature of the norm."""
    flat = fast_reciprocal(slope)
    step = near_step(mass, e, flat)
    if POWERS > POWERS_ABOVE:
        near = (e > 0.0) | (tl.abs(mass - 1.0) < 0.02)
        step = tl.where(near, step, _far_step(mass, e, flat))
    half = (0.5 - 0.5 * e) * step * (bend * flat - slope * fast_reciprocal(mass))
    if POWERS <= POWERS_ABOVE:
        return _step_above(step, half, point, inverse)
    elif POWERS < ANY_POWERS:
        return _step_below(step, half, point)
    else:
        above = _step_above(step, half, point, inverse)
        return tl.where(e > 0.0, above, _step_below(step, half, point))


@triton.jit
def rough_slabs(z, point, e, inverse):
    """Slabs of p, p/t and p/t^2 by one power of the hardware."""
    t = tl.maximum(tl.fma(z, e, 1.0 - point * e), 0.0)
    q = tl.exp2(fast_log2(t) * (inverse - 2.0))
    s = q * t
    return slab_sum(s * t), slab_sum(s), slab_sum(q)


@triton.jit
def is_long(step, point, e, inverse):
    """Whether A need not be within 1e-3 of the root after this step with rough powers."""
    room = tl.abs(inverse - point)
    limit = tl.where(e > 0.0, (0.05 - 0.1 * e) * room, 0.01 * room * room)
    return step * step > limit


@triton.jit
def _base(z, point, e):
    """(t, t - 1), where t is positive so that it has an inverse, but its power is zero."""
    less_one = tl.fma(z, e, -point * e)
    return tl.maximum(less_one + 1.0, SMALLEST), less_one


@triton.jit
def touch_of(point, e, inverse, POWERS: tl.constexpr):
    """The length of the last step after which p is good to the last bits, of half precision if COARSE."""
    above = tl.minimum(0.04, tl.minimum(1.5e-3, tl.exp2(-23.0 * e)) * inverse)
    below = (point * e - 1.0) * fast_reciprocal(e - 1.0)
    if POWERS == COARSE_ABOVE:
        return tl.minimum(0.15, tl.exp2(-12.0 * e) * inverse)
    elif POWERS == COARSE_BELOW:
        return 0.1 * below
    elif POWERS <= POWERS_ABOVE:
        return above
    elif POWERS == POWERS_BELOW:
        return 0.02 * below
    else:
        return tl.where(e > 0.0, above, 0.02 * below)


@triton.jit
def smooth_powers(z, point, e, inverse, POWERS: tl.constexpr):
    """(p, 1/t) at A = point"""
    if POWERS == COARSE_ABOVE or POWERS == COARSE_BELOW:
        t, _ = _base(z, point, e)
        return tl.exp2(fast_log2(t) * inverse), fast_reciprocal(t)
    else:
        return fine_power(z, point, e, inverse, POWERS)


@triton.jit
def power_slabs(p, r):
    """Slabs of p, p/t and p/t^2."""
    s = p * r
    return even_slab_sum(p), slab_sum(s), slab_sum(s * r)


@triton.jit
def last_step(mass, slope, bend, point, e, inverse, visits, POWERS: tl.constexpr):
    """(the step to the root, whether it is too long to be the last one)"""
    step = smooth_step(mass, slope, bend, point, e, inverse, POWERS)
    if visits >= CURVED_STEPS:
        step = newton_step(mass, slope, e, GENERAL)
    noticed = 0.1 * step if POWERS == COARSE_ABOVE or POWERS == COARSE_BELOW else step
    far = (tl.abs(step) > touch_of(point, e, inverse, POWERS)) | strays(noticed, slope, bend, e)
    return step, far & (visits < MOST_STEPS)


@triton.jit
def _visit(z, point, e, inverse, visits, POWERS: tl.constexpr):
    p, r = smooth_powers(z, point, e, inverse, POWERS)
    slabs = power_slabs(p, r)
    if POWERS == COARSE_ABOVE or POWERS == COARSE_BELOW:
        mass, slope, bend = row_triples(slabs[0], slabs[1], slabs[2])
    else:
        mass, slope, bend = fine_triples(slabs[0], slabs[1], slabs[2])
    step, far = last_step(mass, slope, bend, point, e, inverse, visits, POWERS)
    return p, step, far


@triton.jit
def solve_smooth(z, e, POWERS: tl.constexpr, R: tl.constexpr):
    """(p at `point`, point, step) for e <= TAME: the root is point + step."""
    inverse = 1.0 / e
    sums = softmax_slabs(z)
    total, first, second = row_triples(sums[0], sums[1], sums[2])
    point, climbing = first_guess(total, first, second, e, POWERS)
    if POWERS > POWERS_ABOVE and POWERS < ANY_POWERS:
        plain = plain_slabs(z)
        count, plain_total = row_sums(plain[0], plain[1])
        point = tl.where(e < HEAVY, tl.maximum(point, heavy_bound(count, plain_total, e)), point)
    visits = 0
    while any_row(climbing, R) & (visits < MOST):
        slabs = rough_slabs(z, point, e, inverse)
        mass, slope, bend = row_triples(slabs[0], slabs[1], slabs[2])
        step = smooth_step(mass, slope, bend, point, e, inverse, POWERS)
        point = tl.where(climbing, point + step, point)
        climbing = climbing & is_long(step, point, e, inverse)
        visits += 1
    point = rounded_point(point)
    p, step, far = _visit(z, point, e, inverse, 0, POWERS)
    visits = 1
    while any_row(far & (total > EMPTY), R):
        point = tl.where(far, rounded_point(point + step), point)
        p, new_step, new_far = _visit(z, point, e, inverse, visits, POWERS)
        step = tl.where(far, new_step, step)
        far = far & new_far
        visits += 1
    return p, point, tl.where(total > EMPTY, step, 0.0)


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
def smooth_entry(z, p, point, step, e, POWERS: tl.constexpr):
    """p at point + step from p at `point`, to third order; 0 off the support and at -inf."""
    t, _ = _base(z, recalled(point), e)
    r = fast_reciprocal(tl.maximum(t, LEAST_BASE))
    square = (0.5 - 0.5 * e) * step * step
    cube = square * step * ((1.0 - 2.0 * e) * (1.0 / 3.0))
    s = p * r
    p += (s * r) * (square - cube * r) - s * step
    if POWERS <= POWERS_ABOVE:
        return tl.where(t > e * step, p, 0.0)
    elif POWERS < ANY_POWERS:
        return tl.where(t < base_of_nothing(e), p, 0.0)
    else:
        return tl.where((t > e * step) & (t < base_of_nothing(e)), p, 0.0)
