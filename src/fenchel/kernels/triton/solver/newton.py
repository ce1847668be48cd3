"""Newton's and Halley's methods for the root of F(A) = 1, with a bracket for every row.

The steps are (N.5) and (N.7). `visit(data, point, e, KIND)` returns F of every row, the step from there
and, if the search may end with that step, whether it may miss the root. Halley's step may pass the root
where scores leave the support, and Newton's step from there may lead back. So every row has a bracket,
and a step that leaves it is replaced by bisection.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
# pyright: reportGeneralTypeIssues=false
# ruff: noqa: RET505 (what is known when a kernel is compiled needs if and else)
# ruff: noqa: RET505 (what is known when a kernel is compiled needs if, else and +)
import triton
import triton.language as tl

from fenchel.kernels.triton.arithmetic.elementary import (
    LN_2,
    SMALLEST_NORMAL,
    expm1_ratio,
    fast_log2,
    fast_reciprocal,
    log2_near_one,
    two_sum,
)
from fenchel.kernels.triton.arithmetic.entries import (
    lowest_normalizer,
)
from fenchel.kernels.triton.launch.parameters import (
    ABOVE_1_45,
    ENTMAX15,
    GENERAL,
    HALLEY_MAX_EPS,
    SPARSEMAX,
)
from fenchel.kernels.triton.tiles.reductions import (
    any_row,
)

MAX_EDGE_SHARE: tl.constexpr = tl.constexpr(0.05)  # share of the slope
MAX_A_ERROR: tl.constexpr = tl.constexpr(5e-8)  # error of A that p does not show
ONE_ULP: tl.constexpr = tl.constexpr(1.2e-7)  # relative: at least the step to the float32 below
BRACKET_MARGIN: tl.constexpr = tl.constexpr(0.01)
ROUNDING_ERROR: tl.constexpr = tl.constexpr(
    4e-6
)  # excess above which no rounding keeps it from falling
HALFWAY_EDGE: tl.constexpr = tl.constexpr(
    0.5
)  # first edge, in units of 1/e below the largest score


HALLEY_MISS_LIMIT: tl.constexpr = tl.constexpr(
    2.5e-9
)  # what `halley_step_may_miss` finds where A is missed by 5e-8


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
def fast_newton_step(mass, slope, e):
    """Newton's step for alpha not near 1, by the hardware's powers or a series where F is near 1."""
    more = mass - 1.0
    series = (1.0 - e) * more * (0.5 - (1.0 + e) * (1.0 / 6.0) * more)
    near = more + more * series
    far = (mass - mass * tl.exp2(-e * fast_log2(mass))) / e
    return tl.where(tl.abs(more) < 0.02, near, far) / slope


@triton.jit
def newton_step_near_root(mass, e, inverse_slope):
    """Newton's step where F is near 1: (F - F^(1-e))/e = m (1 + (1-e)/2 m/(1 + (1+e)/3 m)) + O(m^4)
    with m = F - 1. Elsewhere it is shorter where F > 1, and longer where F < 1."""
    more = mass - 1.0
    ratio = more * fast_reciprocal(more * ((1.0 + e) * (1.0 / 3.0)) + 1.0)
    return (more * ((0.5 - 0.5 * e) * ratio) + more) * inverse_slope


@triton.jit
def halley_step(mass, slope, bend, point, e, KIND: tl.constexpr):
    """Newton's step, lengthened by the curvature of G: at most doubled, and at most half the way to
    the point where the largest score leaves the support. A step back is shortened by a third at most.
    0 in an empty row."""
    quick: tl.constexpr = KIND != GENERAL
    step = fast_newton_step(mass, slope, e) if quick else newton_step(mass, slope, e, GENERAL)
    half = 0.5 * (1.0 - e) * step * (bend / slope - slope / mass)
    longer = step / (1.0 - tl.minimum(tl.maximum(half, -0.5), 0.5))
    room = tl.where(e > 0.0, 0.5 * (1.0 / e - point), float("inf"))
    return tl.where(mass > 0.0, tl.maximum(step, tl.minimum(longer, room)), 0.0)


@triton.jit
def halley_step_may_miss(step, slope, bend, e):
    """Whether Halley's step may miss the root by more than 5e-8: if the slope is that of many small
    entries, it may change after a short step of A."""
    flat = bend * fast_reciprocal(slope)
    move = tl.abs(e * step)
    return flat * flat * move * move * move > HALLEY_MISS_LIMIT


@triton.jit
def newton_step_may_miss(step, slope, bend, e):
    """Whether Newton's step may miss the root by more than MAX_A_ERROR.

    `bend` has no t below the change that `max_final_step_above_1_45` allows. If most of the slope is
    that of smaller t, the bend is unknown.
    """
    unknown = bend * (e * max_final_step_above_1_45(e)) > MAX_EDGE_SHARE * slope
    return unknown | ((0.5 - 0.5 * e) * step * step * bend > MAX_A_ERROR * slope)


@triton.jit
def step_back_grows_support(step, slope, e, count):
    """Whether a step back may bring in scores, up to `count`, that together move the root."""
    power = tl.exp2(fast_log2(tl.maximum(-e * step, SMALLEST_NORMAL)) / e)
    return (e > 0.0) & (step < 0.0) & (count * power > MAX_A_ERROR * slope)


@triton.jit
def slope_changed_too_much(step, slope, last_slope, e):
    """The same from two visits: what Newton's method left to this step is the slope's change times half
    the way, and this step leaves less by the square of that change's share."""
    share = (slope - last_slope) * fast_reciprocal(slope)
    missed = 0.5 * share * share * tl.abs(step)
    return (missed > MAX_A_ERROR) | (tl.abs(step) > max_final_step_above_1_45(e))


