"""What the loss keeps of a row for its gradients, and p made of it.

Up to alpha = 2 that is the normaliser A, of which a float64 holds enough. Above, `support` keeps two
numbers more: the smallest score of the support and its probability. Of long rows the groups of columns
that may hold support are listed.
"""

from __future__ import annotations

# ruff: noqa: RET505 (what is known when a kernel is compiled needs if and else)
import torch
import triton
import triton.language as tl
from torch import Tensor

from fenchel.kernels.triton.launch.alpha import EACH_ROW, GENERAL, NEAR_SOFTMAX, STEEP
from fenchel.kernels.triton.launch.long_row_shapes import groups_shape
from fenchel.kernels.triton.launch.tile_shapes import fits_loss_tile
from fenchel.kernels.triton.losses.class_loss import entry_at
from fenchel.kernels.triton.search.steep import support_entry
from fenchel.kernels.triton.tiles.across_threads import any_row


def kept_numbers(columns: int, target: Tensor, alpha: float | Tensor) -> int:
    """How many numbers a row tell the gradient which of the scores it need not read."""
    reads_all = not isinstance(alpha, Tensor) and alpha - 1 < NEAR_SOFTMAX.value
    if target.dtype.is_floating_point or reads_all:
        return 0
    return 0 if fits_loss_tile(columns) else groups_shape(int(columns)).groups + 1


def support_numbers(alpha: float | Tensor) -> int:
    """How many numbers a row, beside A, tell the gradient what p is."""
    return 2 if isinstance(alpha, Tensor) or alpha > 2 else 0


def room_for_support(scores: Tensor, alpha: float | Tensor) -> Tensor:
    shape = (*scores.shape[:-1], support_numbers(alpha))
    return torch.empty(shape, dtype=torch.float32, device=scores.device)


@triton.jit
def keep_support(support, row, bottom, least, present):
    tl.store(support + 2 * row, bottom, mask=present)
    tl.store(support + 2 * row + 1, least, mask=present)


@triton.jit
def kept_support(support, row, present):
    """(bottom, least) of every row, where they were kept."""
    if support is None:
        return 0.0, 0.0
    else:
        bottom = tl.load(support + 2 * row, mask=present, other=0.0)
        return bottom, tl.load(support + 2 * row + 1, mask=present, other=0.0)


@triton.jit
def kept_probability(x, normalizer, bottom, least, e, KIND: tl.constexpr, R: tl.constexpr):
    """p of scores: from A in float64, or from bottom and least for alpha > 2."""
    if KIND == STEEP:
        return support_entry(x, bottom, least, e)
    elif KIND == EACH_ROW:
        p = tl.zeros_like(x)
        if any_row(e <= 1.0, R):
            p, _, _ = entry_at(x, normalizer, tl.minimum(e, 1.0), GENERAL)
        if any_row(e > 1.0, R):
            steep = support_entry(x, bottom, least, tl.maximum(e, 1.0))
            p = tl.where(e > 1.0, steep, p)
        return p
    else:
        p, _, _ = entry_at(x, normalizer, e, KIND)
        return p
