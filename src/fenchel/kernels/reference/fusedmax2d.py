"""fusedmax2d by its definition, and its derivatives: fusedmax on the grid of the last two dimensions.

    argmax_{p ∈ Δ} ⟨p, x⟩ − ½‖p‖² − λ (Σ |p_{i,j+1} − p_{i,j}| + Σ |p_{i+1,j} − p_{i,j}|)

is the projection onto the simplex of the prox of 2-D total variation. Images come as rows of all their
entries and a width. −inf (and so a mask) removes an entry: in every row and in every column of the grid
those left become neighbours. The groups (int32) are regions of equal value, numbered 1, 2, … from the
lowest of the support; 0 is off the support and −1 what is not there.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fenchel.kernels.reference.entmax import entmax, subtract_max, widen
from fenchel.kernels.reference.grid import Chains, Prox, prox_grid
from fenchel.kernels.reference.groups import centre, group_means, grouped_backward
from fenchel.kernels.reference.penalties import neighbour_before
from fenchel.kernels.reference.total_variation import prox_total_variation


def fusedmax2d(
    scores: Tensor, strength: float | Tensor, width: int, prox: Prox = prox_total_variation
) -> tuple[Tensor, Tensor]:
    """(p, groups) of rows (batch, height · width)."""
    shifted, _ = subtract_max(widen(scores))
    present = ~shifted.isneginf()
    strength = torch.as_tensor(strength, dtype=shifted.dtype, device=shifted.device).reshape(-1, 1)
    # An entry this far below the largest is never in the support, however far it is.
    near = torch.where(present, torch.maximum(shifted, -(8 * strength + 2)), 0.0)
    grid, there = near.unflatten(-1, (-1, width)), present.unflatten(-1, (-1, width))
    rows = Chains(there, strength.unsqueeze(-1), prox)
    columns = Chains(there.mT, strength.unsqueeze(-1), prox)
    z, along, down = prox_grid(grid, rows, columns)
    z = z.flatten(-2)
    groups = _number(z, _regions(along, down, there))
    z = group_means(z, torch.ones_like(z), groups, -1)
    p = entmax(torch.where(present, z, -torch.inf), 2.0)
    lowest = torch.where(p != 0, groups, groups.shape[-1]).amin(-1, keepdim=True)
    groups = torch.where(p != 0, groups - lowest + 1, 0)
    groups = torch.where(present, groups, -1).to(torch.int32)
    return p.to(scores.dtype), groups


def fusedmax2d_backward(grad: Tensor, p: Tensor, groups: Tensor, width: int = 0) -> Tensor:
    """J g = mean of g over the entry's group − mean over the support; J is symmetric."""
    return grouped_backward(grad, p, _ids(groups), -1)


def fusedmax2d_derivative(p: Tensor, groups: Tensor, width: int) -> Tensor:
    """∂p/∂λ: a group loses 1 for every neighbour below it and gains 1 for every one above, shared out."""
    return centre(_slopes(p, groups, width), p, -1)


def fusedmax2d_penalty(p: Tensor, groups: Tensor, width: int, keepdim: bool = False) -> Tensor:
    """The total variation of p over the entries that are there, linear in p."""
    return -(p * _slopes(p, groups, width)).sum(-1, keepdim=keepdim)


def fusedmax2d_backward_strength(
    grad: Tensor, p: Tensor, groups: Tensor, width: int
) -> tuple[Tensor, Tensor]:
    """The gradients in the scores and in the strength, the latter one a row."""
    by_strength = (grad * fusedmax2d_derivative(p, groups, width)).sum(-1)
    return fusedmax2d_backward(grad, p, groups).to(p.dtype), by_strength.to(torch.float64)


def _ids(groups: Tensor) -> Tensor:
    """The groups of the support from 0; what is not in it must not count."""
    return groups.long().clamp(min=1) - 1


def _slopes(p: Tensor, groups: Tensor, width: int) -> Tensor:
    inside = (p != 0).to(p.dtype)
    return group_means(inside * _rises(groups, groups >= 0, width), inside, _ids(groups), -1)


def _rises(groups: Tensor, present: Tensor, width: int) -> Tensor:
    """−Dᵀ sign(D p): how many neighbours of an entry lie above it, less how many lie below."""
    grid, there = groups.unflatten(-1, (-1, width)), present.unflatten(-1, (-1, width))
    across = _chain_rises(grid, there)
    down = _chain_rises(grid.mT, there.mT).mT
    return (across + down).flatten(-2)


def _chain_rises(groups: Tensor, present: Tensor) -> Tensor:
    forward = _step_from_last(groups, present)
    backward = _step_from_last(groups.flip(-1), present.flip(-1)).flip(-1)
    return -(forward + backward)


def _step_from_last(groups: Tensor, present: Tensor) -> Tensor:
    """The sign of an entry's group less that of the last present entry before it; 0 without one."""
    before = neighbour_before(present)
    step = (groups - groups.gather(-1, before.clamp(min=0))).sign()
    return torch.where(present & (before >= 0), step, 0)


def _regions(along: Tensor, down: Tensor, present: Tensor) -> Tensor:
    """A number for every region of entries that no jump separates: the smallest place in it."""
    shape = present.shape
    place = torch.arange(shape[-2] * shape[-1], device=present.device).view(shape[1:])
    labels = place.expand(shape)
    while True:
        spread = _smallest_in_runs(labels, along, present)
        spread = _smallest_in_runs(spread.mT, down.mT, present.mT).mT
        if torch.equal(spread, labels):
            return labels.flatten(-2)
        labels = spread


def _smallest_in_runs(labels: Tensor, jumps: Tensor, present: Tensor) -> Tensor:
    runs = (jumps != 0).cumsum(-1)
    far = labels.shape[-1] * labels.shape[-2]
    visible = torch.where(present, labels, far)
    smallest = torch.full_like(labels, far).scatter_reduce(-1, runs, visible, "amin")
    return torch.where(present, smallest.gather(-1, runs), labels)


def _number(z: Tensor, regions: Tensor) -> Tensor:
    """The regions numbered from 0 by their values; separate regions of equal value differ."""
    value = z.gather(-1, regions)
    by_region = regions.sort(dim=-1, stable=True).indices
    order = by_region.gather(-1, value.gather(-1, by_region).sort(dim=-1, stable=True).indices)
    sorted_regions = regions.gather(-1, order)
    begins = torch.cat(
        (torch.zeros_like(sorted_regions[..., :1]), sorted_regions.diff(dim=-1) != 0), -1
    )
    return torch.zeros_like(regions).scatter(-1, order, begins.cumsum(-1))
