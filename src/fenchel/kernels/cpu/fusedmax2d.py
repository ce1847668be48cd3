"""fusedmax2d on the CPU: the reference's alternation, with the 1-D prox of every chain in Numba."""

from __future__ import annotations

import torch
from torch import Tensor

from fenchel.kernels.cpu.launch.compilation import Kernel
from fenchel.kernels.cpu.launch.threads import launch
from fenchel.kernels.cpu.structured.chains import chain_rows
from fenchel.kernels.cpu.structured.total_variation import prox_workspace
from fenchel.kernels.reference import fusedmax2d as reference
from fenchel.kernels.reference.fusedmax2d import fusedmax2d_backward, fusedmax2d_backward_strength

__all__ = ["fusedmax2d", "fusedmax2d_backward", "fusedmax2d_backward_strength"]

_chains = Kernel(chain_rows)


def prox_chains(x: Tensor, present: Tensor, strength: Tensor) -> tuple[Tensor, Tensor]:
    """(z, jumps) of float64 rows whose present entries come first."""
    z, jumps = torch.empty_like(x), torch.empty_like(x, dtype=torch.int8)
    launch(_chains, x, strength, prox_workspace(x.shape[1]), x, z, jumps, present)
    return z, jumps


def fusedmax2d(scores: Tensor, strength: float | Tensor, width: int) -> tuple[Tensor, Tensor]:
    """Probabilities and groups of every image; a tensor `strength` holds one float64 an image."""
    return reference.fusedmax2d(scores, strength, width, prox_chains)
