"""The normaliser of every row of a tile for alpha <= 2: the root of F(A) = sum_i p_i(A) = 1.

A subset of the columns has a smaller root, so the maxima over J are solved first; few visits to the
whole tile remain. For alpha that need powers, all but the last of them are rough.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
# pyright: reportGeneralTypeIssues=false
# ruff: noqa: RET505 (what is known when a kernel is compiled needs if and else)
import triton
import triton.language as tl

from fenchel.kernels.triton.arithmetic.elementary import fast_reciprocal, saturate
from fenchel.kernels.triton.arithmetic.entries import (
    FARTHEST,
    entry,
    exact_base,
    exact_powers,
    first_point,
    hardware_powers,
    rough_powers,
)
from fenchel.kernels.triton.launch.alpha import ENTMAX15, GENERAL, SHARP
from fenchel.kernels.triton.search.climbing import (
    climb,
    lowest_point,
    narrowed,
    needs_more,
    next_point,
    still_falls,
)
from fenchel.kernels.triton.search.edge_guess import guess_edge
from fenchel.kernels.triton.search.steps import (
    brings_in,
    halley_step,
    leap_of,
    near_step,
    newton_step,
    sharp_strays,
    sharp_touch,
    still_bends,
    strays,
)
from fenchel.kernels.triton.tiles.across_threads import any_row, fine_triples, row_sums, row_triples
from fenchel.kernels.triton.tiles.axes import SLAB_AXIS
from fenchel.kernels.triton.tiles.within_threads import even_slab_sum, slab_sum

SHORT: tl.constexpr = tl.constexpr(256)  # up to this many columns the maxima are not worth it
START: tl.constexpr = tl.constexpr(0.7)  # where the edge of a short row lies, in 1/e below its peak
CERTAIN: tl.constexpr = tl.constexpr(3)  # visits to a short row that are hardly ever too many
SUBSET: tl.constexpr = tl.constexpr(3e-2)  # excess at which the maxima are left
ROUGH: tl.constexpr = tl.constexpr(4e-3)  # excess at which rough powers are left
FINE: tl.constexpr = tl.constexpr(2e-7)  # excess at which the last step is taken
TOUCH: tl.constexpr = tl.constexpr(4e-3)  # Halley's step that, unless it `strays`, is the last one


@triton.jit
def slab_sums(p, s, q, KIND: tl.constexpr):
    """Slabs of three tiles; SHARP: of two, the second one twice."""
    mass, slope = slab_sum(p), slab_sum(s)
    if KIND == SHARP:
        return mass, slope, slope
    else:
        return mass, slope, slab_sum(q)


@triton.jit
def step_of_slabs(mass, slope, bend, point, e, KIND: tl.constexpr):
    """F of every row and the step from `point`, from slabs of p, p/t and p/t^2."""
    if KIND == SHARP:
        mass, slope = row_sums(mass, slope)
        return mass, tl.where(mass > 0.0, near_step(mass, e, fast_reciprocal(slope)), 0.0)
    else:
        mass, slope, bend = row_triples(mass, slope, bend)
        return mass, halley_step(mass, slope, bend, point, e, KIND)


@triton.jit
def _powers(z, point, e, KIND: tl.constexpr):
    if KIND == SHARP:
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
    return step_of_slabs(mass, slope, bend, point, e, KIND)


@triton.jit
def below_peak(x, peak, KIND: tl.constexpr):
    """Scores less the largest; halved for alpha = 3/2, so that t is a difference."""
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
    """F of every row, roughly where powers are needed, and the step from there.

    `data` = (tile, ...) holds the scores less the largest.
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
    mass, slope, bend = fine_triples(even_slab_sum(p), slab_sum(s), slab_sum(q))
    step = halley_step(mass, slope, bend, point, e, KIND)
    return mass, step, strays(step, slope, bend, e)


@triton.jit
def _certain_steps(z, point, lowest, e, KIND: tl.constexpr):
    """A point at or to the left of the root, by Newton's method from any point not below `lowest`."""
    for _ in tl.static_range(CERTAIN):
        mass, step = _visit_below_peak((z,), point, e, KIND)
        point = tl.where(mass > 0.0, tl.maximum(point + step, lowest), point)
    return point


