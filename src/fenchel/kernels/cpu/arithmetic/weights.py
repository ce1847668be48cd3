"""s = p^(2 - alpha), the weight of an entry of the support in every derivative of entmax.

Every function takes p > 0 and 2 - alpha. What they return elsewhere is not used.
"""

from __future__ import annotations

import math

from fenchel.kernels.cpu.arithmetic.elementary import power
from fenchel.kernels.cpu.launch.compilation import scalar
from fenchel.kernels.cpu.launch.memory import real


@scalar
def off_support(p):
    """Whether p is zero. NaN counts as inside, so that it spreads."""
    return p <= real(p, 0.0)


@scalar
def sparsemax_weight(p, exponent):
    """alpha = 2"""
    return real(p, 1.0)


@scalar
def entmax15_weight(p, exponent):
    """alpha = 1.5"""
    return math.sqrt(p)


@scalar
def softmax_weight(p, exponent):
    """alpha = 1"""
    return p


@scalar
def entmax_weight(p, exponent):
    """Any alpha"""
    return power(p, exponent)
