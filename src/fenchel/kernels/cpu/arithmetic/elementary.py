"""Powers, exp, log and divided differences in the precision of the row, in a form that loops over rows
can use as vectors: those of `elementary32` for float32, the C library's and `exp64` for float64.
"""

from __future__ import annotations

import math
from typing import Any

from numba import types
from numba.extending import overload

from fenchel.kernels.cpu.arithmetic.elementary32 import (
    LN_2,
    exp2,
    exp32,
    expm1_ratio32,
    log2,
    log2_1p,
    power32,
)
from fenchel.kernels.cpu.arithmetic.elementary64 import exp64


def exp(x) -> Any:
    """e^x for x < 88; zero below the smallest normal number."""


def log(x) -> Any:
    """log x for a normal x > 0; any number otherwise."""


def log1p(x) -> Any:
    """log(1 + x), accurate near zero, for x > -1; any number otherwise."""


def power1p(x, exponent) -> Any:
    """(1 + x)^exponent <= 1, accurate near x = 0, for x > -1; any number otherwise."""


def expm1_ratio(x) -> Any:
    """(e^x - 1)/x, and 1 at x = 0, for x < 88."""


def power(x, exponent) -> Any:
    """x^exponent for a normal x > 0, accurate to the last bits; any number otherwise."""


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
