"""The normalizer and the probabilities of a list of scores, compiled once for all that need them."""

from __future__ import annotations

import math

from numba import float64, int64

from fenchel.kernels.cpu.launch.compilation import inlined, outlined
from fenchel.kernels.cpu.launch.memory import real
from fenchel.kernels.cpu.shared.columns import largest_of_vectors
from fenchel.kernels.cpu.solver.alpha_above_2 import solve_above_2
from fenchel.kernels.cpu.solver.newton import newton_search
from fenchel.kernels.cpu.solver.normalizer import (
    TOLERANCE_RATIO_ABOVE_2,
    tolerance_of,
    write_probabilities,
)


@outlined
def normalizer(scores, groups, largest, offset, alpha, tolerance):
    """(offset, rest) with A = largest + offset + rest, for alpha ≤ 2, from a lower bound `offset`."""
    return newton_search(scores, groups, scores, int64(0), largest, offset, alpha, tolerance)


@outlined
def _write(scores, p, groups, pivot, offset, rest, alpha):
    write_probabilities(scores, p, groups, pivot, offset, rest, alpha, 1.0)


@outlined
def _solve_above_2(scores, count, largest, alpha, tolerance):
    return solve_above_2(scores, count, float64(largest), alpha, tolerance)


@inlined
def least_offset(bound, largest, alpha):
    """A - largest, from below: that of a lower bound of the edge, or of one score alone."""
    if bound == -math.inf:
        return 0.0
    return max(float64(bound) - float64(largest) + 1.0 / (alpha - 1.0), 0.0)


@outlined
def probabilities(scores, groups, count, alpha, bound, p):
    """Write p of `count` scores, padded to `groups` with -inf; returns the largest score.

    `bound` is a lower bound of the edge of the support. If the largest is not finite, nothing is written.
    """
    largest = largest_of_vectors(scores, groups)
    if not math.isfinite(largest):
        return largest
    tolerance = tolerance_of(largest)
    if alpha > 2.0:
        bottom, power, log_power = _solve_above_2(
            scores, count, largest, alpha, TOLERANCE_RATIO_ABOVE_2 * tolerance
        )
        _write(scores, p, groups, real(largest, bottom), power, log_power, alpha)
    else:
        offset = least_offset(bound, largest, alpha)
        offset, rest = normalizer(scores, groups, largest, offset, alpha, tolerance)
        _write(scores, p, groups, largest, offset, rest, alpha)
    return largest
