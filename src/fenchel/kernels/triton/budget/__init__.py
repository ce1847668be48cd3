"""budget and its derivatives along any dimension of a CUDA tensor.

    budget              argmax_p <p, x> - ||p||^2 / 2 over 0 <= p <= 1 with the sum k
    budget_backward     its Jacobian times a vector, from p alone
    budget_backward_k   the same, and the gradient in k

k is a number, or a tensor with one value per row. No call waits for the device, so CUDA graphs can
capture all of them.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fenchel.kernels.triton.budget.kernels import (
    budget_tile,
    solve_budget_groups,
)
from fenchel.kernels.triton.launch.addressing import (
    copy_back,
)
from fenchel.kernels.triton.launch.parameters import (
    parameter_parts,
)
from fenchel.kernels.triton.shared.float64_rows import (
    empty_per_row,
)
from fenchel.kernels.triton.shared.threshold_backward import (
    BUDGET,
    threshold_backward,
)
from fenchel.kernels.triton.shared.threshold_rows import (
    fits_tile_along,
    launch_groups,
    launch_tiles,
)


def budget(scores: Tensor, k: float | Tensor, mask: Tensor | None = None, dim: int = -1) -> Tensor:
    """argmax ⟨p, x⟩ − ½‖p‖² over 0 ≤ p ≤ 1, Σp = k; if there are fewer than k entries, all are 1."""
    out = torch.empty_like(scores)
    high, low, ks = parameter_parts(k)
    given = scores, out, mask, ks
    if fits_tile_along(scores, dim):
        written = launch_tiles(budget_tile, dim, *given, numbers=(high, low))
    else:
        written = launch_groups(solve_budget_groups, dim, *given, numbers=(high, low))
    return copy_back(out, written)


def budget_backward(grad: Tensor, p: Tensor, k: float | Tensor, dim: int = -1) -> Tensor:
    """J g = s∘(g − mean of g over s), s the entries strictly between 0 and 1; J is symmetric."""
    return threshold_backward(grad, p, BUDGET.value, dim)


def budget_backward_k(grad: Tensor, p: Tensor, k: Tensor, dim: int = -1) -> tuple[Tensor, Tensor]:
    """The gradients in the scores and in k, one per row (size 1 along `dim`)."""
    in_k = empty_per_row(p, dim)
    return threshold_backward(grad, p, BUDGET.value, dim, in_k), in_k
