"""The normalizer of every row of a tile for alpha <= 2: the root of F(A) = sum_i p_i(A) = 1.

By (N.8) a subset of the columns has a smaller root, so the maxima over J are solved first, and few
visits to the whole tile remain. For alpha that need powers, all visits except the last use approximate
powers.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
# pyright: reportGeneralTypeIssues=false
# ruff: noqa: RET505 (what is known when a kernel is compiled needs if and else)
import triton
import triton.language as tl

from fenchel.kernels.triton.arithmetic.elementary import (
    fast_reciprocal,
    saturate,
)
from fenchel.kernels.triton.arithmetic.entries import (
    FINITE_MINUS_INF,
    entry,
    exact_base,
    exact_powers,
    fast_powers,
    lowest_normalizer,
    rough_powers,
)
from fenchel.kernels.triton.launch.parameters import (
    ABOVE_1_45,
    ENTMAX15,
    GENERAL,
)
from fenchel.kernels.triton.solver.guesses import (
    guess_edge,
)
from fenchel.kernels.triton.solver.newton import (
    bracket_start,
    error_may_fall,
    find_root,
    halley_step,
    halley_step_may_miss,
    max_final_step_above_1_45,
    max_rough_step,
    narrow_bracket,
    needs_another_visit,
    newton_step,
    newton_step_may_miss,
    newton_step_near_root,
    next_point,
    slope_changed_too_much,
    step_back_grows_support,
)
from fenchel.kernels.triton.tiles.layout import (
    SLAB_AXIS,
)
from fenchel.kernels.triton.tiles.reductions import (
    any_row,
    pairwise_slab_sum,
    row_sums,
    row_sums3,
    row_sums3_float64,
    slab_sum,
)

SHORT_ROW_COLUMNS: tl.constexpr = tl.constexpr(
    256
)  # up to this many columns the maxima are not worth it
SHORT_ROW_FIRST_EDGE: tl.constexpr = tl.constexpr(
    0.7
)  # where the edge of a short row lies, in 1/e below its peak
SHORT_ROW_STEPS: tl.constexpr = tl.constexpr(
    3
)  # visits to a short row that are hardly ever too many
SUBSET_TOLERANCE: tl.constexpr = tl.constexpr(3e-2)  # excess at which the maxima are left
ROUGH_TOLERANCE: tl.constexpr = tl.constexpr(4e-3)  # excess at which rough powers are left
FINE_TOLERANCE: tl.constexpr = tl.constexpr(2e-7)  # excess at which the last step is taken
MAX_FINAL_HALLEY_STEP: tl.constexpr = tl.constexpr(
    4e-3
)  # Halley's step that, unless it `halley_step_may_miss`, is the last one


@triton.jit
def slab_sums(p, s, q, KIND: tl.constexpr):
    """Slabs of three tiles; for ABOVE_1_45 of two, the second one twice."""
    mass, slope = slab_sum(p), slab_sum(s)
    if KIND == ABOVE_1_45:
        return mass, slope, slope
    else:
        return mass, slope, slab_sum(q)


@triton.jit
def step_from_sums(mass, slope, bend, point, e, KIND: tl.constexpr):
    """F of every row and the step from `point`, from slabs of p, p/t and p/t^2."""
    if KIND == ABOVE_1_45:
        mass, slope = row_sums(mass, slope)
        return mass, tl.where(
            mass > 0.0, newton_step_near_root(mass, e, fast_reciprocal(slope)), 0.0
        )
    else:
        mass, slope, bend = row_sums3(mass, slope, bend)
        return mass, halley_step(mass, slope, bend, point, e, KIND)


@triton.jit
def _powers(z, point, e, KIND: tl.constexpr):
    if KIND == ABOVE_1_45:
        _, p, s, q = exact_powers(z, point, e, KIND)
        return p, s, q
    else:
        return rough_powers(z, point, e, KIND)


@triton.jit
def _power_visit(data, point, e, KIND: tl.constexpr):
    p, s, q = _powers(data[0], point, e, KIND)
    mass, slope, bend = slab_sums(p, s, q, KIND)
    for i in tl.static_range(1, len(data)):
        p, s, q = _powers(data[i], point, e, KIND)
        more = slab_sums(p, s, q, KIND)
        mass, slope, bend = mass + more[0], slope + more[1], bend + more[2]
    return step_from_sums(mass, slope, bend, point, e, KIND)


@triton.jit
def below_peak(x, peak, KIND: tl.constexpr):
    """Scores minus the largest; halved for alpha = 3/2, so that t is a difference."""
    return x * 0.5 - peak * 0.5 if KIND == ENTMAX15 else x - peak


@triton.jit
def entry_below_peak(z, point, low, e, KIND: tl.constexpr):
    """p for scores `below_peak`, at point + low, for alpha that need no powers."""
    if KIND == ENTMAX15:
        t = saturate((z - point * 0.5) - low * 0.5)
        return t * t
    else:
        return entry(z, point, low, e, KIND)[0]


@triton.jit
def tile_visit(data, point, e, KIND: tl.constexpr):
    """F of every row, approximate if powers are needed, and the step from there.

    `data` = (tile, ...) has the scores minus the largest.
    """
    if KIND >= GENERAL:
        return _power_visit(data, point, e, KIND)
    else:
        p, s, _ = entry(data[0], point, 0.0, e, KIND)
        mass, slope = row_sums(p, s)
        return mass, newton_step(mass, slope, e, KIND)


@triton.jit
def _visit_below_peak(data, point, e, KIND: tl.constexpr):
    """`tile_visit` for scores `below_peak`."""
    if KIND == ENTMAX15:
        t = saturate(data[0] - point * 0.5)
        mass, slope = row_sums(t * t, t)
        return mass, newton_step(mass, slope, e, KIND)
    else:
        return tile_visit(data, point, e, KIND)


@triton.jit
def exact_visit(data, point, e, KIND: tl.constexpr):
    """`tile_visit` with exact powers, and whether the step may miss the root."""
    _, p, s, q = exact_powers(data[0], point, e, KIND)
    mass, slope, bend = row_sums3_float64(pairwise_slab_sum(p), slab_sum(s), slab_sum(q))
    step = halley_step(mass, slope, bend, point, e, KIND)
    return mass, step, halley_step_may_miss(step, slope, bend, e)


@triton.jit
def _safe_newton_steps(z, point, lowest, e, KIND: tl.constexpr):
    """A point at or to the left of the root, by Newton's method from any point not below `lowest`."""
    for _ in tl.static_range(SHORT_ROW_STEPS):
        mass, step = _visit_below_peak((z,), point, e, KIND)
        point = tl.where(mass > 0.0, tl.maximum(point + step, lowest), point)
    return point


