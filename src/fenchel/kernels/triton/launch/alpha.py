"""alpha as the kernels take it: which kind it is, alpha - 1 as a number, or one value a row."""

from __future__ import annotations

from torch import Tensor

from fenchel.kernels.triton.arithmetic.entries import (
    COARSE,
    EACH_ROW,
    ENTMAX15,
    GENERAL,
    POWER,
    SHARP,
    SOFTMAX,
    SPARSEMAX,
    STEEP,
    TINY,
)
from fenchel.kernels.triton.arithmetic.fine_powers import (
    COARSE_ABOVE,
    COARSE_BELOW,
    NEAR_POWERS,
    POWERS_ABOVE,
    POWERS_BELOW,
    ROUGHLY_SOFTMAX,
)
from fenchel.kernels.triton.search.climbing import TAME
from fenchel.kernels.triton.search.normalizer import NEAR_SOFTMAX


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
