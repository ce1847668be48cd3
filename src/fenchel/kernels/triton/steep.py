"""The support of every row for alpha > 2, where p = t^(1/e) has an infinite slope at t = 0.

No Newton method on the normaliser is safe there, and the edge of the support is needed far beyond the
last bit of a float32. So the unknowns are the smallest score of the support, `bottom`, and the
probability u of that score, `least`: t = e (x - bottom) + u^e, whose difference of scores is exact.

1. `bottom`, by bisection over the scores themselves: it is the smallest score x for which
   F(edge = x) < 1.
2. `least`: F(u) = sum_i (e (x_i - bottom) + u^e)^(1/e) is a sum of norms of (u, .), so it is convex
   and increasing, and Newton's method started above the root falls to it.

`visit(data, first, second, e, WHAT)` goes once through the scores of every row and returns two numbers.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
# pyright: reportGeneralTypeIssues=false
# ruff: noqa: RET505 (what is known when a kernel is compiled needs if and else)
import triton
import triton.language as tl

from fenchel.kernels.triton.elementary import exp2, fast_log2, log2
from fenchel.kernels.triton.entries import SMALLEST
from fenchel.kernels.triton.reductions import any_row, row_max_pair, row_sums

NEIGHBOURS: tl.constexpr = tl.constexpr(0)  # the next score below `first`, less the next one above
MASS: tl.constexpr = tl.constexpr(1)  # F with its edge at `first`, and how many scores lie there
RISE: tl.constexpr = tl.constexpr(2)  # F and dF/du with bottom = `first` and least = `second`
TOLERANCE: tl.constexpr = tl.constexpr(1e-7)  # of F: what its rounding hides


@triton.jit
def support_entry(x, bottom, least, e):
    """p of every score, from the smallest score of the support and its probability."""
    t = (x - bottom) * e + exp2(log2(tl.maximum(least, SMALLEST)) * e)
    p = tl.exp2(log2(tl.maximum(t, SMALLEST)) * (1.0 / e))
    p = tl.where(x == bottom, least, p)
    return tl.where(x >= bottom, p, 0.0)


@triton.jit
def contribution(x, first, second, e, WHAT: tl.constexpr):
    """What every score adds to the two numbers of a visit."""
    if WHAT == NEIGHBOURS:
        below = tl.where(x < first, x, float("-inf"))
        return below, tl.where(x >= first, -x, float("-inf"))
    elif WHAT == MASS:
        t = (x - first) * e
        p = tl.exp2(fast_log2(tl.maximum(t, SMALLEST)) * (1.0 / e))
        return tl.where(t > 0.0, p, 0.0), tl.where(x == first, 1.0, 0.0)
    else:
        log_least = log2(tl.maximum(second, SMALLEST))
        t = (x - first) * e + exp2(log_least * e)
        log_p = tl.where(x == first, log_least, fast_log2(tl.maximum(t, SMALLEST)) * (1.0 / e))
        slope = tl.exp2((e - 1.0) * (log_least - log_p))
        inside = x >= first
        return tl.where(inside, tl.exp2(log_p), 0.0), tl.where(inside, slope, 0.0)


@triton.jit
def fold(a, b, c, d, WHAT: tl.constexpr):
    """Two contributions together."""
    if WHAT == NEIGHBOURS:
        return tl.maximum(a, c), tl.maximum(b, d)
    else:
        return a + c, b + d


@triton.jit
def over_row(a, b, WHAT: tl.constexpr):
    """The contributions of a tile together, row by row."""
    if WHAT == NEIGHBOURS:
        return row_max_pair(a, b)
    else:
        return row_sums(a, b)


@triton.jit
def steep_tile_visit(data, first, second, e, WHAT: tl.constexpr):
    """A visit to tiles of scores, `data` = (tile, ...)."""
    a, b = contribution(data[0], first, second, e, WHAT)
    for i in tl.static_range(1, len(data)):
        c, d = contribution(data[i], first, second, e, WHAT)
        a, b = fold(a, b, c, d, WHAT)
    return over_row(a, b, WHAT)


@triton.jit
def _find_bottom(visit: tl.constexpr, data, peak, e, R: tl.constexpr):
    """(bottom, F with its edge there, how many scores lie there)."""
    low = peak - 1.0 / e
    bottom = peak
    mass = peak * 0.0
    ties = mass + 1.0
    searching = low < bottom
    while any_row(searching, R):
        middle = low + 0.5 * (bottom - low)
        below, above = visit(data, middle, middle, e, NEIGHBOURS)
        trial = tl.where(below > low, below, -above)
        searching = searching & (trial > low) & (trial < bottom)
        new_mass, new_ties = visit(data, trial, trial, e, MASS)
        inside = searching & (new_mass < 1.0)
        low = tl.where(searching & (new_mass >= 1.0), trial, low)
        bottom = tl.where(inside, trial, bottom)
        mass = tl.where(inside, new_mass, mass)
        ties = tl.where(inside, new_ties, ties)
    return bottom, mass, ties


@triton.jit
def find_support(visit: tl.constexpr, data, peak, e, R: tl.constexpr):
    """(bottom, least) of every row. Ends only for rows with a finite peak, or NaN."""
    bottom, mass, ties = _find_bottom(visit, data, peak, e, R)
    least = tl.minimum((1.0 - mass) / ties, 1.0)
    total, slope = visit(data, bottom, least, e, RISE)
    excess = total - 1.0
    falling = excess > TOLERANCE
    while any_row(falling, R):
        least = tl.where(falling, tl.maximum(least - excess / slope, 0.0), least)
        total, slope = visit(data, bottom, least, e, RISE)
        falls = total - 1.0 < excess
        excess = tl.where(falling, total - 1.0, excess)
        falling = falling & falls & (excess > TOLERANCE)
    return bottom, least


@triton.jit
def below_bottom(least, e):
    """How far the edge of the support lies from its smallest score: -u^e/e."""
    return -exp2(log2(tl.maximum(least, SMALLEST)) * e) / e


@triton.jit
def solve_steep(visit: tl.constexpr, data, peak, e, R: tl.constexpr):
    """(point, low): the edge of the support is their sum."""
    bottom, least = find_support(visit, data, peak, e, R)
    return bottom, below_bottom(least, e)
