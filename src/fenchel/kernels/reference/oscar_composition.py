"""The proximal operator of OSCAR on all of ℝⁿ: what the 2017 paper projects onto the simplex.

    argmin_z ½‖z − x‖² + λ Σ_{i<j} max(|z_i|, |z_j|):

sort |x| decreasingly, subtract λ(n − k), pool adjacent violators, cut at zero, restore order and signs.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fenchel.kernels.reference.groups import group_means
from fenchel.kernels.reference.oscarmax import pool


def oscar_prox(x: Tensor, strength: float | Tensor) -> Tensor:
    """Along the last dimension; −inf is left out, and stays."""
    absent = x.isneginf()
    size, order = torch.where(absent, -1.0, x.abs()).sort(dim=-1, descending=True, stable=True)
    there = ~absent.gather(-1, order)
    ranks = torch.arange(x.shape[-1], device=x.device)
    weights = (there.sum(-1, keepdim=True) - 1 - ranks).to(x.dtype)
    shrunk = size - strength * weights
    with torch.no_grad():
        _, begins = pool(shrunk, there)
        ids = torch.where(there, begins.cumsum(-1), x.shape[-1] - 1)
    pooled = group_means(torch.where(there, shrunk, 0.0), there.to(x.dtype), ids, -1).clamp(min=0)
    placed = torch.zeros_like(pooled).scatter(-1, order, pooled)
    return torch.where(absent, -torch.inf, torch.where(x < 0, -placed, placed))
