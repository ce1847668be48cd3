"""The losses and normalizers of rows: the choice of the kernel and its tiles.

    kernel                alpha          classes           rows and dtype
    on_chip               any            up to 8192
    long_rows (softmax)   1              from 8193
    near_softmax          1 to 1.0625    from 8193
    long_rows             all others     from 8193
    in_place              3/2, 2         65537 to 131072   from 256 rows, half precision, dense

`soft_targets` adds the terms of probabilities and of label smoothing. The kernel of `in_place` also
writes the gradient over the scores.
"""

from __future__ import annotations

import torch

# A kernel is launched with options that its parameters do not name.
# pyright: reportCallIssue=false
from torch import Tensor

from fenchel.kernels.triton.entmax_loss.long_rows import (
    launch_long_rows,
    launch_long_softmax,
)
from fenchel.kernels.triton.entmax_loss.near_softmax import (
    launch_near_softmax,
)
from fenchel.kernels.triton.entmax_loss.on_chip import (
    loss_tile,
)
from fenchel.kernels.triton.entmax_loss.saved_for_backward import (
    empty_support,
    support_numbers,
)
from fenchel.kernels.triton.entmax_loss.soft_targets import (
    add_probability_terms,
    smooth_labels,
)
from fenchel.kernels.triton.launch.addressing import (
    address,
)
from fenchel.kernels.triton.launch.parameters import (
    GENERAL,
    NEAR_SOFTMAX_EPS,
    SOFTMAX,
    kind_of,
)
from fenchel.kernels.triton.launch.replay import (
    replayed,
)
from fenchel.kernels.triton.launch.tile_shapes import (
    ceil_div,
    fits_loss_tile,
    forward_tile,
)

Exponent = tuple[int, float, Tensor | None]  # what `kind_of` makes of alpha


@replayed
def entmax_loss(
    scores: Tensor,
    target: Tensor,
    alpha: float | Tensor,
    ignore_index: int,
    smoothing: float,
    listed: Tensor | None = None,
    support: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The loss and the normalizer A, one per row; +inf if the target has a class at −inf.

    For long rows, `listed` (…, kept_numbers) gets the groups of columns that can be in the support and
    their number; `support` (…, support_numbers) gets its smallest score and the probability of that
    score.
    """
    dtype = torch.float32 if smoothing else scores.dtype
    loss = scores.new_empty(scores.shape[:-1], dtype=dtype)
    normalizer = launch_losses(
        loss, None, scores, target, kind_of(alpha), ignore_index, smoothing, listed, support
    )  # fmt: skip
    return loss.to(scores.dtype), normalizer


def saved_or_new_support(
    scores: Tensor, target: Tensor, alpha: float | Tensor, ignore_index: int,
    support: Tensor | None,
) -> Tensor | None:  # fmt: skip
    """What the forward pass has saved; computed again if another implementation ran it."""
    if support_numbers(alpha) == 0:
        return None
    if support is None or support.numel() == 0:
        support = empty_support(scores, alpha)
        loss = scores.new_empty(scores.shape[:-1], dtype=torch.float32)
        launch_losses(loss, None, scores, target, kind_of(alpha), ignore_index, 0.0, None, support)
    return support


def or_none(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None or tensor.numel() == 0 else tensor


def launch_losses(
    loss: Tensor, grad: Tensor | None, scores: Tensor, target: Tensor, exponent: Exponent,
    ignore_index: int, smoothing: float, listed: Tensor | None, support: Tensor | None,
) -> Tensor:  # fmt: skip
    """Write the losses and return the normalizers; with a `grad` the gradient replaces the scores."""
    normalizer = scores.new_empty(scores.shape[:-1], dtype=torch.float64)
    if scores.numel() == 0:
        return normalizer
    classes = not target.dtype.is_floating_point
    kind, eps, alphas = exponent
    rows, tensors, steps = address(
        -1, scores, target.unsqueeze(-1) if classes else target, alphas,
        None if grad is None else grad.unsqueeze(-1),
    )  # fmt: skip
    if fits_loss_tile(rows.columns):
        tile = forward_tile(rows, scores.element_size(), kind, steps[0].column)
        loss_tile[(ceil_div(rows.count, tile.rows),)](
            *tensors, loss, normalizer, or_none(support), eps, ignore_index,
            rows.count, rows.columns, rows.middle, rows.inner, *steps,
            LEVELS=rows.levels, KIND=kind, CLASSES=classes, IN_PLACE=grad is not None,
            J=tile.slabs, R=tile.rows, K=tile.width, num_warps=tile.warps,
        )  # fmt: skip
    elif kind == SOFTMAX.value:
        launch_long_softmax(tensors, loss, normalizer, ignore_index, classes, rows, steps)
    elif is_near_softmax(kind, eps):
        launch_near_softmax(tensors, loss, normalizer, eps, ignore_index, classes, rows, steps)
    else:
        launch_long_rows(
            tensors, loss, normalizer, kind, eps, ignore_index, classes, rows, steps,
            or_none(listed), or_none(support),
        )  # fmt: skip
    if not classes:
        add_probability_terms(scores, target, alphas, normalizer, loss, kind, eps)
    elif smoothing > 0:
        smooth_labels(scores, target, alphas, loss, kind, eps, ignore_index, smoothing)
    return normalizer


def is_near_softmax(kind: int, eps: float) -> bool:
    """Whether α is so close to 1 that no score is left out."""
    return kind == GENERAL.value and 0 < eps < NEAR_SOFTMAX_EPS.value
