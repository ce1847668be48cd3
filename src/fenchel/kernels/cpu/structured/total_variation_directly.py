"""The prox of 1-D total variation by Condat's direct method, for as long as it is fast.

A group that begins at `first` takes a value between `floor` and `ceiling`: the lowest and highest for
which the dual variable (the partial sums of x - value) has stayed within +-strength so far; `low` and
`high` are the dual variables of the two. When the next entry drives `low` below -strength no value will
do, and the group ended, at `floor`, where its dual variable last was +strength: entry `bottom`; likewise
at `ceiling`, at entry `top`. Then it starts again behind the group, so entries may be visited often,
though most rows need two visits.

Reference: Condat (2013), A Direct Algorithm for 1-D Total Variation Denoising.
"""

from __future__ import annotations

from fenchel.kernels.cpu.launch.compilation import scalar, sequential
from fenchel.kernels.cpu.launch.memory import load, store

PATIENCE = 8  # visits an entry


@scalar
def _put(z, signs, first, last, value):
    """Entries first to last are a group."""
    store(z, first, value)
    for i in range(first + 1, last + 1):
        store(z, i, value)
        store(signs, i, 0)


@scalar
def _finish(x, count, strength, z, signs, first, floor, ceiling, low, high, bottom, top):
    """At the last entry: the dual variable must end at zero.

    Returns where to go on, or -1 at the end, and the state there.
    """
    if low < 0.0:
        _put(z, signs, first, bottom, floor)
        first = bottom + 1
        store(signs, first, -1)
        floor = load(x, first)
        return first, floor, ceiling, strength, floor + strength - ceiling, first, top
    if high > 0.0:
        _put(z, signs, first, top, ceiling)
        first = top + 1
        store(signs, first, 1)
        ceiling = load(x, first)
        return first, floor, ceiling, ceiling - strength - floor, -strength, bottom, first
    _put(z, signs, first, count - 1, floor + low / (count - first))
    return -1, floor, ceiling, low, high, bottom, top


@sequential
def prox_directly(x, count, strength, z, signs):
    """Fill z and signs as `prox` does, for a positive strength; False if it took too many steps."""
    first = i = bottom = top = 0
    floor, ceiling = load(x, 0) - strength, load(x, 0) + strength
    low, high = strength, -strength
    for _ in range(PATIENCE * count):
        if i == count - 1:
            first, floor, ceiling, low, high, bottom, top = _finish(
                x, count, strength, z, signs, first, floor, ceiling, low, high, bottom, top
            )
            if first < 0:
                return True
            i = first
            continue
        y = load(x, i + 1)
        if y + low < floor - strength:
            _put(z, signs, first, bottom, floor)
            first = i = top = bottom = bottom + 1
            store(signs, first, -1)
            floor = load(x, first)
            ceiling = floor + 2.0 * strength
            low, high = strength, -strength
        elif y + high > ceiling + strength:
            _put(z, signs, first, top, ceiling)
            first = i = bottom = top = top + 1
            store(signs, first, 1)
            ceiling = load(x, first)
            floor = ceiling - 2.0 * strength
            low, high = strength, -strength
        else:
            i += 1
            share = 1.0 / (i - first + 1)
            low += y - floor
            high += y - ceiling
            # Which of these happen nobody can predict, so they are computed, not branched upon.
            above, below = low - strength, high + strength
            bottom = i if above >= 0.0 else bottom
            top = i if below <= 0.0 else top
            above = above if above > 0.0 else 0.0
            below = below if below < 0.0 else 0.0
            floor += above * share
            ceiling += below * share
            low -= above
            high -= below
    return False
