"""First guesses of the normalizers of a batch of rows, without the powers that p needs.

For alpha <= 1 + SOFTMAX_GUESS_EPSILON, three sums over softmax give A to first order in e = alpha - 1:
see (N.13). Above that, the edge E of the support is estimated from sums of three integer powers of
[x - E]_+: see (N.15).
"""

from __future__ import annotations

import math

from numba import float64

from fenchel.kernels.cpu.arithmetic.elementary import exp, log
from fenchel.kernels.cpu.launch.compilation import inlined, outlined, reducing
from fenchel.kernels.cpu.launch.memory import advance, load, maximum, real, store
from fenchel.kernels.cpu.shared.batch import (
    ACTIVE,
    BATCH,
    CURVATURE,
    MASS,
    OFFSET,
    ROW_PARAMETER,
    SLOPE,
)
from fenchel.kernels.cpu.solver.entries import is_polynomial

SOFTMAX_GUESS_EPSILON = 0.25  # e up to which A is guessed from softmax
HIGH_POWERS_EPSILON = 0.45  # e up to which the powers are 2, 3 and 4
FIRST_EDGE = 0.6  # first edge, in units of 1/e below the largest score
GUESS_VISITS = 2  # Newton steps for the edge
LOWEST_SCORE = -1e4  # lower scores are clamped: e^z is zero there, and z^2 e^z finite


@reducing
def _softmax_sums(data, size):
    """Sums of e^z, z e^z and z^2 e^z."""
    total, first, second = real(data, 0.0), real(data, 0.0), real(data, 0.0)
    for i in range(size):
        z = maximum(load(data, i), real(data, LOWEST_SCORE))
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


@inlined
def _softmax_guess(total, first, second, e, model):
    """A to first order in e, (N.13)."""
    length = float64(log(real(model, total)))
    variance = (second - 2.0 * length * first) / total + length * length
    x = e * (variance if variance > 0.0 else 0.0) / (length if length > 1e-6 else 1e-6)
    return length / (1.0 + x * (0.5 + x / 12.0))


@inlined
def _parabola(a, b, c, k):
    """The parabola through (0, a), (1, b) and (2, c), at k."""
    return a + k * (b - a + 0.5 * (k - 1.0) * (c - b - (b - a)))


@inlined
def _edge_step(a, b, c, offset, e, size, model):
    """The offset after a step of Newton's method on (N.15)."""
    k, log_e = 1.0 / e, float64(log(real(model, e)))
    a, b, c = log(real(model, a)), log(real(model, b)), log(real(model, c))
    first = 2.0 if e <= HIGH_POWERS_EPSILON else 1.0
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
        alpha, offset = load(state, ROW_PARAMETER + i), load(state, OFFSET + i)
        a, b, c = load(state, MASS + i), load(state, SLOPE + i), load(state, CURVATURE + i)
        e = alpha - 1.0
        near_softmax = e <= SOFTMAX_GUESS_EPSILON
        softmax_guess = _softmax_guess(a, b, c, e, model)
        stepped = _edge_step(a, b, c, offset, e, size, model)
        new = softmax_guess if near_softmax else stepped
        moves = not is_polynomial(alpha) and not (near_softmax and again)
        store(state, OFFSET + i, new if moves else offset)


@outlined
def _sum(data, size, rows, state, again):
    """Three sums for every active row; returns the number of such rows."""
    count = 0
    for i in range(rows):
        alpha = load(state, ROW_PARAMETER + i)
        e = alpha - 1.0
        is_active = load(state, ACTIVE + i) > 0.0 and not is_polynomial(alpha)
        if is_active and not (again and e <= SOFTMAX_GUESS_EPSILON):
            row = advance(data, i * size)
            if e <= SOFTMAX_GUESS_EPSILON:
                a, b, c = _softmax_sums(row, size)
            else:
                edge = load(state, OFFSET + i) - 1.0 / e if again else -FIRST_EDGE / e
                if not again:
                    store(state, OFFSET + i, (1.0 - FIRST_EDGE) / e)
                a, b, c = _moments(row, size, real(data, edge), e <= HIGH_POWERS_EPSILON)
            store(state, MASS + i, a)
            store(state, SLOPE + i, b)
            store(state, CURVATURE + i, c)
            count += 1
    return count


@outlined
def guess_offsets(data, size, rows, state):
    """Set OFFSET of every active row from its three sums."""
    model = real(data, 0.0)
    for visit in range(GUESS_VISITS):
        if _sum(data, size, rows, state, visit > 0) == 0:
            return
        _improve(state, float64(size), model, visit > 0)
