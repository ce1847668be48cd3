"""normmax and its derivatives along any dimension of a CUDA tensor.

    normmax                  argmax_p <p, x> - ||p||_alpha over the simplex
    normmax_backward         its Jacobian times a vector, from p alone
    normmax_backward_alpha   the same, and the gradient in alpha

alpha is a number, or a tensor with one value a row. The number 2 needs no powers (`norm_rows`); any
other alpha does (`any_norm_rows`). Nothing waits for the device, so CUDA graphs can capture every call.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fenchel.kernels.triton.launch.addressing import copy_back
from fenchel.kernels.triton.launch.parameters import parameter_parts
from fenchel.kernels.triton.thresholds.any_norm_rows import normmax_pull_back, normmax_rows
from fenchel.kernels.triton.thresholds.backward import NORM, pull_back
from fenchel.kernels.triton.thresholds.norm_rows import LEAST, norm_tile, solve_norm_groups
from fenchel.kernels.triton.thresholds.row_programs import held, launch, one_a_row
from fenchel.kernels.triton.thresholds.rows import fits, launch_groups, launch_tiles


def normmax(
    scores: Tensor, alpha: float | Tensor, mask: Tensor | None = None, dim: int = -1
) -> Tensor:
    """argmax_{p ∈ Δ} ⟨p, x⟩ − ‖p‖_α along `dim`; −inf and what the mask leaves out get zero."""
    out = torch.empty_like(scores)
    if _is_square(alpha):
        return copy_back(out, _at_two(scores, out, mask, dim))
    high, low, alphas = parameter_parts(alpha)
    given = scores, out, mask, alphas
    tensors = launch(normmax_rows, dim, *given, numbers=(high, low), HELD=held(scores, dim))
    return copy_back(out, tensors[1])


def _at_two(scores: Tensor, out: Tensor, mask: Tensor | None, dim: int) -> Tensor | None:
    """Returns what is written to."""
    if fits(scores, dim):
        return launch_tiles(norm_tile, dim, scores, out, mask)
    return launch_groups(solve_norm_groups, dim, scores, out, mask, least=LEAST.value)


def normmax_backward(grad: Tensor, p: Tensor, alpha: float | Tensor, dim: int = -1) -> Tensor:
    """J g = c N^{α−1} [s∘h − p (s·h)] with h = g − p·g, s = p^{2−α}, N = ‖p‖_α; J is symmetric."""
    if _is_square(alpha):
        return pull_back(grad, p, NORM.value, dim)
    return _pull_back(grad, p, None, alpha, dim)


def normmax_backward_alpha(
    grad: Tensor, p: Tensor, alpha: Tensor, dim: int = -1
) -> tuple[Tensor, Tensor]:
    """The gradients in the scores and in α, the latter one a row (size 1 along `dim`)."""
    in_alpha = one_a_row(p, dim)
    return _pull_back(grad, p, in_alpha, alpha, dim), in_alpha


def _pull_back(
    grad: Tensor, p: Tensor, in_alpha: Tensor | None, alpha: float | Tensor, dim: int
) -> Tensor:
    out = torch.empty_like(p)
    high, low, alphas = parameter_parts(alpha)
    given = p, grad, out, in_alpha, alphas
    tensors = launch(normmax_pull_back, dim, *given, numbers=(high, low), HELD=held(p, dim))
    if in_alpha is not None:
        copy_back(in_alpha, tensors[3])
    return copy_back(out, tensors[2])


def _is_square(alpha: float | Tensor) -> bool:
    return not isinstance(alpha, Tensor) and alpha == 2
