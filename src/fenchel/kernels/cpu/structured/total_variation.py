"""The proximal operator of 1-D total variation in linear time, at worst by dynamic programming.

    z = argmin sum_i (z_i - x_i)^2/2 + strength sum_i |z_{i+1} - z_i|

Let f_i(b) be the least cost of the first i entries if z_i = b. Its slope is b - x_i plus the slope of
f_{i-1} clipped to [-strength, strength], a rising function made of straight pieces. Between the points
low_i and high_i where the slope of f_i is -strength and +strength it is kept as a list of knots
(a position, and how much the slope rises there) that is only ever cut and extended at its ends: every
knot is made once and dropped once. The last z is where the slope is zero, and backwards
z_i = z_{i+1} clipped to [low_i, high_i]: an entry that is not clipped is equal to its neighbour, exactly.

Most rows are done before that: `total_variation_directly` is faster, but can take quadratic time.
"""

from __future__ import annotations

from fenchel.kernels.cpu.launch.compilation import sequential
from fenchel.kernels.cpu.launch.memory import advance, load, store
from fenchel.kernels.cpu.structured.total_variation_directly import prox_directly


def prox_workspace(columns: int) -> int:
    """Float64 numbers of scratch memory: two bounds an entry, two knots an entry."""
    return 6 * columns + 4


@sequential
def _cut_from_left(knots, rises, left, right, slope, offset, goal):
    """Drop the knots below the point where slope b + offset, bent at each knot, is `goal`."""
    while left <= right and slope * load(knots, left) + offset < goal:
        offset -= load(rises, left) * load(knots, left)
        slope += load(rises, left)
        left += 1
    return left, slope, (goal - offset) / slope


@sequential
def _cut_from_right(knots, rises, left, right, slope, offset, goal):
    while left <= right and slope * load(knots, right) + offset > goal:
        offset += load(rises, right) * load(knots, right)
        slope -= load(rises, right)
        right -= 1
    return right, slope, (goal - offset) / slope


@sequential
def prox(x, count, strength, z, signs, workspace):
    """Fill z, and for all entries but the first the sign of z_i - z_{i-1} between groups.

    Without strength equal neighbours are groups of their own; a sign is never zero then.
    """
    if strength > 0.0 and prox_directly(x, count, strength, z, signs):
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
