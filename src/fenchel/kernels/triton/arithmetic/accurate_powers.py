"""p = t^(1/e), t = 1 + e (x - A), for alpha < 3/2, accurate enough for sums of many equal entries.

A float32 has log2 p = -17 to 1e-6 only, and 10^5 equal scores have equal errors. Therefore log2 p is the
sum of two numbers, (N.32): the hardware raises 2 to the first, and the second is small. Near alpha = 1
both come from the series (N.33) in w = e (x - A) for -0.6 < w < 1; elsewhere p is small or e is not, and
the logarithm of the hardware is accurate enough. For larger alpha they come from the distance to the edge
of the support, of which t is a multiple.
"""

from __future__ import annotations

# ruff: noqa: RET505, SIM109 (what is known when a kernel is compiled needs if and else)
import triton
import triton.language as tl

from fenchel.kernels.triton.arithmetic.elementary import (
    LN_2,
    LOG2_E,
    LOG2_E_REST,
    SMALLEST_NORMAL,
    binade,
    fast_log2,
    fast_reciprocal,
    log2_bend,
    two_sum,
)
from fenchel.kernels.triton.arithmetic.entries import (
    FINITE_MINUS_INF,
    max_base,
)
from fenchel.kernels.triton.arithmetic.powers import (
    base_of_power,
    inverse_remainder,
    leading_bits,
    power_near_one,
    power_of_sum,
)
from fenchel.kernels.triton.launch.parameters import (
    ANY_SIDE_OF_1,
    BELOW_1,
    FAR_ABOVE_1,
    FAST_ABOVE_1,
    FAST_BELOW_1,
    GENERAL,
    NEAR_1,
)

POINT_ROUNDER: tl.constexpr = tl.constexpr(
    24.0
)  # added and taken off, it rounds to a multiple of 2^-19
BEYOND_EDGE: tl.constexpr = tl.constexpr(1.0001)  # times -1/e: t is certainly negative there
LOWEST_SERIES: tl.constexpr = tl.constexpr(-0.6)
HIGHEST_SERIES: tl.constexpr = tl.constexpr(1.0)


@triton.jit
def rounded_point(point):
    """A number near A with few digits, so that differences of scores and it are mostly exact."""
    return (point + POINT_ROUNDER) - POINT_ROUNDER


@triton.jit
def _series_above(w):
    """(log2(1 + w)/w - log2 e)/w for -0.6 < w <= 0."""
    series = 7.70333385 * w + 17.3131676
    series = series * w + 18.1006489
    series = series * w + 10.2497644
    series = series * w + 3.91090131
    series = series * w + 0.577244759
    series = series * w + 0.398097962
    series = series * w - 0.352349043
    series = series * w + 0.481208563
    return series * w - 0.721343577


@triton.jit
def _series_below(w):
    """The same for 0 <= w < 1."""
    series = 0.00299063348 * w - 0.0196660794
    series = series * w + 0.0605663247
    series = series * w - 0.119850576
    series = series * w + 0.179862574
    series = series * w - 0.232697129
    series = series * w + 0.287066489
    series = series * w - 0.360508978
    series = series * w + 0.480889052
    return series * w - 0.721347332


@triton.jit
def _series(w, e, POWERS: tl.constexpr):
    if POWERS <= FAR_ABOVE_1:
        return _series_above(w)
    elif POWERS < ANY_SIDE_OF_1:
        return _series_below(w)
    else:
        return tl.where(e > 0.0, _series_above(w), _series_below(w))


@triton.jit
def _bounded(u, e, inverse, POWERS: tl.constexpr):
    """u = x - A, clamped where p is 0 and t might not be finite."""
    farthest = -BEYOND_EDGE * inverse
    if POWERS == BELOW_1 or POWERS == FAST_BELOW_1:
        farthest = FINITE_MINUS_INF
    elif POWERS == ANY_SIDE_OF_1:
        farthest = tl.where(e > 0.0, farthest, FINITE_MINUS_INF)
    return tl.maximum(u, farthest)


@triton.jit
def _in_series(w, POWERS: tl.constexpr):
    if POWERS <= FAR_ABOVE_1:
        return w > LOWEST_SERIES
    elif POWERS == BELOW_1:
        return w < HIGHEST_SERIES
    else:
        return (w > LOWEST_SERIES) & (w < HIGHEST_SERIES)