@triton.jit
def max_rough_step(e):
    """The largest Halley step after which A is accurate to about 1e-3."""
    return tl.minimum(0.1 / tl.maximum(tl.abs(e), 0.05), 2.0)


@triton.jit
def max_final_step_above_1_45(e):
    """The largest Newton step after which p is accurate to 1e-7, also where the support changes.

    A score that enters lacks (e step)^(1/e); one that leaves takes at most about half of that too much
    from the others.
    """
    return tl.minimum(tl.exp2(-23.0 * e), 2e-4)


@triton.jit
def needs_another_visit(mass, step, e, columns, loose, leap, KIND: tl.constexpr):
    """Whether |F - 1| is above `loose` and may still be after this step."""
    far = (tl.abs(mass - 1.0) > loose) & (mass > 0.0)
    if KIND == ENTMAX15:  # F'' is half the size of the support
        return far & (0.25 * columns * mass * step * step > 0.5 * loose)
    elif KIND == ABOVE_1_45:
        return far & (tl.abs(step) > max_final_step_above_1_45(e))
    elif KIND >= GENERAL:
        return far & ((e > HALLEY_MAX_EPS) | (tl.abs(step) > leap))
    else:
        return far


@triton.jit
def error_may_fall(mass, excess, KIND: tl.constexpr):
    """Whether |F - 1| is below `excess`, as it is until rounding dominates.

    Where powers are needed it may rise when the step before moved the support.
    """
    falls = tl.abs(mass - 1.0) < excess
    if KIND >= GENERAL:
        falls = falls | (excess > ROUNDING_ERROR)
    return falls


@triton.jit
def narrow_bracket(point, mass, low, high):
    """The bracket with a point in it where F is `mass`."""
    return tl.where(mass >= 1.0, point, low), tl.where(mass < 1.0, point, high)


@triton.jit
def next_point(point, step, low, high, KIND: tl.constexpr):
    """point + step; if powers are needed, the middle of the bracket if that is not inside it.

    For other alphas it is not rounded up, because beyond the root many small entries may have left the
    support.
    """
    if KIND >= GENERAL:
        ahead = point + step
        outside = ((ahead <= low) | (ahead >= high)) & (ahead != point)
        return tl.where(outside, 0.5 * (low + high), ahead)
    else:
        ahead, rest = two_sum(point, step)
        below = tl.maximum(ahead - tl.abs(ahead) * ONE_ULP, point)
        return tl.where((rest < 0.0) & (step > 0.0), below, ahead)


@triton.jit
def bracket_start(e, KIND: tl.constexpr):
    """The lower end of the first bracket.

    A tangent may cross 1 slightly to the left of the first point; the root is close to it, unlike the
    middle of the bracket.
    """
    return lowest_normalizer(e, KIND) - BRACKET_MARGIN


@triton.jit
def _before_visits(point, e, KIND: tl.constexpr):
    """The initial state of `_after_visit`."""
    infinite = point + float("inf")
    return point, point * 0.0, bracket_start(e, KIND), infinite, infinite, point == point


@triton.jit
def _after_visit(seen, state, e, columns, loose, leap, KIND: tl.constexpr):
    """(point, step, bracket, excess, whether it continues) of every row after a visit at `point`."""
    mass, found = seen[0], seen[1]
    point, step, low, high, excess, climbing = state
    low, high = narrow_bracket(point, mass, low, high)
    falls = error_may_fall(mass, excess, KIND)
    excess = tl.where(climbing, tl.abs(mass - 1.0), excess)
    step = tl.where(climbing, found, step)
    ahead = next_point(point, step, low, high, KIND)
    far = needs_another_visit(mass, step, e, columns, loose, leap, KIND)
    if len(seen) > 2:
        far = far | (seen[2] & (tl.abs(mass - 1.0) > loose) & (mass > 0.0))
    climbing = climbing & falls & far & (ahead != point)
    return tl.where(climbing, ahead, point), step, low, high, excess, climbing


@triton.jit
def find_root(
    visit: tl.constexpr, data, point, e, columns, loose, leap, R: tl.constexpr, KIND: tl.constexpr,
    UNROLL: tl.constexpr = True,
):  # fmt: skip
    """(point, step) whose sum is the root, from a point at or to the left of it.

    Ends when |F - 1| is below `loose`, when it is certain to be after the next step (`leap`: the length
    for which one Halley step suffices), or when it no longer decreases (rounding). NaN ends at once.
    With UNROLL, the first visit is before the loop, which is faster on chip. Triton takes long to
    compile a kernel with many loads, so visits that load are only inside the loop.
    """
    state = _before_visits(point, e, KIND)
    mass = point * 0.0
    if UNROLL:
        seen = visit(data, state[0], e, KIND)
        mass = seen[0]
        state = _after_visit(seen, state, e, columns, loose, leap, KIND)
    while any_row(state[5], R):
        seen = visit(data, state[0], e, KIND)
        mass = seen[0]
        state = _after_visit(seen, state, e, columns, loose, leap, KIND)
    return state[0], tl.where(mass > 0.0, state[1], 0.0)


@triton.jit
def guess_halfway(visit: tl.constexpr, data, e, KIND: tl.constexpr):
    """A point at or to the left of the root, nearer to it than the first one in most rows."""
    lowest = lowest_normalizer(e, KIND)
    _, step = visit(data, lowest * HALFWAY_EDGE, e, KIND)
    return tl.maximum(lowest * HALFWAY_EDGE + step, lowest)
