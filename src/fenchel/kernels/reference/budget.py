"""The budget map by its definition (N.36), and its derivatives.

With x_(m) the m-th largest score and m = ⌈k⌉, Σp is at least k at τ = x_(m) − 1 and below k at
τ = x_(m). This brackets the root, and scores can be clamped around it. The sum is piecewise linear;
Newton's method in a bracket ends on the linear piece of the root.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fenchel.kernels.reference.entmax import mean, widen
from fenchel.kernels.reference.newton import solve_decreasing


def budget(scores: Tensor, k: float | Tensor) -> Tensor:
    """argmax ⟨p, x⟩ − ½‖p‖² over 0 ≤ p ≤ 1, Σp = k; if there are fewer than k entries, all are 1."""
    wide = widen(scores)
    target = k if isinstance(k, Tensor) else torch.full_like(wide[..., :1], k)
    present = wide > float("-inf")
    available = present.sum(-1, keepdim=True)
    rank = target.expand_as(available).ceil().clamp(min=1)
    rank = torch.minimum(rank, available.clamp(min=1)).long() - 1
    anchor = wide.sort(-1, descending=True).values.gather(-1, rank)
    anchor = torch.where(anchor == float("-inf"), 0.0, anchor)
    near = (wide - anchor).clamp(-2, 2)

    def evaluate(tau: Tensor) -> tuple[Tensor, Tensor]:
        p = (near - tau).clamp(0, 1)
        between = (p > 0) & (p < 1)
        return p.sum(-1, keepdim=True) - target, -between.sum(-1, keepdim=True).to(p.dtype)

    lower = torch.full_like(anchor, -1.0)
    tau = solve_decreasing(evaluate, lower, torch.zeros_like(lower))
    p = torch.where(available <= target, 1.0, (near - tau).clamp(0, 1))
    finite = wide.amax(-1, keepdim=True) < float("inf")
    return torch.where(finite, torch.where(present, p, 0.0), torch.nan).to(scores.dtype)


def budget_backward(grad: Tensor, p: Tensor, k: float | Tensor, dim: int = -1) -> Tensor:
    """J g = s∘(g − mean of g over s), s the entries strictly between 0 and 1; J is symmetric."""
    between = _strictly_between(p)
    return between * (grad - mean(grad, between, dim))


def budget_derivative(p: Tensor, k: Tensor, dim: int = -1) -> Tensor:
    """∂p/∂k: the entries strictly between 0 and 1 share it equally."""
    between = _strictly_between(p)
    return between / between.sum(dim, keepdim=True).clamp(min=1)


def budget_backward_k(grad: Tensor, p: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients in the scores and in k, one per row."""
    by_k = (grad * budget_derivative(p, k)).sum(-1)
    return budget_backward(grad, p, k).to(p.dtype), by_k.to(torch.float64)


def _strictly_between(p: Tensor) -> Tensor:
    """One where 0 < p < 1, NaN where p is."""
    return ((p > 0) & (p < 1)).to(p.dtype) + (p - p)
