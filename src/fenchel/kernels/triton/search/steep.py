"""The support of every row for alpha > 2, where p = t^(1/e) has an infinite slope at t = 0.

No Newton method on the normaliser is safe there, and the edge of the support is needed far beyond the
last bit of a float32. So the unknowns are the smallest score of the support, `bottom`, and the
probability u of that score, `least`: t = e (x - bottom) + u^e, whose difference of scores is exact.

1. `bottom`, the smallest score x for which F(edge = x) < 1: next to a guess, or by bisection over
   the scores themselves.
2. `least`: F(u) = sum_i (e (x_i - bottom) + u^e)^(1/e) is a sum of norms of (u, .), so it is convex
   and increasing, and Newton's method falls to the root after at most one step upwards.

`visit(data, first, second, e, WHAT)` goes once through the scores of every row and returns two numbers.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
# pyright: reportGeneralTypeIssues=false
# ruff: noqa: RET505 (what is known when a kernel is compiled needs if and else)
import triton
import triton.language as tl

from fenchel.kernels.triton.arithmetic.elementary import SMALLEST, exp2, fast_log2, log2
from fenchel.kernels.triton.tiles.across_threads import any_row, row_max_pair, row_sums

NEIGHBOURS: tl.constexpr = tl.constexpr(0)  # the next score below `first`, less the next one above
MASSES: tl.constexpr = tl.constexpr(1)  # F with its edge at `first`, and at `second`
RISE: tl.constexpr = tl.constexpr(2)  # F and dF/du with bottom = `first` and least = `second`
NEXT: tl.constexpr = tl.constexpr(1.2e-7)  # so much more of a number is at least the next one
TOLERANCE: tl.constexpr = tl.constexpr(1e-7)  # of F: what its rounding hides


@triton.jit
def _least_base(least, e):
    """t = u^e of the smallest score of the support."""
    return exp2(log2(tl.maximum(least, SMALLEST)) * e)


@triton.jit
def _entry_above(x, bottom, least, base, e):
    t = (x - bottom) * e + base
    p = tl.exp2(log2(tl.maximum(t, SMALLEST)) * (1.0 / e))
    p = tl.where(x == bottom, least, p)
    return tl.where(x >= bottom, p, 0.0)


@triton.jit
def support_entry(x, bottom, least, e):
    """p of every score, from the smallest score of the support and its probability."""
    return _entry_above(x, bottom, least, _least_base(least, e), e)


@triton.jit
def support_entries(listed, bottom, least, e):
    """The same for four tiles."""
    base = _least_base(least, e)
    return (
        _entry_above(listed[0], bottom, least, base, e),
        _entry_above(listed[1], bottom, least, base, e),
        _entry_above(listed[2], bottom, least, base, e),
        _entry_above(listed[3], bottom, least, base, e),
    )


@triton.jit
def _steep_power(x, edge, e):
    """p with the edge of the support at a score, roughly."""
    return tl.exp2(fast_log2(tl.maximum((x - edge) * e, 0.0)) * (1.0 / e))


@triton.jit
def contribution(x, first, second, e, WHAT: tl.constexpr):
    """What every score adds to the two numbers of a visit."""
    if WHAT == NEIGHBOURS:
        below = tl.where(x < first, x, float("-inf"))
        return below, tl.where(x >= first, -x, float("-inf"))
    elif WHAT == MASSES:
        return _steep_power(x, first, e), _steep_power(x, second, e)
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
def nothing(WHAT: tl.constexpr):
    """What changes no contribution that it is folded with."""
    return float("-inf") if WHAT == NEIGHBOURS else 0.0


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
def _find_bottom(visit: tl.constexpr, data, guess, peak, e, R: tl.constexpr):
    """(bottom, the next score below it or a number between them).

    F(edge = low) >= 1 > F(edge = bottom) all along. The scores on both sides of a guess are tried;
    usually they are the two. If not, their neighbours come next, and then bisection.
    """
    low = peak - 1.0 / e
    bottom = peak
    middle = tl.minimum(tl.maximum(guess, low), bottom)
    tries = 0
    searching = low < bottom
    while any_row(searching, R):
        below, above = visit(data, middle, middle, e, NEIGHBOURS)
        below, above = tl.maximum(below, low), tl.minimum(-above, bottom)
        at_below, at_above = visit(data, below, above, e, MASSES)
        lower = searching & (below > low) & (at_below < 1.0)
        higher = searching & (above < bottom) & (at_above >= 1.0) & (lower == 0)
        found = searching & (lower == higher)
        bottom = tl.where(lower, below, tl.where(found, above, bottom))
        low = tl.where(higher, above, tl.where(found, below, low))
        if tries == 0:
            middle = tl.where(lower, below, above + tl.abs(above) * NEXT)
        else:
            middle = low + 0.5 * (bottom - low)
        middle = tl.where((middle > low) & (middle < bottom), middle, bottom)
        searching = searching & (lower != higher) & (low < bottom)
        tries += 1
    return bottom, low


@triton.jit
def _rise(visit: tl.constexpr, data, bottom, state, e):
    """(least, the next one, F - 1, whether to go on) after one more visit.

    F - 1 rises while it is negative, then falls while it is positive; any other change is rounding and
    ends the search, which therefore cannot go back and forth.
    """
    least, ahead, excess, solving = state
    least = tl.where(solving, ahead, least)
    total, slope = visit(data, bottom, least, e, RISE)
    total -= 1.0
    # F - 1 = 0 stands for what is not known yet.
    rises = (total > excess) | (excess == 0.0)
    moves = tl.where(excess > 0.0, (total > 0.0) & (total < excess), rises)
    excess = tl.where(solving, total, excess)
    ahead = tl.where(solving, _newton(least, excess, slope), ahead)
    return least, ahead, excess, solving & moves & _goes_on(excess, slope, least, e)


@triton.jit
def find_support(
    visit: tl.constexpr, data, guess, peak, e, R: tl.constexpr, UNROLL: tl.constexpr = True
):
    """(bottom, least) of every row.

    `guess` is any number, best one near the edge of the support. UNROLL: the first step to `least`
    stands before the loop, which is faster, and takes longer to compile.
    """
    bottom, low = _find_bottom(visit, data, guess, peak, e, R)
    gap = (bottom - tl.minimum(tl.maximum(guess, low), bottom)) * e
    least = tl.minimum(tl.exp2(fast_log2(gap) * (1.0 / e)), 1.0)
    state = least, least, least * 0.0, least == least
    if UNROLL:
        state = _rise(visit, data, bottom, state, e)
    while any_row(state[3], R):
        state = _rise(visit, data, bottom, state, e)
    return bottom, state[1]


@triton.jit
def _newton(least, excess, slope):
    return tl.minimum(tl.maximum(least - excess / slope, 0.0), 1.0)


@triton.jit
def _goes_on(excess, slope, least, e):
    """Whether F is not yet 1, and need not be after the next step: F''/F' is at most (e - 1)/u."""
    step = excess / slope
    return (tl.abs(excess) > TOLERANCE) & (e * step * step > TOLERANCE * least)


@triton.jit
def below_bottom(least, e):
    """How far the edge of the support lies from its smallest score: -u^e/e."""
    return -_least_base(least, e) / e
