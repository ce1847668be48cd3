"""The support and the probabilities for alpha > 2, in float64 for any dtype of the row.

p = t^(1/e) with e = alpha - 1 > 1 has an infinite slope at t = 0, and float64 may not have enough
digits for the edge of the support. The unknowns of (N.16) are the smallest score b of the support and
its probability u; F(u) of (N.17) is convex, and Newton's method decreases to the root.

b is the smallest score above an estimate of the edge, in most rows. Where it is not, as for tiny scores
beside a larger one, it is found by bisection.
"""

from __future__ import annotations

import math

from numba import float64

from fenchel.kernels.cpu.launch.compilation import inlined
from fenchel.kernels.cpu.launch.memory import load

SUM_ROUNDING = 1e-15  # error of a sum of probabilities
FLOAT64_RESOLUTION = 4e-16  # relative
SUMMED_TOGETHER = 64  # probabilities in one partial sum
MAX_VISITS = 40  # visits of a row for the estimate of the edge, and for u
LOGARITHMS_BELOW = 1e-280  # t below that is added by logarithms, as its parts may underflow
GOLDEN_RATIO = 0.6180339887498949


@inlined
def entry_above_2(x, bottom, power, log_power, e, inverse):
    """(p, u^e/t) with t = p^e, given power = u^e and its logarithm."""
    gap = x - bottom
    if not gap >= 0.0:
        return 0.0, 0.0
    t = e * gap + power
    if t > LOGARITHMS_BELOW:
        return math.exp(math.log(t) * inverse), power / t
    if gap == 0.0:
        return math.exp(log_power * inverse), 1.0
    above = math.log(e) + math.log(gap)
    log_t = max(above, log_power) + math.log1p(math.exp(-abs(above - log_power)))
    return math.exp(log_t * inverse), math.exp(log_power - log_t)


@inlined
def _sums(data, count, bottom, power, log_power, e):
    """F = sum p and u dF/du = sum p u^e/t, as sums of partial sums, because equal errors add up."""
    mass, slope = 0.0, 0.0
    for start in range(0, count, SUMMED_TOGETHER):
        run_mass, run_slope = 0.0, 0.0
        for i in range(start, min(start + SUMMED_TOGETHER, count)):
            p, share = entry_above_2(load(data, i), bottom, power, log_power, e, 1.0 / e)
            run_mass += p
            run_slope += p * share
        mass += run_mass
        slope += run_slope
    return mass, slope


@inlined
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


@inlined
def _step(mass, slope, e):
    """Newton's step (F - F^(1-e))/(e S) for F^e = 1; infinite if no score is above the edge."""
    excess = mass - 1.0
    if abs(excess) < 1e-2:  # two terms of the series: accurate to 1e-4 without a power
        return excess * (1.0 + 0.5 * (1.0 - e) * excess) / slope
    return (mass - mass ** (1.0 - e)) / (e * slope) if mass > 0.0 else -math.inf


@inlined
def _guess_edge(data, count, largest, e, tolerance):
    """The edge of the support, relative to the largest score, as accurately as float64 allows.

    A Newton step that leaves the bracket or does not halve |F - 1| is replaced by bisection.
    """
    low, high, best = -1.0 / e, 0.0, math.inf
    edge = low
    for _ in range(MAX_VISITS):
        mass, slope = _sums_above(data, count, largest, edge, e)
        if mass > 1.0:
            low = edge
        else:
            high = edge
        error = abs(mass - 1.0)
        middle = 0.5 * (low + high)
        if error <= max(tolerance, -FLOAT64_RESOLUTION * slope * edge) or not low < middle < high:
            break
        trusted = error <= 0.5 * best
        best = min(best, error)
        step = _step(mass, slope, e)
        edge = edge + step if trusted and low < edge + step < high else middle
    return edge


@inlined
def _neighbours(data, count, largest, edge):
    """The smallest score above the edge, and the largest below it."""
    bottom, below = largest, -math.inf
    for i in range(count):
        x = float64(load(data, i))
        inside = x - largest > edge
        bottom = x if inside and x < bottom else bottom
        below = x if not inside and x > below else below
    return bottom, below


@inlined
def _solve_u(data, count, bottom, u, e, tolerance):
    """(u, log u^e), from any u in (0, 1]; u = 0 if `bottom` is not in the support.

    F lies above its tangents: if a tangent is at least one at u = 0, so is F, and `bottom` is not in the
    support. After a step at most (e - 1)/2 (F - 1)^2/(u dF/du) is left of F - 1.
    """
    for _ in range(MAX_VISITS):
        log_power = e * math.log(u)
        mass, slope = _sums(data, count, bottom, math.exp(log_power), log_power, e)
        excess = mass - 1.0
        if excess >= slope:
            return 0.0, -math.inf
        u = min(u - u * excess / slope, 1.0)
        if abs(excess) <= tolerance or 0.5 * (e - 1.0) * excess * excess <= tolerance * slope:
            break
    return u, e * math.log(u)


@inlined
def _search_smallest(data, count, low, high, e):
    """The smallest score of the support; `high` is in the support, `low` is not.

    A score is in the support if F < 1 when its own probability is zero. The next score to test is one of
    those in between, at a quasi-random rank, so that no order of the scores is a bad case.
    """
    place = 0.0
    while True:
        between = 0
        for i in range(count):
            between += 1 if low < load(data, i) < high else 0
        if between == 0:
            return high
        place = (place + GOLDEN_RATIO) % 1.0
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


@inlined
def solve_above_2(data, count, largest, alpha, tolerance):
    """(b, u^e, log u^e) of `count` scores."""
    e = alpha - 1.0
    tolerance = max(tolerance, SUM_ROUNDING)
    # Newton's method squares the error, so one more visit is enough.
    edge = _guess_edge(data, count, largest, e, 0.3 * math.sqrt(tolerance))
    bottom, below = _neighbours(data, count, largest, edge)
    power = e * ((bottom - largest) - edge)
    u = math.exp(math.log(power) / e) if 0.0 < power < 1.0 else 1.0
    u, log_power = _solve_u(data, count, bottom, u, e, tolerance)
    low, high = -math.inf, largest
    if u == 0.0:
        low = bottom
    elif math.log(e) + math.log(bottom - below) < log_power:
        high = below
    else:
        return bottom, math.exp(log_power), log_power
    bottom = _search_smallest(data, count, low, high, e)
    _, log_power = _solve_u(data, count, bottom, 1.0, e, tolerance)
    return bottom, math.exp(log_power), log_power
