"""alpha as the kernels take it: its kind, for which they are compiled, and e = alpha - 1.

e is one number for all rows, or comes from a tensor with one value a row. Of alpha <= 3/2 more is known
when a kernel is compiled: which of `fine_powers` are exact enough.
"""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

# Kinds of alpha. EACH_ROW is GENERAL up to 2 and STEEP above, row by row.
SPARSEMAX: tl.constexpr = tl.constexpr(0)
ENTMAX15: tl.constexpr = tl.constexpr(1)
STEEP: tl.constexpr = tl.constexpr(2)  # above 2
EACH_ROW: tl.constexpr = tl.constexpr(3)
SOFTMAX: tl.constexpr = tl.constexpr(4)  # alpha = 1: nothing is solved
# From here on: any alpha up to 2, by powers. Hardware logarithms serve where alpha is not near 1: on
# the way to the root (POWER), or throughout if p is rounded to half precision (COARSE), or if alpha is
# not much below 3/2 (SHARP), where the power that they are multiplied by is small.
GENERAL: tl.constexpr = tl.constexpr(5)
POWER: tl.constexpr = tl.constexpr(6)
COARSE: tl.constexpr = tl.constexpr(7)
SHARP: tl.constexpr = tl.constexpr(8)
TINY: tl.constexpr = tl.constexpr(1e-20)  # stands for e = 0: log(1 + e u)/e is then u

TAME: tl.constexpr = tl.constexpr(0.45)  # e up to which Halley's error is cubic with a small factor
NEAR_SOFTMAX: tl.constexpr = tl.constexpr(1 / 16)  # |e| below which lg2 is too rough on the way

# What is known of e = alpha - 1, and so which powers are exact enough. Up to POWERS_ABOVE, e > 0.
COARSE_ABOVE: tl.constexpr = tl.constexpr(0)  # the hardware's, for half precision
NEAR_POWERS: tl.constexpr = tl.constexpr(1)  # e < 1/16: t < 0.4 is too rare to matter
SERIES_ABOVE: tl.constexpr = tl.constexpr(2)
POWERS_ABOVE: tl.constexpr = tl.constexpr(3)  # e >= 1/16
POWERS_BELOW: tl.constexpr = tl.constexpr(4)  # e < 0
COARSE_BELOW: tl.constexpr = tl.constexpr(5)
ANY_POWERS: tl.constexpr = tl.constexpr(6)

ROUGHLY_SOFTMAX: tl.constexpr = tl.constexpr(2.0**-8)  # |e| from which coarse powers may be used


@triton.jit
def epsilon(alpha):
    """e = alpha - 1 in float32, never zero; the subtraction happens in the precision of alpha."""
    e = (alpha - 1.0).to(tl.float32)
    return tl.where(tl.abs(e) < TINY, TINY, e)


def needs_no_powers(kind: int) -> bool:
    return kind in (SPARSEMAX.value, ENTMAX15.value, SOFTMAX.value)


def kind_of(alpha: float | Tensor) -> tuple[int, float, Tensor | None]:
    """(kind, alpha - 1, tensor): the number is not used when there is a tensor."""
    if isinstance(alpha, Tensor):
        return EACH_ROW.value, 0.0, alpha
    if alpha == 2:
        kind = SPARSEMAX
    elif alpha == 1.5:
        kind = ENTMAX15
    elif alpha == 1:
        kind = SOFTMAX
    else:
        kind = STEEP if alpha > 2 else GENERAL
    eps = alpha - 1
    return kind.value, eps if abs(eps) >= TINY.value else TINY.value, None


def with_hardware_logarithms(kind: int, eps: float, *, rounded: bool = False) -> int:
    """The kind that solves the same rows faster; `rounded`: into half precision."""
    if kind != GENERAL.value or abs(eps) < NEAR_SOFTMAX.value:
        return kind
    if eps > TAME.value:
        return SHARP.value
    return COARSE.value if rounded else POWER.value


def powers_of(eps: float, *, rounded: bool) -> int:
    """What `fine_powers` may take for granted of α ≤ 3/2; `rounded`: into half precision."""
    if rounded and abs(eps) >= ROUGHLY_SOFTMAX.value:
        return (COARSE_ABOVE if eps > 0 else COARSE_BELOW).value
    if eps < 0:
        return POWERS_BELOW.value
    return (NEAR_POWERS if eps < NEAR_SOFTMAX.value else POWERS_ABOVE).value
