"""exp, log, powers and divided differences in the precision of a row, in forms that loops can vectorize.

float32 uses the polynomials of `float32`; float64 the C library's functions and `exp64`. The divided
differences phi2(z) = (e^z - 1 - z)/z^2 and phi1'(z) = (e^z (z - 1) + 1)/z^2, both for |z| <= 1, avoid the
cancellation of their definitions: see (N.1). The float32 polynomial errs by less than 5e-8, and the
float64 series are cut below 1e-18.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from fenchel.kernels.cpu.arithmetic.float32 import (
    LN_2,
    exp2,
    exp32,
    expm1_ratio32,
    log2,
    log2_1p,
    power32,
)
from fenchel.kernels.cpu.arithmetic.float64 import exp64
from fenchel.kernels.cpu.launch.compilation import inlined

SERIES_TERMS = 18
A0, A1, A2 = map(np.float32, (0.499999996, 0.166666973, 0.0416667762))
A3, A4, A5 = map(np.float32, (0.00833088438, 0.00138843396, 0.000203291853))
A6 = np.float32(2.54289948e-05)


def exp(x) -> Any:
    """e^x for x < 88; zero below the smallest normal number."""


def log(x) -> Any:
    """log x for a normal x > 0; undefined otherwise."""


def log1p(x) -> Any:
    """log(1 + x), accurate near zero, for x > -1; undefined otherwise."""


def power1p(x, exponent) -> Any:
    """(1 + x)^exponent <= 1, accurate near x = 0, for x > -1; undefined otherwise."""


def expm1_ratio(x) -> Any:
    """(e^x - 1)/x, and 1 at x = 0, for x < 88."""


def power(x, exponent) -> Any:
    """x^exponent for a normal x > 0, accurate to the last bits; undefined otherwise."""


@overload(exp)
def _exp(x):
    if x == types.float32:
        return lambda x: exp32(x)
    return lambda x: exp64(x)


@overload(log)
def _log(x):
    if x == types.float32:
        return lambda x: log2(x) * LN_2
    return lambda x: math.log(x)


@overload(log1p)
def _log1p(x):
    if x == types.float32:
        return lambda x: log2_1p(x) * LN_2
    return lambda x: math.log1p(x)


@overload(power1p)
def _power1p(x, exponent):
    if x == types.float32:
        return lambda x, exponent: exp2(log2_1p(x) * exponent)
    return lambda x, exponent: math.exp(math.log1p(x) * exponent)


@overload(power)
def _power(x, exponent):
    if exponent == types.float32:
        return lambda x, exponent: power32(x, exponent)
    return lambda x, exponent: math.pow(x, exponent)


@overload(expm1_ratio)
def _expm1_ratio(x):
    if x == types.float32:
        return lambda x: expm1_ratio32(x)
    return lambda x: math.expm1(x) / x if x != 0.0 else 1.0


@inlined
def _phi2_float32(z):
    return A0 + z * (A1 + z * (A2 + z * (A3 + z * (A4 + z * (A5 + z * A6)))))


@inlined
def _phi2_float64(z):
    total = 1.0
    for k in range(SERIES_TERMS, 0, -1):
        total = 1.0 + total * z / (k + 2)
    return 0.5 * total


@inlined
def phi1_derivative(z):
    """The derivative of (e^z - 1)/z, for a float64 |z| <= 1."""
    total = 1.0
    for k in range(SERIES_TERMS, 0, -1):
        total = 1.0 + total * z * (k + 1) / (k * (k + 2))
    return 0.5 * total


def phi2(z) -> Any:
    """(e^z - 1 - z)/z^2 for |z| <= 1."""


@overload(phi2)
def _phi2(z):
    function = _phi2_float32 if z == types.float32 else _phi2_float64
    return lambda z: function(z)