@triton.jit
def approach_root(z, slab, e, columns, R: tl.constexpr, KIND: tl.constexpr):
    """A point at or near the root; `slab` has the maxima of the tile over J, both `below_peak`."""
    if KIND == ABOVE_1_45:
        return guess_edge((z,), e * 0.0, e, R, KIND) + 1.0 / e
    point = lowest_normalizer(e, KIND)
    if z.shape[SLAB_AXIS] * z.shape[2] > SHORT_ROW_COLUMNS:
        point, step = find_root(
            _visit_below_peak,
            (slab,),
            point,
            e,
            columns,
            SUBSET_TOLERANCE,
            max_rough_step(e),
            R,
            KIND,
        )
        point += step
    elif KIND < GENERAL:
        point = _safe_newton_steps(z, SHORT_ROW_FIRST_EDGE * point, point, e, KIND)
    if KIND >= GENERAL:
        point, step = find_root(
            tile_visit, (z,), point, e, columns, ROUGH_TOLERANCE, max_rough_step(e), R, KIND
        )
        point += step
    return point


@triton.jit
def _visit_above_1_45(z, point, e, columns, R: tl.constexpr):
    """(p/t, t, F, its slope, the step, whether to continue) with accurate powers.

    A tile of several short rows has no third sum; there, two visits decide (`slope_changed_too_much`).
    """
    t = tl.maximum(exact_base(z, point, e), 0.0)
    p, s, _ = fast_powers(t, e, ABOVE_1_45)
    if R == 1:
        q = s * fast_reciprocal(tl.maximum(t, e * max_final_step_above_1_45(e)))
        mass, slope, bend = row_sums3_float64(slab_sum(p), slab_sum(s), slab_sum(q))
    else:
        mass, slope = row_sums(p, s)
    step = tl.where(mass > 0.0, newton_step_near_root(mass, e, fast_reciprocal(slope)), 0.0)
    far = (tl.abs(mass - 1.0) > FINE_TOLERANCE) & (mass > 0.0)
    if R == 1:
        misses = newton_step_may_miss(step, slope, bend, e) | step_back_grows_support(
            step, slope, e, columns
        )
        far = (far & misses) | needs_another_visit(
            mass, step, e, columns, FINE_TOLERANCE, MAX_FINAL_HALLEY_STEP, ABOVE_1_45
        )
    return s, t, mass, slope, step, far


@triton.jit
def find_root_above_1_45(z, point, e, columns, R: tl.constexpr):
    """(p/t, t, step) at a point from which that step leads to the root, for alpha above 1.45.

    This is `find_root`, but it keeps the powers of its last visit, which cost most.
    """
    s, t, mass, slope, step, climbing = _visit_above_1_45(z, point, e, columns, R)
    low, high = narrow_bracket(point, mass, bracket_start(e, ABOVE_1_45), point + float("inf"))
    excess = tl.abs(mass - 1.0)
    while any_row(climbing, R):
        ahead = next_point(point, step, low, high, ABOVE_1_45)
        climbing = climbing & (ahead != point)
        point = tl.where(climbing, ahead, point)
        s, t, mass, new_slope, new_step, goes_on = _visit_above_1_45(z, point, e, columns, R)
        if R > 1:
            misses = slope_changed_too_much(new_step, new_slope, slope, e)
            goes_on = goes_on & (misses | step_back_grows_support(new_step, new_slope, e, columns))
            slope = new_slope
        low, high = narrow_bracket(point, mass, low, high)
        falls = error_may_fall(mass, excess, ABOVE_1_45)
        excess = tl.where(climbing, tl.abs(mass - 1.0), excess)
        step = tl.where(climbing, new_step, step)
        climbing = climbing & falls & goes_on
    return s, t, tl.where(mass > 0.0, step, 0.0)


@triton.jit
def probability_above_1_45(s, t, step):
    """p at the root, from the results of `find_root_above_1_45`."""
    return s * tl.maximum(t - step, 0.0)


@triton.jit
def find_normalizer(z, slab, e, columns, R: tl.constexpr, KIND: tl.constexpr):
    """(point, low) whose sum is the root, for a tile of scores `below_peak`."""
    if KIND >= GENERAL:
        z = tl.maximum(z, FINITE_MINUS_INF)
        slab = tl.maximum(slab, FINITE_MINUS_INF)
    point = approach_root(z, slab, e, columns, R, KIND)
    VISIT: tl.constexpr = exact_visit if KIND >= GENERAL else _visit_below_peak
    return find_root(VISIT, (z,), point, e, columns, FINE_TOLERANCE, MAX_FINAL_HALLEY_STEP, R, KIND)
