"""What the losses share with `F.cross_entropy`: shapes, targets, smoothing, weights, reductions."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from fenchel.checks import check_scores
from fenchel.errors import rule

REDUCTIONS = ("mean", "sum", "none")

RowLoss = Callable[[Tensor, Tensor, int], Tensor]


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
    """`row_loss(scores, target, ignore_index)` over all rows, weighted and reduced."""
    if reduction not in REDUCTIONS:
        raise rule("reduction must be known", expected=f"one of {REDUCTIONS}", got=repr(reduction))
    if not 0 <= label_smoothing <= 1:
        raise rule("label_smoothing is a share", expected="a number in [0, 1]", got=label_smoothing)
    dim = class_dimension(scores)
    by_index = _check_target(target, scores, dim)
    classes = scores.shape[dim]
    _check_weight(weight, classes)
    rows = scores.movedim(dim, -1)
    target = target.long() if by_index else target.movedim(dim, -1)
    counts = target != ignore_index if by_index else None
    weights = _row_weights(weight, target, counts)
    if label_smoothing > 0:
        target = _smooth(target, counts, rows, label_smoothing)
    loss = row_loss(rows, target, ignore_index)
    if label_smoothing > 0 and counts is not None:
        loss = torch.where(counts, loss, 0.0)
    if weights is not None:
        loss = loss * weights.to(loss.dtype)
    if reduction == "none":
        return loss
    total = loss.sum()
    if reduction == "sum":
        return total
    if counts is None:
        return total / max(loss.numel(), 1)
    return total / (counts if weights is None else weights).sum().to(loss.dtype)


def _check_target(target: Tensor, scores: Tensor, dim: int) -> bool:
    """Whether the target holds class indices; otherwise it holds probabilities."""
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
    shape = list(scores.shape)
    if by_index:
        del shape[dim]
    if list(target.shape) != shape:
        kind = "class indices" if by_index else "probabilities"
        raise rule(
            f"a target of {kind} must match scores of shape {tuple(scores.shape)}",
            expected=f"shape {tuple(shape)}",
            got=tuple(target.shape),
        )
    return by_index


def _check_weight(weight: Tensor | None, classes: int) -> None:
    if weight is not None and tuple(weight.shape) != (classes,):
        raise rule(
            "weight has one value a class", expected=f"shape ({classes},)", got=tuple(weight.shape)
        )


def _row_weights(weight: Tensor | None, target: Tensor, counts: Tensor | None) -> Tensor | None:
    """The weight of a row: of its class, or the mean over its probabilities; 0 if ignored."""
    if weight is None:
        return None
    if counts is None:
        return (target * weight).sum(-1)
    return torch.where(counts, weight[torch.where(counts, target, 0)], 0.0)


def _smooth(target: Tensor, counts: Tensor | None, rows: Tensor, smoothing: float) -> Tensor:
    """(1 − s) q + s/C; an ignored row becomes uniform and is left out later."""
    uniform = smoothing / rows.shape[-1]
    if counts is None:
        return (1 - smoothing) * target + uniform
    dtype = torch.promote_types(rows.dtype, torch.float32)
    dense = torch.full(rows.shape, uniform, dtype=dtype, device=rows.device)
    index = torch.where(counts, target, 0).unsqueeze(-1)
    return dense.scatter_add(-1, index, torch.full_like(index, 1 - smoothing, dtype=dtype))
