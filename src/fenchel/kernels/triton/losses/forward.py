"""The losses and the normalisers of rows: what runs, and with which tiles."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from fenchel.kernels.triton.launch.addressing import Rows, Strides, address
from fenchel.kernels.triton.launch.alpha import (
    GENERAL,
    NEAR_SOFTMAX,
    POWER,
    SOFTMAX,
    with_hardware_logarithms,
)
from fenchel.kernels.triton.launch.long_row_shapes import (
    groups_shape,
    near_loss_shape,
    stream_shape,
    streamed_loss_shape,
)
from fenchel.kernels.triton.launch.tile_shapes import fits_loss_tile, forward_tile_shape
from fenchel.kernels.triton.launch.whole_numbers import ceiling
from fenchel.kernels.triton.losses.long_rows import loss_groups, slope_groups
from fenchel.kernels.triton.losses.near_rows import loss_near_rows
from fenchel.kernels.triton.losses.on_chip import loss_tile
from fenchel.kernels.triton.losses.soft_targets import smooth_rows, terms_rows
from fenchel.kernels.triton.losses.softmax import softmax_loss_rows
from fenchel.kernels.triton.losses.streamed_rows import loss_streamed
from fenchel.kernels.triton.rows.long_rows import solve_long_rows
from fenchel.kernels.triton.rows.softmax import add_long_rows

LOSS_BLOCKS, LOSS_WARPS = 1, 8  # of the program that sums the loss of a long row
SLOPE_BLOCKS, SLOPE_WARPS = 2, 8  # of one that writes its gradient

Exponent = tuple[int, float, Tensor | None]  # what `kind_of` makes of alpha


def or_none(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None or tensor.numel() == 0 else tensor


def stream_losses(
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


def solve_losses(
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
    if fits_loss_tile(rows.columns):
        tile = forward_tile_shape(rows, scores.element_size(), kind, steps[0].column)
        loss_tile[(ceiling(rows.count, tile.rows),)](
            *tensors, loss, normalizer, or_none(support), eps, ignore_index,
            rows.count, rows.columns, rows.middle, rows.inner, *steps,
            LEVELS=rows.levels, KIND=kind, CLASSES=classes, IN_PLACE=grad is not None,
            J=tile.slabs, R=tile.rows, K=tile.width, num_warps=tile.warps,
        )  # fmt: skip
    elif kind == SOFTMAX.value:
        _long_softmax(tensors, loss, normalizer, ignore_index, classes, rows, steps)
    elif walks(kind, eps):
        _near(tensors, loss, normalizer, eps, ignore_index, classes, rows, steps)
    else:
        _long(
            tensors, loss, normalizer, kind, eps, ignore_index, classes, rows, steps,
            or_none(listed), or_none(support),
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


def walks(kind: int, eps: float) -> bool:
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
