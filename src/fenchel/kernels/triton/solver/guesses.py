"""First guesses of the edge or the normalizer that need no power of a score.

Well above alpha = 1, the edge E is found by Newton's method on the estimates of F and F' from sums of
integer powers of [x - E]_+: (N.15). Near alpha = 1, three sums over softmax give A to first order in e:
(N.13). Far below alpha = 1, the bound (N.14) from the mean of the scores is closer.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
# pyright: reportGeneralTypeIssues=false
# pyright: reportOperatorIssue=false
# ruff: noqa: RET505 (what is known when a kernel is compiled needs if and else)
# ruff: noqa: RET505, SIM109 (what is known when a kernel is compiled needs if and else)
import triton
import triton.language as tl

from fenchel.kernels.triton.arithmetic.elementary import (
    LN_2,
    LOG2_E,
    fast_log2,
    fast_reciprocal,
)
from fenchel.kernels.triton.launch.parameters import (
    ABOVE_2,
    FAST_ABOVE_1,
    FAST_BELOW_1,
)
from fenchel.kernels.triton.tiles.layout import (
    SLAB_AXIS,
)
from fenchel.kernels.triton.tiles.reductions import (
    any_row,
    row_sums3,
    slab_sum,
)

FIRST_EDGE: tl.constexpr = tl.constexpr(
    0.6
)  # where the edge lies in many rows, in 1/e below the peak
MAX_LOG_ERROR: tl.constexpr = tl.constexpr(0.2)  # |log2 F| from which one more step is enough
GUESS_ONLY_MAX_EPS: tl.constexpr = tl.constexpr(
    0.05
)  # e up to which the first guess may be enough,
GUESS_ONLY_MIN_EPS: tl.constexpr = tl.constexpr(-0.02)  # and the e down to which
MAX_GUESS_CURVATURE: tl.constexpr = tl.constexpr(0.8)  # l x^2 above which it is not
MAX_EMPTY_ROW_SUM: tl.constexpr = tl.constexpr(
    0.5
)  # a row with a score in it has a larger sum of e^z
LOWEST_SCORE: tl.constexpr = tl.constexpr(-3e38)  # finite, below any score
MIN_SHIFT: tl.constexpr = tl.constexpr(-1e15)  # e^x is 0, and x^2 is finite
MIN_AVERAGED_SCORE: tl.constexpr = tl.constexpr(-1e4)  # lower scores are excluded from the mean
MEAN_BOUND_MAX_EPS: tl.constexpr = tl.constexpr(-0.15)  # e below which that mean tells where A is


@triton.jit
def _slab_moments(x, edge, KIND: tl.constexpr):
    """Slabs of M_1, M_2 and M_3; for alpha > 2 of M_0, M_1 and M_2."""
    t = tl.maximum(x - edge, 0.0)
    square = t * t
    first = tl.sum(t, axis=SLAB_AXIS, keep_dims=True)
    second = tl.sum(square, axis=SLAB_AXIS, keep_dims=True)
    if KIND == ABOVE_2:
        count = tl.where(t > 0.0, 1.0, 0.0)
        return tl.sum(count, axis=SLAB_AXIS, keep_dims=True), first, second
    else:
        return first, second, tl.sum(square * t, axis=SLAB_AXIS, keep_dims=True)


@triton.jit
def _parabola(a, b, c, k):
    """At k, through (0, a), (1, b) and (2, c)."""
    return a + k * (b - a + 0.5 * (k - 1.0) * (c - b - (b - a)))


@triton.jit
def _moment_step(data, edge, e, KIND: tl.constexpr):
    """(log2 F, Newton's step), roughly."""
    a, b, c = _slab_moments(data[0], edge, KIND)
    for i in tl.static_range(1, len(data)):
        more = _slab_moments(data[i], edge, KIND)
        a, b, c = a + more[0], b + more[1], c + more[2]
    a, b, c = row_sums3(a, b, c)
    a, b, c = fast_log2(a), fast_log2(b), fast_log2(c)
    k = 1.0 / e
    order = k if KIND == ABOVE_2 else k - 1.0
    log_mass = _parabola(a, b, c, order) + k * fast_log2(e)
    log_slope = _parabola(a, b, c, order - 1.0) + (k - 1.0) * fast_log2(e)
    step = (1.0 - tl.exp2(-e * log_mass)) * tl.exp2(log_mass - log_slope) * k
    return log_mass, step


@triton.jit
def guess_edge(data, peak, e, R: tl.constexpr, KIND: tl.constexpr):
    """The edge of the support of every row, to about 1e-2 of its distance from the largest score.

    `data` = (tile, ...). Empty rows and rows with NaN end at once.
    """
    SIZE: tl.constexpr = len(data) * data[0].numel // R
    lowest = peak - 1.0 / e
    highest = peak - tl.exp2(-e * fast_log2(e * 0.0 + SIZE)) / e  # where all scores are equal
    edge = peak - FIRST_EDGE / e
    log_mass, step = _moment_step(data, edge, e, KIND)
    climbing = tl.abs(log_mass) > MAX_LOG_ERROR
    while any_row(climbing, R):
        edge = tl.where(climbing, tl.minimum(tl.maximum(edge + step, lowest), highest), edge)
        closer = tl.abs(log_mass)
        log_mass, new_step = _moment_step(data, edge, e, KIND)
        step = tl.where(climbing, new_step, step)
        climbing = climbing & (tl.abs(log_mass) > MAX_LOG_ERROR) & (tl.abs(log_mass) < closer)
    return tl.minimum(tl.maximum(edge + step, lowest), highest)


@triton.jit
def softmax_moments(z):
    """Slabs of e^z, z e^z and z^2 e^z."""
    w = tl.exp2(z * LOG2_E)
    v = w * z
    return slab_sum(w), slab_sum(v), slab_sum(v * z)


@triton.jit
def shift_moments(total, first, second, by):
    """The sums of e^z, z e^z and z^2 e^z after z += by, which is not above 0."""
    by = tl.maximum(by, MIN_SHIFT)
    scale = tl.exp2(by * LOG2_E)
    moved = first + by * total
    return scale * total, scale * moved, scale * (second + by * (first + moved))


@triton.jit
def guess_normalizer(total, first, second, e, POWERS: tl.constexpr):
    """(A to first order in e, whether steps with approximate powers follow) from three sums over softmax.

    Without accurate powers there are no approximate ones either.
    """
    total = tl.maximum(total, 1.0)
    log_total = fast_log2(total) * LN_2
    spread = (second - 2.0 * log_total * first) * fast_reciprocal(total) + log_total * log_total
    x = e * tl.maximum(spread, 0.0) * fast_reciprocal(tl.maximum(log_total, 1e-6))
    point = log_total * fast_reciprocal(x * (x * (1.0 / 12.0) + 0.5) + 1.0)
    if POWERS == FAST_ABOVE_1 or POWERS == FAST_BELOW_1:
        return point, e != e
    else:
        away = (e > GUESS_ONLY_MAX_EPS) | (e < GUESS_ONLY_MIN_EPS)
        return point, (x * x * log_total > MAX_GUESS_CURVATURE) | away


@triton.jit
def count_and_sum(z):
    """Slabs of the number of scores that are not far below the largest, and of their sum."""
    near = z > MIN_AVERAGED_SCORE
    return slab_sum(tl.where(near, 1.0, 0.0)), slab_sum(tl.where(near, z, 0.0))


@triton.jit
def mean_bound(count, total, e):
    """A if all scores were equal to their mean: a lower bound for alpha < 1, close to A far below 1.

    It holds for any choice of excluded scores.
    """
    return total / tl.maximum(count, 1.0) + (1.0 - tl.exp2(-e * fast_log2(count))) / e
