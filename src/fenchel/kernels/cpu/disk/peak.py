"""Where to look at an integrand over the unit disk: `reference/peak`, without branches.

Nodes may lie anywhere near the best places, so logarithms are rough here.
"""

from __future__ import annotations

import math

from numba import int64

from fenchel.kernels.cpu.arithmetic.elementary64 import exp64, rough_log64
from fenchel.kernels.cpu.launch.compilation import scalar
from fenchel.kernels.reference.paraboloid import DROP, POWER
from fenchel.kernels.reference.peak import NEAREST, NEWTON_STEPS, STRETCH, relative_reach

LOW, HIGH = relative_reach(DROP / POWER)
LANES = 4
GAUSSIAN_SPAN = 3.78  # last − first of a peak that falls off like a Gaussian on both sides


@scalar
def _larger(a, b):
    return a if a > b else b


@scalar
def _lower_bound(outside, slope):
    """A ν that is not above the root, from the secular equation with its terms linear in ν."""
    root = math.sqrt(outside * outside + 16.0 * POWER * slope)
    top, bottom = (4.0 * POWER, root - outside) if outside < 0.0 else (root + outside, 4.0 * slope)
    return top / bottom


@scalar
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


@scalar
def _asinh(x):
    return rough_log64(x + math.sqrt(x * x + 1.0))


@scalar
def spread(mode, curvature, concavity):
    """(middle, scale, first, last) of the nodes v = middle + scale sinh τ."""
    u = mode if mode > -1.0 + NEAREST else -1.0 + NEAREST
    u = u if u < 1.0 - NEAREST else 1.0 - NEAREST
    above, below = 1.0 - u, 1.0 + u
    scale = STRETCH / (math.sqrt(curvature) * above * below)
    middle = 0.5 * rough_log64(below / above)
    reach = math.sqrt(2.0 * DROP / concavity)
    to_one = _larger(_larger(above - reach, above * LOW), 2.0 - HIGH * below)
    to_minus_one = _larger(_larger(below - reach, below * LOW), 2.0 - HIGH * above)
    left = 0.5 * rough_log64(below * (2.0 - to_minus_one) / (above * to_minus_one))
    right = 0.5 * rough_log64(above * (2.0 - to_one) / (below * to_one))
    return middle, scale, -_asinh(left / scale), _asinh(right / scale)


@scalar
def enough(angles, span):
    """Half of the nodes are enough for a Gaussian peak; all are needed half a unit further."""
    share = 0.5 + 0.5 * min(1.0, 2.0 * (span - GAUSSIAN_SPAN))
    return min(angles, LANES * int64(math.ceil(share * angles / LANES)))


@scalar
def node(i, middle, scale, first, step):
    """(u, √(1 − u²), weight of dv) of node number i."""
    grow = exp64(first + step * i)
    shrink = 1.0 / grow
    v = middle + scale * (0.5 * (grow - shrink))
    p = exp64(-abs(v))
    inverse = 1.0 / (1.0 + p * p)
    u = (1.0 - p * p) * inverse
    weight = scale * (0.5 * (grow + shrink)) * step
    return (u if v >= 0.0 else -u), 2.0 * p * inverse, weight
