"""budget and its derivatives along any dimension of a CUDA tensor.

    budget              argmax_p <p, x> - ||p||^2 / 2 over 0 <= p <= 1 with the sum k
    budget_backward     its Jacobian times a vector, from p alone
    budget_backward_k   the same, and the gradient in k

k is a number, or a tensor with one value a row. Nothing waits for the device, so CUDA graphs can capture
every call.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fenchel.kernels.triton.launch.addressing import copy_back
from fenchel.kernels.triton.launch.parameters import parameter_parts
from fenchel.kernels.triton.thresholds.backward import BUDGET, pull_back
from fenchel.kernels.triton.thresholds.budget_rows import budget_tile, solve_budget_groups
from fenchel.kernels.triton.thresholds.row_programs import one_a_row
from fenchel.kernels.triton.thresholds.rows import fits, launch_groups, launch_tiles


def budget(scores: Tensor, k: float | Tensor, mask: Tensor | None = None, dim: int = -1) -> Tensor:
    """argmax ⟨p, x⟩ − ½‖p‖² over 0 ≤ p ≤ 1, Σp = k; fewer than k entries are all taken."""
    out = torch.empty_like(scores)
    high, low, ks = parameter_parts(k)
    given = scores, out, mask, ks
    if fits(scores, dim):
        written = launch_tiles(budget_tile, dim, *given, numbers=(high, low))
    else:
        written = launch_groups(solve_budget_groups, dim, *given, numbers=(high, low))
    return copy_back(out, written)


def budget_backward(grad: Tensor, p: Tensor, k: float | Tensor, dim: int = -1) -> Tensor:
    """J g = s∘(g − mean of g over s), s the entries strictly between 0 and 1; J is symmetric."""
    return pull_back(grad, p, BUDGET.value, dim)


def budget_backward_k(grad: Tensor, p: Tensor, k: Tensor, dim: int = -1) -> tuple[Tensor, Tensor]:
    """The gradients in the scores and in k, the latter one a row (size 1 along `dim`)."""
    in_k = one_a_row(p, dim)
    return pull_back(grad, p, BUDGET.value, dim, in_k), in_k
