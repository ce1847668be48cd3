"""Densities and expectations from their definitions, by scipy's adaptive quadrature.

Nothing here is shared with the library: a density is [1 + (α−1)(f − A)]_+^{1/(α−1)} with A found by
bisection on its own integral, an expectation is integrated over the support, split where the
integrand has its scales.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from itertools import pairwise

from scipy.integrate import quad
from scipy.optimize import brentq

TOLERANCE = 1e-12


def deformed(u: float, alpha: float) -> float:
    """exp_{2−α}(u)"""
    if alpha == 1:
        return math.exp(u)
    base = 1 + (alpha - 1) * u
    return base ** (1 / (alpha - 1)) if base > 0 else 0.0


@cache
def normalizer(variance: float, alpha: float) -> tuple[float, float]:
    """(A, half-width of the support) of the density on the line with score −t²/2σ²."""
    sigma, eps = math.sqrt(variance), alpha - 1
    if alpha == 1:
        reach = 40 * sigma
        mass = integrate(lambda u: reach * math.exp(-0.5 * (40 * u) ** 2), -1, 1, [-0.1, 0, 0.1])
        return math.log(mass), reach

    def half_width(log_height: float) -> float:
        return sigma * math.sqrt(2 * math.exp(log_height) / eps)

    def excess(log_height: float) -> float:
        """log of the mass of [h − ε(t/σ)²/2]_+^{1/ε}, where h = 1 − εA."""
        shape = integrate(lambda u: (1 - u * u) ** (1 / eps), -1, 1)
        return log_height / eps + math.log(half_width(log_height) * shape)

    log_height = brentq(excess, -200.0, 200.0, xtol=1e-15, rtol=1e-15)
    return -math.expm1(log_height) / eps, half_width(log_height)


def density(t: float, loc: float, variance: float, alpha: float) -> float:
    a, _ = normalizer(variance, alpha)
    return deformed(-((t - loc) ** 2) / (2 * variance) - a, alpha)


def expectation(loc: float, variance: float, center: float, scale: float, alpha: float) -> float:
    """E_p[N(t; center, scale²)] on the line."""
    a, reach = normalizer(variance, alpha)

    def integrand(t: float) -> float:
        z = (t - center) / scale
        gauss = math.exp(-0.5 * z * z) / (scale * math.sqrt(2 * math.pi))
        return deformed(-((t - loc) ** 2) / (2 * variance) - a, alpha) * gauss

    low, high = max(loc - reach, center - 40 * scale), min(loc + reach, center + 40 * scale)
    if low >= high:
        return 0.0
    marks = [center + k * scale for k in (-8, -4, -2, 0, 2, 4, 8)]
    marks += [loc + k * math.sqrt(variance) for k in (-8, -4, -2, 0, 2, 4, 8)]
    marks += [low + (high - low) * 10.0**-k for k in range(1, 6)]
    marks += [high - (high - low) * 10.0**-k for k in range(1, 6)]
    return integrate(integrand, low, high, marks)


def integrate(
    f: Callable[[float], float],
    low: float,
    high: float,
    marks: list[float] | None = None,
    tolerance: float = TOLERANCE,
) -> float:
    """∫f between neighbouring marks, each piece to full relative accuracy."""
    edges = sorted({low, high, *(m for m in marks or [] if low < m < high)})
    pieces = [
        quad(f, a, b, epsabs=0.0, epsrel=tolerance, limit=200)[0]
        for a, b in pairwise(edges)
        if b > a
    ]
    return math.fsum(pieces)


Matrix = tuple[tuple[float, float], tuple[float, float]]


def expectation_2d(
    loc: tuple[float, float], variance: Matrix, center: tuple[float, float], scale: Matrix
) -> float:
    """E_p[N(t; center, scale)] for the truncated paraboloid of Eq. 11, as a nested integral."""
    (p, q, r), root = _inverse(variance)
    (a, b, c), size = _inverse(scale)
    height = 1 / math.sqrt(math.pi * root)
    reach = math.sqrt(2 * height * variance[0][0])

    def inner(x: float) -> float:
        dx, ex = x - loc[0], x - center[0]
        middle = loc[1] - q * dx / r
        room = (2 * height - dx * dx * (p - q * q / r)) / r
        if room <= 0:
            return 0.0

        def integrand(y: float) -> float:
            dy, ey = y - loc[1], y - center[1]
            density = height - 0.5 * (p * dx * dx + 2 * q * dx * dy + r * dy * dy)
            gauss = math.exp(-0.5 * (a * ex * ex + 2 * b * ex * ey + c * ey * ey))
            return max(density, 0.0) * gauss

        peak, width = center[1] - b * ex / c, 1 / math.sqrt(c)
        half = math.sqrt(room)
        marks = [peak + k * width for k in (-6, -2, 0, 2, 6)]
        return integrate(integrand, middle - half, middle + half, marks, 1e-11)

    width = math.sqrt(scale[0][0])
    marks = [center[0] + k * width for k in (-8, -4, -2, 0, 2, 4, 8)]
    return integrate(inner, loc[0] - reach, loc[0] + reach, marks, 1e-10) / (2 * math.pi * size)


def _inverse(matrix: Matrix) -> tuple[tuple[float, float, float], float]:
    """The inverse of a symmetric matrix (its upper half), and the root of its determinant."""
    (a, b), (_, c) = matrix
    det = a * c - b * b
    return (c / det, -b / det, a / det), math.sqrt(det)
