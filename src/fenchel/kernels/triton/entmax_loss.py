"""The entmax loss along the last dimension of CUDA scores: one read forward, one read and write back.

`target` holds class indices (…) or probabilities (…, classes). Beside the scores the gradients need the
normaliser A of every row, in float64, and where alpha may be above 2 its `support` (…, 2): the smallest
score of it and the probability of that. Nothing waits for the device: an index that is neither a class
nor `ignore_index` gives a NaN loss.
"""

from __future__ import annotations

# A kernel is launched with options that its parameters do not name.
# pyright: reportCallIssue=false
from typing import Any

import torch
from torch import Tensor

from fenchel.kernels.triton.launch.addressing import Rows, Strides, address
from fenchel.kernels.triton.launch.alpha import (
    GENERAL,
    NEAR_SOFTMAX,
    POWER,
    SOFTMAX,
    kind_of,
    with_hardware_logarithms,
)
from fenchel.kernels.triton.launch.long_row_shapes import (
    groups_shape,
    near_loss_shape,
    stream_shape,
    streamed_loss_shape,
    streams_losses,
)
from fenchel.kernels.triton.launch.replay import replayed
from fenchel.kernels.triton.launch.tile_shapes import (
    LONGEST_LOSS_TILE,
    forward_tile_shape,
    slope_shape,
)
from fenchel.kernels.triton.launch.whole_numbers import ceiling
from fenchel.kernels.triton.losses.class_loss import loss_groups, loss_tile
from fenchel.kernels.triton.losses.loss_derivatives import (
    alpha_rows,
    slope_of_groups,
    slope_tile,
    smooth_rows,
    terms_rows,
)
from fenchel.kernels.triton.losses.loss_in_place import slope_groups
from fenchel.kernels.triton.losses.near_rows import loss_near_rows
from fenchel.kernels.triton.losses.softmax import softmax_loss_rows
from fenchel.kernels.triton.losses.streamed_rows import loss_streamed
from fenchel.kernels.triton.rows.long_rows import solve_long_rows
from fenchel.kernels.triton.rows.softmax import add_long_rows

LOSS_BLOCKS, LOSS_WARPS = 1, 8  # of the program that sums the loss of a long row
SLOPE_BLOCKS, SLOPE_WARPS = 2, 8  # of one that writes its gradient

Exponent = tuple[int, float, Tensor | None]  # what `kind_of` makes of alpha


def leaves_scores_out(alpha: float | Tensor) -> bool:
    """Whether one α for all rows is likely to leave many scores of a long row without support."""
    return not isinstance(alpha, Tensor) and NEAR_SOFTMAX.value <= alpha - 1 <= 1


def kept_numbers(columns: int, target: Tensor, alpha: float | Tensor) -> int:
    """How many numbers a row tell the gradient which of the scores it need not read."""
    reads_all = not isinstance(alpha, Tensor) and alpha - 1 < NEAR_SOFTMAX.value
    if target.dtype.is_floating_point or reads_all:
        return 0
    return groups_shape(int(columns)).groups + 1 if columns > LONGEST_LOSS_TILE else 0


def support_numbers(alpha: float | Tensor) -> int:
    """How many numbers a row, beside A, tell the gradient what p is."""
    return 2 if isinstance(alpha, Tensor) or alpha > 2 else 0


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
    """The loss and the normaliser A, one a row; +inf if the target has a class at −inf.

    `listed` (…, kept_numbers) gets, of long rows, the groups of columns that may hold support and their
    number, `support` (…, support_numbers) its smallest score and the probability of that.
    """
    dtype = torch.float32 if smoothing else scores.dtype
    loss = scores.new_empty(scores.shape[:-1], dtype=dtype)
    normalizer = _forward(
        loss, None, scores, target, kind_of(alpha), ignore_index, smoothing, listed, support
    )  # fmt: skip
    return loss.to(scores.dtype), normalizer


