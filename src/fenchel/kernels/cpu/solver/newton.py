"""The normalizer A of a list of columns for alpha <= 2, by Newton's method on the norm G of (N.4).

G is convex and decreasing in A, so Newton's method, started where F = sum p >= 1, increases to the root
of F = 1 and never passes it. Its step is (N.5), with the slope S = sum p^(2 - alpha). Columns are
padded with -inf.
"""

from __future__ import annotations

import math

from fenchel.kernels.cpu.arithmetic.elementary import expm1_ratio, log1p, power1p
from fenchel.kernels.cpu.launch.compilation import inlined, reducing
from fenchel.kernels.cpu.launch.memory import advance, load, real
from fenchel.kernels.cpu.shared.columns import VECTOR
from fenchel.kernels.cpu.solver.entries import (
    coefficients,
    entmax15_entry,
    entmax_entry,
    sparsemax_entry,
)

FIRST_ORDER_LIMIT = 1e-5  # |rest| below which first order in it is exact, as its square vanishes
SUM_VECTORS = 16  # vectors summed in the precision of the row, before a float64 total
POWER_SUM_VECTORS = 4  # the same for powers: near alpha = 1 the largest p has the error of the sum


@reducing
def _sum_vectors(entry, data, vectors, row):
    mass, slope = real(data, 0.0), real(data, 0.0)
    for i in range(vectors * VECTOR):
        p, s, _ = entry(load(data, i), row)
        mass += p
        slope += s
    return mass, slope


@inlined
def _sum_entries(entry, data, vectors, row, run):
    mass, slope = 0.0, 0.0
    for start in range(0, vectors, run):
        p, s = _sum_vectors(entry, advance(data, start * VECTOR), min(run, vectors - start), row)
        mass += p
        slope += s
    return mass, slope


@inlined
def mass_and_slope(data, vectors, largest, offset, rest, alpha):
    """F and S of `vectors` vectors of columns, at A = largest + offset + rest."""
    row = coefficients(largest, offset, rest, alpha)
    if alpha == 2.0:
        return _sum_entries(sparsemax_entry, data, vectors, row, SUM_VECTORS)
    if alpha == 1.5:
        return _sum_entries(entmax15_entry, data, vectors, row, SUM_VECTORS)
    return _sum_entries(entmax_entry, data, vectors, row, POWER_SUM_VECTORS)


@inlined
def newton_step(mass, slope, alpha, model):
    """The step (N.5), with elementary functions in the precision of `model`."""
    if alpha == 2.0:
        return (mass - 1.0) / slope
    if alpha == 1.5:
        return 2.0 * (mass - math.sqrt(mass)) / slope
    log_mass = log1p(real(model, mass - 1.0))
    return mass * log_mass * expm1_ratio(-real(model, alpha - 1.0) * log_mass) / slope


@inlined
def _curvature_bound(alpha, count, model):
    """The bound kappa of F''/(2 F) to the right of any A, (N.9); infinite for alpha > 3/2."""
    if alpha > 1.5:
        return math.inf
    if alpha == 1.5:
        return 0.25 * count
    spread = power1p(real(model, count - 1.0), real(model, 2.0 * alpha - 2.0))
    return 0.5 * (2.0 - alpha) * max(1.0, spread)


@inlined
def newton_search(data, vectors, tail, tail_vectors, largest, offset, alpha, tolerance):
    """(offset, rest) with A = largest + offset + rest, starting at A = largest + offset.

    The last steps change `rest` only: float32 entries jump whenever the rounded part of A does, all equal
    scores together, while `rest` changes them continuously.

    Ends when |F - 1| is within the tolerance, when (N.9) shows that it is after the last step, or when it
    no longer decreases because of rounding.
    """
    curvature = _curvature_bound(alpha, (vectors + tail_vectors) * VECTOR, largest)
    previous, rest = math.inf, 0.0
    while True:
        mass, slope = mass_and_slope(data, vectors, largest, offset, rest, alpha)
        if tail_vectors > 0:
            tail_mass, tail_slope = mass_and_slope(tail, tail_vectors, largest, offset, rest, alpha)
            mass += tail_mass
            slope += tail_slope
        excess = abs(mass - 1.0)
        if not tolerance < excess < previous:  # NaN also ends the search
            return offset, rest
        step = newton_step(mass, slope, alpha, largest)
        rest += step
        if abs(rest) > FIRST_ORDER_LIMIT:
            offset, rest = offset + rest, 0.0
        if curvature * mass * step * step <= tolerance:
            return offset, rest
        previous = excess
