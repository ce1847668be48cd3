"""Probabilities for alpha > 2 of lists of scores, one list for each row of a batch.

The unknowns are those of `search/steep`. Score number j of row i is number j BATCH + i, and -inf stands
for none. A score is in the support if F is below one when its own probability u is zero; the smallest
such, b, is found by bisection. There dF/du >= 1, so u <= 1 - F, and from there Newton's method falls
to the root. A row that needs more digits than a power has is lost.
"""

from __future__ import annotations

import math

from fenchel.kernels.cpu.arithmetic.elementary64 import exp64, log64
from fenchel.kernels.cpu.batches.batch import (
    ALPHA,
    BATCH,
    BEND,
    CLIMBING,
    HIGH,
    LARGEST,
    LOST,
    LOW,
    MASS,
    NEAR,
    OFFSET,
    PREVIOUS,
    REST,
    SLOPE,
)
from fenchel.kernels.cpu.columns.whole_vectors import fill
from fenchel.kernels.cpu.launch.compilation import outlined, scalar
from fenchel.kernels.cpu.launch.memory import advance, load, maximum, minimum, store
from fenchel.kernels.cpu.search.steep import NORMAL, ROUNDING

VISITS = 20  # to the rows, at most, for b or u
LEAST_LOG = math.log(NORMAL)  # of u^e
# What a row keeps: the length of its list and 1/e; the score that is tried, between the largest known
# not to be in the support and the smallest known to be; u and u^e
COUNT, INVERSE, TRIED, BELOW, BOTTOM, LEAST, POWER = NEAR, REST, OFFSET, LOW, HIGH, BEND, PREVIOUS


@outlined
def _choose(listed, longest, state):
    """Try the score next to the middle of what is known, from below or else from above.

    Returns how many rows have one.
    """
    fill(advance(state, TRIED), BATCH, -math.inf)
    fill(advance(state, SLOPE), BATCH, math.inf)
    for j in range(longest):
        for i in range(BATCH):
            x, below, bottom = (
                load(listed, j * BATCH + i), load(state, BELOW + i), load(state, BOTTOM + i),
            )  # fmt: skip
            low = x <= 0.5 * below + 0.5 * bottom
            under = x if low & (x > below) & (x < bottom) else -math.inf
            over = x if (not low) & (x < bottom) else math.inf
            store(state, TRIED + i, maximum(load(state, TRIED + i), under))
            store(state, SLOPE + i, minimum(load(state, SLOPE + i), over))
    climbing = 0.0
    for i in range(BATCH):
        under, over = load(state, TRIED + i), load(state, SLOPE + i)
        tried = under if under > -math.inf else over
        climbs = load(state, CLIMBING + i) > 0.0 and tried < math.inf
        store(state, TRIED + i, tried if climbs else load(state, BOTTOM + i))
        store(state, CLIMBING + i, 1.0 if climbs else 0.0)
        climbing += 1.0 if climbs else 0.0
    return climbing


@scalar
def _entry(x, bottom, power, e, inverse):
    """(p, t)"""
    t = e * (x - bottom) + power
    return exp64(log64(t) * inverse), t


@outlined
def _try(listed, longest, state):
    """Whether the scores that are tried are in the support."""
    fill(advance(state, MASS), BATCH, 0.0)
    fill(advance(state, SLOPE), BATCH, 1.0)
    for j in range(longest):
        for i in range(BATCH):
            e, inverse = load(state, ALPHA + i) - 1.0, load(state, INVERSE + i)
            p, t = _entry(load(listed, j * BATCH + i), load(state, TRIED + i), 0.0, e, inverse)
            store(state, MASS + i, load(state, MASS + i) + (p if t > 0.0 else 0.0))
            store(state, SLOPE + i, minimum(load(state, SLOPE + i), t if t > 0.0 else 1.0))
    for i in range(BATCH):
        mass, tried = load(state, MASS + i), load(state, TRIED + i)
        here, inside = load(state, CLIMBING + i) > 0.0, mass < 1.0
        lost = here and load(state, SLOPE + i) < NORMAL
        store(state, BOTTOM + i, tried if here and inside else load(state, BOTTOM + i))
        store(state, BELOW + i, tried if here and not inside else load(state, BELOW + i))
        store(state, LEAST + i, 1.0 - mass if here and inside else load(state, LEAST + i))
        store(state, LOST + i, 1.0 if lost else load(state, LOST + i))


