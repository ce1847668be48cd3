"""The candidates of a query: scores above a lower bound of the edge of its support.

The bound is the edge that belongs to the candidates alone, and rises as keys are seen: any subset has
a lower one (N.8). So no score of the support is ever dropped.
"""

from __future__ import annotations

import math

from numba import float64

from fenchel.kernels.cpu.attention.thresholds import least_offset, normalizer
from fenchel.kernels.cpu.launch.compilation import inlined, outlined
from fenchel.kernels.cpu.launch.memory import load, real, store
from fenchel.kernels.cpu.shared.columns import largest_of_vectors, pad
from fenchel.kernels.cpu.solver.normalizer import LOWER_BOUND_TOLERANCE

SHORTEST = 48  # a list is looked through again when it is this long, or twice what was kept
MARGIN = 2.0**-20  # of a bound, relative, for rounding
FAILED = -1  # instead of a count: the list is too short for the row, or a score is not a number
VISITS = 50


@inlined
def _steep_edge(scores, count, largest, alpha, bound):
    """For alpha > 2, a lower bound of the edge without powers (N.18)."""
    goal = 1.0 / (alpha - 1.0)
    edge = max(float64(largest) - goal, float64(bound))
    for _ in range(VISITS):
        mass, above = 0.0, 0
        for i in range(count):
            gap = float64(load(scores, i)) - edge
            mass += gap if gap > 0.0 else 0.0
            above += 1 if gap > 0.0 else 0
        if not (mass - goal) > 0.01 * goal:
            break
        edge += (mass - goal) / above
    return edge


@inlined
def keep_above(scores, places, count, bound):
    kept = 0
    for i in range(count):
        x, place = load(scores, i), load(places, i)
        store(scores, kept, x)
        store(places, kept, place)
        kept += 1 if x > bound else 0
    return kept


@outlined
def refresh(scores, places, count, alpha, bound):
    """Raise the bound to the edge of the candidates and drop those below: (bound, candidates left)."""
    groups = pad(scores, count, -math.inf)
    largest = largest_of_vectors(scores, groups)
    if not math.isfinite(largest):
        return largest, FAILED
    if alpha > 2.0:
        edge = _steep_edge(scores, count, largest, alpha, bound)
    else:
        offset = least_offset(bound, largest, alpha)
        offset, _ = normalizer(scores, groups, largest, offset, alpha, LOWER_BOUND_TOLERANCE)
        edge = float64(largest) + (offset - 1.0 / (alpha - 1.0))
    edge -= MARGIN * (1.0 / (alpha - 1.0) + abs(edge))
    raised = max(bound, real(bound, edge))
    return raised, keep_above(scores, places, count, raised)
