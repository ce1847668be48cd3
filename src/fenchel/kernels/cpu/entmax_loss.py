"""The Fenchel-Young loss of entmax and its derivatives, row by row, on the CPU.

Nothing of the size of the scores is kept: the gradients are made again from the normaliser of every row.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fenchel.kernels.cpu.launch.compilation import Kernel
from fenchel.kernels.cpu.launch.threads import launch
from fenchel.kernels.cpu.losses.alpha_slope import alpha_rows
from fenchel.kernels.cpu.losses.forward import loss_rows, loss_workspace
from fenchel.kernels.cpu.losses.slopes import slope_rows
from fenchel.kernels.cpu.losses.targets import target_words
from fenchel.kernels.cpu.search.normalizer import workspace_size
from fenchel.kernels.reference.in_place import loss_in_place

_loss, _slope, _in_alpha = Kernel(loss_rows), Kernel(slope_rows), Kernel(alpha_rows)


def entmax_loss(
    scores: Tensor, target: Tensor, alpha: float | Tensor, ignore_index: int, smoothing: float
) -> tuple[Tensor, Tensor]:
    """The loss of every row and its normaliser A (float64; -inf for a row that is ignored)."""
    loss = scores.new_empty(scores.shape[0])
    normalizer = scores.new_empty(scores.shape[0], dtype=torch.float64)
    words = target_words(target, ignore_index, smoothing)
    workspace = loss_workspace(scores.shape[1])
    launch(_loss, scores, alpha, workspace, scores, *words, loss, normalizer)
    return loss, normalizer


def entmax_loss_backward(
    grad: Tensor,
    scores: Tensor,
    target: Tensor,
    alpha: float | Tensor,
    normalizer: Tensor,
    ignore_index: int,
    smoothing: float,
    out: Tensor | None = None,
) -> Tensor:
    """g (p - q); zero for a row that is ignored or has nothing in it. `out` may be the scores."""
    if out is None:
        out = torch.empty_like(scores)
    words = target_words(target, ignore_index, smoothing)
    workspace = workspace_size(scores.shape[1])
    launch(_slope, scores, alpha, workspace, scores, *words, grad, normalizer, out)
    return out


def entmax_loss_alpha(
    scores: Tensor,
    target: Tensor,
    alpha: Tensor,
    normalizer: Tensor,
    ignore_index: int,
    smoothing: float,
) -> Tensor:
    """dL/dalpha of every row (float64)."""
    out = torch.zeros_like(normalizer)
    words = target_words(target, ignore_index, smoothing)
    workspace = workspace_size(scores.shape[1])
    launch(_in_alpha, scores, alpha, workspace, scores, *words, normalizer, out)
    return out


entmax_loss_in_place = loss_in_place(entmax_loss, entmax_loss_alpha, entmax_loss_backward)
