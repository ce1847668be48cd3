"""The threshold tau of the projection onto the simplex, sum_i w_i (z_i - tau)_+ = 1, by Newton's method.

The sum is convex, decreasing and piecewise linear in tau. Newton's method from the left never overshoots
and ends on the linear piece of the root, where it is exact.
"""

from __future__ import annotations

from fenchel.kernels.cpu.launch.compilation import outlined, reducing
from fenchel.kernels.cpu.launch.memory import load

SUM_ROUNDING = 1e-14  # of a sum near 1


@reducing
def _excess(z, count, tau):
    total, size = 0.0, 0.0
    for i in range(count):
        above = load(z, i) - tau
        total += above if above > 0.0 else 0.0
        size += 1.0 if above > 0.0 else 0.0
    return total, size


@reducing
def _weighted_excess(z, weights, count, tau):
    total, size = 0.0, 0.0
    for i in range(count):
        above = load(z, i) - tau
        total += load(weights, i) * above if above > 0.0 else 0.0
        size += load(weights, i) if above > 0.0 else 0.0
    return total, size


@reducing
def _largest(z, count):
    peak = load(z, 0)
    for i in range(1, count):
        peak = load(z, i) if load(z, i) > peak else peak
    return peak


@outlined
def simplex_threshold(z, count):
    """tau for `count` values with weight one."""
    tau, before = _largest(z, count) - 1.0, -1.0
    while True:
        total, size = _excess(z, count, tau)
        if size == before:
            if abs(total - 1.0) <= SUM_ROUNDING:
                return tau
            return tau + (total - 1.0) / size  # corrects the rounding of the earlier, larger sums
        following = tau + (total - 1.0) / size
        if not following > tau:
            return tau
        tau, before = following, size


@outlined
def weighted_simplex_threshold(z, weights, count):
    """tau for `count` decreasing values with the given weights."""
    tau, before = load(z, 0) - 1.0, -1.0
    while True:
        total, size = _weighted_excess(z, weights, count, tau)
        following = tau + (total - 1.0) / size
        if size == before:
            return following
        if not following > tau:
            return tau
        tau, before = following, size