def entmax_loss_in_place(
    grad: Tensor | None,
    scores: Tensor,
    target: Tensor,
    alpha: float | Tensor,
    ignore_index: int,
    smoothing: float,
    by_alpha: bool,
    listed: Tensor | None = None,
) -> tuple[Tensor, Tensor | None]:
    """The loss and, if wanted, ∂L/∂α, one a row and in float32; with g, g (p − q) overwrites the scores.

    The scores are a matrix. For class indices without smoothing or ∂L/∂α it is one read and one write.
    Then `listed` is written as by `entmax_loss`.
    """
    options = ignore_index, smoothing
    kind, eps, _ = exponent = kind_of(alpha)
    loss = scores.new_empty(scores.shape[:-1], dtype=torch.float32)
    fused = not (by_alpha or smoothing or target.dtype.is_floating_point)
    dense = scores.stride(-1) == 1
    if (
        fused and grad is not None and dense
        and streams_losses(kind, *scores.shape, scores.element_size())
    ):  # fmt: skip
        _streamed(loss, grad, scores, target, exponent, ignore_index, listed)
        return loss, None
    if scores.shape[-1] > LONGEST_LOSS_TILE and (kind == SOFTMAX.value or _walks(kind, eps)):
        fused = False  # the gradient of such rows needs the normaliser alone
    support = None if fused else _room_for_support(scores, alpha)
    if by_alpha and listed is None:
        numbers = kept_numbers(scores.shape[-1], target, alpha)
        listed = scores.new_empty((*scores.shape[:-1], numbers), dtype=torch.int32)
    normalizer = _forward(
        loss, grad if fused else None, scores, target, exponent, *options, listed, support
    )  # fmt: skip
    slope = None
    if by_alpha and isinstance(alpha, Tensor):
        slope = entmax_loss_alpha(
            scores, target, alpha, normalizer, *options, listed, support
        )  # fmt: skip
    if grad is not None and not fused:
        entmax_loss_backward(
            grad, scores, target, alpha, normalizer, *options, support=support, out=scores
        )  # fmt: skip
    return loss, slope


def _room_for_support(scores: Tensor, alpha: float | Tensor) -> Tensor:
    shape = (*scores.shape[:-1], support_numbers(alpha))
    return torch.empty(shape, dtype=torch.float32, device=scores.device)


