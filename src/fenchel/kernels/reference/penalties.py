"""The penalties of the structured maps at any point, by their definitions."""

from __future__ import annotations

import torch
from torch import Tensor


def neighbour_before(present: Tensor) -> Tensor:
    """The place of the last present entry before each entry along the last dimension, −1 without one."""
    places = torch.arange(present.shape[-1], device=present.device).expand_as(present)
    last = torch.where(present, places, -1).cummax(-1).values
    return torch.cat((torch.full_like(last[..., :1], -1), last[..., :-1]), -1)


def total_variation(p: Tensor, present: Tensor) -> Tensor:
    """Σ |p_{i+1} − p_i| over the entries that are there, along the last dimension, which stays."""
    before = neighbour_before(present)
    differences = p - p.gather(-1, before.clamp(min=0))
    return torch.where(present & (before >= 0), differences, 0.0).abs().sum(-1, keepdim=True)


def maxima_of_pairs(p: Tensor, present: Tensor) -> Tensor:
    """Σ_{i<j} max(p_i, p_j) over the entries that are there, none of them negative."""
    ordered = torch.where(present, p, 0.0).sort(dim=-1, descending=True).values
    ranks = torch.arange(p.shape[-1], device=p.device)
    weights = (present.sum(-1, keepdim=True) - 1 - ranks).clamp(min=0)
    return (weights * ordered).sum(-1, keepdim=True)
