"""The normaliser of every row of a tile for alpha <= 2: the root of F(A) = sum_i p_i(A) = 1.

With e = alpha - 1 the norm G = (F^e - 1)/e is convex and decreasing in A, so Newton's method on G,
started where F >= 1, climbs to the root and never passes it: a step is (F - F^(1-e))/(e S) with
S = sum_i p_i^(2-alpha). Where powers are needed a third sum, of p_i^(3-2 alpha), makes it Halley's
method. A subset of the columns has a smaller root, so the maxima over J are solved first; few visits
to the whole tile remain. For alpha that need powers, all but the last of them are rough.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
# pyright: reportGeneralTypeIssues=false
# ruff: noqa: RET505 (what is known when a kernel is compiled needs if and else)
import triton
import triton.language as tl

from fenchel.kernels.triton.elementary import LN_2, expm1_ratio, log2_near_one
from fenchel.kernels.triton.entries import (
    ENTMAX15,
    FARTHEST,
    GENERAL,
    SPARSEMAX,
    entry,
    exact_entry,
    first_point,
    rough_entry,
)
from fenchel.kernels.triton.reductions import SLAB_AXIS, any_row, row_sums, row_triples

SHORT: tl.constexpr = tl.constexpr(256)  # up to this many columns the maxima are not worth it
SUBSET: tl.constexpr = tl.constexpr(3e-2)  # excess at which the maxima are left
ROUGH: tl.constexpr = tl.constexpr(4e-3)  # excess at which rough powers are left
TAME: tl.constexpr = tl.constexpr(0.45)  # e up to which Halley's error is cubic with a small factor
FINE: tl.constexpr = tl.constexpr(2e-7)  # excess at which the last step is taken
TOUCH: tl.constexpr = tl.constexpr(4e-3)  # Halley's step after which A is good to the last bit


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
def halley_step(mass, slope, bend, point, e):
    """Newton's step, lengthened by the curvature of G: at most twofold, and at most half the way to
    the point where the largest score leaves. 0 in a row with nothing in it."""
    step = newton_step(mass, slope, e, GENERAL)
    half = 0.5 * (1.0 - e) * step * (bend / slope - slope / mass)
    longer = step / (1.0 - tl.minimum(half, 0.5))
    room = tl.where(e > 0.0, 0.5 * (1.0 / e - point), float("inf"))
    return tl.where(mass > 0.0, tl.maximum(step, tl.minimum(longer, room)), 0.0)


@triton.jit
def _power_sums(p, r):
    """Slabs of p, p/t and p/t^2."""
    s = p * r
    mass = tl.sum(p, axis=SLAB_AXIS, keep_dims=True)
    slope = tl.sum(s, axis=SLAB_AXIS, keep_dims=True)
    return mass, slope, tl.sum(s * r, axis=SLAB_AXIS, keep_dims=True)


@triton.jit
def tile_visit(data, point, e, KIND: tl.constexpr):
    """F of every row, roughly where powers are needed, and the step from there.

    `data` = (tile, ...) holds the scores less the largest.
    """
    if KIND == ENTMAX15:  # the factors of t/2 are left to the sums
        t = tl.maximum(data[0] - point, 0.0)
        mass, slope = row_sums(t * t, t)
        mass, slope = 0.25 * mass, 0.5 * slope
        return mass, newton_step(mass, slope, e, KIND)
    elif KIND >= GENERAL:
        p, r = rough_entry(data[0], point, e, KIND)
        mass, slope, bend = _power_sums(p, r)
        for i in tl.static_range(1, len(data)):
            p, r = rough_entry(data[i], point, e, KIND)
            more = _power_sums(p, r)
            mass, slope, bend = mass + more[0], slope + more[1], bend + more[2]
        mass, slope, bend = row_triples(mass, slope, bend)
        return mass, halley_step(mass, slope, bend, point, e)
    else:
        p, s, _ = entry(data[0], point, 0.0, e, KIND)
        mass, slope = row_sums(p, s)
        return mass, newton_step(mass, slope, e, KIND)


@triton.jit
def exact_visit(data, point, e, KIND: tl.constexpr):
    """`tile_visit` with exact powers, for alpha < 2."""
    _, p, r = exact_entry(data[0], point, e, KIND)
    mass, slope, bend = _power_sums(p, r)
    for i in tl.static_range(1, len(data)):
        _, p, r = exact_entry(data[i], point, e, KIND)
        more = _power_sums(p, r)
        mass, slope, bend = mass + more[0], slope + more[1], bend + more[2]
    mass, slope, bend = row_triples(mass, slope, bend)
    return mass, halley_step(mass, slope, bend, point, e)


@triton.jit
def _goes_on(mass, step, e, columns, loose, leap, KIND: tl.constexpr):
    """Whether |F - 1| is above `loose` and need not be below after this step."""
    far = tl.abs(mass - 1.0) > loose
    if KIND == ENTMAX15:  # F'' is half the size of the support
        return far & (0.25 * columns * mass * step * step > 0.5 * loose)
    elif KIND >= GENERAL:
        return far & ((e > TAME) | (tl.abs(step) > leap))
    else:
        return far


@triton.jit
def climb(
    visit: tl.constexpr, data, point, e, columns, loose, leap, R: tl.constexpr, KIND: tl.constexpr
):
    """(point, step) whose sum is the root, from a point at or to the left of it.

    Ends when |F - 1| is below `loose`, when it must be after the next step (`leap`: the length from
    which one by Halley suffices), or when it no longer falls (rounding). NaN ends at once.
    """
    mass, step = visit(data, point, e, KIND)
    excess = tl.abs(mass - 1.0)
    climbing = _goes_on(mass, step, e, columns, loose, leap, KIND)
    while any_row(climbing, R):
        point = tl.where(climbing, point + step, point)
        mass, new_step = visit(data, point, e, KIND)
        falls = tl.abs(mass - 1.0) < excess
        excess = tl.where(climbing, tl.abs(mass - 1.0), excess)
        step = tl.where(climbing, new_step, step)
        climbing = climbing & falls & _goes_on(mass, step, e, columns, loose, leap, KIND)
    return point, tl.where(mass > 0.0, step, 0.0)


@triton.jit
def leap_of(e):
    """The length of Halley's step after which A is good to about 1e-3."""
    return tl.minimum(0.1 / tl.maximum(tl.abs(e), 0.05), 2.0)


