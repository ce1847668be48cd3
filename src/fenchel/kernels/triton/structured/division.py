"""Division by whole numbers in float64, where many threads divide."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def reciprocal(number):
    """1/number for an integer from 1 on: from float32, by two steps of Newton's method."""
    wide = number.to(tl.float64)
    rough = (1.0 / number.to(tl.float32)).to(tl.float64)
    near = rough * (2.0 - wide * rough)
    return near + near * (1.0 - wide * near)
