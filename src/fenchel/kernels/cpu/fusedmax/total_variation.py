"""The prox of 1-D total variation, z = argmin sum_i (z_i - x_i)^2/2 + strength sum_i |z_{i+1} - z_i|.

Condat's direct method solves most rows in two visits per entry, but can take quadratic time. A group
that begins at `first` has a value between `floor` and `ceiling`: the lowest and highest for which the
dual variable (the partial sums of x - value) has stayed within +-strength so far; `low` and `high` are
the dual variables of these two. If the next entry makes `low` smaller than -strength, no value is
possible, and the group ended, with the value `floor`, where its dual variable was last +strength: at
entry `bottom`. Likewise for `ceiling` and entry `top`. The method restarts after the group, so entries
may be visited often.

Rows that exceed VISITS_PER_ENTRY are solved in linear time by dynamic programming, (N.38). Between the
points low_i and high_i, where the slope of f_i is -strength and +strength, it is a list of knots (a
position and the change of slope there) that is only cut and extended at its ends: every knot is made
once and dropped once. The last z is where the slope is zero, and backwards z_i = z_{i+1} clipped to
[low_i, high_i]: an entry that is not clipped is exactly equal to its neighbour.

Reference: Condat (2013), A Direct Algorithm for 1-D Total Variation Denoising.
"""

from __future__ import annotations

from fenchel.kernels.cpu.launch.compilation import inlined
from fenchel.kernels.cpu.launch.memory import advance, load, store

VISITS_PER_ENTRY = 8  # on average, before dynamic programming


@inlined
def _write_group(z, signs, first, last, value):
    """Write a group: the entries first to last."""
    store(z, first, value)
    for i in range(first + 1, last + 1):
        store(z, i, value)
        store(signs, i, 0)


@inlined
def _finish(x, count, strength, z, signs, first, floor, ceiling, low, high, bottom, top):
    """At the last entry, the dual variable must be zero.

    Returns the entry at which to continue, or -1 at the end, and the state there.
    """
    if low < 0.0:
        _write_group(z, signs, first, bottom, floor)
        first = bottom + 1
        store(signs, first, -1)
        floor = load(x, first)
        return first, floor, ceiling, strength, floor + strength - ceiling, first, top
    if high > 0.0:
        _write_group(z, signs, first, top, ceiling)
        first = top + 1
        store(signs, first, 1)
        ceiling = load(x, first)
        return first, floor, ceiling, ceiling - strength - floor, -strength, bottom, first
    _write_group(z, signs, first, count - 1, floor + low / (count - first))
    return -1, floor, ceiling, low, high, bottom, top


@inlined
def _condat(x, count, strength, z, signs):
    """`prox_total_variation` for a positive strength; False if it took too many visits."""
    first = i = bottom = top = 0
    floor, ceiling = load(x, 0) - strength, load(x, 0) + strength
    low, high = strength, -strength
    for _ in range(VISITS_PER_ENTRY * count):
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
            _write_group(z, signs, first, bottom, floor)
            first = i = top = bottom = bottom + 1
            store(signs, first, -1)
            floor = load(x, first)
            ceiling = floor + 2.0 * strength
            low, high = strength, -strength
        elif y + high > ceiling + strength:
            _write_group(z, signs, first, top, ceiling)
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
            # These branches would be unpredictable, so both sides are computed.
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


def prox_workspace(columns: int) -> int:
    """Scratch memory in float64 numbers: two bounds and two knots per entry."""
    return 6 * columns + 4


@inlined
def _cut_from_left(knots, rises, left, right, slope, offset, goal):
    """Drop the knots below the point where the piecewise linear function reaches `goal`."""
    while left <= right and slope * load(knots, left) + offset < goal:
        offset -= load(rises, left) * load(knots, left)
        slope += load(rises, left)
        left += 1
    return left, slope, (goal - offset) / slope


@inlined
def _cut_from_right(knots, rises, left, right, slope, offset, goal):
    while left <= right and slope * load(knots, right) + offset > goal:
        offset += load(rises, right) * load(knots, right)
        slope -= load(rises, right)
        right -= 1
    return right, slope, (goal - offset) / slope


@inlined
def prox_total_variation(x, count, strength, z, signs, workspace):
    """Fill z and, from the second entry on, the sign of z_i - z_{i-1}: 0 inside a group.

    If the strength is zero, every entry is a group, and equal neighbours have the sign 1.
    """
    if strength > 0.0 and _condat(x, count, strength, z, signs):
        return
    lows, highs = workspace, advance(workspace, count)
    knots, rises = advance(workspace, 2 * count), advance(workspace, 4 * count + 2)
    left, right = count, count - 1
    bend = 0.0
    for i in range(count - 1):
        y = load(x, i)
        left, slope, low = _cut_from_left(knots, rises, left, right, 1.0, -y - bend, -strength)
        right, fall, high = _cut_from_right(knots, rises, left, right, 1.0, bend - y, strength)
        left, right = left - 1, right + 1
        store(knots, left, low)
        store(rises, left, slope)
        store(knots, right, high)
        store(rises, right, -fall)
        store(lows, i, low)
        store(highs, i, high)
        bend = strength
    y = load(x, count - 1)
    _, _, value = _cut_from_left(knots, rises, left, right, 1.0, -y - bend, 0.0)
    store(z, count - 1, value)
    tie = 1 if strength == 0.0 else 0
    for i in range(count - 2, -1, -1):
        low, high = load(lows, i), load(highs, i)
        sign = -1 if value < low else (1 if value > high else tie)
        value = low if value < low else (high if value > high else value)
        store(signs, i + 1, sign)
        store(z, i, value)
