"""fusedmax2d on the CPU: the alternation of the reference, with its 1-D prox in Numba."""

from __future__ import annotations

import torch
from torch import Tensor

from fenchel.kernels.cpu.fusedmax.total_variation import prox_total_variation, prox_workspace
from fenchel.kernels.cpu.launch.compilation import Kernel, inlined
from fenchel.kernels.cpu.launch.memory import TENSORS, advance, bytes_at, load, store
from fenchel.kernels.cpu.launch.threads import for_each_row, launch, matrix_row
from fenchel.kernels.reference import fusedmax2d as reference
from fenchel.kernels.reference.fusedmax2d import fusedmax2d_backward, fusedmax2d_backward_strength

__all__ = ["fusedmax2d", "fusedmax2d_backward", "fusedmax2d_backward_strength"]


@inlined
def _chain_row(arguments, row, strength, columns, workspace):
    x, z = matrix_row(arguments, 0, row, columns), matrix_row(arguments, 1, row, columns)
    jumps = advance(bytes_at(arguments, TENSORS + 2), row * columns)
    present = advance(bytes_at(arguments, TENSORS + 3), row * columns)
    count = 0
    while count < columns and load(present, count) != 0:
        count += 1
    for i in range(columns):
        store(jumps, i, 0)
        store(z, i, load(x, i))
    if count > 1:
        prox_total_variation(x, count, strength, z, jumps, workspace)


def _chain_rows(arguments):
    """z and the jumps of every row or column of the images; present entries come first."""
    for_each_row(arguments, _chain_row)


_chain_kernel = Kernel(_chain_rows)


def prox_chains(x: Tensor, present: Tensor, strength: Tensor) -> tuple[Tensor, Tensor]:
    """(z, jumps) of float64 rows whose present entries come first."""
    z, jumps = torch.empty_like(x), torch.empty_like(x, dtype=torch.int8)
    launch(_chain_kernel, x, strength, prox_workspace(x.shape[1]), x, z, jumps, present)
    return z, jumps


def fusedmax2d(scores: Tensor, strength: float | Tensor, width: int) -> tuple[Tensor, Tensor]:
    """Probabilities and groups of every image; a tensor `strength` has one float64 per image."""
    return reference.fusedmax2d(scores, strength, width, prox_chains)
