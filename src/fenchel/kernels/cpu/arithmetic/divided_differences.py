"""Divided differences of the exponential, without the cancellation their definitions suffer.

phi2(z) = (e^z - 1 - z)/z^2 and phi1'(z) = (e^z (z - 1) + 1)/z^2, both for |z| <= 1.
The float32 polynomial errs by less than 5e-8; the float64 series are cut below 1e-18.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from fenchel.kernels.cpu.launch.compilation import scalar

TERMS = 18

A0, A1, A2 = map(np.float32, (0.499999996, 0.166666973, 0.0416667762))
A3, A4, A5 = map(np.float32, (0.00833088438, 0.00138843396, 0.000203291853))
A6 = np.float32(2.54289948e-05)


@scalar
def _phi2_float32(z):
    return A0 + z * (A1 + z * (A2 + z * (A3 + z * (A4 + z * (A5 + z * A6)))))


@scalar
def _phi2_float64(z):
    total = 1.0
    for k in range(TERMS, 0, -1):
        total = 1.0 + total * z / (k + 2)
    return 0.5 * total


@scalar
def phi1_slope(z):
    """The derivative of (e^z - 1)/z, for a float64 |z| <= 1."""
    total = 1.0
    for k in range(TERMS, 0, -1):
        total = 1.0 + total * z * (k + 1) / (k * (k + 2))
    return 0.5 * total


def phi2(z) -> Any:
    """(e^z - 1 - z)/z^2 for |z| <= 1."""


@overload(phi2)
def _phi2(z):
    function = _phi2_float32 if z == types.float32 else _phi2_float64
    return lambda z: function(z)
