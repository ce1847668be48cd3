"""Deformed exponentials and Tsallis entropies, accurate through α = 1.

With ε = α − 1, the α-exponential is exp_{2−α}(u) = (1 + εu)_+^{1/ε} = exp(log1p(εu)/ε). Divisions by ε
and ε² are replaced by the entire functions φ₁ and φ₂ of (N.1), so no formula cancels when ε → 0. In
plain PyTorch, and so differentiable any number of times.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

SERIES_TERMS = 19  # for |z| ≤ 1, the first omitted term is below 1e-19 of the sum


def epsilon(alpha: float | Tensor, like: Tensor) -> Tensor:
    """α − 1 as a tensor; zero becomes 1e-20, so that it can be a divisor."""
    if isinstance(alpha, Tensor):
        eps = alpha.to(torch.promote_types(alpha.dtype, like.dtype)) - 1
    else:
        eps = torch.full((), alpha - 1, dtype=like.dtype, device=like.device)
    return torch.where(eps.abs() < 1e-20, eps + 1e-20, eps)


def log_exponential(argument: Tensor, eps: Tensor) -> Tensor:
    """log exp_{2−α}(u); −inf where the exponential is zero."""
    return torch.log1p((eps * argument).clamp(min=-1)) / eps


def support_log(p: Tensor) -> Tensor:
    """log p on the support and 0 off it, where its factor is always zero."""
    return torch.log(torch.where(p > 0, p, torch.ones_like(p)))


def support_power(p: Tensor, exponent: float | Tensor) -> Tensor:
    """p**exponent on the support, exactly zero off it, NaN where p is."""
    positive = p > 0
    power = torch.where(positive, p, torch.ones_like(p)) ** exponent
    return torch.where(positive, power, torch.where(p.isnan(), p, 0.0))


def phi1(z: Tensor) -> Tensor:
    """(eᶻ − 1)/z, 1 at z = 0."""
    return _entire(z, order=1)


def phi2(z: Tensor) -> Tensor:
    """(eᶻ − 1 − z)/z², ½ at z = 0."""
    return _entire(z, order=2)


def phi1_derivative(z: Tensor) -> Tensor:
    """φ₁′(z) = φ₁(z) − φ₂(z), ½ at z = 0."""
    return phi1(z) - phi2(z)


def _entire(z: Tensor, order: int) -> Tensor:
    near = z.abs() <= 1
    small = torch.where(near, z, torch.zeros_like(z))
    series = torch.zeros_like(z)
    for k in reversed(range(SERIES_TERMS)):
        series = series * small + 1 / math.factorial(k + order)
    large = torch.where(near, torch.ones_like(z), z)
    closed = torch.expm1(large) / large
    if order == 2:
        closed = (closed - 1) / large
    return torch.where(near, series, closed)


def tsallis(p: Tensor, alpha: float | Tensor, dim: int = -1, keepdim: bool = False) -> Tensor:
    """Ω_α(p) = (Σ p^α − Σ p)/(α(α−1)) = Σ p ℓ φ₁(εℓ)/α with ℓ = log p."""
    log_p = support_log(p)
    return (p * log_p * phi1(epsilon(alpha, p) * log_p) / alpha).sum(dim, keepdim=keepdim)


def tsallis_derivative(
    p: Tensor, alpha: float | Tensor, dim: int = -1, keepdim: bool = False
) -> Tensor:
    """∂Ω_α(p)/∂α = Σ p ℓ (ℓ φ₁′(εℓ) − φ₁(εℓ)/α)/α."""
    log_p = support_log(p)
    z = epsilon(alpha, p) * log_p
    terms = p * log_p * (log_p * phi1_derivative(z) - phi1(z) / alpha) / alpha
    return terms.sum(dim, keepdim=keepdim)
