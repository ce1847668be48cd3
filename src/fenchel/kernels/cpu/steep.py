"""The normaliser for alpha > 2, where p is so steep at the edge of the support that float64 hardly
holds it.

With e = alpha - 1 > 1, p = t^(1/e) has an infinite slope at t = 0, so no Newton method is safe
alone, and an error of one unit in the last place of the threshold can show in the fourth digit of
a small p. Everything is float64, whatever the type of the row. The threshold, relative to the
largest score, is a sum of two numbers, and t = e ((x - largest) - threshold - rest) is exact near
the edge.
"""

from __future__ import annotations

import math

from fenchel.kernels.cpu.compilation import scalar, sequential
from fenchel.kernels.cpu.memory import load

RESOLUTION = 4e-16  # of a float64, relative
ROUNDING = 5e-16  # of a sum of probabilities, times the square root of their number


@scalar
def steep_entry(x, largest, threshold, rest, e, inverse):
    """(p, p^(2 - alpha))"""
    t = e * (((x - largest) - threshold) - rest)
    if not t > 0.0:
        return 0.0, 0.0
    p = math.exp(math.log(t) * inverse)
    return p, p / t


@scalar
def _step(mass, slope, e):
    """Newton's step (F - F^(1-e))/(e S) for F^e = 1; infinite when nothing is left."""
    excess = mass - 1.0
    if abs(excess) < 1e-2:  # two terms of its series: the step is good to 1e-4, and a power saved
        return excess * (1.0 + 0.5 * (1.0 - e) * excess) / slope
    return (mass - mass ** (1.0 - e)) / (e * slope) if mass > 0.0 else -math.inf


@scalar
def _sums(data, count, largest, threshold, rest, e):
    mass, slope = 0.0, 0.0
    for i in range(count):
        p, s = steep_entry(load(data, i), largest, threshold, rest, e, 1.0 / e)
        mass += p
        slope += s
    return mass, slope


@sequential
def _bracket(data, count, largest, threshold, rest, low, high, e, tolerance, resolution):
    """Find `rest` in (low, high) with F = 1; returns rest, the bracket left and |F - 1|.

    Newton's step is taken while it stays inside the bracket and |F - 1| has been halved; else the
    bracket is halved. Stops at the tolerance, at what a relative change of `rest` by `resolution`
    makes of F, or when no number is left between the ends.
    """
    best = math.inf
    while True:
        mass, slope = _sums(data, count, largest, threshold, rest, e)
        if mass > 1.0:
            low = rest
        else:
            high = rest
        error = abs(mass - 1.0)
        middle = 0.5 * (low + high)
        if error <= max(tolerance, resolution * slope * abs(rest)) or not low < middle < high:
            return rest, low, high, error
        trusted = error <= 0.5 * best
        best = min(best, error)
        step = _step(mass, slope, e)
        rest = rest + step if trusted and low < rest + step < high else middle


@sequential
def _next_score(data, count, largest, low, high, e):
    """Narrow (low, high) until no score lies inside: then `high` may be one, and `low` is not."""
    for i in range(count):
        y = load(data, i) - largest
        if low < y < high:
            mass, _ = _sums(data, count, largest, y, 0.0, e)
            if mass > 1.0:
                low = y
            else:
                high = y
    return low, high


@sequential
def solve_steep(data, count, largest, alpha, tolerance):
    """(threshold, rest): the edge of the support, relative to the largest score.

    Where one float64 is not enough, the threshold becomes the score that is about to enter, and
    `rest`, counted from there, has all the digits of a float64 for how far it has.
    """
    e = alpha - 1.0
    edge = -1.0 / e
    tolerance = max(tolerance, ROUNDING * math.sqrt(count))
    threshold, low, high, error = _bracket(
        data, count, largest, 0.0, edge, edge, 0.0, e, tolerance, RESOLUTION
    )
    if error <= tolerance:
        return threshold, 0.0
    low, high = _next_score(data, count, largest, low, high, e)
    start, end = 0.5 * (low - high), 0.0
    rest, _, _, _ = _bracket(data, count, largest, high, start, low - high, end, e, tolerance, 0.0)
    return high, rest
