"""pnormmax of rows one by one: argmax_q <q, x> - ||q||_s^2/2 over the simplex, in float64 inside.

With c = 1/(s - 1) and u = (x - tau)_+ the map is u^c/sum u^c, where tau solves

    F(tau) = A B^(-(2-s)/s) = 1,   A = sum u^c,  B = sum u^(c+1),

which falls with tau. Only entries less than 1 below the largest can have u > 0, and only they are kept.
"""

from __future__ import annotations

import math

from fenchel.kernels.cpu.launch.compilation import sequential
from fenchel.kernels.cpu.launch.memory import load, store
from fenchel.kernels.cpu.launch.sharing import for_each_row, matrix_row
from fenchel.kernels.cpu.thresholds.near_peak import list_near_peak

TOLERANCE = 1e-15


@sequential
def _evaluate(x, count, tau, s):
    """F - 1 and its slope at tau < 0; powers are taken of u/-tau, so that none overflows."""
    c = 1.0 / (s - 1.0)
    total, powers, slopes = 0.0, 0.0, 0.0
    for i in range(count):
        u = (load(x, i) - tau) / -tau
        if u > 0.0:
            weight = u * u if c == 2.0 else math.pow(u, c)
            total += weight
            powers += weight * u
            slopes += weight / u
    value = -tau * total * math.pow(powers, -(2.0 - s) / s)
    rate = c * (slopes / total - (2.0 - s) * total / powers) / -tau
    return value - 1.0, -value * rate


@sequential
def _solve(x, count, s):
    """tau, by Newton's method with a bracket: a step that leaves it or does not halve F - 1 bisects.

    Ends when F - 1 is within the tolerance, or when no number is left inside the bracket: rounding
    can keep |F - 1| above any tolerance at both of its ends.
    """
    low, high, tau, previous = -1.0, 0.0, -1.0, math.inf
    while True:
        value, slope = _evaluate(x, count, tau, s)
        low, high = (tau, high) if value > 0.0 else (low, tau)
        middle = 0.5 * (low + high)
        if abs(value) <= TOLERANCE or not low < middle < high:
            return tau
        step = tau - value / slope
        if not low <= step <= high or 2.0 * abs(value) > previous:
            step = middle
        if step == tau:
            return tau
        previous = abs(value)
        tau = step


@sequential
def _forward_row(arguments, row, s, columns, workspace):
    scores, out = matrix_row(arguments, 0, row, columns), matrix_row(arguments, 1, row, columns)
    places, x, count = list_near_peak(scores, out, columns, workspace)
    if count == 0:
        return
    tau, total, c = _solve(x, count, s), 0.0, 1.0 / (s - 1.0)
    for i in range(count):
        u = (load(x, i) - tau) / -tau
        weight = math.pow(u, c) if u > 0.0 else 0.0
        store(x, i, weight)
        total += weight
    for i in range(count):
        store(out, load(places, i), load(x, i) / total)


def pnormmax_rows(arguments):
    """p of every row."""
    for_each_row(arguments, _forward_row)
