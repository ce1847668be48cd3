"""The entmax loss along the last dimension of CUDA scores: one read forward, one read and write back.

`target` holds class indices (…) or probabilities (…, classes); the normaliser A of every row, in
float64, is all that the gradient needs beside the scores. Nothing waits for the device: an index that
is neither a class nor `ignore_index` gives a NaN loss.
"""

from __future__ import annotations

# A kernel is launched with options that its parameters do not name.
# pyright: reportCallIssue=false
from typing import Any

import torch
from torch import Tensor

from fenchel.kernels.triton.addressing import Rows, Strides, address
from fenchel.kernels.triton.configuration import (
    LONGEST_LOSS_TILE,
    ceiling,
    forward_tile_shape,
    slope_shape,
    stream_shape,
)
from fenchel.kernels.triton.entmax import entmax_into, solve_long_rows
from fenchel.kernels.triton.entries import EACH_ROW, STEEP
from fenchel.kernels.triton.exponent import kind_of
from fenchel.kernels.triton.loss import loss_groups, loss_tile
from fenchel.kernels.triton.loss_derivatives import alpha_rows, slope_tile, terms_rows


def entmax_loss(
    scores: Tensor, target: Tensor, alpha: float | Tensor, ignore_index: int
) -> tuple[Tensor, Tensor]:
    """The loss and the normaliser A, one a row; +inf if the target has a class at −inf."""
    batch = scores.shape[:-1]
    loss = scores.new_empty(batch)
    normalizer = scores.new_empty(batch, dtype=torch.float64)
    if scores.numel() == 0:
        return loss, normalizer
    classes = not target.dtype.is_floating_point
    kind, eps, alphas = kind_of(alpha)
    target_like = target.unsqueeze(-1) if classes else target
    rows, tensors, steps = address(-1, scores, target_like, alphas)
    if rows.columns > LONGEST_LOSS_TILE:
        _long(tensors, loss, normalizer, kind, eps, ignore_index, classes, rows, steps)
    else:
        tile = forward_tile_shape(rows, scores.element_size(), kind)
        loss_tile[(ceiling(rows.count, tile.rows),)](
            *tensors, loss, normalizer, eps, ignore_index,
            rows.count, rows.columns, rows.middle, rows.inner, *steps,
            LEVELS=rows.levels, KIND=kind, CLASSES=classes,
            J=tile.slabs, R=tile.rows, K=tile.width, num_warps=tile.warps,
        )  # fmt: skip
    if not classes:
        _probability_loss(scores, target, alphas, normalizer, loss, kind, eps)
    return loss, normalizer


def _long(
    tensors: list[Any], loss: Tensor, normalizer: Tensor, kind: int, eps: float,
    ignore_index: int, classes: bool, rows: Rows, steps: list[Strides],
) -> None:  # fmt: skip
    scores, target, alphas = tensors
    shape, _, listed, state = solve_long_rows(
        scores, None, alphas, kind, eps, rows, steps[0], Strides(0, 0, 0, 0), steps[2]
    )
    loss_groups[(rows.count,)](
        scores, target, alphas, listed, state, loss, normalizer, eps, ignore_index,
        rows.count, rows.columns, shape.groups, rows.middle, rows.inner, *steps,
        LEVELS=rows.levels, KIND=kind, CLASSES=classes, GROUP=shape.size, BLOCK=shape.listed,
        num_warps=4,
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


def entmax_loss_backward(
    grad: Tensor,
    scores: Tensor,
    target: Tensor,
    alpha: float | Tensor,
    normalizer: Tensor,
    ignore_index: int,
) -> Tensor:
    """g (p − q); zero for a row that is ignored or has nothing in it."""
    out = torch.empty_like(scores, memory_format=torch.contiguous_format)
    if scores.numel() == 0:
        return out
    classes = not target.dtype.is_floating_point
    kind, eps, alphas = kind_of(alpha)
    given = kind in (STEEP.value, EACH_ROW.value)  # a float64 does not hold A where alpha > 2
    rows, tensors, steps = address(
        -1, _probabilities(scores, alpha) if given else scores,
        target.unsqueeze(-1) if classes else target, alphas,
        normalizer.unsqueeze(-1), grad.unsqueeze(-1), out,
    )  # fmt: skip
    tile = slope_shape(rows)
    slope_tile[(ceiling(rows.count, tile.rows), ceiling(rows.columns, tile.width))](
        *tensors, eps, ignore_index, rows.count, rows.columns, rows.middle, rows.inner, *steps,
        LEVELS=rows.levels, KIND=kind, CLASSES=classes, GIVEN=given, R=tile.rows, K=tile.width,
        num_warps=tile.warps,
    )  # fmt: skip
    return out


def _probabilities(scores: Tensor, alpha: float | Tensor) -> Tensor:
    p = torch.empty_like(scores, dtype=torch.float32)
    entmax_into(p, scores, alpha, None, -1)
    return p


def entmax_loss_alpha(
    scores: Tensor, target: Tensor, alpha: Tensor, normalizer: Tensor, ignore_index: int
) -> Tensor:
    """∂L/∂α = ∂Ω_α(q)/∂α − ∂Ω_α(p)/∂α, one a row and in float32, by the envelope theorem."""
    slopes = torch.zeros(normalizer.shape, dtype=torch.float32, device=scores.device)
    if scores.numel() == 0:
        return slopes
    classes = not target.dtype.is_floating_point
    kind, _, alphas = kind_of(alpha)
    rows, tensors, steps = address(
        -1, _probabilities(scores, alpha), target.unsqueeze(-1) if classes else target, alphas,
        normalizer.unsqueeze(-1),
    )  # fmt: skip
    block, warps = stream_shape(rows.columns)
    alpha_rows[(rows.count,)](
        *tensors, slopes, ignore_index, rows.count, rows.columns, rows.middle, rows.inner, *steps,
        LEVELS=rows.levels, KIND=kind, CLASSES=classes, K=block, num_warps=warps,
    )  # fmt: skip
    return slopes
