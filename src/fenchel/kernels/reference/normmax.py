"""α-normmax by its definition (N.34), and its derivatives (N.22) and (N.23), for every α > 1.

The sum in (N.34) is convex in τ for every α, so Newton's method from max x − 1 never overshoots. τ is
the value of the problem, max ⟨p, x⟩ − ‖p‖_α, so ∂τ/∂α = −∂‖p‖_α/∂α.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fenchel.kernels.reference.deformed import support_log, support_power
from fenchel.kernels.reference.entmax import subtract_max, widen
from fenchel.kernels.reference.newton import solve_decreasing


def normmax(scores: Tensor, alpha: float | Tensor) -> Tensor:
    """argmax_{p ∈ Δ} ⟨p, x⟩ − ‖p‖_α along the last dimension; −inf is excluded."""
    wide = widen(scores)
    shifted, peak = subtract_max(wide)
    weights = support_power(shifted - _solve(shifted, alpha), 1 / (alpha - 1))
    p = weights / weights.sum(-1, keepdim=True)
    return torch.where(peak == float("-inf"), 0.0, p).to(scores.dtype)


def normmax_backward(grad: Tensor, p: Tensor, alpha: float | Tensor, dim: int = -1) -> Tensor:
    """J g = c N^{α−1} [s∘h − p (s·h)] with h = g − p·g, s = p^{2−α}, N = ‖p‖_α; J is symmetric."""
    s = support_power(p, 2 - alpha)
    centred = grad - (p * grad).sum(dim, keepdim=True)
    moved = s * centred - p * (s * centred).sum(dim, keepdim=True)
    return norm(p, alpha, dim, keepdim=True) ** (alpha - 1) * moved / (alpha - 1)


def normmax_derivative(p: Tensor, alpha: Tensor, dim: int = -1) -> Tensor:
    """∂p/∂α, from log w and ∂τ/∂α, which is −∂‖p‖_α/∂α by the envelope theorem."""
    size = norm(p, alpha, dim, keepdim=True)
    log_p, s = support_log(p), support_power(p, 2 - alpha)
    by_tau = -norm_derivative(p, alpha, dim, keepdim=True)
    by_power = p * (log_p - (p * log_p).sum(dim, keepdim=True))
    by_shift = size ** (alpha - 1) * (s - p * s.sum(dim, keepdim=True))
    return -(by_power + by_tau * by_shift) / (alpha - 1)


def normmax_backward_alpha(grad: Tensor, p: Tensor, alpha: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients in the scores and in α, one per row."""
    by_alpha = (grad * normmax_derivative(p, alpha)).sum(-1)
    return normmax_backward(grad, p, alpha).to(p.dtype), by_alpha.to(torch.float64)


def norm(p: Tensor, alpha: float | Tensor, dim: int = -1, keepdim: bool = False) -> Tensor:
    """‖p‖_α, scaled by the largest entry so that a large α does not underflow; 1 for a row of zeros."""
    peak = p.amax(dim, keepdim=True)
    peak = torch.where(peak > 0, peak, torch.ones_like(peak))
    total = support_power(p / peak, alpha).sum(dim, keepdim=True)
    size = torch.where(total > 0, peak * torch.where(total > 0, total, 1.0) ** (1 / alpha), 1.0)
    return size if keepdim else size.squeeze(dim)


def norm_derivative(
    p: Tensor, alpha: float | Tensor, dim: int = -1, keepdim: bool = False
) -> Tensor:
    """∂‖p‖_α/∂α = (N/α) Σ (p/N)^α log(p/N)."""
    size = norm(p, alpha, dim, keepdim=True)
    relative = p / size
    terms = support_power(relative, alpha) * support_log(relative)
    return (size * terms / alpha).sum(dim, keepdim=keepdim)


def _solve(shifted: Tensor, alpha: float | Tensor) -> Tensor:
    c = 1 / (alpha - 1)

    def evaluate(tau: Tensor) -> tuple[Tensor, Tensor]:
        weights = support_power(shifted - tau, c)
        powers = weights * (shifted - tau).clamp(min=0)
        slope = -(1 + c) * weights.sum(-1, keepdim=True)
        return torch.where(weights > 0, powers, 0.0).sum(-1, keepdim=True) - 1, slope

    lower = torch.full_like(shifted[..., :1], -1.0)
    return solve_decreasing(evaluate, lower, torch.zeros_like(lower))
