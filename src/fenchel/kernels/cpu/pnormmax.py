"""pnormmax and its derivatives, row by row, on the CPU.

    pnormmax              argmax_q <q, x> - ||q||_s^2 / 2 over the simplex; sparsemax at s = 2
    pnormmax_backward     its Jacobian times a vector, from p alone
    pnormmax_backward_p   the same, and the gradient in s

s is a number, or a tensor that holds one float64 a row.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fenchel.kernels.cpu.launch.compilation import Kernel
from fenchel.kernels.cpu.launch.threads import launch
from fenchel.kernels.cpu.rows.forward import entmax
from fenchel.kernels.cpu.thresholds.near_peak import near_peak_workspace
from fenchel.kernels.cpu.thresholds.pnormmax_backward import pnormmax_backward_rows
from fenchel.kernels.cpu.thresholds.pnormmax_rows import pnormmax_rows

_rows, _backward = Kernel(pnormmax_rows), Kernel(pnormmax_backward_rows)


def pnormmax(scores: Tensor, s: float | Tensor) -> Tensor:
    """Probabilities of every row."""
    if not isinstance(s, Tensor) and s == 2.0:
        return entmax(scores, s)
    out = torch.empty_like(scores)
    workspace = near_peak_workspace(scores.shape[1], scores.element_size())
    launch(_rows, scores, s, workspace, scores, out)
    return out


def pnormmax_backward(grad: Tensor, p: Tensor, s: float | Tensor) -> Tensor:
    """The gradient in the scores, given that in the probabilities p. Zero off the support."""
    return pnormmax_backward_p(grad, p, s)[0]


def pnormmax_backward_p(grad: Tensor, p: Tensor, s: float | Tensor) -> tuple[Tensor, Tensor]:
    """The gradients in the scores, and in the exponent of every row (float64)."""
    out, by_exponent = torch.empty_like(p), torch.zeros(p.shape[0], dtype=torch.float64)
    launch(_backward, p, s, p.shape[1], grad, p, out, by_exponent)
    return out, by_exponent
