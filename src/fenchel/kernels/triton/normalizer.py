"""The normaliser of every row of a tile for alpha <= 2: the root of F(A) = sum_i p_i(A) = 1.

With e = alpha - 1 the norm G = (F^e - 1)/e is convex and decreasing in A, so Newton's method on G,
started where F >= 1, climbs to the root and never passes it: a step is (F - F^(1-e))/(e S) with
S = sum_i p_i^(2-alpha). A subset of the columns has a smaller root, so the maxima over J are solved
first; few visits to the whole tile remain. For alpha that need powers, all but the last of them are
rough. `loose` is the excess F - 1 from which one more step is taken unseen.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
# ruff: noqa: RET505 (what is known when a kernel is compiled needs if and else)
import triton
import triton.language as tl

from fenchel.kernels.triton.elementary import LN_2, exp2, expm1_ratio, log2, log2_near_one
from fenchel.kernels.triton.entries import (
    ENTMAX15,
    GENERAL,
    SMALLEST,
    SPARSEMAX,
    entry,
    first_point,
    general_entry,
    rough_entry,
)
from fenchel.kernels.triton.reductions import SLAB_AXIS, any_row, row_sums

SHORT: tl.constexpr = tl.constexpr(256)  # up to this many columns the maxima are not worth it
SUBSET: tl.constexpr = tl.constexpr(3e-2)  # excess at which the maxima are left
ROUGH: tl.constexpr = tl.constexpr(4e-3)  # excess at which rough powers are left
FINE: tl.constexpr = tl.constexpr(2e-7)  # excess at which the last step is taken


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
def tile_sums(data, point, e, KIND: tl.constexpr):
    """F and S of the rows of a tile, `data` = (scores less the largest,); roughly if GENERAL."""
    if KIND == ENTMAX15:  # the factors of t/2 are left to the sums
        t = tl.maximum(data[0] - point, 0.0)
        mass, slope = row_sums(t * t, t)
        return 0.25 * mass, 0.5 * slope
    elif KIND == GENERAL:
        p, s = rough_entry(data[0], point, e)
        return row_sums(p, s)
    else:
        p, s, _ = entry(data[0], point, 0.0, e, KIND)
        return row_sums(p, s)


@triton.jit
def curvature(columns, e, KIND: tl.constexpr):
    """A bound of F''/(2 F) at and to the right of any point; infinite if there is none."""
    if KIND == ENTMAX15:
        return e * 0.0 + 0.25 * columns
    elif KIND == GENERAL:
        spread = exp2(2.0 * e * log2(e * 0.0 + columns))
        return tl.where(e <= 0.5, 0.5 * (1.0 - e) * tl.maximum(spread, 1.0), float("inf"))
    else:
        return e * 0.0 + float("inf")


@triton.jit
def climb(sums: tl.constexpr, data, point, e, columns, loose, R: tl.constexpr, KIND: tl.constexpr):
    """(point, step) whose sum is the root, from a point at or to the left of it.

    Ends when the excess is below `loose`, when the next one must be, or when it no longer falls
    (rounding); it falls at every other step, so this ends. NaN ends at once.
    """
    bound = curvature(columns, e, KIND)
    mass, slope = sums(data, point, e, KIND)
    excess = mass - 1.0
    step = newton_step(mass, slope, e, KIND)
    climbing = (excess > loose) & (bound * mass * step * step > 0.5 * loose)
    while any_row(climbing, R):
        point = tl.where(climbing, point + step, point)
        mass, slope = sums(data, point, e, KIND)
        falls = mass - 1.0 < excess
        excess = tl.where(climbing, mass - 1.0, excess)
        step = tl.where(climbing, newton_step(mass, slope, e, KIND), step)
        climbing = climbing & falls & (excess > loose) & (bound * mass * step * step > 0.5 * loose)
    return point, tl.where(slope > 0.0, step, 0.0)


@triton.jit
def approach(z, slab, e, columns, R: tl.constexpr, KIND: tl.constexpr):
    """A point at or just left of the root; `slab` holds the maxima of the tile over J."""
    point = first_point(e, KIND)
    if z.shape[SLAB_AXIS] * z.shape[2] > SHORT:
        point, step = climb(tile_sums, (slab,), point, e, columns, SUBSET, R, KIND)
        point += step
    if KIND == GENERAL:
        point, step = climb(tile_sums, (z,), point, e, columns, ROUGH, R, KIND)
        point += step
    return point


@triton.jit
def settle(z, point, e, columns, R: tl.constexpr):
    """(p, point, step) with exact powers: the root is point + step, and p belongs to point.

    This is `climb` for GENERAL, which keeps the powers of its last visit: they cost most.
    """
    bound = curvature(columns, e, GENERAL)
    p, s, _ = general_entry(z, point, 0.0, e)
    mass, slope = row_sums(p, s)
    excess = tl.abs(mass - 1.0)
    step = newton_step(mass, slope, e, GENERAL)
    climbing = (excess > FINE) & (bound * mass * step * step > 0.5 * FINE)
    while any_row(climbing, R):
        point = tl.where(climbing, point + step, point)
        p, s, _ = general_entry(z, point, 0.0, e)
        mass, slope = row_sums(p, s)
        falls = tl.abs(mass - 1.0) < excess
        excess = tl.where(climbing, tl.abs(mass - 1.0), excess)
        step = tl.where(climbing, newton_step(mass, slope, e, GENERAL), step)
        climbing = climbing & falls & (excess > FINE) & (bound * mass * step * step > 0.5 * FINE)
    return p, point, tl.where(slope > 0.0, step, 0.0)


@triton.jit
def shifted_entry(z, p, point, step, e):
    """p at point + step to first order, from p at point: dp/dA = -p/t."""
    t = tl.maximum((z - point) * e + 1.0, SMALLEST)
    return tl.where(p > 0.0, tl.maximum(p - step * (p / t), 0.0), 0.0)


@triton.jit
def solve(z, slab, e, columns, R: tl.constexpr, KIND: tl.constexpr):
    """(point, low) whose sum is the root, for a tile of scores less their largest."""
    point = approach(z, slab, e, columns, R, KIND)
    if KIND == GENERAL:
        _, point, low = settle(z, point, e, columns, R)
        return point, low
    else:
        return climb(tile_sums, (z,), point, e, columns, FINE, R, KIND)
