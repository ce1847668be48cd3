"""α-entmax by its definition (N.2), and its derivatives, for every α > 0.

For α ≤ 2 the normalizer A is found by Newton's method on the norm G of (N.4). For α > 2, p has an
infinite slope at the edge of the support, and all of p may depend on digits of A that float64 does not
have. The unknowns are then the smallest score b of the support and its probability u, (N.16). b is
found by bisection over the sorted scores.
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
from fenchel.kernels.reference.newton import solve_decreasing


def entmax(scores: Tensor, alpha: float | Tensor) -> Tensor:
    """argmax_{p ∈ Δ} ⟨p, x⟩ + H_α(p) along the last dimension; −inf is excluded."""
    wide = widen(scores)
    shifted, peak = subtract_max(wide)
    eps = epsilon(alpha, wide)
    gentle = eps.clamp(max=1)
    p = torch.exp(log_exponential(shifted - _solve(shifted, gentle), gentle))
    if bool((eps > 1).any()):
        p = torch.where((eps > 1) & ~p.isnan(), _entmax_above_2(wide, eps.clamp(min=1)), p)
    p = torch.where(peak == float("inf"), float("nan"), p)
    return torch.where(peak == float("-inf"), 0.0, p).to(scores.dtype)


def entmax_normalizer(scores: Tensor, alpha: float | Tensor) -> Tensor:
    """A, one value per row; −inf for a row of −inf."""
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
    """The gradients in the scores and in α, one per row."""
    by_alpha = (grad * entmax_derivative(p, alpha)).sum(-1)
    return entmax_backward(grad, p, alpha).to(p.dtype), by_alpha.to(torch.float64)


def mean(values: Tensor, weights: Tensor, dim: int) -> Tensor:
    """The weighted mean along `dim`; zero for a row without weight."""
    return (weights * values).sum(dim, keepdim=True) / positive_sum(weights, dim)


def positive_sum(weights: Tensor, dim: int) -> Tensor:
    """Σ weights, with 1 in place of 0, so that it can be a divisor."""
    total = weights.sum(dim, keepdim=True)
    return torch.where(total == 0, torch.ones_like(total), total)


def widen(scores: Tensor) -> Tensor:
    """float64 if the device supports it."""
    return scores.float() if scores.device.type == "mps" else scores.double()


def subtract_max(scores: Tensor) -> tuple[Tensor, Tensor]:
    """x − max x, and max x; a row of −inf stays −inf and does not become NaN."""
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


def _entmax_above_2(scores: Tensor, eps: Tensor) -> Tensor:
    """entmax of finite rows along the last dimension for ε = α − 1 ≥ 1; −inf is excluded."""
    bottom = _smallest_of_support(scores, eps)
    inside = scores >= bottom
    above = torch.where(inside, scores - bottom, 0.0)
    log_above = torch.log(eps * above)

    def log_probabilities(u: Tensor) -> Tensor:
        return torch.logaddexp(log_above, eps * torch.log(u)) / eps

    def evaluate(minus_u: Tensor) -> tuple[Tensor, Tensor]:
        """F(u) − 1 of (N.17) and its slope; convex because every p_i is a norm of (u, ·)."""
        log_p = log_probabilities(-minus_u)
        slopes = torch.exp((eps - 1) * (torch.log(-minus_u) - log_p))
        slopes = torch.where(above == 0, 1.0, slopes)
        total = torch.where(inside, torch.exp(log_p), 0.0).sum(-1, keepdim=True)
        return total - 1, -torch.where(inside, slopes, 0.0).sum(-1, keepdim=True)

    largest = 1 / inside.sum(-1, keepdim=True).to(scores.dtype)
    u = -solve_decreasing(evaluate, -largest, torch.zeros_like(largest))
    return torch.where(inside, torch.exp(log_probabilities(u)), 0.0)


def _smallest_of_support(scores: Tensor, eps: Tensor) -> Tensor:
    """The smallest score for which Σp < 1 when its own probability is zero, by bisection."""
    ordered = scores.sort(dim=-1, descending=True).values
    last = torch.zeros_like(scores[..., :1], dtype=torch.long)
    after = torch.full_like(last, scores.shape[-1])
    while bool((after - last > 1).any()):
        middle = (last + after) // 2
        above = eps * (scores - ordered.gather(-1, middle))
        fits = support_power(above, 1 / eps).sum(-1, keepdim=True) < 1
        last, after = torch.where(fits, middle, last), torch.where(fits, after, middle)
    return ordered.gather(-1, last)
