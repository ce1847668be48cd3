"""The Fenchel-Young loss of entmax and its derivatives on the CPU.

Only the normalizer of every row is saved: the backward pass computes p again from the scores.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fenchel.kernels.cpu.entmax_loss.backward import loss_alpha_rows, loss_backward_rows
from fenchel.kernels.cpu.entmax_loss.forward import loss_rows, loss_workspace
from fenchel.kernels.cpu.entmax_loss.terms import target_words
from fenchel.kernels.cpu.launch.compilation import Kernel
from fenchel.kernels.cpu.launch.threads import launch
from fenchel.kernels.cpu.solver.normalizer import normalizer_workspace
from fenchel.kernels.reference.entmax_loss import loss_in_place

_loss_kernel, _backward_kernel = Kernel(loss_rows), Kernel(loss_backward_rows)
_alpha_kernel = Kernel(loss_alpha_rows)


def entmax_loss(
    scores: Tensor, target: Tensor, alpha: float | Tensor, ignore_index: int, smoothing: float
) -> tuple[Tensor, Tensor]:
    """The loss of every row, and its normalizer A (float64; -inf for an ignored row)."""
    loss = scores.new_empty(scores.shape[0])
    normalizer = scores.new_empty(scores.shape[0], dtype=torch.float64)
    words = target_words(target, ignore_index, smoothing)
    workspace = loss_workspace(scores.shape[1])
    launch(_loss_kernel, scores, alpha, workspace, scores, *words, loss, normalizer)
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
    """g (p - q); zero for an ignored row and for a row of -inf. `out` may be the scores."""
    if out is None:
        out = torch.empty_like(scores)
    words = target_words(target, ignore_index, smoothing)
    workspace = loss_workspace(scores.shape[1])
    launch(_backward_kernel, scores, alpha, workspace, scores, *words, grad, normalizer, out)
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
    workspace = normalizer_workspace(scores.shape[1])
    launch(_alpha_kernel, scores, alpha, workspace, scores, *words, normalizer, out)
    return out


entmax_loss_in_place = loss_in_place(entmax_loss, entmax_loss_alpha, entmax_loss_backward)
