"""First guesses of the normalisers of a batch of rows, where p is a power that costs much.

For alpha <= 1 + TAME three sums over softmax give A to first order in e = alpha - 1: with l the
normaliser of softmax and v the mean of (z - l)^2 under it, A = l - e v/2 + O(e^2), written as
l/(1 + x/2 + x^2/12) with x = e v/l, which stays between 0 and 1/e.

Above that the edge E of the support is guessed without a power. With t = [x - E]_+ and k = 1/e,
F = e^k sum t^k, and the logarithm of that sum is nearly a parabola in k: its values at three whole k
give F and its slope to a percent, and Newton's method on them ends that close to the edge.
"""

from __future__ import annotations

import math

from numba import float64

from fenchel.kernels.cpu.arithmetic.elementary import exp, log
from fenchel.kernels.cpu.batches.batch import ALPHA, BATCH, BEND, CLIMBING, MASS, OFFSET, SLOPE
from fenchel.kernels.cpu.batches.steps import is_polynomial
from fenchel.kernels.cpu.launch.compilation import outlined, reducing, scalar
from fenchel.kernels.cpu.launch.memory import advance, load, maximum, real, store

TAME = 0.25
HIGH = 0.45  # e up to which the powers are 2, 3 and 4
FIRST = 0.6  # where the edge lies in many rows, in 1/e below the largest score
VISITS = 2
VANISHED = -1e4  # e^z is zero, and z^2 e^z a number


@reducing
def _softmax_sums(data, size):
    """Sums of e^z, z e^z and z^2 e^z."""
    total, first, second = real(data, 0.0), real(data, 0.0), real(data, 0.0)
    for i in range(size):
        z = maximum(load(data, i), real(data, VANISHED))
        w = exp(z)
        total += w
        first += w * z
        second += w * z * z
    return total, first, second


@reducing
def _moments(data, size, edge, high):
    """Sums of t, t^2 and t^3, or of t^2, t^3 and t^4."""
    a, b, c = real(data, 0.0), real(data, 0.0), real(data, 0.0)
    for i in range(size):
        t = load(data, i) - edge
        t = t if t > real(data, 0.0) else real(data, 0.0)
        u = t * t if high else t
        a += u
        b += u * t
        c += u * t * t
    return a, b, c


@scalar
def _near_softmax(total, first, second, e, model):
    """A to first order in e."""
    length = float64(log(real(model, total)))
    spread = (second - 2.0 * length * first) / total + length * length
    x = e * (spread if spread > 0.0 else 0.0) / (length if length > 1e-6 else 1e-6)
    return length / (1.0 + x * (0.5 + x / 12.0))


@scalar
def _parabola(a, b, c, k):
    """At k, through (0, a), (1, b) and (2, c)."""
    return a + k * (b - a + 0.5 * (k - 1.0) * (c - b - (b - a)))


@scalar
def _moment_step(a, b, c, offset, e, size, model):
    """The offset after a step of Newton's method."""
    k, log_e = 1.0 / e, float64(log(real(model, e)))
    a, b, c = log(real(model, a)), log(real(model, b)), log(real(model, c))
    first = 2.0 if e <= HIGH else 1.0
    log_mass = _parabola(a, b, c, k - first) + k * log_e
    log_slope = _parabola(a, b, c, k - first - 1.0) + (k - 1.0) * log_e
    ratio = float64(exp(real(model, log_mass - log_slope)))
    following = offset + (1.0 - float64(exp(real(model, -e * log_mass)))) * ratio * k
    highest = (1.0 - float64(exp(real(model, -e * math.log(size))))) * k
    following = following if following < highest else highest
    return following if following > 0.0 else 0.0


@outlined
def _improve(state, size, model, again):
    for i in range(BATCH):
        alpha, offset = load(state, ALPHA + i), load(state, OFFSET + i)
        a, b, c = load(state, MASS + i), load(state, SLOPE + i), load(state, BEND + i)
        e = alpha - 1.0
        tame = e <= TAME
        near = _near_softmax(a, b, c, e, model)
        stepped = _moment_step(a, b, c, offset, e, size, model)
        new = near if tame else stepped
        moves = not is_polynomial(alpha) and not (tame and again)
        store(state, OFFSET + i, new if moves else offset)


@outlined
def _sum(data, size, rows, state, again):
    """Three sums for every row that climbs; how many there are."""
    count = 0
    for i in range(rows):
        alpha = load(state, ALPHA + i)
        e = alpha - 1.0
        climbs = load(state, CLIMBING + i) > 0.0 and not is_polynomial(alpha)
        if climbs and not (again and e <= TAME):
            row = advance(data, i * size)
            if e <= TAME:
                a, b, c = _softmax_sums(row, size)
            else:
                edge = load(state, OFFSET + i) - 1.0 / e if again else -FIRST / e
                if not again:
                    store(state, OFFSET + i, (1.0 - FIRST) / e)
                a, b, c = _moments(row, size, real(data, edge), e <= HIGH)
            store(state, MASS + i, a)
            store(state, SLOPE + i, b)
            store(state, BEND + i, c)
            count += 1
    return count


@outlined
def guess_offsets(data, size, rows, state):
    """OFFSET of every row that climbs, from its three sums."""
    model = real(data, 0.0)
    for visit in range(VISITS):
        if _sum(data, size, rows, state, visit > 0) == 0:
            return
        _improve(state, float64(size), model, visit > 0)
