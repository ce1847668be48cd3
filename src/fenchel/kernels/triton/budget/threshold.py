"""The threshold tau of budget, (N.36): the root of sum_i clip(x_i - tau, 0, 1) = k, for every row.

The sum is piecewise linear and decreases with tau. Newton's method in a bracket ends on the linear
piece of the root, where it is exact: when a step leaves the same entries at one and between 0 and 1, it
has led to the root. tau is the sum of two float32, `edge` and `low`, so that x - tau is accurate. The
entries between 0 and 1 are added separately from those at one, and across threads in float64.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
# pyright: reportGeneralTypeIssues=false
import triton
import triton.language as tl

from fenchel.kernels.triton.arithmetic.elementary import (
    LN_2,
    fast_log2,
    saturate,
    two_sum,
)
from fenchel.kernels.triton.arithmetic.entries import (
    HUGE,
)
from fenchel.kernels.triton.shared.threshold_rows import (
    clipped_score,
)
from fenchel.kernels.triton.tiles.reductions import (
    any_row,
    pairwise_slab_sum,
    row_sums3,
    slab_sum,
)

MAX_BRACKET_RATIO: tl.constexpr = tl.constexpr(
    16.0
)  # a bracket whose ends differ by this factor is halved geometrically
MAX_FLOAT32: tl.constexpr = tl.constexpr(2.0**128 - 2.0**104)  # the largest float32
PEAK_RESOLUTION: tl.constexpr = tl.constexpr(
    2.0**-16
)  # of the largest score: a step that changes it
NARROW_DEVIATION: tl.constexpr = tl.constexpr(0.5)  # standard deviation
TAIL_FACTOR: tl.constexpr = tl.constexpr(2.5)
STEPS_TO_ONE: tl.constexpr = tl.constexpr(2.0**24)  # from 0 to 1, by the smallest one below 1
SUM_TOLERANCE: tl.constexpr = tl.constexpr(2.0**-26)  # of the sum of the entries between
MAX_EXTRA_VISITS: tl.constexpr = tl.constexpr(4)


@triton.jit
def entry_parts(x, edge, low):
    """p without the entries at one, whether p > 0, and whether p = 1, as numbers."""
    p = clipped_score(x, 0.0, edge, low)
    one = saturate(p * STEPS_TO_ONE + (1.0 - STEPS_TO_ONE))
    return p - one, saturate(p * HUGE), one


@triton.jit
def sum_entry_parts(inside, positive, ones):
    """The sum of the entries between 0 and 1 of every row, their number, and that of the ones."""
    inside, positive, ones = row_sums3(
        pairwise_slab_sum(inside).to(tl.float64), slab_sum(positive), slab_sum(ones)
    )
    return inside, positive - ones, ones


@triton.jit
def visit_tile(data, edge, low):
    """`sum_entry_parts` at a threshold; `data` = (tile,)."""
    inside, positive, ones = entry_parts(data[0], edge, low)
    return sum_entry_parts(inside, positive, ones)


@triton.jit
def moments(x, peak):
    """The terms of the number of finite scores, their sum and the sum of squares, minus `peak`."""
    there = x > float("-inf")
    z = tl.where(there, x - peak, 0.0)
    return tl.where(there, 1.0, 0.0), z, z * z


@triton.jit
def _normal_quantile(share):
    """The normal quantile of 1 - share: Hastings' approximation, accurate to 5e-4."""
    tail = tl.maximum(tl.minimum(share, 1.0 - share), 1e-30)
    t = tl.sqrt(fast_log2(tail) * LN_2 * -2.0)
    above = (0.010328 * t + 0.802853) * t + 2.515517
    below = ((0.001308 * t + 0.189269) * t + 1.432788) * t + 1.0
    return tl.where(share > 0.5, -1.0, 1.0) * (t - above / below)


@triton.jit
def guess_threshold(available, total, squares, peak, k):
    """(the threshold of normally distributed scores, an approximate lower bound).

    clip(x - tau, 0, 1) is the share of u in [0, 1] with x - u > tau, and x - u has a mean and a variance.
    Where scores are CLOSE, a small k is shared by the few scores in the tail of the distribution.
    By Cantelli's inequality, k scores are above the lower bound + 1.
    """
    share = (k / available).to(tl.float32)
    mean = total / available
    variance = tl.maximum(squares / available - mean * mean, 0.0)
    deviation = tl.sqrt(variance)
    normal = mean - 0.5 + tl.sqrt(variance + 1.0 / 12.0) * _normal_quantile(share)
    tail = tl.minimum(TAIL_FACTOR * share / deviation, 0.5)
    close = mean + deviation * _normal_quantile(tail)
    normal = tl.where(deviation < NARROW_DEVIATION, tl.minimum(normal, close), normal)
    normal = tl.maximum(tl.minimum(normal, -share), -MAX_FLOAT32)
    floor = mean - 1.0 - 1.01 * deviation * tl.sqrt(share / (1.0 - share))
    return peak + normal, tl.maximum(peak + floor, -MAX_FLOAT32)


@triton.jit
def _middle(lower, upper, peak, floor):
    """A number in the bracket; `lower` is -inf at first, and then `floor` is tested."""
    unit = tl.maximum(tl.abs(peak) * PEAK_RESOLUTION, 1.0)
    near = peak - upper
    below = tl.where(floor < upper, floor, tl.maximum(peak - (2.0 * near + unit), -MAX_FLOAT32))
    far = tl.minimum(peak - lower, MAX_FLOAT32)
    near = tl.maximum(near, unit)
    halved = tl.where(
        far > MAX_BRACKET_RATIO * near,
        peak - tl.sqrt(far) * tl.sqrt(near),
        lower + (upper - lower) * 0.5,
    )
    return tl.where(lower == float("-inf"), below, halved)


@triton.jit
def find_budget_threshold(visit: tl.constexpr, data, k, edge, floor, peak, active, R: tl.constexpr):
    """(edge, low) of every `active` row, starting at `edge`; tau is never above the largest score.

    A step that leaves the bracket, or does not halve the excess, halves the bracket instead. If no
    float32 is left inside, a few steps search just below its upper end.
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
            active
            & (tl.abs(excess) > SUM_TOLERANCE * inside.to(tl.float32))
            & (spent < MAX_EXTRA_VISITS)
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
