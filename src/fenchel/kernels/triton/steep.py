"""The edge of the support for alpha > 2, where p = t^(1/e) has an infinite slope at t = 0.

No Newton method is safe alone there, and the edge is needed far beyond the last bit of a float32. It
is a sum point + low: first `point` is found by Newton inside a bracket, then low inside the spacing of
float32 around it, then, with the nearest float32 as the point, what low lost to rounding. x - point
is exact near the edge and low keeps its digits however small it is, so t = e ((x - point) - low) is
good to its last bits. Scores are not shifted: that would round them.
"""

from __future__ import annotations

import triton
import triton.language as tl

from fenchel.kernels.triton.elementary import power
from fenchel.kernels.triton.entries import steep_entry, two_sum
from fenchel.kernels.triton.reductions import any_row, row_sums

TOLERANCE: tl.constexpr = tl.constexpr(2e-7)  # of F: what its rounding hides
SPACING: tl.constexpr = tl.constexpr(2.4e-7)  # a float32 point is this near to the root, relatively


@triton.jit
def steep_tile_sums(data, point, low, e):
    """F and S of the rows of a tile, `data` = (scores,)."""
    p, s, _ = steep_entry(data[0], point, low, e)
    return row_sums(p, s)


@triton.jit
def _bracketed(sums: tl.constexpr, data, base, x, low, high, e, R: tl.constexpr):
    """The number in [low, high] at which F(base + it) = 1, to the last bit or nearly; starts at x.

    Newton's step is taken while it stays inside the bracket and is less than half the one before;
    else the bracket is halved.
    """
    previous = high - low
    open_ = previous > 0.0
    while any_row(open_, R):
        mass, slope = sums(data, base, x, e)
        open_ = open_ & (tl.abs(mass - 1.0) > TOLERANCE)
        low = tl.where(open_ & (mass > 1.0), x, low)
        high = tl.where(open_ & (mass < 1.0), x, high)
        middle = low + 0.5 * (high - low)
        step = (mass - power(mass, 1.0 - e)) / (e * slope)
        newton = x + step
        trusted = (newton > low) & (newton < high) & (2.0 * tl.abs(step) <= tl.abs(previous))
        open_ = open_ & (middle > low) & (middle < high)
        following = tl.where(trusted, newton, middle)
        previous = tl.where(open_, following - x, previous)
        x = tl.where(open_, following, x)
    return x


@triton.jit
def solve_steep(sums: tl.constexpr, data, peak, e, R: tl.constexpr):
    """(point, low): the edge of the support is their sum. Every row needs a finite peak to end."""
    zero = peak * 0.0
    lowest = peak - 1.0 / e
    point = _bracketed(sums, data, zero, lowest, lowest, peak, e, R)
    reach = SPACING * tl.maximum(tl.abs(point), 1e-30)
    low = _bracketed(sums, data, point, zero, -reach, reach, e, R)
    reach = SPACING * tl.abs(low)
    point, low = two_sum(point, low)
    return point, _bracketed(sums, data, point, low, low - reach, low + reach, e, R)
