"""Parameters of kernels: the kind of alpha, for which kernels are compiled, e = alpha - 1, and others.

e is one number for all rows, or comes from a tensor with one value per row. For alpha <= 3/2, kernels
are also compiled for the accuracy that `arithmetic/accurate_powers` needs. Parameters of other maps are
float64: a number, or a tensor with one value per row.
"""

from __future__ import annotations

import numpy as np
import triton
import triton.language as tl
from torch import Tensor

from fenchel.kernels.triton.launch.addressing import (
    row_offset,
)

# Kinds of alpha. EACH_ROW is GENERAL up to 2 and STEEP above, row by row.
SPARSEMAX: tl.constexpr = tl.constexpr(0)
ENTMAX15: tl.constexpr = tl.constexpr(1)
ABOVE_2: tl.constexpr = tl.constexpr(2)
ALPHA_PER_ROW: tl.constexpr = tl.constexpr(3)
SOFTMAX: tl.constexpr = tl.constexpr(4)  # alpha = 1, in closed form
# From here on: any alpha up to 2, by powers. If alpha is not near 1, hardware logarithms are accurate
# enough for all steps but the last (FAST_STEPS), everywhere if p is rounded to half precision
# (FAST_POWERS), and everywhere above alpha = 1.45 (ABOVE_1_45), where they are multiplied by a small
# power.
GENERAL: tl.constexpr = tl.constexpr(5)
FAST_STEPS: tl.constexpr = tl.constexpr(6)
FAST_POWERS: tl.constexpr = tl.constexpr(7)
ABOVE_1_45: tl.constexpr = tl.constexpr(8)
TINY_EPS: tl.constexpr = tl.constexpr(1e-20)  # in place of e = 0: log(1 + e u)/e is then u
# Largest e for which the error of Halley's method is cubic with a small factor
HALLEY_MAX_EPS: tl.constexpr = tl.constexpr(0.45)
NEAR_SOFTMAX_EPS: tl.constexpr = tl.constexpr(
    1 / 16
)  # |e| below which the hardware's lg2 is too inaccurate
# What is known of e = alpha - 1, and so which powers are accurate enough. Up to FAR_ABOVE_1, e > 0.
FAST_ABOVE_1: tl.constexpr = tl.constexpr(0)  # the hardware's, for half precision
NEAR_1: tl.constexpr = tl.constexpr(1)  # e < 1/16: t < 0.4 is too rare to matter
ANY_ABOVE_1: tl.constexpr = tl.constexpr(2)
FAR_ABOVE_1: tl.constexpr = tl.constexpr(3)  # e >= 1/16
BELOW_1: tl.constexpr = tl.constexpr(4)  # e < 0
FAST_BELOW_1: tl.constexpr = tl.constexpr(5)
ANY_SIDE_OF_1: tl.constexpr = tl.constexpr(6)
# Least |e| for which the powers of the hardware may be used
FAST_POWERS_MIN_EPS: tl.constexpr = tl.constexpr(2.0**-8)
MAX_PARAMETER: tl.constexpr = tl.constexpr(1e37)  # strength beyond which every row is one group


@triton.jit
def epsilon(alpha):
    """e = alpha - 1 in float32, never zero; the subtraction happens in the precision of alpha."""
    e = (alpha - 1.0).to(tl.float32)
    return tl.where(tl.abs(e) < TINY_EPS, TINY_EPS, e)


def needs_no_powers(kind: int) -> bool:
    return kind in (SPARSEMAX.value, ENTMAX15.value, SOFTMAX.value)


def kind_of(alpha: float | Tensor) -> tuple[int, float, Tensor | None]:
    """(kind, alpha - 1, tensor); the number is not used if there is a tensor."""
    if isinstance(alpha, Tensor):
        return ALPHA_PER_ROW.value, 0.0, alpha
    if alpha == 2:
        kind = SPARSEMAX
    elif alpha == 1.5:
        kind = ENTMAX15
    elif alpha == 1:
        kind = SOFTMAX
    else:
        kind = ABOVE_2 if alpha > 2 else GENERAL
    eps = alpha - 1
    return kind.value, eps if abs(eps) >= TINY_EPS.value else TINY_EPS.value, None


def with_fast_logarithms(kind: int, eps: float, *, rounded: bool = False) -> int:
    """The kind that solves the same rows faster; `rounded`: to half precision."""
    if kind != GENERAL.value or abs(eps) < NEAR_SOFTMAX_EPS.value:
        return kind
    if eps > HALLEY_MAX_EPS.value:
        return ABOVE_1_45.value
    return FAST_POWERS.value if rounded else FAST_STEPS.value


def powers_for(eps: float, *, rounded: bool) -> int:
    """What `accurate_powers` may assume about α ≤ 3/2; `rounded`: to half precision."""
    if rounded and abs(eps) >= FAST_POWERS_MIN_EPS.value:
        return (FAST_ABOVE_1 if eps > 0 else FAST_BELOW_1).value
    if eps < 0:
        return BELOW_1.value
    return (NEAR_1 if eps < NEAR_SOFTMAX_EPS.value else FAR_ABOVE_1).value


def parameter_parts(parameter: float | Tensor) -> tuple[float, float, Tensor | None]:
    """(high, low, tensor): a number as the sum of two float32, because kernels take no float64."""
    if isinstance(parameter, Tensor):
        return 0.0, 0.0, parameter
    number = min(float(parameter), MAX_PARAMETER.value)
    high = float(np.float32(number))
    return high, number - high, None


@triton.jit
def row_parameter(high, low, parameters, row, inside, middle, inner, steps, LEVELS: tl.constexpr):
    """The parameter of one row, or of a vector of rows of which those `inside` exist."""
    if parameters is None:
        value = (row * 0).to(tl.float64) + high + low
    else:
        place = row_offset(row, middle, inner, steps, LEVELS)
        value = tl.load(parameters + place, mask=inside, other=0.0).to(tl.float64)
    return tl.where(value > MAX_PARAMETER, MAX_PARAMETER, value)  # NaN stays
