"""The entmax loss for one class and its gradient p - q, from the normalizer of a row: (N.28), (N.29)."""

from __future__ import annotations

# ruff: noqa: RET505 (what is known when a kernel is compiled needs if and else)
import triton
import triton.language as tl

from fenchel.kernels.triton.arithmetic.elementary import (
    LN_2,
    SMALLEST_NORMAL,
    expm1_ratio,
    log2_near_one,
    split,
    two_sum,
)
from fenchel.kernels.triton.arithmetic.entries import (
    FINITE_MINUS_INF,
    entry,
    general_entry,
)
from fenchel.kernels.triton.launch.parameters import (
    ABOVE_2,
    ALPHA_PER_ROW,
    ENTMAX15,
    GENERAL,
    SOFTMAX,
    SPARSEMAX,
)
from fenchel.kernels.triton.tiles.reductions import (
    any_row,
)


@triton.jit
def normalizer_float64(peak, point, low, e, KIND: tl.constexpr):
    """A in float64, from what the solvers return."""
    inverse = 1.0 / e.to(tl.float64)
    rest = point.to(tl.float64) + low.to(tl.float64)
    if KIND == ABOVE_2:
        return rest + inverse
    elif KIND == GENERAL:
        return peak.to(tl.float64) + rest
    else:
        return peak.to(tl.float64) + rest + inverse


@triton.jit
def entry_from_normalizer(x, normalizer, e, KIND: tl.constexpr):
    """(p, s, t) of scores that are not shifted, from A in float64."""
    if KIND == GENERAL:
        # x - A as a sum of two numbers: beside large scores, what a float32 cannot hold of A is large.
        point, low = split(normalizer)
        z, rest = two_sum(tl.maximum(x, FINITE_MINUS_INF), -point)
        z, rest = two_sum(z, rest - low)
        return general_entry(z, e * 0.0, -rest, e)
    elif KIND == SOFTMAX:
        point, low = split(normalizer)
        return entry(x, point, low, e, KIND)
    else:
        point, low = split(normalizer - 1.0 / e.to(tl.float64))
        return entry(x, point, low, e, KIND)


@triton.jit
def entry_per_row(x, normalizer, e, KIND: tl.constexpr, R: tl.constexpr):
    if KIND == ALPHA_PER_ROW:
        p, s, t = entry_from_normalizer(x, normalizer, tl.minimum(e, 1.0), GENERAL)
        if any_row(e > 1.0, R):
            steep_p, steep_s, steep_t = entry_from_normalizer(
                x, normalizer, tl.maximum(e, 1.0), ABOVE_2
            )
            p = tl.where(e > 1.0, steep_p, p)
            s = tl.where(e > 1.0, steep_s, s)
            t = tl.where(e > 1.0, steep_t, t)
        return p, s, t
    else:
        return entry_from_normalizer(x, normalizer, e, KIND)


@triton.jit
def score_minus_normalizer(x, normalizer):
    """u = x - A, rounded once."""
    high, low = split(normalizer)
    return (x - high) - low


@triton.jit
def _one_minus_p(u, p, t, e, KIND: tl.constexpr):
    """1 - p from u, accurate where p is rounded to one or close to it."""
    if KIND == SPARSEMAX:
        return -u
    elif KIND == ENTMAX15:
        return -u * (1.0 + 0.25 * u)
    elif KIND == GENERAL:
        log_p = log2_near_one(tl.maximum(t, SMALLEST_NORMAL), e * u) * (LN_2 / e)
        return -log_p * expm1_ratio(log_p)
    else:
        return 1.0 - p


@triton.jit
def class_loss(others, x, p, t, normalizer, peak, e, KIND: tl.constexpr):
    """The loss for one class with score x; `others` is the sum of t p over the other classes."""
    u = score_minus_normalizer(x, normalizer)
    if KIND == SOFTMAX:
        loss = -u
    else:
        inside = (others - u - t * _one_minus_p(u, p, t, e, KIND)) / (1.0 + e)
        outside = (others - 1.0) / (1.0 + e) - u
        loss = tl.where(t > 0.0, inside, outside)
    loss = tl.where(loss < 0.0, 0.0, loss)  # unlike maximum, this keeps NaN
    loss = tl.where(x == float("-inf"), float("inf"), loss)
    return loss + (peak - peak)


@triton.jit
def class_gradient(p, column, target, g, peak, lives):
    """g (p - q) for one class; 0 in an ignored or empty row, NaN in a row that has NaN."""
    g = tl.where(lives, g + (peak - peak), 0.0)
    return tl.where(lives, g * (p - tl.where(column == target, 1.0, 0.0)), 0.0)


@triton.jit
def target_score(scores, target, present, columns, step):
    """The score of the target; NaN if the target is not a class."""
    known = (target >= 0) & (target < columns)
    return tl.load(scores + target * step, mask=known & present, other=float("nan")).to(tl.float32)


@triton.jit
def store_class_loss(
    loss, normalizers, row, x, others, peak, dead, a, e, counts, present,
    KIND: tl.constexpr, R: tl.constexpr,
):  # fmt: skip
    """Write the loss and the normalizer of every row whose target has score x."""
    p, _, t = entry_per_row(x, a, e, KIND, R)
    value = class_loss(others, x, p, t, a, peak, e, KIND)
    tl.store(loss + row, tl.where(counts, value, 0.0), mask=present)
    a = tl.where(dead, float("-inf"), a + (peak - peak).to(tl.float64))
    tl.store(normalizers + row, a, mask=present)
