"""Divided differences of the exponential in float32, elementwise: no digit is lost near 0."""

from __future__ import annotations

import triton
import triton.language as tl

from fenchel.kernels.triton.arithmetic.elementary import LOG2_E, exp2


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
