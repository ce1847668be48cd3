"""The normaliser A of some columns (padded with -inf): the root of F(A) = sum_i p_i(A) = 1.

p_i(A) = [1 + e (x_i - A)]_+^(1/e) with e = alpha - 1. The norm G = (F^e - 1)/e is convex and
decreasing in A for every alpha <= 2, so Newton's method on G, started where F >= 1, climbs to the
root and never passes it. Its step is (F - F^(1-e))/(e S) with S = sum_i p_i^(2 - alpha).
"""

from __future__ import annotations

import math

from fenchel.kernels.cpu.arithmetic.elementary import expm1_ratio, log1p, power1p
from fenchel.kernels.cpu.arithmetic.entries import (
    coefficients,
    entmax15_entry,
    entmax_entry,
    sparsemax_entry,
)
from fenchel.kernels.cpu.columns.whole_vectors import LANES
from fenchel.kernels.cpu.launch.compilation import reducing, scalar, sequential
from fenchel.kernels.cpu.launch.memory import advance, load, real

SMALL = 1e-5  # its square is nothing, so first order in it is exact
RUN = 16  # multiples summed in the row's own precision before a float64 total takes over
POWER_RUN = 4  # the same near alpha = 1, where what the sum is off by, the largest entry is off by


@reducing
def _sum_run(entry, data, groups, row):
    mass, slope = real(data, 0.0), real(data, 0.0)
    for i in range(groups * LANES):
        p, s, _ = entry(load(data, i), row)
        mass += p
        slope += s
    return mass, slope


@scalar
def _sum_entries(entry, data, groups, row, run):
    mass, slope = 0.0, 0.0
    for start in range(0, groups, run):
        p, s = _sum_run(entry, advance(data, start * LANES), min(run, groups - start), row)
        mass += p
        slope += s
    return mass, slope


@sequential
def sums(data, groups, largest, offset, rest, alpha):
    """F and S of `groups` multiples of LANES columns, at A = largest + offset + rest."""
    row = coefficients(largest, offset, rest, alpha)
    if alpha == 2.0:
        return _sum_entries(sparsemax_entry, data, groups, row, RUN)
    if alpha == 1.5:
        return _sum_entries(entmax15_entry, data, groups, row, RUN)
    return _sum_entries(entmax_entry, data, groups, row, POWER_RUN)


@scalar
def newton_step(mass, slope, alpha, model):
    """The step, with elementary functions of the precision of `model`."""
    if alpha == 2.0:
        return (mass - 1.0) / slope
    if alpha == 1.5:
        return 2.0 * (mass - math.sqrt(mass)) / slope
    log_mass = log1p(real(model, mass - 1.0))
    return mass * log_mass * expm1_ratio(-real(model, alpha - 1.0) * log_mass) / slope


@scalar
def _curvature(alpha, count, model):
    """A bound of F''/(2 F) at and to the right of any A; infinite for alpha > 3/2."""
    if alpha > 1.5:
        return math.inf
    if alpha == 1.5:
        return 0.25 * count
    spread = power1p(real(model, count - 1.0), real(model, 2.0 * alpha - 2.0))
    return 0.5 * (2.0 - alpha) * max(1.0, spread)


@sequential
def climb(data, groups, tail, tail_groups, largest, offset, alpha, tolerance):
    """(offset, rest) for alpha <= 2, with A = largest + offset + rest, from A = largest + offset.

    The last steps go to `rest` alone: the float32 entries jump whenever a rounded part of A does,
    equal scores all at once, and only `rest` moves them smoothly.

    Stops when |F - 1| is at the tolerance, when it must be after the last step, or when it stops
    falling (rounding). It falls at every other step, so this ends.
    """
    curvature = _curvature(alpha, (groups + tail_groups) * LANES, largest)
    previous, rest = math.inf, 0.0
    while True:
        mass, slope = sums(data, groups, largest, offset, rest, alpha)
        if tail_groups > 0:
            tail_mass, tail_slope = sums(tail, tail_groups, largest, offset, rest, alpha)
            mass += tail_mass
            slope += tail_slope
        excess = abs(mass - 1.0)
        if not tolerance < excess < previous:  # NaN ends it too
            return offset, rest
        step = newton_step(mass, slope, alpha, largest)
        rest += step
        if abs(rest) > SMALL:
            offset, rest = offset + rest, 0.0
        if curvature * mass * step * step <= tolerance:
            return offset, rest
        previous = excess
