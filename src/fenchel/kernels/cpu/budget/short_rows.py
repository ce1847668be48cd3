"""budget of batches of short float32 rows (see `shared/batch`), in float64.

Newton's method in a bracket, from the threshold of normally distributed scores: see (N.36). Scores
further than FARTHEST_COUNTED below the largest are left out of the estimate. If at most k scores
remain, or p is 0 or 1 everywhere, the row is left to `long_rows`.
"""

from __future__ import annotations

import math

from numba import float32, float64

from fenchel.kernels.cpu.arithmetic.elementary import power
from fenchel.kernels.cpu.launch.compilation import inlined, outlined
from fenchel.kernels.cpu.launch.memory import advance, load, maximum, minimum, store
from fenchel.kernels.cpu.shared.batch import (
    ACTIVE,
    BATCH,
    CURVATURE,
    HIGH,
    LOW,
    MASS,
    NEAREST,
    OFFSET,
    PREVIOUS,
    ROW_PARAMETER,
    SHORT_COLUMNS,
    SLOPE,
    UNSOLVED,
    iterate,
    scores_as_float64,
    solve_batches,
)

FARTHEST_COUNTED = 1024.0  # differences of scores up to this have enough digits in float64
UNIFORM_VARIANCE = 1 / 12  # of a uniform variable in [0, 1]
# The normal quantile of 1 - r is about QUANTILE_SCALE ((1 - r)^QUANTILE_POWER - r^QUANTILE_POWER).
QUANTILE_POWER, QUANTILE_SCALE = 0.135, 5.063
PIECE_STRIDE = 4096.0  # larger than the number of columns
# Per row: the linear piece of the sum that tau is on, and the piece of the last Newton step
PIECE, PREVIOUS_PIECE = CURVATURE, NEAREST


def is_batched(columns: int, k: float) -> bool:
    """Whether a row of this length is solved in a batch."""
    return columns <= SHORT_COLUMNS and 0.0 < k < columns


_is_batched = inlined(is_batched)


@outlined
def _sum_moments(data, size, place, state):
    """The number of scores that count, their sum, the sum of their squares, and their minimum."""
    count, total, squares, least = 0.0, 0.0, 0.0, 0.0
    for i in range(size):
        one = 1.0 if load(data, i) > -FARTHEST_COUNTED else 0.0
        x = one * maximum(load(data, i), -FARTHEST_COUNTED)
        count += one
        total += x
        squares += x * x
        least = minimum(least, x)
    store(state, MASS + place, count)
    store(state, SLOPE + place, total)
    store(state, CURVATURE + place, squares)
    store(state, LOW + place, least - 1.0)


@outlined
def _guess(state):
    """The first tau of every active row."""
    for i in range(BATCH):
        k, count, low = load(state, ROW_PARAMETER + i), load(state, MASS + i), load(state, LOW + i)
        mean = load(state, SLOPE + i) / count
        variance = load(state, CURVATURE + i) / count - mean * mean
        variance = variance if variance > 0.0 else 0.0
        share, rest = float32(k / count), float32(1.0 - k / count)
        exponent = float32(QUANTILE_POWER)
        quantile = QUANTILE_SCALE * float64(power(rest, exponent) - power(share, exponent))
        tau = mean - 0.5 + math.sqrt(variance + UNIFORM_VARIANCE) * quantile
        tau = tau if tau > low else low
        here = load(state, ACTIVE + i) > 0.0
        store(state, UNSOLVED + i, 1.0 if here and not k < count else load(state, UNSOLVED + i))
        store(state, ACTIVE + i, 1.0 if here and k < count else 0.0)
        store(state, OFFSET + i, tau if tau < 0.0 else 0.0)
        store(state, HIGH + i, 0.0)
        store(state, PREVIOUS_PIECE + i, -1.0)


@outlined
def _visit(data, size, place, state):
    """The sum of p, and how many entries are at one and how many between 0 and 1."""
    tau, total, ones, between = load(state, OFFSET + place), 0.0, 0.0, 0.0
    for i in range(size):
        p = load(data, i) - tau
        one, inside = p >= 1.0, p > 0.0 and p < 1.0
        total += p if inside else 0.0
        ones += 1.0 if one else 0.0
        between += 1.0 if inside else 0.0
    store(state, MASS + place, total + ones)
    store(state, SLOPE + place, between)
    store(state, PIECE + place, ones * PIECE_STRIDE + between)


@outlined
def _take_steps(state):
    """The steps of `long_rows` for every active row; returns the number of rows still active."""
    active = 0.0
    for i in range(BATCH):
        tau, piece = load(state, OFFSET + i), load(state, PIECE + i)
        low, high = load(state, LOW + i), load(state, HIGH + i)
        excess = load(state, MASS + i) - load(state, ROW_PARAMETER + i)
        found = excess == 0.0 or piece == load(state, PREVIOUS_PIECE + i)
        low = tau if excess > 0.0 else low
        high = high if excess > 0.0 else tau
        newton = tau + excess / load(state, SLOPE + i)
        middle = 0.5 * (low + high)
        trusted = newton >= low and newton <= high
        trusted = trusted and 2.0 * abs(excess) <= load(state, PREVIOUS + i)
        following = newton if trusted else middle
        ends = found or following == tau or not (trusted or (low < middle and middle < high))
        moves = load(state, ACTIVE + i) > 0.0 and not ends
        store(state, OFFSET + i, following if moves else tau)
        store(state, LOW + i, low)
        store(state, HIGH + i, high)
        store(state, PREVIOUS + i, abs(excess))
        store(state, PREVIOUS_PIECE + i, piece if trusted else -1.0)
        store(state, ACTIVE + i, 1.0 if moves else 0.0)
        active += 1.0 if moves else 0.0
    return active


@outlined
def _begin(data, size, rows, state):
    for i in range(rows):
        if load(state, ACTIVE + i) > 0.0:
            _sum_moments(advance(data, i * size), size, i, state)
    _guess(state)


@outlined
def _search(data, size, columns, rows, state):
    iterate(_visit, _take_steps, data, size, rows, state)


@outlined
def _write(data, out, columns, size, spare, place, state):
    tau = load(state, OFFSET + place)
    for i in range(columns):
        p = load(data, i) - tau
        store(out, i, 1.0 if p >= 1.0 else (p if p > 0.0 else 0.0))


def solve_budget_batches(arguments):
    """Kernel of the batches."""
    solve_batches(arguments, scores_as_float64, True, _is_batched, _begin, _search, _write)
