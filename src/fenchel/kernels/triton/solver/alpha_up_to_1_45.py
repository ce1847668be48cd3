"""The normalizer of every row of a tile for alpha <= 1.45, also below 1.

From the guess (N.13), one step of Halley's method with the powers of the hardware, more if it was long,
comes within 1e-3 of the root. One visit with accurate powers gives the last step, (N.10). If that step
is too long for (N.11), there are more such visits.

Below alpha = 1 all scores are in the support, t >= 1, and A may be far above the normalizer of softmax.
The norm on which Newton's method runs is then nearly straight, and a long step is lengthened by half at
most.
"""

from __future__ import annotations

# ruff: noqa: RET505, SIM109 (what is known when a kernel is compiled needs if and else)
import triton
import triton.language as tl

from fenchel.kernels.triton.arithmetic.accurate_powers import (
    accurate_power,
    rounded_point,
)
from fenchel.kernels.triton.arithmetic.elementary import (
    INTERPRETED,
    LN_2,
    LOG2_E,
    SMALLEST_NORMAL,
    fast_log2,
    fast_reciprocal,
)
from fenchel.kernels.triton.arithmetic.entries import (
    max_base,
)
from fenchel.kernels.triton.launch.parameters import (
    ANY_SIDE_OF_1,
    BELOW_1,
    FAR_ABOVE_1,
    FAST_ABOVE_1,
    FAST_BELOW_1,
    GENERAL,
)
from fenchel.kernels.triton.solver.guesses import (
    MAX_EMPTY_ROW_SUM,
    MEAN_BOUND_MAX_EPS,
    count_and_sum,
    guess_normalizer,
    mean_bound,
    softmax_moments,
)
from fenchel.kernels.triton.solver.newton import (
    halley_step_may_miss,
    newton_step,
    newton_step_near_root,
)
from fenchel.kernels.triton.tiles.reductions import (
    any_row,
    pairwise_slab_sum,
    row_sums,
    row_sums3,
    row_sums3_float64,
    slab_sum,
)

MAX_ROUGH_VISITS: tl.constexpr = tl.constexpr(3)  # rough visits
MAX_HALLEY_STEPS: tl.constexpr = tl.constexpr(4)  # by Halley's method; then Newton's, which is safe
MAX_VISITS: tl.constexpr = tl.constexpr(40)
MIN_BASE: tl.constexpr = tl.constexpr(1e-6)  # t below which p is as good as zero


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
    """A step that stays between 0 and half the way to 1/e."""
    step *= fast_reciprocal(1.0 - tl.minimum(tl.maximum(half, -0.5), 0.5))
    return tl.maximum(tl.minimum(step, 0.5 * (inverse - point)), -point)


@triton.jit
def _step_below(step, half, point):
    return tl.maximum(step * (1.0 + half * fast_reciprocal(1.0 + 2.0 * tl.abs(half))), -point)


@triton.jit
def bounded_halley_step(mass, slope, bend, point, e, inverse, POWERS: tl.constexpr):
    """Halley's step, by the curvature of the norm."""
    flat = fast_reciprocal(slope)
    step = newton_step_near_root(mass, e, flat)
    if POWERS > FAR_ABOVE_1:
        near = (e > 0.0) | (tl.abs(mass - 1.0) < 0.02)
        step = tl.where(near, step, _far_step(mass, e, flat))
    half = (0.5 - 0.5 * e) * step * (bend * flat - slope * fast_reciprocal(mass))
    if POWERS <= FAR_ABOVE_1:
        return _step_above(step, half, point, inverse)
    elif POWERS < ANY_SIDE_OF_1:
        return _step_below(step, half, point)
    else:
        above = _step_above(step, half, point, inverse)
        return tl.where(e > 0.0, above, _step_below(step, half, point))


@triton.jit
def rough_power_sums(z, point, e, inverse):
    """Slabs of p, p/t and p/t^2 by one power of the hardware."""
    t = tl.maximum(tl.fma(z, e, 1.0 - point * e), 0.0)
    q = tl.exp2(fast_log2(t) * (inverse - 2.0))
    s = q * t
    return slab_sum(s * t), slab_sum(s), slab_sum(q)


@triton.jit
def needs_rough_visit(step, point, e, inverse):
    """Whether A may not be within 1e-3 of the root after this step with approximate powers."""
    room = tl.abs(inverse - point)
    limit = tl.where(e > 0.0, (0.05 - 0.1 * e) * room, 0.01 * room * room)
    return step * step > limit


@triton.jit
def _base(z, point, e):
    """(t, t - 1), where t is positive so that it has an inverse, but its power is zero."""
    less_one = tl.fma(z, e, -point * e)
    return tl.maximum(less_one + 1.0, SMALLEST_NORMAL), less_one


@triton.jit
def max_final_step(point, e, inverse, POWERS: tl.constexpr):
    """The largest last step after which p is accurate to the last bits of the output."""
    above = tl.minimum(0.04, tl.minimum(1.5e-3, tl.exp2(-23.0 * e)) * inverse)
    below = (point * e - 1.0) * fast_reciprocal(e - 1.0)
    if POWERS == FAST_ABOVE_1:
        return tl.minimum(0.15, tl.exp2(-12.0 * e) * inverse)
    elif POWERS == FAST_BELOW_1:
        return 0.1 * below
    elif POWERS <= FAR_ABOVE_1:
        return above
    elif POWERS == BELOW_1:
        return 0.02 * below
    else:
        return tl.where(e > 0.0, above, 0.02 * below)


