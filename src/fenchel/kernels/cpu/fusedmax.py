"""fusedmax and its derivatives, row by row, on the CPU.

fusedmax                     the projection onto the simplex of the prox of total variation
fusedmax_backward            its Jacobian times a vector, from p and the jumps
fusedmax_backward_strength   the same, and the gradient in the strength
"""

from __future__ import annotations

import torch
from torch import Tensor

from fenchel.kernels.cpu.launch.compilation import Kernel
from fenchel.kernels.cpu.launch.threads import launch
from fenchel.kernels.cpu.structured.fusedmax_backward import (
    fusedmax_backward_rows,
    fusedmax_strength_rows,
)
from fenchel.kernels.cpu.structured.fusedmax_rows import fusedmax_rows, fusedmax_workspace

_rows, _backward = Kernel(fusedmax_rows), Kernel(fusedmax_backward_rows)
_by_strength = Kernel(fusedmax_strength_rows)


def fusedmax(scores: Tensor, strength: float | Tensor) -> tuple[Tensor, Tensor]:
    """Probabilities and jumps of every row; a tensor `strength` holds one float64 a row."""
    out, jumps = torch.empty_like(scores), torch.empty_like(scores, dtype=torch.int8)
    workspace = fusedmax_workspace(scores.shape[1], scores.element_size())
    launch(_rows, scores, strength, workspace, scores, out, jumps)
    return out, jumps


def fusedmax_backward(grad: Tensor, p: Tensor, jumps: Tensor) -> Tensor:
    """The gradient in the scores, given that in the probabilities p. Zero off the support."""
    out = torch.empty_like(p)
    launch(_backward, p, 0.0, p.shape[1], grad, p, out, jumps)
    return out


def fusedmax_backward_strength(grad: Tensor, p: Tensor, jumps: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients in the scores, and in the strength of every row (float64)."""
    by_strength = torch.zeros(p.shape[0], dtype=torch.float64)
    launch(_by_strength, p, 0.0, p.shape[1], grad, p, by_strength, jumps)
    return fusedmax_backward(grad, p, jumps), by_strength
