"""Where the chords lie along which a Gaussian is integrated: their direction and places, as
`reference/paraboloid` chooses them.
"""

from __future__ import annotations

import math

from fenchel.kernels.cpu.disk.peak import secular_root, spread
from fenchel.kernels.cpu.launch.compilation import reducing, scalar
from fenchel.kernels.cpu.launch.memory import load, store
from fenchel.kernels.reference.paraboloid import POWER, STRAIGHT

PLAN = 6  # numbers that say where the chords of a pair are
BLOCK = 32  # pairs planned at once
TINY = 1e-300


@scalar
def _look(a, b, c, d, x, y):
    """cos and sin of the chords' frame, and where the chords are, for G = [[a, b], [c, d]]."""
    overlap, difference = 2.0 * (a * b + c * d), (a * a + c * c) - (b * b + d * d)
    size = math.sqrt(overlap * overlap + difference * difference) + TINY
    larger = math.sqrt(0.5 + 0.5 * (abs(difference) + TINY) / size)  # of half the angle
    smaller = 0.5 * overlap / (size * larger)
    cos = larger if difference >= 0.0 else abs(smaller)
    sin = smaller if difference >= 0.0 else (larger if overlap >= 0.0 else -larger)
    long1, long2 = cos * a + sin * b, cos * c + sin * d
    short1, short2 = cos * b - sin * a, cos * d - sin * c
    g1, g2 = math.sqrt(long1 * long1 + long2 * long2), math.sqrt(short1 * short1 + short2 * short2)
    e1, e2 = (long1 * x + long2 * y) / g1, (short1 * x + short2 * y) / g2
    nu = secular_root(g1, e1, g2, e2)
    square1, square2 = g1 * g1, g2 * g2
    u1, u2 = g1 * e1 / (square1 + nu), g2 * e2 / (square2 + nu)
    along1, along2 = u1 / square1, u2 / square2
    size = math.sqrt(along1 * along1 + along2 * along2)
    straight = square2 >= STRAIGHT * g1 and size > 0.0
    inverse = 1.0 / (size if straight else 1.0)
    lean_c = along2 * inverse if straight else 1.0
    lean_s = -along1 * inverse if straight else 0.0
    bend = nu * nu / POWER
    h11, h22 = square1 + nu + bend * u1 * u1, square2 + nu + bend * u2 * u2
    h12 = bend * u1 * u2
    inner = lean_s * lean_s * h11 - 2.0 * lean_s * lean_c * h12 + lean_c * lean_c * h22
    curvature = (h11 * h22 - h12 * h12) / inner
    gaussian = square1 * square2 / (lean_s * lean_s * square1 + lean_c * lean_c * square2)
    outside = abs(e2) - g2
    edge = g2 * (outside if outside > 0.0 else 0.0)
    edge = 0.7 * curvature - gaussian if lean_s != 0.0 else edge
    concavity = gaussian + 2.0 * POWER + edge
    concavity = concavity if concavity > gaussian else gaussian
    middle, scale, first, last = spread(lean_c * u1 + lean_s * u2, curvature, concavity)
    return cos * lean_c - sin * lean_s, sin * lean_c + cos * lean_s, middle, scale, first, last


@reducing
def plan_chords(linear, offset, count, plan):
    """Plan the chords of `count` pairs at once, in vectors; PLAN numbers a pair, BLOCK apart."""
    for i in range(count):
        a, b = load(linear, 4 * i), load(linear, 4 * i + 1)
        c, d = load(linear, 4 * i + 2), load(linear, 4 * i + 3)
        x, y = load(offset, 2 * i), load(offset, 2 * i + 1)
        cos, sin, middle, scale, first, last = _look(a, b, c, d, x, y)
        store(plan, i, cos)
        store(plan, BLOCK + i, sin)
        store(plan, 2 * BLOCK + i, middle)
        store(plan, 3 * BLOCK + i, scale)
        store(plan, 4 * BLOCK + i, first)
        store(plan, 5 * BLOCK + i, last)
