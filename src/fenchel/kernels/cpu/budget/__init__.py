"""budget and its derivatives on the CPU.

    budget              argmax_p <p, x> - ||p||^2 / 2 over 0 <= p <= 1 with the sum k
    budget_backward     its Jacobian times a vector, from p alone
    budget_backward_k   the same, and the gradient in k

k is a number, or a tensor with one float64 per row. The Jacobian is (N.25): on the entries strictly
between 0 and 1, J g = g - mean, and <g, dp/dk> = mean, the mean of g there. Where p is NaN so is the
gradient.
"""

from __future__ import annotations

import torch
from numba import float64
from torch import Tensor

from fenchel.kernels.cpu.budget.long_rows import budget_rows, budget_workspace
from fenchel.kernels.cpu.budget.short_rows import is_batched, solve_budget_batches
from fenchel.kernels.cpu.launch.compilation import Kernel, inlined, reducing
from fenchel.kernels.cpu.launch.memory import TENSORS, floats_at, load, real, store
from fenchel.kernels.cpu.launch.threads import for_each_row, gradient_rows, launch
from fenchel.kernels.cpu.shared.batch import BATCH, SHORT_COLUMNS, batch_workspace


@reducing
def _sums(grad, p, columns):
    """The sum of g over the entries between 0 and 1, NaN if an entry of p is, and their number."""
    zero, one = real(p, 0.0), real(p, 1.0)
    total, size = 0.0, 0.0
    for i in range(columns):
        q, g = load(p, i), float64(load(grad, i))  # conditional loads would not be vectorized
        between = (q > zero) & (q < one)
        total += g if between else float64(q * zero)
        size += 1.0 if between else 0.0
    return total, size


@inlined
def _backward_row(arguments, row, k, columns, workspace):
    grad, p, out = gradient_rows(arguments, row, columns)
    zero, one = real(p, 0.0), real(p, 1.0)
    total, size = _sums(grad, p, columns)
    mean = total / max(size, 1.0)
    for i in range(columns):
        q, g = load(p, i), float64(load(grad, i))
        outside = (q <= zero) | (q >= one)
        store(out, i, 0.0 if outside else g - mean)
    store(floats_at(arguments, TENSORS + 3), row, mean)


def _backward_rows(arguments):
    """The gradients in the scores, and in the k of every row."""
    for_each_row(arguments, _backward_row)


_short_kernel, _long_kernel = Kernel(solve_budget_batches), Kernel(budget_rows)
_backward_kernel = Kernel(_backward_rows)


def budget(scores: Tensor, k: float | Tensor) -> Tensor:
    """p of every row."""
    out, columns, itemsize = torch.empty_like(scores), scores.shape[1], scores.element_size()
    unsolved: Tensor | int = 0
    short = columns <= SHORT_COLUMNS and scores.dtype == torch.float32
    if short and (isinstance(k, Tensor) or is_batched(columns, k)):
        unsolved = torch.empty(scores.shape[0], dtype=torch.float64)
        size = batch_workspace(columns, itemsize, 8)
        if launch(_short_kernel, scores, k, size, scores, out, unsolved, together=BATCH) == 0:
            return out
    launch(_long_kernel, scores, k, budget_workspace(columns, itemsize), scores, out, unsolved)
    return out


def budget_backward(grad: Tensor, p: Tensor, k: float | Tensor) -> Tensor:
    """The gradient in the scores. Zero where p is 0 or 1."""
    return budget_backward_k(grad, p, k)[0]


def budget_backward_k(grad: Tensor, p: Tensor, k: float | Tensor) -> tuple[Tensor, Tensor]:
    """The gradients in the scores, and in k of every row (float64)."""
    out, by_k = torch.empty_like(p), torch.zeros(p.shape[0], dtype=torch.float64)
    launch(_backward_kernel, p, 0.0, 0, grad, p, out, by_k)
    return out, by_k
