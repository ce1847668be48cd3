"""normmax of rows one by one: argmax_p <p, x> - ||p||_alpha over the simplex, in float64 inside.

With c = 1/(alpha - 1) and u = (x - tau)_+ the map is u^c/sum u^c, where tau makes the (c+1)-norm of u
one. That norm is convex and falls with tau, so Newton's method from the left never overshoots, and is
done with ties in one step. Only entries less than 1 below the largest can have u > 0: they are kept.
"""

from __future__ import annotations

import math

from fenchel.kernels.cpu.arithmetic.elementary64 import power64
from fenchel.kernels.cpu.launch.compilation import reducing, sequential
from fenchel.kernels.cpu.launch.memory import load, store
from fenchel.kernels.cpu.launch.sharing import for_each_row, matrix_row
from fenchel.kernels.cpu.thresholds.near_peak import list_near_peak


@reducing
def _sums(x, count, tau, c):
    """The sums of u^c and of u^(c+1)."""
    total, powers = 0.0, 0.0
    for i in range(count):
        u = load(x, i) - tau
        weight = power64(u, c) if u > 0.0 else 0.0
        total += weight
        powers += weight * u
    return total, powers


@sequential
def _solve(x, count, c):
    """tau, from -1 on to the right as long as rounding allows."""
    tau = -1.0
    while True:
        total, powers = _sums(x, count, tau, c)
        following = tau - powers * math.expm1(-math.log(powers) / (c + 1.0)) / total
        if not following > tau:
            return tau
        tau = following


@sequential
def _forward_row(arguments, row, alpha, columns, workspace):
    scores, out = matrix_row(arguments, 0, row, columns), matrix_row(arguments, 1, row, columns)
    places, x, count = list_near_peak(scores, out, columns, workspace)
    if count == 0:
        return
    c = 1.0 / (alpha - 1.0)
    tau = _solve(x, count, c)
    total, _ = _sums(x, count, tau, c)
    for i in range(count):
        u = load(x, i) - tau
        store(out, load(places, i), power64(u, c) / total if u > 0.0 else 0.0)


def normmax_rows(arguments):
    """p of every row."""
    for_each_row(arguments, _forward_row)
