"""Targets of losses: checks of their values, smoothing, and probabilities for class indices.

The values are checked inside an operator, so that tracing does not read them.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fenchel.checks import check_values
from fenchel.errors import FenchelError
from fenchel.kernels.reference.entmax_loss import counted, dense_target
from fenchel.operators.derivatives import vmap_over_batch
from fenchel.operators.registration import define


def check_target_values(target: Tensor, classes: int, ignore_index: int) -> None:
    """Class indices must be in range; probabilities must be at least 0 and sum to one."""
    if not target.dtype.is_floating_point:
        if target.numel() == 0:
            return
        least, largest = (end.item() for end in target.aminmax())
        if least >= 0 and largest < classes:
            return
        inside = ((target >= 0) & (target < classes)) | (target == ignore_index)
        check_values(
            target, inside, name="target", expected=f"in [0, {classes - 1}] or {ignore_index}"
        )
        return
    check_values(target, target >= 0, name="target probabilities", expected="at least 0")
    tolerance = max(torch.finfo(target.dtype).eps ** 0.5, 1e-6)
    total = target.to(torch.float64).sum(-1)
    if not bool(((total - 1).abs() <= tolerance).all()):
        worst = total.flatten()[(total - 1).abs().argmax()].item()
        raise FenchelError(f"target probabilities must sum to one, got a sum of {worst}")


def probabilities(target: Tensor, scores: Tensor, ignore_index: int) -> Tensor:
    """The target as probabilities in the dtype of the scores; an ignored row is all zeros."""
    return _PROBABILITIES(target, scores.shape[-1], ignore_index).to(scores.dtype)


def smoothed(target: Tensor, scores: Tensor, ignore_index: int, smoothing: float) -> Tensor:
    """Any target as probabilities (1 − s) q + s/C; an ignored row becomes uniform."""
    if target.dtype.is_floating_point:
        return smooth_probabilities(target, smoothing)
    classes = scores.shape[-1]
    dtype = torch.promote_types(scores.dtype, torch.float32)
    q = smooth_probabilities(_PROBABILITIES(target, classes, ignore_index).to(dtype), smoothing)
    return torch.where((target != ignore_index).unsqueeze(-1), q, 1 / classes)


def smooth_probabilities(target: Tensor, smoothing: float) -> Tensor:
    """(1 − s) q + s/C."""
    if smoothing == 0:
        return target
    return (1 - smoothing) * target + smoothing / target.shape[-1]


def zero_ignored(loss: Tensor, target: Tensor, ignore_index: int) -> Tensor:
    """The losses of the rows, with zero for class indices that are `ignore_index`."""
    return torch.where(counted(target, ignore_index), loss, 0.0)


def _run(target: Tensor, classes: int, ignore_index: int) -> Tensor:
    if target.numel() and not target.is_cuda:  # reading values would stop a GPU
        check_target_values(target, classes, ignore_index)
    if target.dtype.is_floating_point:
        return target.clone()
    return dense_target(target, _fake(target, classes), ignore_index)


def _fake(target: Tensor, classes: int, ignore_index: int = 0) -> Tensor:
    if target.dtype.is_floating_point:
        return torch.empty_like(target)
    return target.new_empty((*target.shape, classes), dtype=torch.float32)


_PROBABILITIES = define(
    "target_probabilities(Tensor target, int classes, int ignore_index) -> Tensor",
    _run,
    _fake,
    vmap=vmap_over_batch,
)
