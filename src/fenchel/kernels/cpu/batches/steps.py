"""Steps of the normalisers of a batch of rows, in one vector.

For powers Newton's step on the norm G (see `search/climbing`) is lengthened by its curvature: Halley's
method. What it leaves is estimated by what the curvature changed. That holds while t stays away from
the edge; each score that is too near it may add (APART e |step|)^(1/e). A row that is not done after
VISITS is lost: it is left to `solve`, which is slower and never astray.
"""

from __future__ import annotations

import math

from numba import float64

from fenchel.kernels.cpu.arithmetic.elementary import power
from fenchel.kernels.cpu.batches.batch import (
    ALPHA,
    BATCH,
    BEND,
    CLIMBING,
    LOST,
    MASS,
    NEAR,
    OFFSET,
    PREVIOUS,
    REST,
    SLOPE,
)
from fenchel.kernels.cpu.launch.compilation import outlined, scalar
from fenchel.kernels.cpu.launch.memory import load, real, store
from fenchel.kernels.cpu.search.climbing import SMALL, newton_step

VISITS = 8  # to a row, at most
ROUNDING = 4.0  # tolerances; |F - 1| below that may rise
TINY = 1e-30
APART = 8.0  # steps
SAFETY = 8.0  # of the estimate of what is left


@scalar
def _halley(step, mass, slope, bend, e, offset):
    """(Halley's step, half of the relative change of the slope of G over Newton's)"""
    half = 0.5 * (1.0 - e) * step * (bend / slope - slope / mass)
    half = half if half < 0.5 else 0.5
    half = half if half > -0.5 else -0.5
    longer = step / (1.0 - half)
    limit = 0.5 * (1.0 / e - offset)
    bounded = longer if longer < limit else limit
    bounded = bounded if bounded > -offset else -offset
    return bounded, (half if bounded == longer else 1.0)


@scalar
def _left(step, half, slope, near, e, columns, model):
    """What is left of |F - 1|: by the curvature, its change, and scores that come too near the edge.

    The curvature is the variance of 1/t under p; its change is at most that times the largest 1/t.
    """
    step = abs(step)
    reach = APART * e * step
    share = float64(power(real(model, reach + TINY), real(model, 1.0 / e)))
    at_edge = 0.0 if near > reach else columns * share
    near = (near if near > reach else reach) + TINY
    change = abs(1.0 - 2.0 * e) / 3.0 * step / near
    return at_edge + slope * step * abs(half) * (abs(half) + change)


def needs_no_powers(alpha: float) -> bool:
    """Whether p is a polynomial; no row is lost then."""
    return alpha == 2.0 or alpha == 1.5


is_polynomial = scalar(needs_no_powers)


@scalar
def _move(state, i, step, moves):
    rest = load(state, REST + i) + (step if moves else 0.0)
    far = abs(rest) > SMALL
    store(state, OFFSET + i, load(state, OFFSET + i) + (rest if far else 0.0))
    store(state, REST + i, 0.0 if far else rest)


@outlined
def take_polynomial_steps(state, tolerance):
    """Move every row that climbs and needs no powers, by Newton's method; how many climb on."""
    climbing = 0.0
    for i in range(BATCH):
        alpha, previous = load(state, ALPHA + i), load(state, PREVIOUS + i)
        mass, slope = load(state, MASS + i), load(state, SLOPE + i)
        excess = abs(mass - 1.0)
        here = load(state, CLIMBING + i) > 0.0 and is_polynomial(alpha)
        moves = here and excess > tolerance and excess < previous
        rise = mass - 1.0 if alpha == 2.0 else 2.0 * (mass - math.sqrt(mass))
        _move(state, i, rise / slope, moves)
        climbs = 1.0 if moves else 0.0
        store(state, PREVIOUS + i, excess if here else previous)
        store(state, CLIMBING + i, climbs if here else load(state, CLIMBING + i))
        climbing += climbs
    return climbing


@outlined
def take_steps(state, columns, visits, model, tolerance):
    """Move every row that climbs; how many climb on."""
    climbing = 0.0
    for i in range(BATCH):
        alpha, previous = load(state, ALPHA + i), load(state, PREVIOUS + i)
        offset = load(state, OFFSET + i) + load(state, REST + i)
        mass, slope, bend = load(state, MASS + i), load(state, SLOPE + i), load(state, BEND + i)
        excess = abs(mass - 1.0)
        newton = newton_step(mass, slope, alpha, model)
        e = alpha - 1.0
        step, half = _halley(newton, mass, slope, bend, e, offset)
        left = _left(step, half, slope, load(state, NEAR + i), e, columns, model)
        here = load(state, CLIMBING + i) > 0.0 and not is_polynomial(alpha)
        rises = excess >= previous and excess <= ROUNDING * tolerance
        ends = excess <= tolerance or rises or visits >= VISITS
        lost = here and visits >= VISITS and excess > ROUNDING * tolerance
        moves = here and not ends
        _move(state, i, step, moves)
        store(state, PREVIOUS + i, excess if here else previous)
        store(state, LOST + i, 1.0 if lost else load(state, LOST + i))
        climbs = 1.0 if moves and SAFETY * left > tolerance else 0.0
        store(state, CLIMBING + i, climbs if here else load(state, CLIMBING + i))
        climbing += climbs
    return climbing
