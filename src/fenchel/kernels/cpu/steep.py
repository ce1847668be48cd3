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


@sequential
def _bracket(data, count, largest, threshold, rest, low, high, e, tolerance, resolution):
    """`rest` in (low, high) with F = 1, to the tolerance or to the relative resolution of `rest`,
    and the error |F - 1| left.

    Newton's step is taken while it stays inside the bracket and is less than half the one before;
    else the bracket is halved.
    """
    previous = high - low
    while True:
        mass, slope = 0.0, 0.0
        for i in range(count):
            p, s = steep_entry(load(data, i), largest, threshold, rest, e, 1.0 / e)
            mass += p
            slope += s
        error = abs(mass - 1.0)
        if error <= max(tolerance, resolution * slope * abs(rest)):
            return rest, error
        if mass > 1.0:
            low = rest
        else:
            high = rest
        middle = 0.5 * (low + high)
        if middle <= low or middle >= high:
            return rest, error
        step = _step(mass, slope, e)
        if not (low < rest + step < high and 2.0 * abs(step) <= abs(previous)):
            step = middle - rest
        rest += step
        previous = step


@sequential
def solve_steep(data, count, largest, alpha, tolerance):
    """(A - largest, rest), where the threshold is the float64 A - largest - 1/e, plus rest."""
    e = alpha - 1.0
    edge = -1.0 / e
    threshold, error = _bracket(
        data, count, largest, 0.0, edge, edge, 0.0, e, tolerance, RESOLUTION
    )
    rest = 0.0
    if error > tolerance:
        reach = -4.0 * RESOLUTION * threshold
        rest, _ = _bracket(data, count, largest, threshold, 0.0, -reach, reach, e, tolerance, 0.0)
    offset = threshold + 1.0 / e
    return offset, (threshold - (offset - 1.0 / e)) + rest
