"""The threshold of budget, a row value: the root tau of sum_i clip(x_i - tau, 0, 1) = k.

The sum is piecewise linear and falls with tau. Newton's method ends on the right piece, where it is
exact: when a step leaves the same entries at one and the same between, it has led to the root. A
bracket guards it. tau is the sum of two float32, `edge` and `low`, so that x - tau loses nothing; the
entries between are added apart from those at one, and across threads in float64.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
# pyright: reportGeneralTypeIssues=false
import triton
import triton.language as tl

from fenchel.kernels.triton.arithmetic.elementary import LN_2, fast_log2, saturate
from fenchel.kernels.triton.arithmetic.entries import HUGE
from fenchel.kernels.triton.arithmetic.two_floats import two_sum
from fenchel.kernels.triton.thresholds.rows import threshold_entry
from fenchel.kernels.triton.tiles.across_threads import any_row, row_triples
from fenchel.kernels.triton.tiles.within_threads import even_slab_sum, slab_sum

WIDE: tl.constexpr = tl.constexpr(16.0)  # a bracket so many times as far is halved in powers
FARTHEST: tl.constexpr = tl.constexpr(2.0**128 - 2.0**104)  # the largest float32
COARSE: tl.constexpr = tl.constexpr(2.0**-16)  # of the largest score: a step that changes it
CLOSE: tl.constexpr = tl.constexpr(0.5)  # standard deviation
TAIL: tl.constexpr = tl.constexpr(2.5)
STEPS: tl.constexpr = tl.constexpr(2.0**24)  # from 0 to 1, by the smallest one below 1
ROUNDING: tl.constexpr = tl.constexpr(2.0**-26)  # of the sum of the entries between
MOST_SPENT: tl.constexpr = tl.constexpr(4)


@triton.jit
def shares(x, edge, low):
    """p less one where it is one, whether it is above 0, and whether it is one, as numbers."""
    p = threshold_entry(x, 0.0, edge, low)
    one = saturate(p * STEPS + (1.0 - STEPS))
    return p - one, saturate(p * HUGE), one


@triton.jit
def over_row(inside, positive, ones):
    """The sum of the entries between 0 and 1 of every row, their number, and that of the ones."""
    inside, positive, ones = row_triples(
        even_slab_sum(inside).to(tl.float64), slab_sum(positive), slab_sum(ones)
    )
    return inside, positive - ones, ones


@triton.jit
def visit_tile(data, edge, low):
    """`over_row` at a threshold; `data` = (tile,)."""
    inside, positive, ones = shares(data[0], edge, low)
    return over_row(inside, positive, ones)


@triton.jit
def moments(x, peak):
    """What a score adds to the number of those above -inf, to their sum and to that of their squares,
    relative to the largest."""
    there = x > float("-inf")
    z = tl.where(there, x - peak, 0.0)
    return tl.where(there, 1.0, 0.0), z, z * z


@triton.jit
def _normal_quantile(share):
    """Above which this share of the normal law lies: Hastings' approximation, good to 5e-4."""
    tail = tl.maximum(tl.minimum(share, 1.0 - share), 1e-30)
    t = tl.sqrt(fast_log2(tail) * LN_2 * -2.0)
    above = (0.010328 * t + 0.802853) * t + 2.515517
    below = ((0.001308 * t + 0.189269) * t + 1.432788) * t + 1.0
    return tl.where(share > 0.5, -1.0, 1.0) * (t - above / below)


@triton.jit
def guess(available, total, squares, peak, k):
    """(where tau would be if the scores were normal, a number that it is not far below).

    clip(x - tau, 0, 1) is the share of u in [0, 1] with x - u > tau, and x - u has a mean and a variance.
    Where scores are CLOSE, a small k is shared by the few in a tail of their law.
    By Cantelli's inequality k scores are above the other number + 1.
    """
    share = (k / available).to(tl.float32)
    mean = total / available
    variance = tl.maximum(squares / available - mean * mean, 0.0)
    deviation = tl.sqrt(variance)
    normal = mean - 0.5 + tl.sqrt(variance + 1.0 / 12.0) * _normal_quantile(share)
    tail = tl.minimum(TAIL * share / deviation, 0.5)
    close = mean + deviation * _normal_quantile(tail)
    normal = tl.where(deviation < CLOSE, tl.minimum(normal, close), normal)
    normal = tl.maximum(tl.minimum(normal, -share), -FARTHEST)
    floor = mean - 1.0 - 1.01 * deviation * tl.sqrt(share / (1.0 - share))
    return peak + normal, tl.maximum(peak + floor, -FARTHEST)


@triton.jit
def _middle(lower, upper, peak, floor):
    """A number in the bracket; `lower` is -inf while nothing is known, and then `floor` is tried."""
    unit = tl.maximum(tl.abs(peak) * COARSE, 1.0)
    near = peak - upper
    below = tl.where(floor < upper, floor, tl.maximum(peak - (2.0 * near + unit), -FARTHEST))
    far = tl.minimum(peak - lower, FARTHEST)
    near = tl.maximum(near, unit)
    halved = tl.where(
        far > WIDE * near, peak - tl.sqrt(far) * tl.sqrt(near), lower + (upper - lower) * 0.5
    )
    return tl.where(lower == float("-inf"), below, halved)


@triton.jit
def solve_budget(visit: tl.constexpr, data, k, edge, floor, peak, active, R: tl.constexpr):
    """(edge, low) of every row that is `active`, from `edge` on; no tau is above the peak.

    A step that leaves the bracket, or does not halve the excess, halves the bracket instead. Where no
    float32 is left in it, tau is sought just below its upper end, by a few steps.
    """
    low = edge * 0.0
    lower = peak - float("inf")
    upper = peak
    previous = low + float("inf")
    same_between, same_ones = low - 1.0, low - 1.0
    spent = (low * 0.0).to(tl.int32)  # visits since no float32 was left
    while any_row(active, R):
        inside, between, ones = visit(data, edge, low)
        excess = (inside + (ones.to(tl.float64) - k)).to(tl.float32)
        settled = (between == same_between) & (ones == same_ones)
        lower = tl.where(active & (excess > 0.0), edge, lower)
        upper = tl.where(active & (excess < 0.0), edge, upper)
        newton, rest = two_sum(edge, low + tl.div_rn(excess, tl.maximum(between, 1.0)))
        within = (newton >= lower) & (newton <= upper) & (between > 0.0)
        halved = tl.abs(excess) * 2.0 <= previous
        trusted = within & (halved | settled | (spent > 0))
        middle = _middle(lower, upper, peak, floor)
        fits = (middle > lower) & (middle < upper)
        goes_on = (
            active & (tl.abs(excess) > ROUNDING * inside.to(tl.float32)) & (spent < MOST_SPENT)
        )
        moves = goes_on & (trusted | ((settled == 0) & (spent == 0)))
        edge = tl.where(moves, tl.where(trusted, newton, tl.where(fits, middle, upper)), edge)
        beside = tl.where(fits, 0.0, -0.5 * tl.minimum(upper - lower, 1.0))
        low = tl.where(moves, tl.where(trusted, rest, beside), low)
        spent += (moves & ((spent > 0) | ((trusted == 0) & (fits == 0)))).to(tl.int32)
        previous = tl.where(active, tl.abs(excess), previous)
        same_between = tl.where(trusted, between, -1.0)
        same_ones = tl.where(trusted, ones, -1.0)
        active = moves & (settled == 0)
    return edge, low