@triton.jit
def approach(z, slab, e, columns, R: tl.constexpr, KIND: tl.constexpr):
    """A point at or near the root; `slab` holds the maxima of the tile over J, both `below_peak`."""
    if KIND == SHARP:
        return guess_edge((z,), e * 0.0, e, R, KIND) + 1.0 / e
    point = first_point(e, KIND)
    if z.shape[SLAB_AXIS] * z.shape[2] > SHORT:
        point, step = climb(
            _visit_below_peak, (slab,), point, e, columns, SUBSET, leap_of(e), R, KIND
        )
        point += step
    elif KIND < GENERAL:
        point = _certain_steps(z, START * point, point, e, KIND)
    if KIND >= GENERAL:
        point, step = climb(tile_visit, (z,), point, e, columns, ROUGH, leap_of(e), R, KIND)
        point += step
    return point


@triton.jit
def _kept_visit(z, point, e, columns, R: tl.constexpr):
    """(p/t, t, F, its slope, the step, whether to go on) with exact powers.

    In short rows, of which a tile holds several, two visits tell that (`still_bends`), not a third sum.
    """
    t = tl.maximum(exact_base(z, point, e), 0.0)
    p, s, _ = hardware_powers(t, e, SHARP)
    if R == 1:
        q = s * fast_reciprocal(tl.maximum(t, e * sharp_touch(e)))
        mass, slope, bend = fine_triples(slab_sum(p), slab_sum(s), slab_sum(q))
    else:
        mass, slope = row_sums(p, s)
    step = tl.where(mass > 0.0, near_step(mass, e, fast_reciprocal(slope)), 0.0)
    far = (tl.abs(mass - 1.0) > FINE) & (mass > 0.0)
    if R == 1:
        misses = sharp_strays(step, slope, bend, e) | brings_in(step, slope, e, columns)
        far = (far & misses) | needs_more(mass, step, e, columns, FINE, TOUCH, SHARP)
    return s, t, mass, slope, step, far


@triton.jit
def settle(z, point, e, columns, R: tl.constexpr):
    """(p/t, t, step) at a point from which that step leads to the root, for SHARP alpha.

    This is `climb`, which keeps the powers of its last visit: they cost most.
    """
    s, t, mass, slope, step, climbing = _kept_visit(z, point, e, columns, R)
    low, high = narrowed(point, mass, lowest_point(e, SHARP), point + float("inf"))
    excess = tl.abs(mass - 1.0)
    while any_row(climbing, R):
        ahead = next_point(point, step, low, high, SHARP)
        climbing = climbing & (ahead != point)
        point = tl.where(climbing, ahead, point)
        s, t, mass, new_slope, new_step, goes_on = _kept_visit(z, point, e, columns, R)
        if R > 1:
            misses = still_bends(new_step, new_slope, slope, e)
            goes_on = goes_on & (misses | brings_in(new_step, new_slope, e, columns))
            slope = new_slope
        low, high = narrowed(point, mass, low, high)
        falls = still_falls(mass, excess, SHARP)
        excess = tl.where(climbing, tl.abs(mass - 1.0), excess)
        step = tl.where(climbing, new_step, step)
        climbing = climbing & falls & goes_on
    return s, t, tl.where(mass > 0.0, step, 0.0)


@triton.jit
def shifted_entry(s, t, step):
    """p at the root, from what `settle` kept."""
    return s * tl.maximum(t - step, 0.0)


@triton.jit
def solve(z, slab, e, columns, R: tl.constexpr, KIND: tl.constexpr):
    """(point, low) whose sum is the root, for a tile of scores `below_peak`."""
    if KIND >= GENERAL:
        z = tl.maximum(z, FARTHEST)
        slab = tl.maximum(slab, FARTHEST)
    point = approach(z, slab, e, columns, R, KIND)
    VISIT: tl.constexpr = exact_visit if KIND >= GENERAL else _visit_below_peak
    return climb(VISIT, (z,), point, e, columns, FINE, TOUCH, R, KIND)
