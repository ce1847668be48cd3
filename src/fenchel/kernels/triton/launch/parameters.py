"""The parameter of a map other than alpha of entmax, in float64: a number, or a tensor with one a row."""

from __future__ import annotations

import numpy as np
import triton
import triton.language as tl
from torch import Tensor

from fenchel.kernels.triton.launch.addressing import row_offset

LARGEST: tl.constexpr = tl.constexpr(1e37)  # strength beyond which every row is one group


def parameter_parts(parameter: float | Tensor) -> tuple[float, float, Tensor | None]:
    """(high, low, tensor): a number as the sum of two float32, since kernels take no wider ones."""
    if isinstance(parameter, Tensor):
        return 0.0, 0.0, parameter
    number = min(float(parameter), LARGEST.value)
    high = float(np.float32(number))
    return high, number - high, None


@triton.jit
def row_parameter(high, low, parameters, row, inside, middle, inner, steps, LEVELS: tl.constexpr):
    """That of one row, or of a vector of rows of which those `inside` exist."""
    if parameters is None:
        value = (row * 0).to(tl.float64) + high + low
    else:
        place = row_offset(row, middle, inner, steps, LEVELS)
        value = tl.load(parameters + place, mask=inside, other=0.0).to(tl.float64)
    return tl.where(value > LARGEST, LARGEST, value)  # NaN stays