@triton.jit
def powers_at(z, point, e, inverse, POWERS: tl.constexpr):
    """(p, 1/t) at A = point"""
    if POWERS == FAST_ABOVE_1 or POWERS == FAST_BELOW_1:
        t, _ = _base(z, point, e)
        return tl.exp2(fast_log2(t) * inverse), fast_reciprocal(t)
    else:
        return accurate_power(z, point, e, inverse, POWERS)


@triton.jit
def power_sums(p, r):
    """Slabs of p, p/t and p/t^2."""
    s = p * r
    return pairwise_slab_sum(p), slab_sum(s), slab_sum(s * r)


@triton.jit
def final_step(mass, slope, bend, point, e, inverse, visits, POWERS: tl.constexpr):
    """(the step to the root, whether it is too long to be the last one)"""
    step = bounded_halley_step(mass, slope, bend, point, e, inverse, POWERS)
    if visits >= MAX_HALLEY_STEPS:
        step = newton_step(mass, slope, e, GENERAL)
    significant = 0.1 * step if POWERS == FAST_ABOVE_1 or POWERS == FAST_BELOW_1 else step
    far = (tl.abs(step) > max_final_step(point, e, inverse, POWERS)) | halley_step_may_miss(
        significant, slope, bend, e
    )
    return step, far & (visits < MAX_VISITS)


@triton.jit
def _visit(z, point, e, inverse, visits, POWERS: tl.constexpr):
    p, r = powers_at(z, point, e, inverse, POWERS)
    slabs = power_sums(p, r)
    if POWERS == FAST_ABOVE_1 or POWERS == FAST_BELOW_1:
        mass, slope, bend = row_sums3(slabs[0], slabs[1], slabs[2])
    else:
        mass, slope, bend = row_sums3_float64(slabs[0], slabs[1], slabs[2])
    step, far = final_step(mass, slope, bend, point, e, inverse, visits, POWERS)
    return p, step, far


@triton.jit
def solve_up_to_1_45(z, e, POWERS: tl.constexpr, R: tl.constexpr):
    """(p at `point`, point, step) for alpha <= 1.45: the root is point + step."""
    inverse = 1.0 / e
    sums = softmax_moments(z)
    total, first, second = row_sums3(sums[0], sums[1], sums[2])
    point, climbing = guess_normalizer(total, first, second, e, POWERS)
    if POWERS > FAR_ABOVE_1 and POWERS < ANY_SIDE_OF_1:
        plain = count_and_sum(z)
        count, plain_total = row_sums(plain[0], plain[1])
        point = tl.where(
            e < MEAN_BOUND_MAX_EPS, tl.maximum(point, mean_bound(count, plain_total, e)), point
        )
    visits = 0
    while any_row(climbing, R) & (visits < MAX_ROUGH_VISITS):
        slabs = rough_power_sums(z, point, e, inverse)
        mass, slope, bend = row_sums3(slabs[0], slabs[1], slabs[2])
        step = bounded_halley_step(mass, slope, bend, point, e, inverse, POWERS)
        point = tl.where(climbing, point + step, point)
        climbing = climbing & needs_rough_visit(step, point, e, inverse)
        visits += 1
    point = rounded_point(point)
    p, step, far = _visit(z, point, e, inverse, 0, POWERS)
    visits = 1
    while any_row(far & (total > MAX_EMPTY_ROW_SUM), R):
        point = tl.where(far, rounded_point(point + step), point)
        p, new_step, new_far = _visit(z, point, e, inverse, visits, POWERS)
        step = tl.where(far, new_step, step)
        far = far & new_far
        visits += 1
    return p, point, tl.where(total > MAX_EMPTY_ROW_SUM, step, 0.0)


@triton.jit
def recomputed(number):
    """The same number, but results of it are recomputed and not kept in registers."""
    if INTERPRETED:
        return number
    else:
        return tl.inline_asm_elementwise(
            "mov.b32 $0, $1;", "=f,f", [number], dtype=tl.float32, is_pure=False, pack=1
        )


@triton.jit
def probability_up_to_1_45(z, p, point, step, e, POWERS: tl.constexpr):
    """p at point + step from p at `point`, to third order; 0 off the support and at -inf."""
    t, _ = _base(z, recomputed(point), e)
    r = fast_reciprocal(tl.maximum(t, MIN_BASE))
    square = (0.5 - 0.5 * e) * step * step
    cube = square * step * ((1.0 - 2.0 * e) * (1.0 / 3.0))
    s = p * r
    p += (s * r) * (square - cube * r) - s * step
    if POWERS <= FAR_ABOVE_1:
        return tl.where(t > e * step, p, 0.0)
    elif POWERS < ANY_SIDE_OF_1:
        return tl.where(t < max_base(e), p, 0.0)
    else:
        return tl.where((t > e * step) & (t < max_base(e)), p, 0.0)
