"""The arguments of `F.cross_entropy`: shapes, targets, label smoothing, weights, reductions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from numbers import Integral, Real

import torch
from torch import Tensor

from fenchel.checks import check_dense, check_device, check_known, check_scores, check_tensor
from fenchel.errors import FenchelError
from fenchel.operators.layout import HALF

REDUCTIONS = ("mean", "sum", "none")

RowLoss = Callable[[Tensor, Tensor, int, float], Tensor]


def class_dimension(scores: Tensor) -> int:
    """The dimension of the classes in (C), (N, C) and (N, C, d1, …), as a negative number."""
    check_scores(scores)
    dim = -1 if scores.ndim == 1 else 1 - scores.ndim
    check_classes(scores.shape[dim], f"scores of shape {tuple(scores.shape)}")
    return dim


def check_classes(classes: int, given: str) -> None:
    if classes == 0:
        raise FenchelError(f"there must be at least one class, got {given}")


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
    check_options(reduction, label_smoothing, ignore_index)
    dim = class_dimension(scores)
    by_index = check_target(target, scores.shape, dim)
    check_device(target, scores, "target")
    rows = _last(scores, dim)
    target = target.long() if by_index else _last(target, dim)
    weights = row_weights(weight, target, scores.shape[dim], ignore_index)
    loss = row_loss(rows, target, ignore_index, label_smoothing)
    if weights is not None:
        loss = loss * weights.to(loss.dtype)
    return reduced(loss, reduction, target, weights, ignore_index)


def _last(tensor: Tensor, dim: int) -> Tensor:
    return tensor if dim == -1 else tensor.movedim(dim, -1)


def reduced(
    loss: Tensor, reduction: str, target: Tensor, weights: Tensor | None, ignore_index: int
) -> Tensor:
    """The losses of the rows, their sum or their mean."""
    if reduction == "none":
        return loss
    # In float16, the sum over a large batch and its number of rows would overflow.
    narrow = loss.dtype in HALF
    total = loss.sum(dtype=torch.float32) if narrow else loss.sum()
    if reduction == "mean":
        total = mean_of(total, target, weights, ignore_index)
    return total.to(loss.dtype) if narrow else total


def mean_of(total: Tensor, target: Tensor, weights: Tensor | None, ignore_index: int) -> Tensor:
    """The weighted mean over rows that are not ignored, or over all rows of probabilities.

    It is NaN if there are no such rows, as in `F.cross_entropy`.
    """
    if target.dtype.is_floating_point:
        return total / math.prod(target.shape[:-1])
    if weights is None:
        return total / (target != ignore_index).sum()  # an integer keeps the dtype of the mean
    return total / weights.sum().to(total.dtype)


def check_options(reduction: str, label_smoothing: float, ignore_index: int) -> None:
    check_known("reduction", reduction, REDUCTIONS)
    share = isinstance(label_smoothing, Real) and not isinstance(label_smoothing, bool)
    if not share or not 0 <= label_smoothing <= 1:
        raise FenchelError(f"label_smoothing must be a number in [0, 1], got {label_smoothing!r}")
    if not _is_index(ignore_index):
        raise FenchelError(f"ignore_index must be an integer, got {ignore_index!r}")


def _is_index(value: object) -> bool:
    if isinstance(value, Tensor):
        kind = value.dtype
        return value.ndim == 0 and not (
            kind.is_floating_point or kind.is_complex or kind == torch.bool
        )
    return isinstance(value, Integral) and not isinstance(value, bool)


def check_target(target: Tensor, scores: Sequence[int], dim: int) -> bool:
    """Check a target for scores of this shape; returns whether it has class indices."""
    check_tensor(target, "target")
    if target.dtype == torch.bool or target.dtype.is_complex:
        raise FenchelError(f"target must have an integer or floating dtype, got {target.dtype}")
    if target.requires_grad:
        raise FenchelError("target must not require grad: pass target.detach()")
    by_index = not target.dtype.is_floating_point
    shape = list(scores)
    if by_index:
        del shape[dim]
    if list(target.shape) != shape:
        kind = "class indices" if by_index else "probabilities"
        raise FenchelError(
            f"a target of {kind} must have shape {tuple(shape)} for scores of shape"
            f" {tuple(scores)}, got {tuple(target.shape)}"
        )
    return by_index


def row_weights(
    weight: Tensor | None, target: Tensor, classes: int, ignore_index: int, name: str = "weight"
) -> Tensor | None:
    """The weight of a row: of its class, or the mean over its probabilities; 0 if ignored."""
    if weight is None:
        return None
    if not isinstance(weight, Tensor) or tuple(weight.shape) != (classes,):
        got = tuple(weight.shape) if isinstance(weight, Tensor) else type(weight).__name__
        raise FenchelError(f"{name} must be a tensor of shape ({classes},), got {got}")
    if weight.dtype.is_complex:
        raise FenchelError(f"{name} must be real, got {weight.dtype}")
    check_dense(weight, name)
    check_device(weight, target, name, "the target")
    if target.dtype.is_floating_point:
        return (target * weight).sum(-1)
    # Targets out of range are clamped here and raise in the loss.
    return torch.where(target != ignore_index, weight[target.clamp(0, classes - 1)], 0.0)
