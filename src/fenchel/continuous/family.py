"""The family between the Gaussian (α = 1) and the truncated paraboloid (α = 2), in D dimensions.

With ε = α − 1, k = 1/ε and the score −½ q(t), q = (t − μ)ᵀ Σ⁻¹ (t − μ), the density is

    p(t) = [1 + ε(−½ q − A)]_+^k = exp(log_peak) (1 − q/ρ²)_+^k,    ρ² = 2k exp(ε log_peak).

Everything is written as a smooth function of ε, also at 0: the logarithms of Gamma functions, which
grow with k, only appear in differences that do not.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

SHIFT = 16  # steps up before the asymptotic series, whose error is then below 1e-15
SERIES = (1 / 64, -5 / 2048, 61 / 49152, -1385 / 1048576)
SMALL = 1e-2  # |z| up to which log(1 + z)/z is its Taylor series
SMALL_TERMS = 10


def log_power(x: Tensor, eps: Tensor) -> Tensor:
    """log (1 + εx)_+^{1/ε}, which is x at ε = 0, and −∞ off the support.

    Near εx = 0 it is x times the Taylor series of log(1 + z)/z, so that neither the value nor its
    derivatives, in ε too, cancel there.
    """
    finite = x.isfinite()
    z = eps * torch.where(finite, x, 0.0)
    near = z.abs() < SMALL
    small = torch.where(near, z, 0.0)
    series = torch.zeros_like(small)
    for n in reversed(range(SMALL_TERMS)):
        series = (-1) ** n / (n + 1) + small * series
    inside = z > -1
    large = torch.where(near | ~inside, 1.0, z)
    divisor = torch.where(near, 1.0, eps)
    closed = torch.where(inside, torch.log1p(large) / divisor, -torch.inf)
    return torch.where(near | ~finite, x * series, closed)


def gamma_gap(eps: Tensor, dims: int) -> Tensor:
    """(D/2) log k + log Γ(k + 1) − log Γ(k + 1 + D/2) with k = 1/ε; 0 at ε = 0."""
    start, gap = _start(dims), torch.zeros_like(eps)
    if dims % 2:
        # log Γ(z + ½) − log Γ(z) at z = k + 1: step up, then the series in 1/x, x = z − ¼.
        steps = torch.arange(1, SHIFT + 1, dtype=eps.dtype, device=eps.device)
        lifted = eps.unsqueeze(-1)
        gap = gap + torch.log1p(0.5 * lifted / (1 + steps * lifted)).sum(-1)
        far = 1 + (SHIFT + 0.75) * eps
        inverse = (eps / far) ** 2
        gap = gap - 0.5 * torch.log1p((SHIFT + 0.75) * eps)
        for n, coefficient in enumerate(SERIES):
            gap = gap - coefficient * inverse ** (n + 1)
    for step in range(dims // 2):
        gap = gap - torch.log1p((start + step) * eps)
    return gap


def digamma_gap(eps: Tensor, dims: int) -> Tensor:
    """k (ψ(k + 1 + D/2) − ψ(k + 1)) with k = 1/ε; D/2 at ε = 0."""
    start, gap = _start(dims), torch.zeros_like(eps)
    if dims % 2:
        steps = torch.arange(1, SHIFT + 1, dtype=eps.dtype, device=eps.device)
        lifted = eps.unsqueeze(-1)
        pairs = 0.5 * lifted / ((1 + steps * lifted) * (1 + (steps + 0.5) * lifted))
        far = 1 + (SHIFT + 0.75) * eps
        inverse = (eps / far) ** 2
        gap = gap + pairs.sum(-1) + 0.5 / far
        for n, coefficient in enumerate(SERIES):
            gap = gap - 2 * (n + 1) * coefficient * inverse ** (n + 1) / far
    for step in range(dims // 2):
        gap = gap + 1 / (1 + (start + step) * eps)
    return gap


def log_peak(eps: Tensor, half_log_det: Tensor, dims: int) -> Tensor:
    """The logarithm of the density at its mode, from ½ log det Σ."""
    gaussian = half_log_det + 0.5 * dims * math.log(2 * math.pi)
    return -(gaussian + gamma_gap(eps, dims)) / (1 + 0.5 * dims * eps)


def radius(alpha: float, half_log_det: Tensor, dims: int) -> Tensor:
    """ρ: the support is |Σ^{-½}(t − μ)| ≤ ρ, for a number α > 1."""
    eps = torch.full((), alpha - 1, dtype=half_log_det.dtype, device=half_log_det.device)
    return math.sqrt(2 / (alpha - 1)) * torch.exp(0.5 * eps * log_peak(eps, half_log_det, dims))


def matching_scale(alpha: float, half_log_det: Tensor, dims: int) -> Tensor:
    """c with which the density of the score −½ (t − μ)ᵀ (c Σ)⁻¹ (t − μ) has the covariance Σ.

    The covariance for Σ itself is Σ exp(ε log_peak) / (1 + ½ε (D + 2)), and c to the power of
    1 / (1 + ½εD) undoes this factor. c is 1 at α = 1, and 9π √det Σ at α = 2 in the plane.
    """
    eps = torch.full((), alpha - 1, dtype=half_log_det.dtype, device=half_log_det.device)
    inverse = (1 + 0.5 * eps * (dims + 2)) * torch.exp(-eps * log_peak(eps, half_log_det, dims))
    return inverse ** (1 + 0.5 * eps * dims)


def _start(dims: int) -> float:
    """The first whole step of Γ above k + 1, after a half step where D is odd."""
    return 1.5 if dims % 2 else 1.0
