"""The chords along which a Gaussian is integrated: their direction, and the nodes of the outer integral.

The choices are those of `reference/paraboloid` and `reference/peak`, here without branches. Nodes need
not be exact, so logarithms are rough.
"""

from __future__ import annotations

import math

from numba import int64

from fenchel.kernels.cpu.arithmetic.float64 import exp64, rough_log64
from fenchel.kernels.cpu.launch.compilation import inlined, reducing
from fenchel.kernels.cpu.launch.memory import load, store
from fenchel.kernels.reference.paraboloid import DROP, POWER, STRAIGHT_EDGE
from fenchel.kernels.reference.peak import MODE_MARGIN, NEWTON_STEPS, NODE_STRETCH, relative_reach

LOW_REACH, HIGH_REACH = relative_reach(DROP / POWER)
NODE_MULTIPLE = 4
GAUSSIAN_SPAN = 3.78  # last − first of a peak that falls off like a Gaussian on both sides
PLAN_SIZE = 6  # numbers per pair that define its chords
PAIRS_PER_BLOCK = 32  # planned together
SMALLEST_NORM = 1e-300


@inlined
def _larger(a, b):
    return a if a > b else b


@inlined
def _lower_bound(outside, slope):
    """A lower bound of the root ν, from the secular equation with terms linear in ν."""
    root = math.sqrt(outside * outside + 16.0 * POWER * slope)
    top, bottom = (4.0 * POWER, root - outside) if outside < 0.0 else (root + outside, 4.0 * slope)
    return top / bottom


@inlined
def secular_root(g1, e1, g2, e2):
    pull1, pull2, square1, square2 = g1 * abs(e1), g2 * abs(e2), g1 * g1, g2 * g2
    reach1, reach2 = (e1 / g1) ** 2, (e2 / g2) ** 2
    slope1, slope2 = reach1 / square1, reach2 / square2
    alone = _lower_bound(reach1 - 1.0, slope1)
    nu = _larger(alone, _lower_bound(reach1 + reach2 - 1.0, slope1 + slope2))
    nu = _larger(nu, math.sqrt(pull1 * pull1 + pull2 * pull2) - square1)
    nu = _larger(nu, 2.0 * POWER)
    for _ in range(NEWTON_STEPS):
        inverse, inverse1, inverse2 = 1.0 / nu, 1.0 / (square1 + nu), 1.0 / (square2 + nu)
        u1, u2, rest = pull1 * inverse1, pull2 * inverse2, 2.0 * POWER * inverse
        total = u1 * u1 + u2 * u2 + rest
        fall = 2.0 * (u1 * u1 * inverse1 + u2 * u2 * inverse2) + rest * inverse
        nu += 2.0 * total * (math.sqrt(total) - 1.0) / fall
    return nu


@inlined
def _asinh(x):
    return rough_log64(x + math.sqrt(x * x + 1.0))


@inlined
def spread_nodes(mode, curvature, concavity):
    """(middle, scale, first, last) of the nodes v = middle + scale sinh τ."""
    u = mode if mode > -1.0 + MODE_MARGIN else -1.0 + MODE_MARGIN
    u = u if u < 1.0 - MODE_MARGIN else 1.0 - MODE_MARGIN
    above, below = 1.0 - u, 1.0 + u
    scale = NODE_STRETCH / (math.sqrt(curvature) * above * below)
    middle = 0.5 * rough_log64(below / above)
    reach = math.sqrt(2.0 * DROP / concavity)
    to_one = _larger(_larger(above - reach, above * LOW_REACH), 2.0 - HIGH_REACH * below)
    to_minus_one = _larger(_larger(below - reach, below * LOW_REACH), 2.0 - HIGH_REACH * above)
    left = 0.5 * rough_log64(below * (2.0 - to_minus_one) / (above * to_minus_one))
    right = 0.5 * rough_log64(above * (2.0 - to_one) / (below * to_one))
    return middle, scale, -_asinh(left / scale), _asinh(right / scale)


@inlined
def node_count(angles, span):
    """The number of nodes: half of them for a Gaussian peak, all from half a unit more of span."""
    share = 0.5 + 0.5 * min(1.0, 2.0 * (span - GAUSSIAN_SPAN))
    return min(angles, NODE_MULTIPLE * int64(math.ceil(share * angles / NODE_MULTIPLE)))


@inlined
def node(i, middle, scale, first, step):
    """(u, √(1 − u²), weight of dv) of node i."""
    grow = exp64(first + step * i)
    shrink = 1.0 / grow
    v = middle + scale * (0.5 * (grow - shrink))
    p = exp64(-abs(v))
    inverse = 1.0 / (1.0 + p * p)
    u = (1.0 - p * p) * inverse
    weight = scale * (0.5 * (grow + shrink)) * step
    return (u if v >= 0.0 else -u), 2.0 * p * inverse, weight


@inlined
def _chord_frame(a, b, c, d, x, y):
    """Cosine and sine of the frame of the chords, and their positions, for G = [[a, b], [c, d]]."""
    overlap, difference = 2.0 * (a * b + c * d), (a * a + c * c) - (b * b + d * d)
    size = math.sqrt(overlap * overlap + difference * difference) + SMALLEST_NORM
    larger = math.sqrt(0.5 + 0.5 * (abs(difference) + SMALLEST_NORM) / size)  # of half the angle
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
    straight = square2 >= STRAIGHT_EDGE * g1 and size > 0.0
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
    middle, scale, first, last = spread_nodes(lean_c * u1 + lean_s * u2, curvature, concavity)
    return cos * lean_c - sin * lean_s, sin * lean_c + cos * lean_s, middle, scale, first, last


@reducing
def plan_chords(linear, offset, count, plan):
    """Plan the chords of `count` pairs in vectors: PLAN_SIZE numbers per pair, PAIRS_PER_BLOCK apart."""
    for i in range(count):
        a, b = load(linear, 4 * i), load(linear, 4 * i + 1)
        c, d = load(linear, 4 * i + 2), load(linear, 4 * i + 3)
        x, y = load(offset, 2 * i), load(offset, 2 * i + 1)
        cos, sin, middle, scale, first, last = _chord_frame(a, b, c, d, x, y)
        store(plan, i, cos)
        store(plan, PAIRS_PER_BLOCK + i, sin)
        store(plan, 2 * PAIRS_PER_BLOCK + i, middle)
        store(plan, 3 * PAIRS_PER_BLOCK + i, scale)
        store(plan, 4 * PAIRS_PER_BLOCK + i, first)
        store(plan, 5 * PAIRS_PER_BLOCK + i, last)
