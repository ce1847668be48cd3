"""The threshold of the projection onto the simplex: sum_i w_i (z_i - tau)_+ = 1, by Newton's method.

The sum is convex and decreasing in tau, made of straight pieces: from the left Newton's method never
overshoots and ends on the right piece, where it is exact.
"""

from __future__ import annotations

from fenchel.kernels.cpu.launch.compilation import reducing, sequential
from fenchel.kernels.cpu.launch.memory import load


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
def _peak(z, count):
    peak = load(z, 0)
    for i in range(1, count):
        peak = load(z, i) if load(z, i) > peak else peak
    return peak


@sequential
def threshold(z, count):
    """tau for `count` values of weight one."""
    tau, before = _peak(z, count) - 1.0, -1.0
    while True:
        total, size = _excess(z, count, tau)
        following = tau + (total - 1.0) / size
        if size == before:  # the last step, from a sum near 1, removes the rounding of larger sums
            return following
        if not following > tau:
            return tau
        tau, before = following, size


@sequential
def weighted_threshold(z, weights, count):
    """tau for `count` falling values, each as many times as its weight says."""
    tau, before = load(z, 0) - 1.0, -1.0
    while True:
        total, size = _weighted_excess(z, weights, count, tau)
        following = tau + (total - 1.0) / size
        if size == before:
            return following
        if not following > tau:
            return tau
        tau, before = following, size
