"""budget and its derivatives, row by row, on the CPU.

    budget              argmax_p <p, x> - ||p||^2 / 2 over 0 <= p <= 1 with the sum k
    budget_backward     its Jacobian times a vector, from p alone
    budget_backward_k   the same, and the gradient in k

k is a number, or a tensor that holds one float64 a row.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fenchel.kernels.cpu.batches.batch import BATCH, SHORT, batch_workspace
from fenchel.kernels.cpu.batches.budget import is_batched, solve_budget_batches
from fenchel.kernels.cpu.launch.compilation import Kernel
from fenchel.kernels.cpu.launch.threads import launch
from fenchel.kernels.cpu.thresholds.budget_backward import budget_backward_rows
from fenchel.kernels.cpu.thresholds.budget_rows import budget_rows, budget_workspace

_batches, _rows = Kernel(solve_budget_batches), Kernel(budget_rows)
_backward = Kernel(budget_backward_rows)


def budget(scores: Tensor, k: float | Tensor) -> Tensor:
    """p of every row."""
    out, columns, itemsize = torch.empty_like(scores), scores.shape[1], scores.element_size()
    left: Tensor | int = 0
    short = columns <= SHORT and scores.dtype == torch.float32
    if short and (isinstance(k, Tensor) or is_batched(columns, k)):
        left = torch.empty(scores.shape[0], dtype=torch.float64)
        size = batch_workspace(columns, itemsize, 8)
        if launch(_batches, scores, k, size, scores, out, left, together=BATCH) == 0:
            return out
    launch(_rows, scores, k, budget_workspace(columns, itemsize), scores, out, left)
    return out


def budget_backward(grad: Tensor, p: Tensor, k: float | Tensor) -> Tensor:
    """The gradient in the scores. Zero where p is 0 or 1."""
    return budget_backward_k(grad, p, k)[0]


def budget_backward_k(grad: Tensor, p: Tensor, k: float | Tensor) -> tuple[Tensor, Tensor]:
    """The gradients in the scores, and in k of every row (float64)."""
    out, by_k = torch.empty_like(p), torch.zeros(p.shape[0], dtype=torch.float64)
    launch(_backward, p, 0.0, 0, grad, p, out, by_k)
    return out, by_k
