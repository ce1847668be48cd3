"""One entry of a row for alpha <= 2: p, s = p^(2 - alpha) and t = p^(alpha - 1) = 1 + e (x - A).

A float32 row needs more of A than a float32 holds: its rounding is common to all entries, and a
dense row of 10^5 columns turns it into an error of 10^-3 of the sum. So, relative to a pivot (the
largest score), A comes as high + low and the edge of the support A - 1/e as edge + edge_low. Near
the edge x - edge is exact, and t with it; near x = A the small e (x - high) is what log1p wants.
There low is too small to subtract, and is applied to first order instead: dp/dA = -s. From alpha = 3/2
on p is so steep at the edge that first order would not do, and the edge alone is exact enough.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import overload

from fenchel.kernels.cpu.arithmetic.elementary import power1p
from fenchel.kernels.cpu.arithmetic.elementary32 import power_between
from fenchel.kernels.cpu.launch.compilation import scalar
from fenchel.kernels.cpu.launch.memory import real

TINY = 1e-20  # stands for e = 0: log1p(e u)/e is then u to the last bits


@scalar
def exponent_of(alpha):
    """e = alpha - 1, never zero."""
    return alpha - 1.0 if alpha != 1.0 else TINY


def coefficients(pivot, offset, rest, alpha) -> Any:
    """(pivot, high, low, edge, edge_low, e, 1/e) at A = pivot + offset + rest, rest tiny.

    They have the type of `pivot`.
    """


@scalar
def _coefficients_float32(pivot, offset, rest, alpha):
    e = exponent_of(alpha)
    by_edge = alpha >= 1.5
    high = real(pivot, offset + rest if by_edge else offset)
    low = 0.0 if by_edge else (offset - high) + rest
    exact_edge = (offset + rest if by_edge else high) - 1.0 / e
    edge = real(pivot, exact_edge)
    edge_low = real(pivot, exact_edge - edge)
    return pivot, high, real(pivot, low), edge, edge_low, real(pivot, e), real(pivot, 1.0 / e)


@scalar
def _coefficients_float64(pivot, offset, rest, alpha):
    e = exponent_of(alpha)
    high = offset + rest
    return pivot, high, 0.0, high - 1.0 / e, 0.0, e, 1.0 / e


@overload(coefficients, inline="always")
def _coefficients(pivot, offset, rest, alpha):
    build = _coefficients_float64 if pivot == types.float64 else _coefficients_float32
    return lambda pivot, offset, rest, alpha: build(pivot, offset, rest, alpha)


@scalar
def sparsemax_entry(x, row):
    """alpha = 2"""
    pivot, _, _, edge, edge_low, _, _ = row
    t = ((x - pivot) - edge) - edge_low
    zero, one = real(x, 0.0), real(x, 1.0)
    s = one if t > zero else zero
    t = t if t > zero else zero
    return t, s, t


@scalar
def entmax15_entry(x, row):
    """alpha = 1.5"""
    pivot, _, _, edge, edge_low, _, _ = row
    t = (((x - pivot) - edge) - edge_low) * real(x, 0.5)
    t = t if t > real(x, 0.0) else real(x, 0.0)
    return t * t, t, t


@scalar
def _entmax_entry_float32(x, row):
    pivot, high, low, edge, edge_low, e, inverse = row
    t = (((x - pivot) - edge) - edge_low) * e
    p = power_between(t, ((x - pivot) - high) * e, inverse)
    s = p / t
    zero = real(x, 0.0)
    p = p - low * s
    inside = t > zero and p > zero
    return (p if inside else zero), (s if inside else zero), (t - low * e if inside else zero)


@scalar
def _curved_entry_float32(x, row):
    pivot, high, low, edge, edge_low, e, inverse = row
    t = (((x - pivot) - edge) - edge_low) * e
    p = power_between(t, ((x - pivot) - high) * e, inverse)
    flat = real(x, 1.0) / t
    s = p * flat
    zero = real(x, 0.0)
    p = p - low * s
    inside = t > zero and p > zero
    return (p if inside else zero), (s if inside else zero), (s * flat if inside else zero), abs(t)


@scalar
def _curved_entry_float64(x, row):
    p, s, t = _entmax_entry_float64(x, row)
    return p, s, (s / t if t > 0.0 else 0.0), abs(1.0 + row[5] * ((x - row[0]) - row[1]))


@scalar
def _entmax_entry_float64(x, row):
    pivot, high, _, _, _, e, inverse = row
    v = ((x - pivot) - high) * e
    if v <= -1.0:
        return 0.0, 0.0, 0.0
    p = power1p(v, inverse)
    return (p, p / (v + 1.0), v + 1.0) if p > 0.0 else (0.0, 0.0, 0.0)


def entmax_entry(x, row) -> Any:
    """Any alpha <= 2: p = (1 + e u)^(1/e) with u = x - A, s = p/t"""


@overload(entmax_entry, inline="always")
def _entmax_entry(x, row):
    entry = _entmax_entry_float64 if x == types.float64 else _entmax_entry_float32
    return lambda x, row: entry(x, row)


def curved_entry(x, row) -> Any:
    """(p, s, s/t = p^(3 - 2 alpha), how far t is from the edge) for any alpha <= 2."""


@overload(curved_entry, inline="always")
def _curved_entry(x, row):
    entry = _curved_entry_float64 if x == types.float64 else _curved_entry_float32
    return lambda x, row: entry(x, row)
