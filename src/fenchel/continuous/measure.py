"""Ω_α-regularized prediction on any measure space, given by points and their weights.

A function on the space is the tensor of its values at the points (the last dimension), and an integral
is a weighted sum. If all weights are one, this is the finite case, `fenchel.entmax` and its Jacobian;
with the nodes and weights of a quadrature rule, it is the continuous case, for any score function.
"""

from __future__ import annotations

import math
from numbers import Real

import torch
from torch import Tensor

from fenchel.checks import check_dense, check_device, check_number
from fenchel.continuous.deformed import deformed_exp, deformed_log
from fenchel.continuous.family import log_power
from fenchel.continuous.validation import check_items, check_real, check_together
from fenchel.errors import FenchelError
from fenchel.kernels.reference.deformed import support_power
from fenchel.mechanisms.masks import readable

NEWTON_STEPS = 20  # at most 11 were needed in many problems
POLISHING_STEPS = 2  # of Newton, differentiable: derivatives up to the third are exact


def normalizer(scores: Tensor, weights: Tensor, alpha: float = 2.0) -> Tensor:
    """A_α(f), the number for which exp_{2−α}(f − A) integrates to one; log ∫ eᶠ at α = 1.

    Convex in f; its gradient is the escort distribution p^{2−α}/∫p^{2−α} (Props. 1 and 2 of the
    paper). Newton's method on (F^ε − 1)/ε, F = ∫ exp_{2−α}(f − A), ε = α − 1, which is convex and
    decreasing in A for 0 < α ≤ 2, from a point on its left: it never overshoots.

    Args:
        scores: f at the points, (…, n).
        weights: the weight of each point, broadcastable to the scores; zero excludes a point.
        alpha: 0 < α ≤ 2.

    Reference: Martins et al. (2020), *Sparse and Continuous Attention Mechanisms*, Props. 1 and 2.

    >>> import torch
    >>> normalizer(torch.tensor([1.0, 0.5, -1.0]), torch.ones(3), alpha=2.0)
    tensor(1.2500)
    """
    _check(scores, weights, alpha)
    if alpha == 1:
        positive = weights > 0
        log_weights = torch.where(
            positive, torch.log(torch.where(positive, weights, 1.0)), -torch.inf
        )
        return torch.logsumexp(scores + log_weights, -1)
    eps = torch.full((), alpha - 1, dtype=scores.dtype, device=scores.device)
    with torch.no_grad():
        start = _left_of_root(scores.detach(), weights.detach(), alpha)
        for _ in range(NEWTON_STEPS):
            moved = _newton(scores.detach(), weights.detach(), start, eps)
            settled = _settled(moved, start)
            start = moved
            if settled:
                break
    for _ in range(POLISHING_STEPS):
        start = _newton(scores, weights, start, eps)
    return start


def prediction(scores: Tensor, weights: Tensor, alpha: float = 2.0) -> Tensor:
    """argmax_p ∫ p f − Ω_α(p) over densities p = exp_{2−α}(f − A_α(f)), at the points.

    Exactly zero, for α > 1, where f ≤ A_α(f) − 1/(α−1). The Jacobian is the generalized covariance
    `covariance(p, weights, …, beta=2−α)`. Arguments as for `normalizer`.

    >>> import torch
    >>> points = torch.linspace(-2, 2, 401)
    >>> p = prediction(-points**2 / 2, torch.full((401,), 0.01), alpha=2.0)
    >>> p[200], (p > 0).sum()  # ½ (3/2)^⅔ at the mode, and about 2 (3/2)^⅓ of length
    (tensor(0.6552), tensor(229))
    """
    return deformed_exp(scores - normalizer(scores, weights, alpha).unsqueeze(-1), 2 - alpha)


def negentropy(p: Tensor, weights: Tensor, alpha: float = 2.0) -> Tensor:
    """Ω_α(p) = (∫ p^α − 1)/(α(α−1)) = ∫ p log_{2−α}(p)/α, ∫ p log p at α = 1 (Eq. 6).

    >>> import torch
    >>> negentropy(torch.tensor([0.75, 0.25, 0.0]), torch.ones(3), alpha=2.0)
    tensor(-0.1875)
    """
    _check(p, weights, alpha)
    inside = p > 0
    value = deformed_log(torch.where(inside, p, 1.0), 2 - alpha)
    return (weights * torch.where(inside, p * value, 0.0)).sum(-1) / alpha


def escort(p: Tensor, weights: Tensor, beta: float) -> Tensor:
    """The β-escort distribution p^β/∫p^β (Eq. 5): uniform on the support at β = 0, p at β = 1.

    >>> import torch
    >>> escort(torch.tensor([0.75, 0.25, 0.0]), torch.ones(3), beta=0.0)
    tensor([0.5000, 0.5000, 0.0000])
    """
    _check_points(p, weights, "p")
    check_number(beta, name="beta", above=-math.inf)
    power = support_power(p, beta)
    return power / (weights * power).sum(-1, keepdim=True)


