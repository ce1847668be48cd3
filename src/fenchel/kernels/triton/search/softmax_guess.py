"""A guess of A for alpha next to 1, from sums over softmax.

Three of them, of e^z, z e^z and z^2 e^z, give A to first order in e = alpha - 1: with l the normaliser of
softmax and v the mean of (z - l)^2 under it, A = l - e v/2 + O(e^2), written as l/(1 + x/2 + x^2/12) with
x = e v/l, which stays between 0 and 1/e. Far below alpha = 1 the mean of the scores tells more.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportOperatorIssue=false
# ruff: noqa: RET505, SIM109 (what is known when a kernel is compiled needs if and else)
import triton
import triton.language as tl

from fenchel.kernels.triton.arithmetic.elementary import LN_2, LOG2_E, fast_log2, fast_reciprocal
from fenchel.kernels.triton.launch.alpha import COARSE_ABOVE, COARSE_BELOW
from fenchel.kernels.triton.tiles.within_threads import slab_sum

NEXT_TO_SOFTMAX: tl.constexpr = tl.constexpr(0.05)  # e up to which the first guess may be enough,
BELOW_SOFTMAX: tl.constexpr = tl.constexpr(-0.02)  # and the e down to which
CURVED: tl.constexpr = tl.constexpr(0.8)  # l x^2 above which it is not
EMPTY: tl.constexpr = tl.constexpr(0.5)  # a row with a score in it has a larger sum of e^z
LOWEST: tl.constexpr = tl.constexpr(-3e38)  # finite, below any score
VANISHED: tl.constexpr = tl.constexpr(-1e15)  # e^x is 0, and x^2 is finite
REMOTE: tl.constexpr = tl.constexpr(-1e4)  # scores below it are left out of a mean
HEAVY: tl.constexpr = tl.constexpr(-0.15)  # e below which that mean tells where A is


@triton.jit
def softmax_slabs(z):
    """Slabs of e^z, z e^z and z^2 e^z."""
    w = tl.exp2(z * LOG2_E)
    v = w * z
    return slab_sum(w), slab_sum(v), slab_sum(v * z)


@triton.jit
def seen_from(total, first, second, by):
    """The sums of e^z, z e^z and z^2 e^z after z += by, which is not above 0."""
    by = tl.maximum(by, VANISHED)
    scale = tl.exp2(by * LOG2_E)
    moved = first + by * total
    return scale * total, scale * moved, scale * (second + by * (first + moved))


@triton.jit
def first_guess(total, first, second, e, POWERS: tl.constexpr):
    """(A to first order in e, whether rough powers are to come nearer) from three sums over softmax.

    Where no powers are exact, none are rough.
    """
    total = tl.maximum(total, 1.0)
    log_total = fast_log2(total) * LN_2
    spread = (second - 2.0 * log_total * first) * fast_reciprocal(total) + log_total * log_total
    x = e * tl.maximum(spread, 0.0) * fast_reciprocal(tl.maximum(log_total, 1e-6))
    point = log_total * fast_reciprocal(x * (x * (1.0 / 12.0) + 0.5) + 1.0)
    if POWERS == COARSE_ABOVE or POWERS == COARSE_BELOW:
        return point, e != e
    else:
        away = (e > NEXT_TO_SOFTMAX) | (e < BELOW_SOFTMAX)
        return point, (x * x * log_total > CURVED) | away


@triton.jit
def plain_slabs(z):
    """Slabs of the number of scores that are not remote, and of their sum."""
    near = z > REMOTE
    return slab_sum(tl.where(near, 1.0, 0.0)), slab_sum(tl.where(near, z, 0.0))


@triton.jit
def heavy_bound(count, total, e):
    """A if all scores were equal to their mean: a lower bound for alpha < 1, near A far below 1.

    It holds whichever scores are left out.
    """
    return total / tl.maximum(count, 1.0) + (1.0 - tl.exp2(-e * fast_log2(count))) / e
