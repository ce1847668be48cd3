"""oscarmax by its definition, and its derivatives.

    argmax_{p ∈ Δ} ⟨p, x⟩ − ½‖p‖² − λ Σ_{i<j} max(p_i, p_j)

No p is negative, so the penalty is Σ_k (n − k) p_(k) over the ranks k = 1, 2, … of the n present
entries, and the solution keeps the order of the scores: sort x in decreasing order, subtract λ(n − k),
pool adjacent violators to a non-increasing z, undo the sort, project onto the simplex. −inf (and so a
mask) removes an entry. A group is identified by its first rank, from 0; removed entries have −1. Equal
values alone would merge groups that round to the same number.
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
    """(p, first ranks): entries of the support move together if their first ranks (int32) are equal."""
    shifted, _ = subtract_max(widen(scores))
    ordered, order = shifted.sort(dim=-1, descending=True, stable=True)
    there = ~ordered.isneginf()
    count = there.sum(-1, keepdim=True)
    strength = torch.as_tensor(strength, dtype=shifted.dtype, device=shifted.device)
    ranks = torch.arange(shifted.shape[-1], device=shifted.device)
    # Entries that far below the largest are never in the support, so their distance does not matter.
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
    """The nearest non-increasing rows, and where their groups begin; present entries come first.

    A stretch is a group if no beginning of it has a mean above that of the whole stretch; otherwise it is
    divided after the beginning whose sum exceeds that mean most.
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
    """∂p/∂λ: the mean rank of the entry's group minus the mean rank of the support."""
    return centre(_mean_ranks(p, first, dim), p, dim)


def oscarmax_penalty(p: Tensor, first: Tensor, dim: int = -1, keepdim: bool = False) -> Tensor:
    """Σ_{i<j} max(p_i, p_j) over the present entries, linear in p."""
    weights = (first >= 0).sum(dim, keepdim=True) - 1 - _mean_ranks(p, first, dim)
    return (p * weights).sum(dim, keepdim=keepdim)


def oscarmax_backward_strength(grad: Tensor, p: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients in the scores and in the strength, one per row."""
    by_strength = (grad * oscarmax_derivative(p, first)).sum(-1)
    return oscarmax_backward(grad, p, first).to(p.dtype), by_strength.to(torch.float64)


def _ids(first: Tensor) -> Tensor:
    return first.long().clamp(min=0)


def _mean_ranks(p: Tensor, first: Tensor, dim: int) -> Tensor:
    inside = (p != 0).to(p.dtype)
    ids = _ids(first)
    sizes = torch.zeros_like(inside).scatter_add(dim, ids, inside).gather(dim, ids)
    return first + (sizes - 1) / 2


def oscar_prox(x: Tensor, strength: float | Tensor) -> Tensor:
    """The prox of OSCAR on ℝⁿ, which the 2017 paper projects onto the simplex; −inf stays.

        argmin_z ½‖z − x‖² + λ Σ_{i<j} max(|z_i|, |z_j|)

    Sort |x| in decreasing order, subtract λ(n − k), pool adjacent violators, clip at zero, restore
    order and signs.
    """
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


def maxima_of_pairs(p: Tensor, present: Tensor) -> Tensor:
    """Σ_{i<j} max(p_i, p_j) over the present entries of p ≥ 0, along the last dimension, kept."""
    ordered = torch.where(present, p, 0.0).sort(dim=-1, descending=True).values
    ranks = torch.arange(p.shape[-1], device=p.device)
    weights = (present.sum(-1, keepdim=True) - 1 - ranks).clamp(min=0)
    return (weights * ordered).sum(-1, keepdim=True)
