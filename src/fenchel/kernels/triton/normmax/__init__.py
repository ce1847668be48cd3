"""normmax and its derivatives along any dimension of a CUDA tensor.

    normmax                  argmax_p <p, x> - ||p||_alpha over the simplex
    normmax_backward         its Jacobian times a vector, from p alone
    normmax_backward_alpha   the same, and the gradient in alpha

alpha is a number, or a tensor with one value per row. The number 2 needs no powers (`alpha_2`); any other
alpha does (`any_alpha`). No call waits for the device, so CUDA graphs can capture all of them.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fenchel.kernels.triton.launch.addressing import (
    copy_back,
)
from fenchel.kernels.triton.launch.parameters import (
    parameter_parts,
)
from fenchel.kernels.triton.normmax.alpha_2 import (
    MIN_ENTRY,
    normmax_tile,
    solve_normmax_groups,
)
from fenchel.kernels.triton.normmax.any_alpha import (
    normmax_backward_rows,
    normmax_rows,
)
from fenchel.kernels.triton.shared.float64_rows import (
    empty_per_row,
    fits_program,
    launch_rows,
)
from fenchel.kernels.triton.shared.threshold_backward import (
    NORMMAX,
    threshold_backward,
)
from fenchel.kernels.triton.shared.threshold_rows import (
    fits_tile_along,
    launch_groups,
    launch_tiles,
)


def normmax(
    scores: Tensor, alpha: float | Tensor, mask: Tensor | None = None, dim: int = -1
) -> Tensor:
    """argmax_{p ∈ Δ} ⟨p, x⟩ − ‖p‖_α along `dim`; zero where a score is −inf or masked."""
    out = torch.empty_like(scores)
    if _is_two(alpha):
        return copy_back(out, _launch_alpha_2(scores, out, mask, dim))
    high, low, alphas = parameter_parts(alpha)
    given = scores, out, mask, alphas
    tensors = launch_rows(
        normmax_rows, dim, *given, numbers=(high, low), HELD=fits_program(scores, dim)
    )
    return copy_back(out, tensors[1])


def _launch_alpha_2(scores: Tensor, out: Tensor, mask: Tensor | None, dim: int) -> Tensor | None:
    """Returns the output."""
    if fits_tile_along(scores, dim):
        return launch_tiles(normmax_tile, dim, scores, out, mask)
    return launch_groups(solve_normmax_groups, dim, scores, out, mask, least=MIN_ENTRY.value)


def normmax_backward(grad: Tensor, p: Tensor, alpha: float | Tensor, dim: int = -1) -> Tensor:
    """J g = c N^{α−1} [s∘h − p (s·h)] with h = g − p·g, s = p^{2−α}, N = ‖p‖_α; J is symmetric."""
    if _is_two(alpha):
        return threshold_backward(grad, p, NORMMAX.value, dim)
    return _backward_any_alpha(grad, p, None, alpha, dim)


def normmax_backward_alpha(
    grad: Tensor, p: Tensor, alpha: Tensor, dim: int = -1
) -> tuple[Tensor, Tensor]:
    """The gradients in the scores and in α, one per row (size 1 along `dim`)."""
    in_alpha = empty_per_row(p, dim)
    return _backward_any_alpha(grad, p, in_alpha, alpha, dim), in_alpha


def _backward_any_alpha(
    grad: Tensor, p: Tensor, in_alpha: Tensor | None, alpha: float | Tensor, dim: int
) -> Tensor:
    out = torch.empty_like(p)
    high, low, alphas = parameter_parts(alpha)
    given = p, grad, out, in_alpha, alphas
    tensors = launch_rows(
        normmax_backward_rows, dim, *given, numbers=(high, low), HELD=fits_program(p, dim)
    )
    if in_alpha is not None:
        copy_back(in_alpha, tensors[3])
    return copy_back(out, tensors[2])


def _is_two(alpha: float | Tensor) -> bool:
    return not isinstance(alpha, Tensor) and alpha == 2
