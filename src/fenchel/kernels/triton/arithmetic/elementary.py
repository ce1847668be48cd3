"""Elementwise functions: log2 and exp2, divided differences, sums and products in two float32, division.

The hardware's lg2 errs by up to 2^-22, which divided by a small alpha - 1 is more than the maps promise.
`log2` and `exp2` are the polynomials of the CPU kernels: relative error below 3e-8 before rounding.
`fast_log2` and `tl.exp2` are the functions of the hardware.

The divided differences of the exponential, (N.1), lose no digits near 0. `two_sum` and the like return
the result and its rounding error as two float32. Division in float64 by integers is written for many
threads.
"""

from __future__ import annotations

# ruff: noqa: RET505 (what is known when a kernel is compiled needs if and else)
import os

import triton
import triton.language as tl

INTERPRETED: tl.constexpr = tl.constexpr(os.environ.get("TRITON_INTERPRET") == "1")
LOG2_E: tl.constexpr = tl.constexpr(1.4426950408889634)
LN_2: tl.constexpr = tl.constexpr(0.6931471805599453)
SQRT_HALF_BITS: tl.constexpr = tl.constexpr(0x3F3504F3)
EXPONENT_BITS: tl.constexpr = tl.constexpr(-(1 << 23))  # the sign and the exponent of a float32
ONE_BITS: tl.constexpr = tl.constexpr(0x3F800000)
ROUNDER: tl.constexpr = tl.constexpr(12582912.0)  # 1.5 * 2^23: adding it rounds to a whole number
ROUNDER_BITS: tl.constexpr = tl.constexpr(0x4B400000)
SMALLEST_NORMAL: tl.constexpr = tl.constexpr(2.0**-126)  # normal; its powers above one are not


LOG2_E_REST: tl.constexpr = tl.constexpr(1.925962987e-8)  # what a float32 leaves of log2 e


MIN_EXP_ARGUMENT: tl.constexpr = tl.constexpr(
    -150.0
)  # e^x is no float32 there; x log2(e) is finite


@triton.jit
def saturate(x):
    """The number next to x between 0 and 1, 0 for NaN: free where x is a sum or a product."""
    return tl.minimum(tl.maximum(x, 0.0), 1.0)


@triton.jit
def exponent_and_scale(x):
    """(n, 2^-n) with sqrt(1/2) <= 2^-n x < sqrt(2)."""
    shifted = (x.to(tl.int32, bitcast=True) - SQRT_HALF_BITS) & EXPONENT_BITS
    scale = (-shifted + ONE_BITS).to(tl.float32, bitcast=True)
    return ((shifted >> 23) + ROUNDER_BITS).to(tl.float32, bitcast=True) - ROUNDER, scale


@triton.jit
def binade(x, less_one):
    """(n, f) with x = 2^n (1 + f) and sqrt(1/2) <= 1 + f < sqrt(2)."""
    exponent, scale = exponent_and_scale(x)
    return exponent, tl.where(exponent == 0.0, less_one, x * scale - 1.0)


@triton.jit
def log2_near_one(x, less_one):
    """log2 x for a normal x > 0, where `less_one` is a more accurate x - 1 if x is near one."""
    exponent, f = binade(x, less_one)
    return log2_ratio(f) * f + exponent


@triton.jit
def log2_ratio(f):
    """log2(1 + f)/f for sqrt(1/2) <= 1 + f < sqrt(2)."""
    series = 0.125836899 * f - 0.207269687
    series = series * f + 0.215715623
    series = series * f - 0.238944831
    series = series * f + 0.287916247
    series = series * f - 0.360703682
    series = series * f + 0.480910643
    series = series * f - 0.721347347
    return series * f + 1.442695


@triton.jit
def rough_log2_near_one(x, less_one):
    """The same with a relative error up to 1e-5."""
    exponent, f = binade(x, less_one)
    series = 0.318199981 - 0.206190878 * f
    series = series * f - 0.36649176
    series = series * f + 0.479811852
    series = series * f - 0.721206388
    series = series * f + 1.44270162
    return series * f + exponent


@triton.jit
def log2(x):
    """log2 x for a normal x > 0; undefined otherwise."""
    return log2_near_one(x, x - 1.0)


@triton.jit
def fast_log2(x):
    """log2 x for a normal x > 0, with an error up to 2^-22, absolute between 1/2 and 2."""
    if INTERPRETED:
        return tl.log2(x)
    else:
        return tl.inline_asm_elementwise(
            "lg2.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
        )


@triton.jit
def fast_reciprocal(x):
    """1/x by the hardware, accurate to the last bit or two; infinite for |x| below 2^-126."""
    if INTERPRETED:
        return 1.0 / x
    else:
        return tl.inline_asm_elementwise(
            "rcp.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1
        )


