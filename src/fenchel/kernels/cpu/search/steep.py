"""The normaliser for alpha > 2, where p is so steep at the edge of the support that float64 may not
hold that edge.

With e = alpha - 1 > 1, p = t^(1/e) has an infinite slope at t = 0, and beside a larger score all of
p may hang on digits of the edge that are lost. So the unknowns are others: the smallest score b of
the support and its probability u, with

    p_i = (e (x_i - b) + u^e)^(1/e)  for x_i >= b,

where the difference of two scores is exact and nothing is subtracted from it. The sum is convex in
u, because every p_i is a norm of (u, .), and Newton's method falls to the root from above.

b is the smallest score above a guess of the edge, relative to the largest score; where it is not,
as among tiny scores beside a larger one, it is searched for. All is float64, whatever the row is.
"""

from __future__ import annotations

import math

from numba import float64

from fenchel.kernels.cpu.launch.compilation import scalar, sequential
from fenchel.kernels.cpu.launch.memory import load

ROUNDING = 1e-15  # of a sum of probabilities
RESOLUTION = 4e-16  # of a float64, relative
RUN = 64  # probabilities in a sum of sums
VISITS = 40  # to a row, at most, for a guess or a probability
NORMAL = 1e-280  # a smaller sum of powers is made of logarithms, for its parts may underflow
GOLDEN = 0.6180339887498949


@scalar
def steep_entry(x, bottom, power, log_power, e, inverse):
    """(p, power/t) with t = p^e, given power = u^e and its logarithm."""
    gap = x - bottom
    if not gap >= 0.0:
        return 0.0, 0.0
    t = e * gap + power
    if t > NORMAL:
        return math.exp(math.log(t) * inverse), power / t
    if gap == 0.0:
        return math.exp(log_power * inverse), 1.0
    above = math.log(e) + math.log(gap)
    log_t = max(above, log_power) + math.log1p(math.exp(-abs(above - log_power)))
    return math.exp(log_t * inverse), math.exp(log_power - log_t)


@scalar
def _sums(data, count, bottom, power, log_power, e):
    """F = sum p, and u dF/du = sum p power/t; sums of sums, for equal errors add up."""
    mass, slope = 0.0, 0.0
    for start in range(0, count, RUN):
        run_mass, run_slope = 0.0, 0.0
        for i in range(start, min(start + RUN, count)):
            p, share = steep_entry(load(data, i), bottom, power, log_power, e, 1.0 / e)
            run_mass += p
            run_slope += p * share
        mass += run_mass
        slope += run_slope
    return mass, slope


@scalar
def _sums_above(data, count, largest, edge, e):
    """F = sum p, and S = sum p/t, with t = e ((x - largest) - edge)."""
    mass, slope, inverse = 0.0, 0.0, 1.0 / e
    for i in range(count):
        t = e * ((load(data, i) - largest) - edge)
        if t > 0.0:
            p = math.exp(math.log(t) * inverse)
            mass += p
            slope += p / t
    return mass, slope


@scalar
def _step(mass, slope, e):
    """Newton's step (F - F^(1-e))/(e S) for F^e = 1; infinite when nothing is left."""
    excess = mass - 1.0
    if abs(excess) < 1e-2:  # two terms of its series: the step is good to 1e-4, and a power saved
        return excess * (1.0 + 0.5 * (1.0 - e) * excess) / slope
    return (mass - mass ** (1.0 - e)) / (e * slope) if mass > 0.0 else -math.inf


@sequential
def _guess(data, count, largest, e, tolerance):
    """The edge of the support, relative to the largest score, as far as float64 holds it.

    Newton's step is taken while it stays inside the bracket and |F - 1| has been halved; else the
    bracket is halved.
    """
    low, high, best = -1.0 / e, 0.0, math.inf
    edge = low
    for _ in range(VISITS):
        mass, slope = _sums_above(data, count, largest, edge, e)
        if mass > 1.0:
            low = edge
        else:
            high = edge
        error = abs(mass - 1.0)
        middle = 0.5 * (low + high)
        if error <= max(tolerance, -RESOLUTION * slope * edge) or not low < middle < high:
            break
        trusted = error <= 0.5 * best
        best = min(best, error)
        step = _step(mass, slope, e)
        edge = edge + step if trusted and low < edge + step < high else middle
    return edge


@sequential
def _neighbours(data, count, largest, edge):
    """The smallest score above the edge and the largest of the others."""
    bottom, below = largest, -math.inf
    for i in range(count):
        x = float64(load(data, i))
        inside = x - largest > edge
        bottom = x if inside and x < bottom else bottom
        below = x if not inside and x > below else below
    return bottom, below


@sequential
def _least_probability(data, count, bottom, least, e, tolerance):
    """(u, log u^e), from any u in (0, 1]; u = 0 where `bottom` is not in the support.

    A tangent of a convex function lies below it: if one that falls is still at one where u = 0, so
    is F. What is left of F - 1 after a step is at most (e - 1)/2 (F - 1)^2/(u dF/du), because
    d2F/du2 <= (e - 1)/u dF/du.
    """
    for _ in range(VISITS):
        log_power = e * math.log(least)
        mass, slope = _sums(data, count, bottom, math.exp(log_power), log_power, e)
        excess = mass - 1.0
        if excess >= slope:
            return 0.0, -math.inf
        least = min(least - least * excess / slope, 1.0)
        if abs(excess) <= tolerance or 0.5 * (e - 1.0) * excess * excess <= tolerance * slope:
            break
    return least, e * math.log(least)


@sequential
def _search(data, count, low, high, e):
    """The smallest score of the support, which `high` belongs to and `low` does not.

    A score is in the support if F is below one when its own probability is zero. The next one to
    try is any between the two, from a place that changes so that no order of the scores is bad.
    """
    place = 0.0
    while True:
        between = 0
        for i in range(count):
            between += 1 if low < load(data, i) < high else 0
        if between == 0:
            return high
        place = (place + GOLDEN) % 1.0
        skipped, i = int(place * between), -1
        while skipped >= 0:
            i += 1
            skipped -= 1 if low < load(data, i) < high else 0
        score = float64(load(data, i))
        mass, _ = _sums(data, count, score, 0.0, -math.inf, e)
        if mass < 1.0:
            high = score
        else:
            low = score


@sequential
def solve_steep(data, count, largest, alpha, tolerance):
    """(b, u^e, log u^e) of `count` scores."""
    e = alpha - 1.0
    tolerance = max(tolerance, ROUNDING)
    # Newton's method squares the error that is left, so one more visit is enough.
    edge = _guess(data, count, largest, e, 0.3 * math.sqrt(tolerance))
    bottom, below = _neighbours(data, count, largest, edge)
    power = e * ((bottom - largest) - edge)
    least = math.exp(math.log(power) / e) if 0.0 < power < 1.0 else 1.0
    least, log_power = _least_probability(data, count, bottom, least, e, tolerance)
    low, high = -math.inf, largest
    if least == 0.0:
        low = bottom
    elif math.log(e) + math.log(bottom - below) < log_power:
        high = below
    else:
        return bottom, math.exp(log_power), log_power
    bottom = _search(data, count, low, high, e)
    _, log_power = _least_probability(data, count, bottom, 1.0, e, tolerance)
    return bottom, math.exp(log_power), log_power