def covariance(p: Tensor, weights: Tensor, phi: Tensor, psi: Tensor, beta: float) -> Tensor:
    """cov_{p,β}(φ, ψ) = ∫p^β · (E[φψᵀ] − E[φ] E[ψ]ᵀ) under the β-escort of p (Eq. 17).

    With β = 2 − α this is the Jacobian in θ of E_p[ψ], where p is predicted from the scores θᵀφ
    (Prop. 3): for softmax the covariance, for sparsemax the one under the uniform density on the
    support, times its size.

    Args:
        p: a density at the points, (…, n).
        weights: the weights of the points, broadcastable to p.
        phi: φ at the points, (…, M, n).
        psi: ψ at the points, (…, N, n).
        beta: β ≥ 0.

    Returns:
        (…, M, N).

    >>> import torch
    >>> p = torch.tensor([0.75, 0.25, 0.0])  # sparsemax of (1, 0.5, −1)
    >>> covariance(p, torch.ones(3), torch.eye(3), torch.eye(3), beta=0.0)
    tensor([[ 0.5000, -0.5000,  0.0000],
            [-0.5000,  0.5000,  0.0000],
            [ 0.0000,  0.0000,  0.0000]])
    """
    _check_points(p, weights, "p")
    check_number(beta, name="beta", above=-math.inf)
    for name, function in {"phi": phi, "psi": psi}.items():
        _check_functions(function, p, name)
    dtype = torch.promote_types(torch.promote_types(phi.dtype, psi.dtype), p.dtype)
    phi, psi = phi.to(dtype), psi.to(dtype)
    mass = (weights * support_power(p, beta)).unsqueeze(-2)
    total = mass.sum(-1, keepdim=True)
    centred = psi - (mass * psi).sum(-1, keepdim=True) / total
    return (mass * (phi - (mass * phi).sum(-1, keepdim=True) / total)) @ centred.mT


def _left_of_root(scores: Tensor, weights: Tensor, alpha: float) -> Tensor:
    """The largest A at which one point alone would hold all the mass."""
    heaviest = deformed_log(1 / torch.where(weights > 0, weights, 1.0), 2 - alpha)
    return torch.where(weights > 0, scores - heaviest, -torch.inf).amax(-1)


def _newton(scores: Tensor, weights: Tensor, start: Tensor, eps: Tensor) -> Tensor:
    """One step on (F^ε − 1)/ε, whose slope is −F^{ε−1} ∫p^{2−α}."""
    log_p = log_power(scores - start.unsqueeze(-1), eps)
    p = torch.exp(log_p)
    slope = (weights * support_power(p, 1 - eps)).sum(-1)
    log_total = torch.log((weights * p).sum(-1))
    gain = torch.expm1(eps * log_total) / eps
    return start + gain * torch.exp((1 - eps) * log_total) / slope


def _settled(moved: Tensor, start: Tensor) -> bool:
    """Whether to stop early; if values cannot be read, all steps are taken."""
    return readable(moved) and bool(((moved - start).abs() <= 1e-15 * (1 + start.abs())).all())


def _check(values: Tensor, weights: Tensor, alpha: float) -> None:
    if isinstance(alpha, bool) or not isinstance(alpha, Real) or not 0 < alpha <= 2:
        raise FenchelError(f"alpha must be a number above 0 and at most 2, got {alpha!r}")
    _check_points(values, weights)
    check_items((weights >= 0).all(-1), "weights must be at least 0, got a negative weight")
    check_items((weights > 0).any(-1), "at least one weight must be positive, got none")


def _check_points(values: Tensor, weights: Tensor, name: str = "the function") -> None:
    """A function at points, and their weights."""
    check_real(values, name)
    if not isinstance(weights, Tensor):
        raise FenchelError(f"weights must be a torch.Tensor, got {type(weights).__name__}")
    if weights.dtype.is_complex:
        raise FenchelError(f"weights must be real, got {weights.dtype}")
    check_dense(weights, "weights")
    check_device(weights, values, "weights", name)
    if values.ndim == 0 or values.shape[-1] == 0:
        raise FenchelError(f"{name} must have shape (…, n), n ≥ 1, got {tuple(values.shape)}")
    try:
        torch.broadcast_shapes(values.shape, weights.shape)
    except RuntimeError as error:
        raise FenchelError(
            f"weights must have a shape that broadcasts with {tuple(values.shape)},"
            f" got {tuple(weights.shape)}"
        ) from error


def _check_functions(functions: Tensor, p: Tensor, name: str) -> None:
    """Several functions at the points of p."""
    check_real(functions, name)
    check_device(functions, p, name, "the density")
    if functions.ndim < 2 or functions.shape[-1] != p.shape[-1]:
        raise FenchelError(
            f"{name} must have shape (…, count, {p.shape[-1]}), got {tuple(functions.shape)}"
        )
    check_together(functions[..., 0, 0], p[..., 0], f"{name} and p")
