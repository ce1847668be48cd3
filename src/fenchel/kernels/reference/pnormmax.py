"""pnormmax (the sq-pnorm-max of the 2017 paper) by its definition, and its derivatives, for every s > 1.

    argmax_{p ∈ Δ} ⟨p, x⟩ − ½‖p‖_s²

The threshold τ solves F(τ) = 1 of (N.35). F is homogeneous of degree one in u = (x − τ)_+ and decreases
with τ (by Cauchy–Schwarz its logarithm at a rate of at least 1/max u), so the root is between max x −
1, where F ≥ 1, and max x, where F = 0.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fenchel.kernels.reference.deformed import support_log, support_power
from fenchel.kernels.reference.entmax import subtract_max, widen
from fenchel.kernels.reference.newton import solve_decreasing
from fenchel.kernels.reference.normmax import norm, norm_derivative

# Steps of the solver on a GPU, where it does not check for convergence. Normal scores of any scale took
# at most 10 steps for s ≤ 2, and 35 at s = 4.
FEW_STEPS, MANY_STEPS = 20, 80


def pnormmax(scores: Tensor, s: float | Tensor) -> Tensor:
    """argmax_{p ∈ Δ} ⟨p, x⟩ − ½‖p‖_s² along the last dimension; −inf is excluded."""
    wide = widen(scores)
    shifted, peak = subtract_max(wide)
    tau = _solve(shifted, s)
    weights = support_power((shifted - tau) / -tau, 1 / (s - 1))
    p = weights / weights.sum(-1, keepdim=True)
    return torch.where(peak == float("-inf"), 0.0, p).to(scores.dtype)


def pnormmax_backward(grad: Tensor, p: Tensor, s: float | Tensor, dim: int = -1) -> Tensor:
    """J g = K h, h = g − (1ᵀK g)/(1ᵀK1), K = [N^{s−2} diag(p^{2−s}) − (2−s) N^{−2} p pᵀ]/(s−1).

    K is the inverse Hessian of ½‖p‖_s² on the support; J is symmetric.
    """
    inverse = _InverseHessian(p, s, dim)
    level = inverse(grad).sum(dim, keepdim=True) / inverse(torch.ones_like(p)).sum(
        dim, keepdim=True
    )
    alone = (p != 0).sum(dim, keepdim=True) == 0
    return inverse(grad - torch.where(alone, 0.0, level))


def pnormmax_derivative(p: Tensor, s: Tensor, dim: int = -1) -> Tensor:
    """∂p/∂s = −J ∂(N^{2−s} p^{s−1})/∂s."""
    size = norm(p, s, dim, keepdim=True)
    slope = norm_derivative(p, s, dim, keepdim=True)
    logs = support_log(p) - torch.log(size) + (2 - s) * slope / size
    return -pnormmax_backward(support_power(p, s - 1) * size ** (2 - s) * logs, p, s, dim)


def pnormmax_backward_p(grad: Tensor, p: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients in the scores and in the exponent, one per row."""
    by_exponent = (grad * pnormmax_derivative(p, s)).sum(-1)
    return pnormmax_backward(grad, p, s).to(p.dtype), by_exponent.to(torch.float64)


def half_squared_norm(p: Tensor, s: float | Tensor, dim: int = -1, keepdim: bool = False) -> Tensor:
    """½‖p‖_s²"""
    return norm(p, s, dim, keepdim).square() / 2


def half_squared_norm_derivative(
    p: Tensor, s: float | Tensor, dim: int = -1, keepdim: bool = False
) -> Tensor:
    return norm(p, s, dim, keepdim) * norm_derivative(p, s, dim, keepdim)


class _InverseHessian:
    def __init__(self, p: Tensor, s: float | Tensor, dim: int) -> None:
        size = norm(p, s, dim, keepdim=True)
        self.p, self.dim, self.scale = p, dim, 1 / (s - 1)
        self.diagonal = size ** (s - 2) * support_power(p, 2 - s)
        self.rest = (2 - s) / size.square()

    def __call__(self, g: Tensor) -> Tensor:
        along = (self.p * g).sum(self.dim, keepdim=True)
        return self.scale * (self.diagonal * g - self.rest * self.p * along)


def _solve(shifted: Tensor, s: float | Tensor) -> Tensor:
    c, mix = 1 / (s - 1), (2 - s) / s

    def evaluate(tau: Tensor) -> tuple[Tensor, Tensor]:
        relative = (shifted - tau) / -tau
        weights = support_power(relative, c)
        total = weights.sum(-1, keepdim=True)
        powers = torch.where(weights > 0, weights * relative, 0.0).sum(-1, keepdim=True)
        slopes = support_power(relative, c - 1).sum(-1, keepdim=True)
        value = -tau * total * powers**-mix
        rate = c * (slopes / total - (2 - s) * total / powers) / -tau
        return value - 1, -value * rate

    lower = torch.full_like(shifted[..., :1], -1.0)
    steps = MANY_STEPS if isinstance(s, Tensor) or s > 2 else FEW_STEPS
    return solve_decreasing(evaluate, lower, torch.zeros_like(lower), steps=steps)
