"""The exact proximal operator of 1-D total variation, by dividing rows level by level.

    z = argmin ½‖z − x‖² + λ Σ |z_{i+1} − z_i|

A stretch of entries whose neighbours lie on known sides (a jump of +1 where it begins: the entry
before is lower) would as a whole take the level c = (Σx + λ (jump after − jump before))/size. Which of
its entries belong above c is a chain of binary choices, each worth x − c and each change costing λ;
dynamic programming solves it with one number an entry, m ← x − c + clip(m, −λ, λ). If all choose
alike the stretch is a group of the solution; otherwise it divides there, and both sides go on.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fenchel.kernels.reference.groups import group_means, split_until_stable


def prox_total_variation(
    x: Tensor, present: Tensor, strength: float | Tensor
) -> tuple[Tensor, Tensor]:
    """(z, jumps) along the last dimension, for rows whose present entries come first.

    `jumps` (int8) is +1 or −1 where a group begins that lies above or below the one before it.
    Without strength every entry is a group of its own.
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

    # A jump at the first entry that is not present would be one: nothing lies beyond.
    z, jumps = split_until_stable(torch.zeros_like(x, dtype=torch.int8), present, level, split)
    single = (strength == 0) & (jumps == 0) & present
    single[..., 0] = False
    return z, torch.where(single, 1, jumps)


def slope_of_jumps(jumps: Tensor, dim: int = -1) -> Tensor:
    """−Dᵀ sign(D z): how each entry of x − z is made of jumps, jump after minus jump before."""
    end = torch.zeros_like(jumps.narrow(dim, 0, 1))
    after = torch.cat((jumps.narrow(dim, 1, jumps.shape[dim] - 1), end), dim)
    return after - jumps


def _choose(worth: Tensor, begins: Tensor, present: Tensor, cost: Tensor) -> Tensor:
    """1 for the entries of each group that are worth choosing, as int8, where changing costs."""
    message = _messages(worth, begins, cost)
    ends = torch.cat((begins[..., 1:] | ~present[..., 1:], torch.ones_like(begins[..., :1])), -1)
    threshold = torch.where(ends, 0.0, cost)
    decided = ends | (message > cost) | (message <= -cost)
    places = torch.arange(worth.shape[-1], device=worth.device).expand_as(worth)
    deciding = torch.where(decided, places, worth.shape[-1])
    deciding = deciding.flip(-1).cummin(-1).values.flip(-1)
    return (message > threshold).to(torch.int8).gather(-1, deciding)


def _messages(worth: Tensor, begins: Tensor, cost: Tensor) -> Tensor:
    """m_i = worth_i + clip(m_{i−1}, −cost, cost), starting anew where a group begins.

    The steps are functions m ↦ clip(m + shift, low, high), which compose to one of the same kind,
    so all m come from a parallel prefix in log₂ d rounds.
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
