"""entmax and its derivatives, row by row, on the CPU.

    entmax                  argmax_p <p, x> - Omega_alpha(p) over the simplex
    entmax_backward         its Jacobian times a vector, from p alone
    entmax_backward_alpha   the same, and the gradient in alpha

`alpha` is a number, or a tensor that holds one float64 a row.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fenchel.kernels.cpu.launch.compilation import Kernel
from fenchel.kernels.cpu.launch.threads import launch
from fenchel.kernels.cpu.rows.alpha_slope import alpha_rows
from fenchel.kernels.cpu.rows.backward import backward_rows, backward_workspace
from fenchel.kernels.cpu.rows.forward import entmax

__all__ = ["entmax", "entmax_backward", "entmax_backward_alpha"]

_backward, _in_alpha = Kernel(backward_rows), Kernel(alpha_rows)


def entmax_backward(grad: Tensor, p: Tensor, alpha: float | Tensor) -> Tensor:
    """The gradient in the scores, given that in the probabilities p. Zero off the support."""
    out = torch.empty_like(p)
    launch(_backward, p, alpha, backward_workspace(p.shape[1]), grad, p, out)
    return out


def entmax_backward_alpha(grad: Tensor, p: Tensor, alpha: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients in the scores, and in the alpha of every row (float64)."""
    in_alpha = torch.zeros(p.shape[0], dtype=torch.float64)
    launch(_in_alpha, p, alpha, backward_workspace(p.shape[1]), grad, p, in_alpha)
    return entmax_backward(grad, p, alpha), in_alpha
