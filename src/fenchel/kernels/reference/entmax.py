"""α-entmax by its definition, and its derivatives, for every α > 0.

    p_i = exp_{2−α}(x_i − A),    A the normaliser with Σ p = 1

With the normaliser inside, the map is smooth in α through 1, where A is log-sum-exp. Newton runs on

    G(A) = (F(A)^ε − 1)/ε,   F(A) = Σ p_i(A),   ε = α − 1,

whose F^ε is the 1/ε-norm of 1 + ε(x − A): convex and decreasing for α ≤ 2, exact in one step for
ties and for α = 1. Above 2 it is not convex, and the solver's bracket takes over; there p rises
so steeply at the edge of the support that it is found without A (`steep.py`).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from fenchel.kernels.reference.deformed import (
    epsilon,
    log_exponential,
    phi2,
    support_log,
    support_power,
)
from fenchel.kernels.reference.steep import steep_entmax
from fenchel.kernels.reference.threshold import solve_decreasing


def entmax(scores: Tensor, alpha: float | Tensor) -> Tensor:
    """argmax_{p ∈ Δ} ⟨p, x⟩ + H_α(p) along the last dimension; −inf is left out."""
    wide = widen(scores)
    shifted, peak = subtract_max(wide)
    eps = epsilon(alpha, wide)
    gentle = eps.clamp(max=1)
    p = torch.exp(log_exponential(shifted - _solve(shifted, gentle), gentle))
    if bool((eps > 1).any()):
        p = torch.where((eps > 1) & ~p.isnan(), steep_entmax(wide, eps.clamp(min=1)), p)
    p = torch.where(peak == float("inf"), float("nan"), p)
    return torch.where(peak == float("-inf"), 0.0, p).to(scores.dtype)


def entmax_normalizer(scores: Tensor, alpha: float | Tensor) -> Tensor:
    """A, with one value a row; −inf for a row with nothing in it."""
    wide = widen(scores)
    shifted, peak = subtract_max(wide)
    normalizer = peak + _solve(shifted, epsilon(alpha, wide))
    return torch.where(peak == float("-inf"), peak, normalizer).squeeze(-1)


def entmax_backward(grad: Tensor, p: Tensor, alpha: float | Tensor, dim: int = -1) -> Tensor:
    """J g = s∘g − s (s·g)/Σs with s = p^{2−α} on the support; J is symmetric, so jvp = vjp."""
    s = support_power(p, 2 - alpha)
    return s * (grad - mean(grad, s, dim))


def entmax_derivative(p: Tensor, alpha: Tensor, dim: int = -1) -> Tensor:
    """∂p/∂α = s (Σr)/(Σs) − r with r = p log²p φ₂(−ε log p)."""
    eps = epsilon(alpha, p)
    log_p = support_log(p)
    r = p * log_p.square() * phi2(-eps * log_p)
    s = support_power(p, 2 - alpha)
    return s * (r.sum(dim, keepdim=True) / positive_sum(s, dim)) - r


def entmax_backward_alpha(grad: Tensor, p: Tensor, alpha: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients in the scores and in α, the latter one a row."""
    by_alpha = (grad * entmax_derivative(p, alpha)).sum(-1)
    return entmax_backward(grad, p, alpha).to(p.dtype), by_alpha.to(torch.float64)


def mean(values: Tensor, weights: Tensor, dim: int) -> Tensor:
    """The weighted mean along `dim`; zero for a row without weight."""
    return (weights * values).sum(dim, keepdim=True) / positive_sum(weights, dim)


def positive_sum(weights: Tensor, dim: int) -> Tensor:
    """Σ weights, with 1 in place of 0 so that a row without weight may be divided by it."""
    total = weights.sum(dim, keepdim=True)
    return torch.where(total == 0, torch.ones_like(total), total)


def widen(scores: Tensor) -> Tensor:
    """float64 wherever the device has it."""
    return scores.float() if scores.device.type == "mps" else scores.double()


def subtract_max(scores: Tensor) -> tuple[Tensor, Tensor]:
    """x − max x, and max x; a row with nothing in it stays at −inf instead of becoming NaN."""
    peak = scores.amax(-1, keepdim=True)
    return scores - torch.where(peak == float("-inf"), 0.0, peak), peak


def _solve(shifted: Tensor, eps: Tensor) -> Tensor:
    def evaluate(normalizer: Tensor) -> tuple[Tensor, Tensor]:
        log_p = log_exponential(shifted - normalizer, eps)
        total = torch.exp(log_p).sum(-1, keepdim=True)
        slopes = torch.where(log_p > float("-inf"), torch.exp((1 - eps) * log_p), 0.0)
        value = torch.expm1(eps * torch.log(total)) / eps
        return value, -(total ** (eps - 1)) * slopes.sum(-1, keepdim=True)

    lower = torch.zeros_like(shifted[..., :1])
    upper = -torch.expm1(-eps * math.log(shifted.shape[-1])) / eps
    return solve_decreasing(evaluate, lower, upper.expand_as(lower))
