"""The strength of every row of a structured map, in float64: one number, or a tensor of them."""

from __future__ import annotations

import numpy as np
import triton
import triton.language as tl
from torch import Tensor

from fenchel.kernels.triton.launch.addressing import row_offset

LARGEST: tl.constexpr = tl.constexpr(1e37)  # beyond it every row is one group


def strength_parts(strength: float | Tensor) -> tuple[float, float, Tensor | None]:
    """(high, low, tensor): a number as the sum of two float32, since kernels take no wider ones."""
    if isinstance(strength, Tensor):
        return 0.0, 0.0, strength
    number = min(float(strength), LARGEST.value)
    high = float(np.float32(number))
    return high, number - high, None


@triton.jit
def row_strength(high, low, strengths, row, inside, middle, inner, steps, LEVELS: tl.constexpr):
    """The strength of one row, or of a vector of rows of which those `inside` exist."""
    if strengths is None:
        value = (row * 0).to(tl.float64) + high + low
    else:
        place = row_offset(row, middle, inner, steps, LEVELS)
        value = tl.load(strengths + place, mask=inside, other=0.0).to(tl.float64)
    return tl.where(value > LARGEST, LARGEST, value)  # NaN stays
