"""What the loss saves of a row for its gradients, and p computed from it.

Up to alpha = 2 that is the normalizer A in float64. Above, `support` has two more numbers: the smallest
score of the support and its probability. For long rows, the groups of columns that can be in the
support are listed.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

# ruff: noqa: RET505 (what is known when a kernel is compiled needs if and else)
from torch import Tensor

from fenchel.kernels.triton.entmax_loss.class_loss import (
    entry_from_normalizer,
)
from fenchel.kernels.triton.launch.parameters import (
    ABOVE_2,
    ALPHA_PER_ROW,
    GENERAL,
    NEAR_SOFTMAX_EPS,
)
from fenchel.kernels.triton.launch.tile_shapes import (
    fits_loss_tile,
    groups_shape,
)
from fenchel.kernels.triton.solver.alpha_above_2 import (
    probability_above_2,
)
from fenchel.kernels.triton.tiles.reductions import (
    any_row,
)


def support_sizes(columns: int, target: Tensor, alpha: float | Tensor) -> tuple[int, int]:
    """How many numbers per row the loss writes to `listed` and to `support`."""
    return listed_numbers(columns, target, alpha), support_numbers(alpha)


def listed_numbers(columns: int, target: Tensor, alpha: float | Tensor) -> int:
    """Numbers per row that list the groups that the gradient reads."""
    reads_all = not isinstance(alpha, Tensor) and alpha - 1 < NEAR_SOFTMAX_EPS.value
    if target.dtype.is_floating_point or reads_all:
        return 0
    return 0 if fits_loss_tile(columns) else groups_shape(int(columns)).groups + 1


def support_numbers(alpha: float | Tensor) -> int:
    """Numbers per row that the gradient needs besides A."""
    return 2 if isinstance(alpha, Tensor) or alpha > 2 else 0


def empty_support(scores: Tensor, alpha: float | Tensor) -> Tensor:
    shape = (*scores.shape[:-1], support_numbers(alpha))
    return torch.empty(shape, dtype=torch.float32, device=scores.device)


@triton.jit
def save_support(support, row, bottom, least, present):
    tl.store(support + 2 * row, bottom, mask=present)
    tl.store(support + 2 * row + 1, least, mask=present)


@triton.jit
def load_support(support, row, present):
    """(bottom, least) of every row, if they were saved."""
    if support is None:
        return 0.0, 0.0
    else:
        bottom = tl.load(support + 2 * row, mask=present, other=0.0)
        return bottom, tl.load(support + 2 * row + 1, mask=present, other=0.0)


@triton.jit
def saved_probability(x, normalizer, bottom, least, e, KIND: tl.constexpr, R: tl.constexpr):
    """p of scores: from A in float64, or from bottom and least for alpha > 2."""
    if KIND == ABOVE_2:
        return probability_above_2(x, bottom, least, e)
    elif KIND == ALPHA_PER_ROW:
        p = tl.zeros_like(x)
        if any_row(e <= 1.0, R):
            p, _, _ = entry_from_normalizer(x, normalizer, tl.minimum(e, 1.0), GENERAL)
        if any_row(e > 1.0, R):
            steep = probability_above_2(x, bottom, least, tl.maximum(e, 1.0))
            p = tl.where(e > 1.0, steep, p)
        return p
    else:
        p, _, _ = entry_from_normalizer(x, normalizer, e, KIND)
        return p