def _or_none(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None or tensor.numel() == 0 else tensor


def _streamed(
    loss: Tensor, grad: Tensor, scores: Tensor, target: Tensor, exponent: Exponent,
    ignore_index: int, listed: Tensor | None,
) -> None:  # fmt: skip
    """A program a row: the losses, and the gradient in place of the scores."""
    kind, eps, _ = exponent
    rows, tensors, steps = address(-1, scores, target.unsqueeze(-1), grad.unsqueeze(-1))
    shape = groups_shape(rows.columns)
    tile = streamed_loss_shape()
    if listed is None:
        listed = torch.empty(
            (rows.count, shape.groups + 1), dtype=torch.int32, device=scores.device
        )
    maxima = scores.new_empty(rows.count, shape.groups)
    loss_streamed[(rows.count,)](
        *tensors, maxima, listed, loss, eps, ignore_index, rows.columns, shape.groups, rows.middle,
        rows.inner, *steps,
        LEVELS=rows.levels, KIND=kind, GROUP=shape.size, WIDTH=shape.width,
        BLOCK=tile.slabs * tile.width // shape.size, J=tile.slabs, K=tile.width,
        num_warps=tile.warps, maxnreg=tile.registers,
    )  # fmt: skip


def _forward(
    loss: Tensor, grad: Tensor | None, scores: Tensor, target: Tensor, exponent: Exponent,
    ignore_index: int, smoothing: float, listed: Tensor | None, support: Tensor | None,
) -> Tensor:  # fmt: skip
    """Write the losses and return the normalisers; with a `grad` the gradient replaces the scores."""
    normalizer = scores.new_empty(scores.shape[:-1], dtype=torch.float64)
    if scores.numel() == 0:
        return normalizer
    classes = not target.dtype.is_floating_point
    kind, eps, alphas = exponent
    rows, tensors, steps = address(
        -1, scores, target.unsqueeze(-1) if classes else target, alphas,
        None if grad is None else grad.unsqueeze(-1),
    )  # fmt: skip
    if rows.columns > LONGEST_LOSS_TILE and kind == SOFTMAX.value:
        _long_softmax(tensors, loss, normalizer, ignore_index, classes, rows, steps)
    elif rows.columns > LONGEST_LOSS_TILE and _walks(kind, eps):
        _near(tensors, loss, normalizer, eps, ignore_index, classes, rows, steps)
    elif rows.columns > LONGEST_LOSS_TILE:
        _long(
            tensors, loss, normalizer, kind, eps, ignore_index, classes, rows, steps,
            _or_none(listed), _or_none(support),
        )  # fmt: skip
    else:
        tile = forward_tile_shape(rows, scores.element_size(), kind, steps[0].column)
        loss_tile[(ceiling(rows.count, tile.rows),)](
            *tensors, loss, normalizer, _or_none(support), eps, ignore_index,
            rows.count, rows.columns, rows.middle, rows.inner, *steps,
            LEVELS=rows.levels, KIND=kind, CLASSES=classes, IN_PLACE=grad is not None,
            J=tile.slabs, R=tile.rows, K=tile.width, num_warps=tile.warps,
        )  # fmt: skip
    if not classes:
        _probability_loss(scores, target, alphas, normalizer, loss, kind, eps)
    elif smoothing > 0:
        _smooth(scores, target, alphas, loss, kind, eps, ignore_index, smoothing)
    return normalizer


def _long(
    tensors: list[Any], loss: Tensor, normalizer: Tensor, kind: int, eps: float,
    ignore_index: int, classes: bool, rows: Rows, steps: list[Strides],
    listed: Tensor | None, support: Tensor | None,
) -> None:  # fmt: skip
    scores, target, alphas, grad = tensors
    quick = with_hardware_logarithms(kind, eps)
    solver = quick if quick == POWER.value else kind  # the last step is exact then
    shape, maxima, listed, state = solve_long_rows(
        scores, None, alphas, solver, eps, rows, steps[0], Strides(0, 0, 0, 0), steps[2],
        listed=listed,
    )  # fmt: skip
    loss_groups[(rows.count,)](
        scores, target, alphas, listed, state, loss, normalizer, support, eps, ignore_index,
        rows.count, rows.columns, shape.groups, rows.middle, rows.inner, *steps[:3],
        LEVELS=rows.levels, KIND=kind, CLASSES=classes, GROUP=shape.size,
        BLOCK=LOSS_BLOCKS * shape.listed, num_warps=LOSS_WARPS,
    )  # fmt: skip
    if grad is not None:
        slope_groups[(rows.count, ceiling(shape.groups, SLOPE_BLOCKS * shape.listed))](
            scores, target, alphas, grad, maxima, state, listed, eps, ignore_index,
            rows.count, rows.columns, shape.groups, rows.middle, rows.inner, *steps,
            LEVELS=rows.levels, KIND=kind, GROUP=shape.size, BLOCK=SLOPE_BLOCKS * shape.listed,
            num_warps=SLOPE_WARPS,
        )  # fmt: skip


def _walks(kind: int, eps: float) -> bool:
    """Whether α is so near 1 that no score is left out."""
    return kind == GENERAL.value and 0 < eps < NEAR_SOFTMAX.value


def _near(
    tensors: list[Any], loss: Tensor, normalizer: Tensor, eps: float, ignore_index: int,
    classes: bool, rows: Rows, steps: list[Strides],
) -> None:  # fmt: skip
    scores, target, _alphas, _grad = tensors
    tile = near_loss_shape()
    loss_near_rows[(rows.count,)](
        scores, target, loss, normalizer, eps, ignore_index,
        rows.columns, rows.middle, rows.inner, *steps[:2],
        LEVELS=rows.levels, CLASSES=classes, J=tile.slabs, K=tile.width,
        num_warps=tile.warps, maxnreg=tile.registers,
    )  # fmt: skip


def _long_softmax(
    tensors: list[Any], loss: Tensor, normalizer: Tensor, ignore_index: int, classes: bool,
    rows: Rows, steps: list[Strides],
) -> None:  # fmt: skip
    scores, target, _alphas, _grad = tensors
    own = target if classes else None
    shape, parts = add_long_rows(scores, None, own, rows, steps[0], steps[2], steps[1])
    softmax_loss_rows[(rows.count,)](
        scores, target, parts, loss, normalizer, ignore_index,
        rows.count, rows.columns, shape.count, rows.middle, rows.inner, *steps[:2],
        LEVELS=rows.levels, CLASSES=classes, WIDTH=shape.width, num_warps=1,
    )  # fmt: skip


def _smooth(
    scores: Tensor, target: Tensor, alphas: Tensor | None, loss: Tensor, kind: int, eps: float,
    ignore_index: int, smoothing: float,
) -> None:  # fmt: skip
    rows, tensors, steps = address(-1, scores, target.unsqueeze(-1), alphas)
    block, warps = stream_shape(rows.columns)
    smooth_rows[(rows.count,)](
        *tensors, loss, eps, ignore_index, smoothing,
        rows.count, rows.columns, rows.middle, rows.inner, *steps,
        LEVELS=rows.levels, KIND=kind, K=block, num_warps=warps,
    )  # fmt: skip


def _probability_loss(
    scores: Tensor, target: Tensor, alphas: Tensor | None, normalizer: Tensor, loss: Tensor,
    kind: int, eps: float,
) -> None:  # fmt: skip
    rows, tensors, steps = address(-1, scores, target, alphas, normalizer.unsqueeze(-1))
    block, warps = stream_shape(rows.columns)
    terms_rows[(rows.count,)](
        *tensors, loss, eps, rows.count, rows.columns, rows.middle, rows.inner, *steps,
        LEVELS=rows.levels, KIND=kind, K=block, num_warps=warps,
    )  # fmt: skip


@replayed
def entmax_loss_backward(
    grad: Tensor,
    scores: Tensor,
    target: Tensor,
    alpha: float | Tensor,
    normalizer: Tensor,
    ignore_index: int,
    smoothing: float,
    listed: Tensor | None = None,
    support: Tensor | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """g (p − q); zero for a row that is ignored or has nothing in it. `out` may be the scores.

    With what the forward pass has `listed`, groups of scores without support are not read where they
    are many; `out` is no other tensor then. Without its `support` rows with α > 2 are solved again.
    """
    if out is None:
        out = torch.empty_like(scores, memory_format=torch.contiguous_format)
    if scores.numel() == 0:
        return out
    classes = not target.dtype.is_floating_point
    kind, eps, alphas = kind_of(alpha)
    support = _support(scores, target, alpha, ignore_index, support)
    rows, tensors, steps = address(
        -1, scores, target.unsqueeze(-1) if classes else target, alphas,
        normalizer.unsqueeze(-1), grad.unsqueeze(-1), out,
    )  # fmt: skip
    if classes and listed is not None and listed.numel() > 0:
        shape = groups_shape(rows.columns)
        slope_of_groups[(rows.count,)](
            *tensors, support, listed, eps, ignore_index, smoothing,
            rows.count, rows.columns, shape.groups, rows.middle, rows.inner, *steps,
            LEVELS=rows.levels, KIND=kind, GROUP=shape.size, BLOCK=SLOPE_BLOCKS * shape.listed,
            num_warps=SLOPE_WARPS,
        )  # fmt: skip
        return out
    tile = slope_shape(rows)
    slope_tile[(ceiling(rows.count, tile.rows), ceiling(rows.columns, tile.width))](
        *tensors, support, eps, ignore_index, smoothing,
        rows.count, rows.columns, rows.middle, rows.inner, *steps,
        LEVELS=rows.levels, KIND=kind, CLASSES=classes, R=tile.rows, K=tile.width,
        num_warps=tile.warps,
    )  # fmt: skip
    return out


def _support(
    scores: Tensor, target: Tensor, alpha: float | Tensor, ignore_index: int,
    support: Tensor | None,
) -> Tensor | None:  # fmt: skip
    """What the forward pass has kept; if that was another implementation's, it is found again."""
    if support_numbers(alpha) == 0:
        return None
    if support is None or support.numel() == 0:
        support = _room_for_support(scores, alpha)
        loss = scores.new_empty(scores.shape[:-1], dtype=torch.float32)
        _forward(loss, None, scores, target, kind_of(alpha), ignore_index, 0.0, None, support)
    return support


def entmax_loss_alpha(
    scores: Tensor,
    target: Tensor,
    alpha: Tensor,
    normalizer: Tensor,
    ignore_index: int,
    smoothing: float,
    listed: Tensor | None = None,
    support: Tensor | None = None,
) -> Tensor:
    """∂L/∂α = ∂Ω_α(q)/∂α − ∂Ω_α(p)/∂α, one a row and in float32, by the envelope theorem."""
    slopes = torch.zeros(normalizer.shape, dtype=torch.float32, device=scores.device)
    if scores.numel() == 0:
        return slopes
    classes = not target.dtype.is_floating_point
    kind, _, alphas = kind_of(alpha)
    rows, tensors, steps = address(
        -1, scores, target.unsqueeze(-1) if classes else target, alphas, normalizer.unsqueeze(-1)
    )  # fmt: skip
    shape = groups_shape(rows.columns)
    block, warps = stream_shape(rows.columns)
    alpha_rows[(rows.count,)](
        *tensors, _support(scores, target, alpha, ignore_index, support),
        _or_none(listed) if classes else None, slopes, ignore_index, smoothing,
        rows.count, rows.columns, shape.groups, rows.middle, rows.inner, *steps,
        LEVELS=rows.levels, KIND=kind, CLASSES=classes, GROUP=shape.size,
        BLOCK=max(1, block // shape.size), num_warps=warps,
    )  # fmt: skip
    return slopes
