"""oscarmax by its definition, and its derivatives.

    argmax_{p ∈ Δ} ⟨p, x⟩ − ½‖p‖² − λ Σ_{i<j} max(p_i, p_j)

No p is negative, so the penalty is Σ_k (n − k) p_(k) over the ranks k = 1, 2, … of the n entries that are
there, and the solution keeps the order of the scores: sort x decreasingly, subtract λ(n − k), pool
adjacent violators to a non-increasing z, undo the sort, project onto the simplex. −inf (and so a mask)
removes an entry. A group is named by its first rank, from 0, and what is not there by −1; equal floats
alone would merge groups that only agree to the last bit.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fenchel.kernels.reference.entmax import entmax, subtract_max, widen
from fenchel.kernels.reference.groups import (
    centre,
    group_means,
    grouped_backward,
    split_until_stable,
)


def oscarmax(scores: Tensor, strength: float | Tensor) -> tuple[Tensor, Tensor]:
    """(p, first ranks): two entries of the support move together if their first ranks (int32) agree."""
    shifted, _ = subtract_max(widen(scores))
    ordered, order = shifted.sort(dim=-1, descending=True, stable=True)
    there = ~ordered.isneginf()
    count = there.sum(-1, keepdim=True)
    strength = torch.as_tensor(strength, dtype=shifted.dtype, device=shifted.device)
    ranks = torch.arange(shifted.shape[-1], device=shifted.device)
    # An entry this far below the largest is never in the support, however far it is.
    near = torch.maximum(ordered, -(strength * count + 2))
    z, begins = pool(near - strength * (count - 1 - ranks), there)
    begins = begins | (strength == 0)
    p = entmax(torch.where(there, z, -torch.inf), 2.0)
    p = torch.where(shifted.isnan().any(-1, keepdim=True), torch.nan, p)
    first = torch.where(begins, ranks, 0).cummax(-1).values
    first = torch.where(there, torch.where(p != 0, first, 0), -1).to(torch.int32)
    places = torch.zeros_like(p).scatter(-1, order, p)
    return places.to(scores.dtype), torch.zeros_like(first).scatter(-1, order, first)


def pool(values: Tensor, present: Tensor) -> tuple[Tensor, Tensor]:
    """The nearest non-increasing rows, and where their groups begin; what is present comes first.

    A stretch is a group if no beginning of it has a mean above that of the whole; otherwise it divides
    after the beginning whose sum is furthest above.
    """
    values = torch.where(present, values, 0.0)
    inside = present.to(values.dtype)
    places = torch.arange(values.shape[-1], device=values.device)

    def level(begins: Tensor, ids: Tensor) -> Tensor:
        return group_means(values, inside, ids, -1)

    def split(begins: Tensor, value: Tensor) -> Tensor:
        ids = torch.where(present, begins.cumsum(-1), begins.shape[-1] - 1)
        rise = torch.where(present, values - value, 0.0)
        total = rise.cumsum(-1)
        start = torch.where(begins != 0, places, 0).cummax(-1).values
        above = total - (total - rise).gather(-1, start)
        ends = torch.cat((begins[..., 1:] != 0, torch.ones_like(present[..., :1])), -1)
        above = torch.where(ends | ~present, 0.0, above)
        furthest = torch.zeros_like(above).scatter_reduce(-1, ids, above, "amax")
        cut = (above > 0) & (above == furthest.gather(-1, ids))
        return torch.cat((torch.zeros_like(cut[..., :1]), cut[..., :-1]), -1).to(torch.int8)

    z, begins = split_until_stable(
        torch.zeros_like(values, dtype=torch.int8), present, level, split
    )
    return z, begins != 0


def oscarmax_backward(grad: Tensor, p: Tensor, first: Tensor, dim: int = -1) -> Tensor:
    """J g = mean of g over the entry's group − mean over the support; J is symmetric."""
    return grouped_backward(grad, p, _ids(first), dim)


def oscarmax_derivative(p: Tensor, first: Tensor, dim: int = -1) -> Tensor:
    """∂p/∂λ: the mean rank of the entry's group, less the mean over the support."""
    return centre(_mean_ranks(p, first, dim), p, dim)


def oscarmax_penalty(p: Tensor, first: Tensor, dim: int = -1, keepdim: bool = False) -> Tensor:
    """Σ_{i<j} max(p_i, p_j) over the entries that are there, linear in p."""
    weights = (first >= 0).sum(dim, keepdim=True) - 1 - _mean_ranks(p, first, dim)
    return (p * weights).sum(dim, keepdim=keepdim)


def oscarmax_backward_strength(grad: Tensor, p: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients in the scores and in the strength, the latter one a row."""
    by_strength = (grad * oscarmax_derivative(p, first)).sum(-1)
    return oscarmax_backward(grad, p, first).to(p.dtype), by_strength.to(torch.float64)


def _ids(first: Tensor) -> Tensor:
    return first.long().clamp(min=0)


def _mean_ranks(p: Tensor, first: Tensor, dim: int) -> Tensor:
    inside = (p != 0).to(p.dtype)
    ids = _ids(first)
    sizes = torch.zeros_like(inside).scatter_add(dim, ids, inside).gather(dim, ids)
    return first + (sizes - 1) / 2
