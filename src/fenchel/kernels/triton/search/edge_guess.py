"""A guess of the edge of the support that needs no power of a score, for alpha well above 1.

With t = [x - E]_+ over an edge E, F = e^k M_k where M_k = sum_i t_i^k and k = 1/e. log M is convex and
smooth in k: the parabola through its values at three whole k around 1/e gives F and F' to a percent
or two, so Newton's method on them ends that close to the edge. M at whole k costs a few products.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
# pyright: reportGeneralTypeIssues=false
# ruff: noqa: RET505 (what is known when a kernel is compiled needs if and else)
import triton
import triton.language as tl

from fenchel.kernels.triton.arithmetic.elementary import fast_log2
from fenchel.kernels.triton.launch.alpha import STEEP
from fenchel.kernels.triton.tiles.across_threads import any_row, row_triples
from fenchel.kernels.triton.tiles.axes import SLAB_AXIS

FIRST: tl.constexpr = tl.constexpr(0.6)  # where the edge lies in many rows, in 1/e below the peak
NEAR: tl.constexpr = tl.constexpr(0.2)  # |log2 F| from which one more step is enough


@triton.jit
def _slab_moments(x, edge, KIND: tl.constexpr):
    """Slabs of M_1, M_2 and M_3; for alpha > 2 of M_0, M_1 and M_2."""
    t = tl.maximum(x - edge, 0.0)
    square = t * t
    first = tl.sum(t, axis=SLAB_AXIS, keep_dims=True)
    second = tl.sum(square, axis=SLAB_AXIS, keep_dims=True)
    if KIND == STEEP:
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
    a, b, c = row_triples(a, b, c)
    a, b, c = fast_log2(a), fast_log2(b), fast_log2(c)
    k = 1.0 / e
    order = k if KIND == STEEP else k - 1.0
    log_mass = _parabola(a, b, c, order) + k * fast_log2(e)
    log_slope = _parabola(a, b, c, order - 1.0) + (k - 1.0) * fast_log2(e)
    step = (1.0 - tl.exp2(-e * log_mass)) * tl.exp2(log_mass - log_slope) * k
    return log_mass, step


@triton.jit
def guess_edge(data, peak, e, R: tl.constexpr, KIND: tl.constexpr):
    """The edge of the support of every row, to about 1e-2 of its distance from the largest score.

    `data` = (tile, ...). NaN, and rows with nothing in them, end at once.
    """
    SIZE: tl.constexpr = len(data) * data[0].numel // R
    lowest = peak - 1.0 / e
    highest = peak - tl.exp2(-e * fast_log2(e * 0.0 + SIZE)) / e  # where all scores are equal
    edge = peak - FIRST / e
    log_mass, step = _moment_step(data, edge, e, KIND)
    climbing = tl.abs(log_mass) > NEAR
    while any_row(climbing, R):
        edge = tl.where(climbing, tl.minimum(tl.maximum(edge + step, lowest), highest), edge)
        closer = tl.abs(log_mass)
        log_mass, new_step = _moment_step(data, edge, e, KIND)
        step = tl.where(climbing, new_step, step)
        climbing = climbing & (tl.abs(log_mass) > NEAR) & (tl.abs(log_mass) < closer)
    return tl.minimum(tl.maximum(edge + step, lowest), highest)
