"""oscarmax and its derivatives, row by row, on the CPU.

oscarmax                     sort, shift, pool adjacent violators, project onto the simplex
oscarmax_backward            its Jacobian times a vector, from p and the first ranks of groups
oscarmax_backward_strength   the same, and the gradient in the strength
"""

from __future__ import annotations

import torch
from torch import Tensor

from fenchel.kernels.cpu.launch.compilation import Kernel
from fenchel.kernels.cpu.launch.threads import launch
from fenchel.kernels.cpu.structured.oscarmax_backward import (
    oscarmax_backward_rows,
    oscarmax_backward_workspace,
    oscarmax_strength_rows,
)
from fenchel.kernels.cpu.structured.oscarmax_rows import oscarmax_rows, oscarmax_workspace

_rows, _backward = Kernel(oscarmax_rows), Kernel(oscarmax_backward_rows)
_by_strength = Kernel(oscarmax_strength_rows)


def oscarmax(scores: Tensor, strength: float | Tensor) -> tuple[Tensor, Tensor]:
    """Probabilities and first ranks of every row; a tensor `strength` holds one float64 a row."""
    out, first = torch.empty_like(scores), torch.empty_like(scores, dtype=torch.int32)
    workspace = oscarmax_workspace(scores.shape[1], scores.element_size())
    launch(_rows, scores, strength, workspace, scores, out, first)
    return out, first


def oscarmax_backward(grad: Tensor, p: Tensor, first: Tensor) -> Tensor:
    """The gradient in the scores, given that in the probabilities p. Zero off the support."""
    out = torch.empty_like(p)
    workspace = oscarmax_backward_workspace(p.shape[1], p.element_size())
    launch(_backward, p, 0.0, workspace, grad, p, out, first)
    return out


def oscarmax_backward_strength(grad: Tensor, p: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients in the scores, and in the strength of every row (float64)."""
    by_strength = torch.zeros(p.shape[0], dtype=torch.float64)
    workspace = oscarmax_backward_workspace(p.shape[1], p.element_size())
    launch(_by_strength, p, 0.0, workspace, grad, p, by_strength, first)
    return oscarmax_backward(grad, p, first), by_strength