@outlined
def _set_powers(state):
    """u^e, zero where it would have too few digits."""
    for i in range(BATCH):
        log_power = (load(state, ALPHA + i) - 1.0) * log64(load(state, LEAST + i))
        store(state, POWER + i, exp64(log_power) if log_power > LEAST_LOG else 0.0)


@outlined
def _sum(listed, longest, state):
    """F and u dF/du."""
    fill(advance(state, MASS), BATCH, 0.0)
    fill(advance(state, SLOPE), BATCH, 0.0)
    for j in range(longest):
        for i in range(BATCH):
            x, bottom, power = (
                load(listed, j * BATCH + i), load(state, BOTTOM + i), load(state, POWER + i),
            )  # fmt: skip
            p, t = _entry(x, bottom, power, load(state, ALPHA + i) - 1.0, load(state, INVERSE + i))
            share = p * (power / t)
            store(state, MASS + i, load(state, MASS + i) + (p if x >= bottom else 0.0))
            store(state, SLOPE + i, load(state, SLOPE + i) + (share if x >= bottom else 0.0))


@outlined
def _fall(state):
    """Newton's step of u; see `search/steep` for what is left after it. Returns how many rows go on."""
    climbing = 0.0
    for i in range(BATCH):
        least, slope = load(state, LEAST + i), load(state, SLOPE + i)
        excess, here = load(state, MASS + i) - 1.0, load(state, CLIMBING + i) > 0.0
        curved = 0.5 * (load(state, ALPHA + i) - 2.0) * excess * excess
        following = least - least * excess / slope
        following = following if following < 1.0 else 1.0
        lost = here and not (load(state, POWER + i) > 0.0 and following > 0.0)
        near = abs(excess) <= ROUNDING or curved <= ROUNDING * slope
        climbs = here and not (lost or near)
        store(state, LEAST + i, following if here and not lost else least)
        store(state, LOST + i, 1.0 if lost else load(state, LOST + i))
        store(state, CLIMBING + i, 1.0 if climbs else 0.0)
        climbing += 1.0 if climbs else 0.0
    return climbing


@outlined
def _lose(state):
    """What still climbs, or has no u^e, is lost; the others climb on."""
    for i in range(BATCH):
        lost, power = load(state, LOST + i), load(state, POWER + i)
        unknown = (load(state, CLIMBING + i) > 0.0) | (power == 0.0)
        lost = 1.0 if (lost == 0.0) & unknown else lost
        store(state, LOST + i, lost)
        store(state, CLIMBING + i, 1.0 if lost == 0.0 else 0.0)


@outlined
def find_probabilities(listed, longest, state):
    """Replace what is listed by its probabilities."""
    for i in range(BATCH):
        store(state, BOTTOM + i, load(state, LARGEST + i))
        store(state, LEAST + i, 1.0)
        store(state, POWER + i, 1.0)
        store(state, CLIMBING + i, 1.0 if load(state, LOST + i) == 0.0 else 0.0)
    visits = 0
    while _choose(listed, longest, state) > 0.0 and visits < VISITS:
        _try(listed, longest, state)
        visits += 1
    _lose(state)
    visits, climbing = 0, 1.0
    while climbing > 0.0 and visits < VISITS:
        _set_powers(state)
        _sum(listed, longest, state)
        climbing, visits = _fall(state), visits + 1
    _set_powers(state)
    _lose(state)
    for j in range(longest):
        for i in range(BATCH):
            x, bottom, power = (
                load(listed, j * BATCH + i), load(state, BOTTOM + i), load(state, POWER + i),
            )  # fmt: skip
            p, _ = _entry(x, bottom, power, load(state, ALPHA + i) - 1.0, load(state, INVERSE + i))
            store(listed, j * BATCH + i, p if x >= bottom else 0.0)
