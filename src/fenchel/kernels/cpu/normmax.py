"""normmax and its derivatives, row by row, on the CPU.

    normmax                  argmax_p <p, x> - ||p||_alpha over the simplex
    normmax_backward         its Jacobian times a vector, from p alone
    normmax_backward_alpha   the same, and the gradient in alpha

`alpha` is a number, or a tensor that holds one float64 a row.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fenchel.kernels.cpu.batches.batch import BATCH, batch_workspace
from fenchel.kernels.cpu.batches.normmax import is_batched, solve_normmax_batches
from fenchel.kernels.cpu.launch.compilation import Kernel
from fenchel.kernels.cpu.launch.threads import launch
from fenchel.kernels.cpu.thresholds.near_peak import near_peak_workspace
from fenchel.kernels.cpu.thresholds.normmax_backward import normmax_backward_rows
from fenchel.kernels.cpu.thresholds.normmax_rows import normmax_rows

_batches, _rows = Kernel(solve_normmax_batches), Kernel(normmax_rows)
_backward = Kernel(normmax_backward_rows)


def normmax(scores: Tensor, alpha: float | Tensor) -> Tensor:
    """Probabilities of every row."""
    out, columns, itemsize = torch.empty_like(scores), scores.shape[1], scores.element_size()
    if not isinstance(alpha, Tensor) and is_batched(columns, alpha):
        workspace = batch_workspace(columns, itemsize, 8)
        launch(_batches, scores, alpha, workspace, scores, out, 0, together=BATCH)
    else:
        workspace = near_peak_workspace(columns, itemsize)
        launch(_rows, scores, alpha, workspace, scores, out)
    return out


def normmax_backward(grad: Tensor, p: Tensor, alpha: float | Tensor) -> Tensor:
    """The gradient in the scores, given that in the probabilities p. Zero off the support."""
    out = torch.empty_like(p)
    launch(_backward, p, alpha, p.shape[1], grad, p, out, 0, 0)
    return out


def normmax_backward_alpha(grad: Tensor, p: Tensor, alpha: float | Tensor) -> tuple[Tensor, Tensor]:
    """The gradients in the scores, and in alpha of every row (float64)."""
    out, by_alpha = torch.empty_like(p), torch.zeros(p.shape[0], dtype=torch.float64)
    launch(_backward, p, alpha, p.shape[1], grad, p, out, by_alpha, 1)
    return out, by_alpha