@triton.jit
def _by_series(z, point, e, inverse, POWERS: tl.constexpr):
    """(p, t) from u = x - A."""
    u = _bounded(z - point, e, inverse, POWERS)
    w = e * u
    t = tl.maximum(w + 1.0, SMALLEST_NORMAL)
    curved = u * (_series(w, e, POWERS) * w + LOG2_E_REST)
    y = tl.fma(u, LOG2_E, curved)
    rest = (tl.fma(u, LOG2_E, -y) + curved) * LN_2
    if POWERS != NEAR_1:
        inside = _in_series(w, POWERS)
        y = tl.where(inside, y, fast_log2(t) * inverse)
        rest = tl.where(inside, rest, 0.0)
    p = tl.exp2(y)
    p += p * rest
    return (tl.where(w > -1.0, p, 0.0) if POWERS == NEAR_1 else p), t


@triton.jit
def _from_edge(z, point, e, inverse):
    """(p, t) from x minus the edge of the support, A - 1/e, for 1/16 <= e < 1/2."""
    trailing = inverse_remainder(e, inverse)
    edge, low = two_sum(point, -inverse)
    coarse = rounded_point(edge)
    low = (low - trailing) + (edge - coarse)
    t = tl.maximum((z - coarse) * e - low * e, SMALLEST_NORMAL)
    return power_near_one(t, tl.fma(z, e, -point * e), inverse, trailing), t


@triton.jit
def _by_binade(z, point, e, inverse):
    """(p, t) for e < 0, where t >= 1: log2 t = n + log2(1 + f), and f = t - 1 if n = 0."""
    u = tl.maximum(z - point, FINITE_MINUS_INF)
    w = e * u
    t = w + 1.0
    n, f = binade(t, w)
    leading, trailing = leading_bits(inverse, inverse_remainder(e, inverse))
    left_out = tl.fma(e, u, -w) + (w - (t - 1.0))
    left_out = tl.where(n == 0.0, 0.0, left_out * fast_reciprocal(t))
    v = tl.where(n == 0.0, u, f * inverse)
    curved = v * (log2_bend(f) * f + LOG2_E_REST)
    part = tl.fma(v, LOG2_E, curved)
    whole = n * leading  # exact
    y = whole + part
    rest = (tl.fma(v, LOG2_E, -part) + curved) + ((whole - y) + part)
    p = tl.exp2(y)
    rest += n * trailing + left_out * (inverse * LOG2_E)
    return p + p * (rest * LN_2), t


@triton.jit
def accurate_power(z, point, e, inverse, POWERS: tl.constexpr):
    """(p, 1/t) at A = point, which is a `rounded_point`."""
    if POWERS == FAR_ABOVE_1:
        p, t = _from_edge(z, point, e, inverse)
    elif POWERS == BELOW_1:
        p, t = _by_binade(z, point, e, inverse)
    else:
        p, t = _by_series(z, point, e, inverse, POWERS)
    return p, fast_reciprocal(t)


@triton.jit
def output_power(z, point, step, e, inverse, POWERS: tl.constexpr):
    """p at A = point + step, accurate enough for the output, but not for sums; 0 at -inf."""
    u = _bounded((z - point) - step, e, inverse, POWERS)
    w = e * u
    t = tl.maximum(w + 1.0, SMALLEST_NORMAL)
    if POWERS == FAST_ABOVE_1 or POWERS == FAST_BELOW_1:
        y = fast_log2(t) * inverse
    else:
        y = u * (_series(w, e, POWERS) * w + LOG2_E)
        if POWERS == NEAR_1:
            y = tl.where(w > -1.0, y, float("-inf"))
        else:
            y = tl.where(_in_series(w, POWERS), y, fast_log2(t) * inverse)
    p = tl.exp2(y)
    return p if POWERS <= FAR_ABOVE_1 else tl.where(t < max_base(e), p, 0.0)


@triton.jit
def accurate_powers(z, point, e, KIND: tl.constexpr):
    """(p, p/t, p/t^2) for alpha < 3/2 at any A = point, for sums over listed groups: while
    waiting for memory, more digits cost nothing."""
    inverse = 1.0 / e
    if KIND == GENERAL:
        trailing = inverse_remainder(e, inverse)
        t, rest = base_of_power(z, point, e)
        positive = tl.maximum(t, SMALLEST_NORMAL)
        p = tl.where(t > 0.0, power_of_sum(positive, rest, inverse, trailing), 0.0)
    else:
        p, positive = _from_edge(z, point, e, inverse)
    r = fast_reciprocal(positive)
    return p, p * r, p * r * r
