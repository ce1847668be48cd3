"""x^y in float32, accurate to the last bits for any y.

y log2 x is the sum of two numbers, because its rounding error is a relative error of the power.
"""

from __future__ import annotations

import triton
import triton.language as tl

from fenchel.kernels.triton.arithmetic.elementary import (
    LN_2,
    LOG2_E,
    LOG2_E_REST,
    ROUNDER,
    ROUNDER_BITS,
    SMALLEST_NORMAL,
    binade,
    exp2_series,
    exponent_and_scale,
    fast_reciprocal,
    log2_bend,
    log2_ratio,
    plus_product,
    scaled_exp2,
)

LEADING_BITS_MASK: tl.constexpr = tl.constexpr(-(1 << 8))  # the same and 15 bits of the fraction
TWO_TO_32: tl.constexpr = tl.constexpr(2.0**32)
BIAS_OF_FLOAT64: tl.constexpr = tl.constexpr(1023 - 127)  # less that of a float32


@triton.jit
def leading_bits(number, low):
    """number + low as 16 bits, whose product with a small integer is exact, and the rest."""
    leading = (number.to(tl.int32, bitcast=True) & LEADING_BITS_MASK).to(tl.float32, bitcast=True)
    return leading, (number - leading) + low


@triton.jit
def _exponent_times_log2(whole, f, exponent, low):
    """(exponent + low) log2 x as a sum of two numbers, for log2 x = whole + log2(1 + f).

    16 bits of the exponent times the integer are exact, and the rest is small.
    """
    leading, trailing = leading_bits(exponent, low)
    return whole * leading, whole * trailing + log2_ratio(f) * f * exponent


@triton.jit
def power(x, exponent):
    """x^exponent to the last bits, for a normal x > 0 if it is below 2^127; undefined otherwise."""
    whole, f = binade(x, x - 1.0)
    high, rest = _exponent_times_log2(whole, f, exponent, 0.0)
    rounded = tl.maximum(high + rest, -126.0) + ROUNDER
    result = scaled_exp2((high - (rounded - ROUNDER)) + rest, rounded)
    return tl.where(high + rest >= -126.0, result, 0.0)


@triton.jit
def power_near_one(x, less_one, exponent, low):
    """x^(exponent + low) of a normal x > 0, by the hardware's 2^y and the rounding error of y.

    `less_one` is a more accurate x - 1 if x is near one.
    """
    whole, f = binade(x, less_one)
    high, rest = _exponent_times_log2(whole, f, exponent, low)
    y = high + rest
    p = tl.exp2(y)
    return p + p * (((high - y) + rest) * LN_2)


@triton.jit
def base_of_power(z, point, e):
    """1 + e (z - point) as the sum of two numbers."""
    u = z - point
    back = u - z
    rest = (z - (u - back)) - (point + back)
    t, low = plus_product(u, e, 1.0)
    return t, tl.fma(rest, e, low)


@triton.jit
def inverse_remainder(e, inverse):
    """1/e minus its float32."""
    return tl.fma(-e, inverse, 1.0) * inverse


@triton.jit
def power_of_sum(x, rest, exponent, low):
    """(x + rest)^(exponent + low) for a normal x > 0 and a small rest, up to 2^127; as accurate
    for large exponents as for others."""
    whole, scale = exponent_and_scale(x)
    less_one = tl.fma(x, scale, -1.0)
    f = tl.fma(rest, scale, less_one)
    rest = tl.fma(rest, scale, less_one - f)
    log, log_low = plus_product(f, LOG2_E, log2_bend(f) * f * f)
    log_low += f * LOG2_E_REST + rest * fast_reciprocal(f + 1.0) * LOG2_E
    leading, trailing = leading_bits(exponent, low)
    y, y_low = plus_product(log, exponent, whole * leading)
    y_low += log_low * exponent + log * low + whole * trailing
    rounded = tl.maximum(y, -126.0) + ROUNDER
    result = scaled_exp2((y - (rounded - ROUNDER)) + y_low, rounded)
    return tl.where(y >= -126.0, result, 0.0)


@triton.jit
def wide_power(x, exponent, low):
    """x^(exponent + low) of 0 < x <= 1 as a float64 with the digits of a float32, at most 2^1000.

    2^r comes in float32, and its bits get the exponent of a float64: powers in float64 are slow.
    """
    subnormal = x < SMALLEST_NORMAL
    x = tl.where(subnormal, x * TWO_TO_32, x)
    whole, f = binade(x, x - 1.0)
    whole = tl.where(subnormal, whole - 32.0, whole)
    high, rest = _exponent_times_log2(whole, f, exponent, low)
    rounded = tl.minimum(high + rest, 1000.0) + ROUNDER
    fraction = exp2_series(tl.minimum((high - (rounded - ROUNDER)) + rest, 1.0))
    bits = fraction.to(tl.int32, bitcast=True).to(tl.int64) << 29
    scale = rounded.to(tl.int32, bitcast=True) - ROUNDER_BITS + BIAS_OF_FLOAT64
    return (bits + (scale.to(tl.int64) << 52)).to(tl.float64, bitcast=True)
