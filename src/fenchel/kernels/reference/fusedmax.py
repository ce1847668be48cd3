"""fusedmax by its definition, and its derivatives.

    argmax_{p ∈ Δ} ⟨p, x⟩ − ½‖p‖² − λ Σ |p_{i+1} − p_i|  =  P_Δ(prox_{λTV}(x))

The order of the entries matters. −inf (and so a mask) removes an entry from its row: those left keep
their order and become neighbours. What the derivatives need is the groups that were found, and they
are kept as jumps: equal floats would merge groups whose values agree to the last bit, which in half
precision most neighbours do.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fenchel.kernels.reference.entmax import entmax, subtract_max, widen
from fenchel.kernels.reference.groups import centre, group_means, grouped_backward
from fenchel.kernels.reference.total_variation import prox_total_variation, slope_of_jumps


def fusedmax(scores: Tensor, strength: float | Tensor) -> tuple[Tensor, Tensor]:
    """(p, jumps): jumps (int8) is ±1 where p rises or falls to another group, 0 inside a group."""
    shifted, _ = subtract_max(widen(scores))
    present = ~shifted.isneginf()
    order = (~present).sort(dim=-1, stable=True).indices
    there = present.gather(-1, order)
    # An entry this far below the largest is never in the support, however far it is.
    floor = -(4 * strength + 2)
    near = torch.maximum(
        shifted, torch.as_tensor(floor, dtype=shifted.dtype, device=shifted.device)
    )
    z, jumps = prox_total_variation(near.gather(-1, order), there, strength)
    p = entmax(torch.where(there, z, -torch.inf), 2.0)
    p = torch.where(shifted.isnan().any(-1, keepdim=True), torch.nan, p)
    beside = torch.cat((p[..., :1], p[..., :-1]), -1)
    jumps = torch.where((p != 0) | (beside != 0), jumps, 0)
    placed = (
        torch.zeros_like(p).scatter(-1, order, p),
        torch.zeros_like(jumps).scatter(-1, order, jumps),
    )
    return placed[0].to(scores.dtype), placed[1]


def fusedmax_backward(grad: Tensor, p: Tensor, jumps: Tensor, dim: int = -1) -> Tensor:
    """J g = mean of g over the entry's group − mean over the support; J is symmetric."""
    return grouped_backward(grad, p, _ids(jumps, dim), dim)


def fusedmax_derivative(p: Tensor, jumps: Tensor, dim: int = -1) -> Tensor:
    """∂p/∂λ: a group loses 1 for every neighbour below it and gains 1 for every one above, shared out."""
    return centre(_slopes(p, jumps, dim), p, dim)


def fusedmax_penalty(p: Tensor, jumps: Tensor, dim: int = -1, keepdim: bool = False) -> Tensor:
    """Σ |p_{i+1} − p_i| over the entries that are there, linear in p."""
    return -(p * _slopes(p, jumps, dim)).sum(dim, keepdim=keepdim)


def fusedmax_backward_strength(grad: Tensor, p: Tensor, jumps: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients in the scores and in the strength, the latter one a row."""
    by_strength = (grad * fusedmax_derivative(p, jumps)).sum(-1)
    return fusedmax_backward(grad, p, jumps).to(p.dtype), by_strength.to(torch.float64)


def _ids(jumps: Tensor, dim: int) -> Tensor:
    return (jumps != 0).cumsum(dim)


def _slopes(p: Tensor, jumps: Tensor, dim: int) -> Tensor:
    inside = (p != 0).to(p.dtype)
    return group_means(slope_of_jumps(jumps, dim).to(p.dtype), inside, _ids(jumps, dim), dim)
