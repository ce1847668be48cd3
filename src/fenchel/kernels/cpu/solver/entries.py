"""One entry of a row for alpha <= 2: p, s = p^(2 - alpha) and t = p^(alpha - 1) = 1 + e (x - A) of (N.2).

A float32 row needs more digits of A than a float32 has: the rounding error of A is the same for all
entries, and in a dense row of 10^5 columns it becomes an error of 10^-3 of the sum. Therefore, relative
to a pivot (the largest score), A is high + low and the edge of the support A - 1/e is edge + edge_low.
Near the edge, x - edge and so t are exact; near x = A, the small number e (x - high) is the argument of
log1p, and low, too small to be subtracted, is applied to first order: dp/dA = -s. From alpha = 3/2 on p
is too steep at the edge for first order, and the edge alone is accurate enough.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import overload

from fenchel.kernels.cpu.arithmetic.elementary import power1p
from fenchel.kernels.cpu.arithmetic.float32 import power_near_one
from fenchel.kernels.cpu.launch.compilation import inlined
from fenchel.kernels.cpu.launch.memory import real

SMALLEST_EPSILON = 1e-20  # in place of e = 0: log1p(e u)/e is then u to the last bits


@inlined
def epsilon_of(alpha):
    """e = alpha - 1, never zero."""
    return alpha - 1.0 if alpha != 1.0 else SMALLEST_EPSILON


def has_polynomial(alpha: float) -> bool:
    """Whether p is a polynomial of the score; Newton's method then solves every row of a batch."""
    return alpha == 2.0 or alpha == 1.5


is_polynomial = inlined(has_polynomial)


def coefficients(pivot, offset, rest, alpha) -> Any:
    """(pivot, high, low, edge, edge_low, e, 1/e), of the type of `pivot`, at A = pivot + offset + rest.

    `rest` is tiny.
    """


@inlined
def _coefficients_float32(pivot, offset, rest, alpha):
    e = epsilon_of(alpha)
    by_edge = alpha >= 1.5
    high = real(pivot, offset + rest if by_edge else offset)
    low = 0.0 if by_edge else (offset - high) + rest
    exact_edge = (offset + rest if by_edge else high) - 1.0 / e
    edge = real(pivot, exact_edge)
    edge_low = real(pivot, exact_edge - edge)
    return pivot, high, real(pivot, low), edge, edge_low, real(pivot, e), real(pivot, 1.0 / e)


@inlined
def _coefficients_float64(pivot, offset, rest, alpha):
    e = epsilon_of(alpha)
    high = offset + rest
    return pivot, high, 0.0, high - 1.0 / e, 0.0, e, 1.0 / e


@overload(coefficients, inline="always")
def _coefficients(pivot, offset, rest, alpha):
    build = _coefficients_float64 if pivot == types.float64 else _coefficients_float32
    return lambda pivot, offset, rest, alpha: build(pivot, offset, rest, alpha)


@inlined
def sparsemax_entry(x, row):
    """alpha = 2"""
    pivot, _, _, edge, edge_low, _, _ = row
    t = ((x - pivot) - edge) - edge_low
    zero, one = real(x, 0.0), real(x, 1.0)
    s = one if t > zero else zero
    t = t if t > zero else zero
    return t, s, t


@inlined
def entmax15_entry(x, row):
    """alpha = 1.5"""
    pivot, _, _, edge, edge_low, _, _ = row
    t = (((x - pivot) - edge) - edge_low) * real(x, 0.5)
    t = t if t > real(x, 0.0) else real(x, 0.0)
    return t * t, t, t


@inlined
def _entmax_entry_float32(x, row):
    pivot, high, low, edge, edge_low, e, inverse = row
    t = (((x - pivot) - edge) - edge_low) * e
    p = power_near_one(t, ((x - pivot) - high) * e, inverse)
    s = p / t
    zero = real(x, 0.0)
    p = p - low * s
    inside = t > zero and p > zero
    return (p if inside else zero), (s if inside else zero), (t - low * e if inside else zero)


@inlined
def _entry_with_curvature_float32(x, row):
    pivot, high, low, edge, edge_low, e, inverse = row
    t = (((x - pivot) - edge) - edge_low) * e
    p = power_near_one(t, ((x - pivot) - high) * e, inverse)
    flat = real(x, 1.0) / t
    s = p * flat
    zero = real(x, 0.0)
    p = p - low * s
    inside = t > zero and p > zero
    return (p if inside else zero), (s if inside else zero), (s * flat if inside else zero), abs(t)


@inlined
def _entry_with_curvature_float64(x, row):
    p, s, t = _entmax_entry_float64(x, row)
    return p, s, (s / t if t > 0.0 else 0.0), abs(1.0 + row[5] * ((x - row[0]) - row[1]))


@inlined
def _entmax_entry_float64(x, row):
    pivot, high, _, _, _, e, inverse = row
    v = ((x - pivot) - high) * e
    if v <= -1.0:
        return 0.0, 0.0, 0.0
    p = power1p(v, inverse)
    return (p, p / (v + 1.0), v + 1.0) if p > 0.0 else (0.0, 0.0, 0.0)


def entmax_entry(x, row) -> Any:
    """(p, s, t) for any alpha <= 2: p = (1 + e u)^(1/e) with u = x - A, s = p/t."""


@overload(entmax_entry, inline="always")
def _entmax_entry(x, row):
    entry = _entmax_entry_float64 if x == types.float64 else _entmax_entry_float32
    return lambda x, row: entry(x, row)


def entry_with_curvature(x, row) -> Any:
    """(p, s, s/t = p^(3 - 2 alpha), |t|, the distance to the edge times e) for any alpha <= 2."""


@overload(entry_with_curvature, inline="always")
def _entry_with_curvature(x, row):
    entry = _entry_with_curvature_float64 if x == types.float64 else _entry_with_curvature_float32
    return lambda x, row: entry(x, row)
