"""fusedmax by its definition, and its derivatives.

    argmax_{p ∈ Δ} ⟨p, x⟩ − ½‖p‖² − λ Σ |p_{i+1} − p_i|  =  P_Δ(prox_{λTV}(x))

The order of the entries matters. −inf (and so a mask) removes an entry from its row: the others keep
their order and become neighbours. The groups are saved for the derivatives, as jumps. Guessed from
equal values, groups would merge if their values round to the same number, as most neighbours do in half
precision.

The prox of 1-D total variation is computed by dividing rows level by level. A stretch of entries with
known jumps at its ends (a jump of +1 at its beginning: the entry before is lower) would, as one group,
have the level c = (Σx + λ (jump after − jump before))/size. Which of its entries belong above c is a
chain of binary choices, each worth x − c, and each change of choice costs λ; dynamic programming solves
it with one number per entry, m ← x − c + clip(m, −λ, λ). If all choices are the same, the stretch is a
group of the solution; otherwise it is divided there, and both sides continue.
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


def fusedmax(scores: Tensor, strength: float | Tensor) -> tuple[Tensor, Tensor]:
    """(p, jumps): jumps (int8) is ±1 where p rises or falls to another group, 0 inside a group."""
    shifted, _ = subtract_max(widen(scores))
    present = ~shifted.isneginf()
    order = (~present).sort(dim=-1, stable=True).indices
    there = present.gather(-1, order)
    # Entries that far below the largest are never in the support, so their distance does not matter.
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
    """∂p/∂λ: a group loses 1 per neighbour below it and gains 1 per neighbour above, shared equally."""
    return centre(_slopes(p, jumps, dim), p, dim)


def fusedmax_penalty(p: Tensor, jumps: Tensor, dim: int = -1, keepdim: bool = False) -> Tensor:
    """Σ |p_{i+1} − p_i| over the present entries, linear in p."""
    return -(p * _slopes(p, jumps, dim)).sum(dim, keepdim=keepdim)


def fusedmax_backward_strength(grad: Tensor, p: Tensor, jumps: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients in the scores and in the strength, one per row."""
    by_strength = (grad * fusedmax_derivative(p, jumps)).sum(-1)
    return fusedmax_backward(grad, p, jumps).to(p.dtype), by_strength.to(torch.float64)


def _ids(jumps: Tensor, dim: int) -> Tensor:
    return (jumps != 0).cumsum(dim)


def _slopes(p: Tensor, jumps: Tensor, dim: int) -> Tensor:
    inside = (p != 0).to(p.dtype)
    return group_means(slope_of_jumps(jumps, dim).to(p.dtype), inside, _ids(jumps, dim), dim)


def prox_total_variation(
    x: Tensor, present: Tensor, strength: float | Tensor
) -> tuple[Tensor, Tensor]:
    """(z, jumps) along the last dimension, for rows whose present entries come first.

    `jumps` (int8) is +1 or −1 where a group begins that is above or below the group before it. If the
    strength is zero, every entry is a group.
    """
    x = torch.where(present, x, 0.0)
    strength = torch.as_tensor(strength, dtype=x.dtype, device=x.device)
    inside = present.to(x.dtype)

    def level(jumps: Tensor, ids: Tensor) -> Tensor:
        return group_means(x + strength * slope_of_jumps(jumps), inside, ids, -1)

    def split(jumps: Tensor, value: Tensor) -> Tensor:
        worth = x - value + strength * slope_of_jumps(jumps)
        above = _choose(worth, jumps != 0, present, strength)
        before = torch.cat((above[..., :1], above[..., :-1]), -1)
        return above - before

    # A jump at the first absent entry would count as a jump: there are no entries after it.
    z, jumps = split_until_stable(torch.zeros_like(x, dtype=torch.int8), present, level, split)
    single = (strength == 0) & (jumps == 0) & present
    single[..., 0] = False
    return z, torch.where(single, 1, jumps)


def slope_of_jumps(jumps: Tensor, dim: int = -1) -> Tensor:
    """−Dᵀ sign(D z): the jump after each entry minus the jump before it."""
    end = torch.zeros_like(jumps.narrow(dim, 0, 1))
    after = torch.cat((jumps.narrow(dim, 1, jumps.shape[dim] - 1), end), dim)
    return after - jumps


def _choose(worth: Tensor, begins: Tensor, present: Tensor, cost: Tensor) -> Tensor:
    """The optimal choices, 1 (int8) for entries above their level; a change of choice costs `cost`."""
    message = _messages(worth, begins, cost)
    ends = torch.cat((begins[..., 1:] | ~present[..., 1:], torch.ones_like(begins[..., :1])), -1)
    threshold = torch.where(ends, 0.0, cost)
    decided = ends | (message > cost) | (message <= -cost)
    places = torch.arange(worth.shape[-1], device=worth.device).expand_as(worth)
    deciding = torch.where(decided, places, worth.shape[-1])
    deciding = deciding.flip(-1).cummin(-1).values.flip(-1)
    return (message > threshold).to(torch.int8).gather(-1, deciding)


def _messages(worth: Tensor, begins: Tensor, cost: Tensor) -> Tensor:
    """m_i = worth_i + clip(m_{i−1}, −cost, cost), restarted where a group begins.

    The steps are functions m ↦ clip(m + shift, low, high), which compose to functions of the same kind,
    so all m are computed by a parallel prefix scan in log₂ d rounds.
    """
    begins = begins.clone()
    begins[..., 0] = True
    shift = torch.where(begins, 0.0, worth)
    low = torch.where(begins, worth, worth - cost)
    high = torch.where(begins, worth, worth + cost)
    reach = 1
    while reach < worth.shape[-1]:
        first = [part[..., :-reach] for part in (shift, low, high)]
        then = [part[..., reach:] for part in (shift, low, high)]
        joined = (
            first[0] + then[0],
            torch.clamp(first[1] + then[0], then[1], then[2]),
            torch.clamp(first[2] + then[0], then[1], then[2]),
        )
        shift, low, high = (
            torch.cat((part[..., :reach], new), -1)
            for part, new in zip((shift, low, high), joined, strict=True)
        )
        reach *= 2
    return low


def neighbour_before(present: Tensor) -> Tensor:
    """The index of the last present entry before each entry along the last dimension; −1 if none."""
    places = torch.arange(present.shape[-1], device=present.device).expand_as(present)
    last = torch.where(present, places, -1).cummax(-1).values
    return torch.cat((torch.full_like(last[..., :1], -1), last[..., :-1]), -1)


def total_variation(p: Tensor, present: Tensor) -> Tensor:
    """Σ |p_{i+1} − p_i| over the present entries along the last dimension, which is kept."""
    before = neighbour_before(present)
    differences = p - p.gather(-1, before.clamp(min=0))
    return torch.where(present & (before >= 0), differences, 0.0).abs().sum(-1, keepdim=True)
