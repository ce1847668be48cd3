"""The support of every row for alpha > 2, where p = t^(1/e) has an infinite slope at t = 0.

Newton's method on the normalizer is not safe there, and the edge of the support would be needed far
beyond the last bit of a float32. The unknowns of (N.16) are the smallest score of the support,
`bottom`, and its probability u, `least`.

1. `bottom` is the smallest score x with F(edge = x) < 1: next to a guess, or by bisection over the
   scores.
2. `least`: F(u) of (N.17) is convex and increasing, and Newton's method decreases to the root after at
   most one step upwards.

`visit(data, first, second, e, WHAT)` visits the scores of every row once and returns two numbers.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
# pyright: reportGeneralTypeIssues=false
# ruff: noqa: RET505 (what is known when a kernel is compiled needs if and else)
import triton
import triton.language as tl

from fenchel.kernels.triton.arithmetic.elementary import (
    SMALLEST_NORMAL,
    exp2,
    fast_log2,
    log2,
)
from fenchel.kernels.triton.tiles.reductions import (
    any_row,
    row_max_pair,
    row_sums,
)

NEIGHBOURS: tl.constexpr = tl.constexpr(0)  # the next score below `first`, less the next one above
SUMS_AT_EDGES: tl.constexpr = tl.constexpr(1)  # F with its edge at `first`, and at `second`
SUM_AND_SLOPE: tl.constexpr = tl.constexpr(
    2
)  # F and dF/du with bottom = `first` and least = `second`
ONE_ULP: tl.constexpr = tl.constexpr(1.2e-7)  # relative: at least the step to the next float32
SUM_TOLERANCE: tl.constexpr = tl.constexpr(1e-7)  # of F: what its rounding hides


@triton.jit
def _least_base(least, e):
    """t = u^e of the smallest score of the support."""
    return exp2(log2(tl.maximum(least, SMALLEST_NORMAL)) * e)


@triton.jit
def _entry_above(x, bottom, least, base, e):
    t = (x - bottom) * e + base
    p = tl.exp2(log2(tl.maximum(t, SMALLEST_NORMAL)) * (1.0 / e))
    p = tl.where(x == bottom, least, p)
    return tl.where(x >= bottom, p, 0.0)


@triton.jit
def probability_above_2(x, bottom, least, e):
    """p of every score, from the smallest score of the support and its probability."""
    return _entry_above(x, bottom, least, _least_base(least, e), e)


@triton.jit
def probabilities_above_2(listed, bottom, least, e):
    """The same for four tiles."""
    base = _least_base(least, e)
    return (
        _entry_above(listed[0], bottom, least, base, e),
        _entry_above(listed[1], bottom, least, base, e),
        _entry_above(listed[2], bottom, least, base, e),
        _entry_above(listed[3], bottom, least, base, e),
    )


@triton.jit
def _rough_power(x, edge, e):
    """An approximate p with the edge of the support at a score."""
    return tl.exp2(fast_log2(tl.maximum((x - edge) * e, 0.0)) * (1.0 / e))


@triton.jit
def contribution(x, first, second, e, WHAT: tl.constexpr):
    """The contribution of every score to the two numbers of a visit."""
    if WHAT == NEIGHBOURS:
        below = tl.where(x < first, x, float("-inf"))
        return below, tl.where(x >= first, -x, float("-inf"))
    elif WHAT == SUMS_AT_EDGES:
        return _rough_power(x, first, e), _rough_power(x, second, e)
    else:
        log_least = log2(tl.maximum(second, SMALLEST_NORMAL))
        t = (x - first) * e + exp2(log_least * e)
        log_p = tl.where(
            x == first, log_least, fast_log2(tl.maximum(t, SMALLEST_NORMAL)) * (1.0 / e)
        )
        slope = tl.exp2((e - 1.0) * (log_least - log_p))
        inside = x >= first
        return tl.where(inside, tl.exp2(log_p), 0.0), tl.where(inside, slope, 0.0)


@triton.jit
def combine(a, b, c, d, WHAT: tl.constexpr):
    """The sum or maximum of two contributions."""
    if WHAT == NEIGHBOURS:
        return tl.maximum(a, c), tl.maximum(b, d)
    else:
        return a + c, b + d


@triton.jit
def neutral_element(WHAT: tl.constexpr):
    """The neutral element of `combine`."""
    return float("-inf") if WHAT == NEIGHBOURS else 0.0


@triton.jit
def reduce_row(a, b, WHAT: tl.constexpr):
    """The combined contributions of a tile, for each row."""
    if WHAT == NEIGHBOURS:
        return row_max_pair(a, b)
    else:
        return row_sums(a, b)


@triton.jit
def visit_tile_above_2(data, first, second, e, WHAT: tl.constexpr):
    """A visit to tiles of scores, `data` = (tile, ...)."""
    a, b = contribution(data[0], first, second, e, WHAT)
    for i in tl.static_range(1, len(data)):
        c, d = contribution(data[i], first, second, e, WHAT)
        a, b = combine(a, b, c, d, WHAT)
    return reduce_row(a, b, WHAT)


@triton.jit
def _find_bottom(visit: tl.constexpr, data, guess, peak, e, R: tl.constexpr):
    """(bottom, the next score below it or a number between them).

    F(edge = low) >= 1 > F(edge = bottom) in every step. The scores on both sides of a guess are tested
    first, which usually ends the search; then their neighbours, and then bisection.
    """
    low = peak - 1.0 / e
    bottom = peak
    middle = tl.minimum(tl.maximum(guess, low), bottom)
    tries = 0
    searching = low < bottom
    while any_row(searching, R):
        below, above = visit(data, middle, middle, e, NEIGHBOURS)
        below, above = tl.maximum(below, low), tl.minimum(-above, bottom)
        at_below, at_above = visit(data, below, above, e, SUMS_AT_EDGES)
        lower = searching & (below > low) & (at_below < 1.0)
        higher = searching & (above < bottom) & (at_above >= 1.0) & (lower == 0)
        found = searching & (lower == higher)
        bottom = tl.where(lower, below, tl.where(found, above, bottom))
        low = tl.where(higher, above, tl.where(found, below, low))
        if tries == 0:
            middle = tl.where(lower, below, above + tl.abs(above) * ONE_ULP)
        else:
            middle = low + 0.5 * (bottom - low)
        middle = tl.where((middle > low) & (middle < bottom), middle, bottom)
        searching = searching & (lower != higher) & (low < bottom)
        tries += 1
    return bottom, low


@triton.jit
def _newton_visit(visit: tl.constexpr, data, bottom, state, e):
    """(least, the next one, F - 1, whether to continue) after one more visit.

    F - 1 increases while it is negative, then decreases while it is positive; any other change is
    rounding and ends the search, which therefore cannot go back and forth.
    """
    least, ahead, excess, solving = state
    least = tl.where(solving, ahead, least)
    total, slope = visit(data, bottom, least, e, SUM_AND_SLOPE)
    total -= 1.0
    # F - 1 = 0 stands for what is not known yet.
    rises = (total > excess) | (excess == 0.0)
    moves = tl.where(excess > 0.0, (total > 0.0) & (total < excess), rises)
    excess = tl.where(solving, total, excess)
    ahead = tl.where(solving, _newton_step(least, excess, slope), ahead)
    return least, ahead, excess, solving & moves & _is_not_converged(excess, slope, least, e)


@triton.jit
def find_support(
    visit: tl.constexpr, data, guess, peak, e, R: tl.constexpr, UNROLL: tl.constexpr = True
):
    """(bottom, least) of every row.

    `guess` is any number, best near the edge of the support. With UNROLL, the first step to `least` is
    before the loop, which is faster but takes longer to compile.
    """
    bottom, low = _find_bottom(visit, data, guess, peak, e, R)
    gap = (bottom - tl.minimum(tl.maximum(guess, low), bottom)) * e
    least = tl.minimum(tl.exp2(fast_log2(gap) * (1.0 / e)), 1.0)
    state = least, least, least * 0.0, least == least
    if UNROLL:
        state = _newton_visit(visit, data, bottom, state, e)
    while any_row(state[3], R):
        state = _newton_visit(visit, data, bottom, state, e)
    return bottom, state[1]


@triton.jit
def _newton_step(least, excess, slope):
    return tl.minimum(tl.maximum(least - excess / slope, 0.0), 1.0)


@triton.jit
def _is_not_converged(excess, slope, least, e):
    """Whether F is not yet 1, and may not be after the next step: F''/F' is at most (e - 1)/u."""
    step = excess / slope
    return (tl.abs(excess) > SUM_TOLERANCE) & (e * step * step > SUM_TOLERANCE * least)


@triton.jit
def edge_below_bottom(least, e):
    """The edge of the support minus its smallest score: -u^e/e."""
    return -_least_base(least, e) / e