@triton.jit
def approach(z, slab, e, columns, R: tl.constexpr, KIND: tl.constexpr):
    """A point at or near the root; `slab` holds the maxima of the tile over J."""
    point = first_point(e, KIND)
    if z.shape[SLAB_AXIS] * z.shape[2] > SHORT:
        point, step = climb(tile_visit, (slab,), point, e, columns, SUBSET, leap_of(e), R, KIND)
        point += step
    if KIND >= GENERAL:
        point, step = climb(tile_visit, (z,), point, e, columns, ROUGH, leap_of(e), R, KIND)
        point += step
    return point


@triton.jit
def _kept_visit(z, point, e, KIND: tl.constexpr):
    """`exact_visit` of one tile that also returns p and 1/t."""
    t, p, r = exact_entry(z, point, e, KIND)
    if KIND == GENERAL:
        p = tl.where(t > 0.0, p, 0.0)
    mass, slope, bend = _power_sums(p, r)
    mass, slope, bend = row_triples(mass, slope, bend)
    return p, r, mass, halley_step(mass, slope, bend, point, e)


@triton.jit
def settle(z, point, e, columns, R: tl.constexpr, KIND: tl.constexpr):
    """(p, 1/t, point, step) with exact powers: the root is point + step, p and t belong to point.

    This is `climb` for powers, which keeps the powers of its last visit: they cost most.
    """
    p, r, mass, step = _kept_visit(z, point, e, KIND)
    excess = tl.abs(mass - 1.0)
    climbing = _goes_on(mass, step, e, columns, FINE, TOUCH, KIND)
    while any_row(climbing, R):
        point = tl.where(climbing, point + step, point)
        p, r, mass, new_step = _kept_visit(z, point, e, KIND)
        falls = tl.abs(mass - 1.0) < excess
        excess = tl.where(climbing, tl.abs(mass - 1.0), excess)
        step = tl.where(climbing, new_step, step)
        climbing = climbing & falls & _goes_on(mass, step, e, columns, FINE, TOUCH, KIND)
    return p, r, point, tl.where(mass > 0.0, step, 0.0)


@triton.jit
def shifted_entry(p, r, step, e):
    """p at point + step to second order where that is finite, from p and r = 1/t at point."""
    move = step * r
    bend = tl.where(e <= TAME, 0.5 * (1.0 - e), 0.0)
    shifted = p * ((bend * move - 1.0) * move + 1.0)
    return tl.where((p > 0.0) & (e * move < 1.0), tl.maximum(shifted, 0.0), 0.0)


@triton.jit
def solve(z, slab, e, columns, R: tl.constexpr, KIND: tl.constexpr):
    """(point, low) whose sum is the root, for a tile of scores less their largest."""
    if KIND >= GENERAL:
        z = tl.maximum(z, FARTHEST)
        slab = tl.maximum(slab, FARTHEST)
    point = approach(z, slab, e, columns, R, KIND)
    if KIND >= GENERAL:
        _, _, point, low = settle(z, point, e, columns, R, KIND)
        return point, low
    else:
        return climb(tile_visit, (z,), point, e, columns, FINE, 0.0, R, KIND)
