"""The s-norm of probabilities listed by their places, and its derivative in s."""

from __future__ import annotations

import math

from numba import float64

from fenchel.kernels.cpu.arithmetic.elementary64 import power64
from fenchel.kernels.cpu.launch.compilation import sequential
from fenchel.kernels.cpu.launch.memory import load


@sequential
def norm_of(p, places, count, s):
    """N = ||p||_s, scaled by the largest entry so that a large s does not underflow."""
    peak, total = 0.0, 0.0
    for i in range(count):
        peak = max(peak, float64(load(p, load(places, i))))
    for i in range(count):
        total += power64(load(p, load(places, i)) / peak, s)
    return peak * math.pow(total, 1.0 / s)


@sequential
def norm_derivative_of(p, places, count, s, size):
    """dN/ds, given that N is `size`."""
    logs = 0.0
    for i in range(count):
        relative = load(p, load(places, i)) / size
        logs += power64(relative, s) * math.log(relative)
    return size * logs / s