@triton.jit
def exp2(x):
    """2^x, with 0 below the smallest normal number and 2^127 as the largest result; 0 for NaN."""
    inside = tl.minimum(tl.maximum(x, -126.0), 127.0)
    rounded = inside + ROUNDER
    return tl.where(x >= -126.0, scaled_exp2(inside - (rounded - ROUNDER), rounded), 0.0)


@triton.jit
def exp2_series(r):
    """2^r for |r| up to about 1/2."""
    series = 0.000153532579 * r + 0.00133990035
    series = series * r + 0.0096184386
    series = series * r + 0.0555033216
    series = series * r + 0.240226479
    series = series * r + 0.693147203
    return series * r + 1.0


@triton.jit
def scaled_exp2(r, rounded):
    """2^(n + r) for |r| up to about 1/2 and `rounded` = n + ROUNDER."""
    series = exp2_series(r)
    # The low bits of `rounded` hold the whole number; the shift moves it into the exponent.
    scale = rounded.to(tl.int32, bitcast=True) << 23
    return (series.to(tl.int32, bitcast=True) + scale).to(tl.float32, bitcast=True)


@triton.jit
def exp(x):
    """e^x for x <= 0, with the same relative error for all x; 0 for -inf and NaN.

    The hardware's 2^y, with the rounding error of y = x log2(e) to first order.
    """
    x = tl.maximum(x, MIN_EXP_ARGUMENT)
    y = x * LOG2_E
    rest = tl.fma(x, LOG2_E, -y) + x * LOG2_E_REST
    whole = tl.exp2(y)
    return whole + whole * (rest * LN_2)


@triton.jit
def log2_bend(f):
    """(log2(1 + f)/f - log2 e)/f for sqrt(1/2) <= 1 + f < sqrt(2)."""
    series = 0.186175331 - 0.10996379 * f
    series = series * f - 0.19105576
    series = series * f + 0.204599813
    series = series * f - 0.239618346
    series = series * f + 0.288567513
    series = series * f - 0.360696614
    series = series * f + 0.480898231
    return series * f - 0.721347332


@triton.jit
def expm1_ratio(x):
    """phi1(x) = (e^x - 1)/x, and 1 at x = 0."""
    series = 0.000199968289 * x + 0.0013997783
    series = series * x + 0.00833305213
    series = series * x + 0.0416653039
    series = series * x + 0.166666684
    series = series * x + 0.500000043
    series = series * x + 1.0
    near = tl.abs(x) < 0.5
    return tl.where(near, series, (exp2(x * LOG2_E) - 1.0) / tl.where(near, 1.0, x))


@triton.jit
def phi2(x):
    """(e^x - 1 - x)/x^2, and 1/2 at x = 0."""
    series = 2.54289948e-05 * x + 0.000203291853
    series = series * x + 0.00138843396
    series = series * x + 0.00833088438
    series = series * x + 0.0416667762
    series = series * x + 0.166666973
    series = series * x + 0.499999996
    near = tl.abs(x) <= 1.0
    divisor = tl.where(near, 1.0, x)
    return tl.where(near, series, (exp2(x * LOG2_E) - 1.0 - x) / (divisor * divisor))


@triton.jit
def expm1_ratio_slope(x):
    """The derivative of phi1, and 1/2 at x = 0."""
    series = 2.26802981e-05 * x + 0.000178636382
    series = series * x + 0.00118993458
    series = series * x + 0.00694129016
    series = series * x + 0.0333335089
    series = series * x + 0.125000632
    series = series * x + 0.333333317
    series = series * x + 0.49999998
    near = tl.abs(x) <= 1.0
    divisor = tl.where(near, 1.0, x)
    closed = (exp2(x * LOG2_E) * (x - 1.0) + 1.0) / (divisor * divisor)
    return tl.where(near, series, closed)


@triton.jit
def split(number):
    """A float64 as the sum of two float32."""
    high = number.to(tl.float32)
    return high, (number - high.to(tl.float64)).to(tl.float32)


@triton.jit
def two_sum(a, b):
    """a + b as the rounded sum and its rounding error."""
    total = a + b
    rest = total - a
    return total, (a - (total - rest)) + (b - rest)


@triton.jit
def plus_product(a, b, c):
    """a b + c as the rounded sum and its rounding error; the product is fused explicitly."""
    total = tl.fma(a, b, c)
    back = total - c
    return total, tl.fma(a, b, -back) + (c - (total - back))


@triton.jit
def reciprocal(number):
    """1/number for an integer >= 1: from float32, by two steps of Newton's method."""
    wide = number.to(tl.float64)
    rough = (1.0 / number.to(tl.float32)).to(tl.float64)
    near = rough * (2.0 - wide * rough)
    return near + near * (1.0 - wide * near)
