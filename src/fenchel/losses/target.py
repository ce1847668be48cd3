"""Targets whose values have been looked at, as an operator so that tracing does not look."""

from __future__ import annotations

import torch
from torch import Tensor

from fenchel.checks import check_values
from fenchel.errors import rule
from fenchel.kernels.operators import define
from fenchel.kernels.reference.entmax_loss import dense_target
from fenchel.kernels.rows import over_batch
from fenchel.losses.reduction import smooth_probabilities


def check_target_values(target: Tensor, classes: int, ignore_index: int) -> None:
    """Class indices must exist, probabilities must be some and sum to one."""
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
    check_values(target, target >= 0, name="target", expected="probabilities, none negative")
    tolerance = max(torch.finfo(target.dtype).eps ** 0.5, 1e-6)
    total = target.to(torch.float64).sum(-1)
    if not bool(((total - 1).abs() <= tolerance).all()):
        worst = total.flatten()[(total - 1).abs().argmax()].item()
        raise rule("target probabilities must sum to one", expected="rows with sum 1", got=worst)


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


def _run(target: Tensor, classes: int, ignore_index: int) -> Tensor:
    if target.numel() and not target.is_cuda:  # looking would stop a GPU
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
    vmap=over_batch,
)
