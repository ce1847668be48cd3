"""What the losses share with `F.cross_entropy`: shapes, targets, smoothing, weights, reductions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from fenchel.checks import check_scores
from fenchel.errors import rule

REDUCTIONS = ("mean", "sum", "none")

RowLoss = Callable[[Tensor, Tensor, int, float], Tensor]


def class_dimension(scores: Tensor) -> int:
    """Where the classes are in (C), (N, C) and (N, C, d1, …), counted from the end."""
    check_scores(scores)
    return -1 if scores.ndim == 1 else 1 - scores.ndim


def reduce_loss(
    row_loss: RowLoss,
    scores: Tensor,
    target: Tensor,
    *,
    weight: Tensor | None,
    ignore_index: int,
    reduction: str,
    label_smoothing: float,
) -> Tensor:
    """`row_loss(scores, target, ignore_index, label_smoothing)` over all rows, weighted and reduced."""
    check_options(reduction, label_smoothing)
    dim = class_dimension(scores)
    by_index = check_target(target, scores.shape, dim)
    rows = scores.movedim(dim, -1)
    target = target.long() if by_index else target.movedim(dim, -1)
    weights = row_weights(weight, target, scores.shape[dim], ignore_index)
    loss = row_loss(rows, target, ignore_index, label_smoothing)
    if weights is not None:
        loss = loss * weights.to(loss.dtype)
    if reduction == "none":
        return loss
    total = loss.sum()
    return total if reduction == "sum" else mean_of(total, target, weights, ignore_index)


def mean_of(total: Tensor, target: Tensor, weights: Tensor | None, ignore_index: int) -> Tensor:
    """The mean over the weights of the rows that count; over all rows of probabilities."""
    if target.dtype.is_floating_point:
        return total / max(math.prod(target.shape[:-1]), 1)
    shares = target != ignore_index if weights is None else weights
    return total / shares.sum().to(total.dtype)


def check_options(reduction: str, label_smoothing: float) -> None:
    if reduction not in REDUCTIONS:
        raise rule("reduction must be known", expected=f"one of {REDUCTIONS}", got=repr(reduction))
    if not 0 <= label_smoothing <= 1:
        raise rule("label_smoothing is a share", expected="a number in [0, 1]", got=label_smoothing)


def check_target(target: Tensor, scores: Sequence[int], dim: int) -> bool:
    """Whether a target for scores of this shape holds class indices; else it holds probabilities."""
    if not isinstance(target, Tensor):
        raise rule("target must be a tensor", expected="a torch.Tensor", got=type(target).__name__)
    if target.dtype == torch.bool or target.dtype.is_complex:
        raise rule(
            "target must hold class indices or probabilities",
            expected="an integer or floating dtype",
            got=target.dtype,
        )
    if target.requires_grad:
        raise rule("target is a constant", expected="target.detach()", got="requires_grad=True")
    by_index = not target.dtype.is_floating_point
    shape = list(scores)
    if by_index:
        del shape[dim]
    if list(target.shape) != shape:
        kind = "class indices" if by_index else "probabilities"
        raise rule(
            f"a target of {kind} must match scores of shape {tuple(scores)}",
            expected=f"shape {tuple(shape)}",
            got=tuple(target.shape),
        )
    return by_index


def row_weights(
    weight: Tensor | None, target: Tensor, classes: int, ignore_index: int
) -> Tensor | None:
    """The weight of a row: of its class, or the mean over its probabilities; 0 if ignored."""
    if weight is None:
        return None
    if tuple(weight.shape) != (classes,):
        raise rule(
            "weight has one value a class", expected=f"shape ({classes},)", got=tuple(weight.shape)
        )
    if target.dtype.is_floating_point:
        return (target * weight).sum(-1)
    counts = target != ignore_index
    return torch.where(counts, weight[torch.where(counts, target, 0)], 0.0)


def smooth_probabilities(target: Tensor, smoothing: float) -> Tensor:
    """(1 − s) q + s/C."""
    if smoothing == 0:
        return target
    return (1 - smoothing) * target + smoothing / target.shape[-1]


def smooth_target(target: Tensor, scores: Tensor, ignore_index: int, smoothing: float) -> Tensor:
    """Any target as smoothed probabilities; an ignored row becomes uniform."""
    if target.dtype.is_floating_point:
        return smooth_probabilities(target, smoothing)
    counts = target != ignore_index
    dtype = torch.promote_types(scores.dtype, torch.float32)
    dense = torch.full(
        scores.shape, smoothing / scores.shape[-1], dtype=dtype, device=scores.device
    )
    index = torch.where(counts, target, 0).unsqueeze(-1)
    return dense.scatter_add(-1, index, torch.full_like(index, 1 - smoothing, dtype=dtype))
