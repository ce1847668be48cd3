"""budget of short float32 rows, BATCH at a time (see `batch`), in float64 inside.

Newton's method in a bracket, from where the threshold would be if the scores were normal: the sum of
p is then about n times the share of the scores above tau + 1/2, blurred by an interval of length 1.
Scores further than REACH below the largest do not count for that; where the others are not more than
k, the row is left to `thresholds/budget_rows`, as are rows with nothing to find.
"""

from __future__ import annotations

import math

from numba import float32, float64

from fenchel.kernels.cpu.arithmetic.elementary import power
from fenchel.kernels.cpu.batches.batch import (
    ALPHA,
    BATCH,
    BEND,
    CLIMBING,
    HIGH,
    LOST,
    LOW,
    MASS,
    NEAR,
    OFFSET,
    PREVIOUS,
    SHORT,
    SLOPE,
    climb,
    solve_batches,
    wide_data,
)
from fenchel.kernels.cpu.launch.compilation import outlined, scalar
from fenchel.kernels.cpu.launch.memory import advance, load, maximum, minimum, store

REACH = 1024.0  # the difference of two scores up to there has digits enough in float64
BLUR = 1 / 12  # the variance of the interval
TUKEY, SCALE = 0.135, 5.063  # SCALE ((1 - r)^TUKEY - r^TUKEY) is the normal quantile of 1 - r
PIECES = 4096.0  # more than there are columns
# What a row keeps beside the sum of p and the number of entries between 0 and 1: the piece of the sum
# that tau is on, and the piece on which Newton's last step was made
PIECE, BEFORE = BEND, NEAR


def is_batched(columns: int, k: float) -> bool:
    """Whether such a row is solved in a batch."""
    return columns <= SHORT and 0.0 < k < columns


_is_batched = scalar(is_batched)


@outlined
def _survey(data, size, place, state):
    """How many scores count, their sum, the sum of their squares, and the least of them."""
    count, total, squares, least = 0.0, 0.0, 0.0, 0.0
    for i in range(size):
        one = 1.0 if load(data, i) > -REACH else 0.0
        x = one * maximum(load(data, i), -REACH)
        count += one
        total += x
        squares += x * x
        least = minimum(least, x)
    store(state, MASS + place, count)
    store(state, SLOPE + place, total)
    store(state, BEND + place, squares)
    store(state, LOW + place, least - 1.0)


@outlined
def _guess(state):
    """The first tau of every row that climbs."""
    for i in range(BATCH):
        k, count, low = load(state, ALPHA + i), load(state, MASS + i), load(state, LOW + i)
        mean = load(state, SLOPE + i) / count
        variance = load(state, BEND + i) / count - mean * mean
        share, rest = float32(k / count), float32(1.0 - k / count)
        quantile = SCALE * float64(power(rest, float32(TUKEY)) - power(share, float32(TUKEY)))
        tau = mean - 0.5 + math.sqrt((variance if variance > 0.0 else 0.0) + BLUR) * quantile
        tau = tau if tau > low else low
        here = load(state, CLIMBING + i) > 0.0
        store(state, LOST + i, 1.0 if here and not k < count else load(state, LOST + i))
        store(state, CLIMBING + i, 1.0 if here and k < count else 0.0)
        store(state, OFFSET + i, tau if tau < 0.0 else 0.0)
        store(state, HIGH + i, 0.0)
        store(state, BEFORE + i, -1.0)


@outlined
def _visit(data, size, place, state):
    """The sum of p, and which entries are at one and which between."""
    tau, total, ones, between = load(state, OFFSET + place), 0.0, 0.0, 0.0
    for i in range(size):
        p = load(data, i) - tau
        one, inside = p >= 1.0, p > 0.0 and p < 1.0
        total += p if inside else 0.0
        ones += 1.0 if one else 0.0
        between += 1.0 if inside else 0.0
    store(state, MASS + place, total + ones)
    store(state, SLOPE + place, between)
    store(state, PIECE + place, ones * PIECES + between)


@outlined
def _take_steps(state):
    """Move every row that climbs as `thresholds/budget_rows` does; how many climb on."""
    climbing = 0.0
    for i in range(BATCH):
        tau, piece = load(state, OFFSET + i), load(state, PIECE + i)
        low, high = load(state, LOW + i), load(state, HIGH + i)
        excess = load(state, MASS + i) - load(state, ALPHA + i)
        found = excess == 0.0 or piece == load(state, BEFORE + i)
        low = tau if excess > 0.0 else low
        high = high if excess > 0.0 else tau
        newton = tau + excess / load(state, SLOPE + i)
        middle = 0.5 * (low + high)
        trusted = newton >= low and newton <= high
        trusted = trusted and 2.0 * abs(excess) <= load(state, PREVIOUS + i)
        following = newton if trusted else middle
        ends = found or following == tau or not (trusted or (low < middle and middle < high))
        moves = load(state, CLIMBING + i) > 0.0 and not ends
        store(state, OFFSET + i, following if moves else tau)
        store(state, LOW + i, low)
        store(state, HIGH + i, high)
        store(state, PREVIOUS + i, abs(excess))
        store(state, BEFORE + i, piece if trusted else -1.0)
        store(state, CLIMBING + i, 1.0 if moves else 0.0)
        climbing += 1.0 if moves else 0.0
    return climbing


@outlined
def _begin(data, size, rows, state):
    for i in range(rows):
        if load(state, CLIMBING + i) > 0.0:
            _survey(advance(data, i * size), size, i, state)
    _guess(state)


@outlined
def _search(data, size, columns, rows, state):
    climb(_visit, _take_steps, data, size, rows, state)


@outlined
def _write(data, out, columns, size, spare, place, state):
    tau = load(state, OFFSET + place)
    for i in range(columns):
        p = load(data, i) - tau
        store(out, i, 1.0 if p >= 1.0 else (p if p > 0.0 else 0.0))


def solve_budget_batches(arguments):
    """See `solve_batches`."""
    solve_batches(arguments, wide_data, True, _is_batched, _begin, _search, _write)
