"""Sums and products of which nothing is lost: as two float32."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def split(number):
    """A float64 as the sum of two float32."""
    high = number.to(tl.float32)
    return high, (number - high.to(tl.float64)).to(tl.float32)


@triton.jit
def two_sum(a, b):
    """a + b as the rounded sum and what was rounded off."""
    total = a + b
    rest = total - a
    return total, (a - (total - rest)) + (b - rest)


@triton.jit
def plus_product(a, b, c):
    """a b + c as the rounded sum and what was rounded off; the product is fused by name."""
    total = tl.fma(a, b, c)
    back = total - c
    return total, tl.fma(a, b, -back) + (c - (total - back))
