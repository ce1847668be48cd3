"""The Fenchel–Young loss of α-entmax, as a sum of terms none of which is negative.

With p = entmax(x), t = 1 + ε(x − A) and D_ω the Bregman divergence of ω(p) = (p^α − p)/(α(α−1)),

    L(x; q) = Ω(q) + Ω*(x) − ⟨q, x⟩ = Σ D_ω(q_i ‖ p_i) + Σ_{t_i < 0} q_i (−t_i/ε),
    D_ω(q ‖ p) = (t/α) [q expm1(ε (log q − log p))/ε + p − q],

so the loss is exactly zero when p = q, in particular beyond the margin 1/ε. For the gradient p − q only
the normalizer A of every row is saved.

With label smoothing, class k of C stands for q = (1 − s) e_k + s/C. Fast kernels do not form q:

    L(x; q) = L(x; e_k) + s (x_k − mean x) + Ω(q).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from fenchel.kernels.reference.deformed import (
    epsilon,
    log_exponential,
    support_log,
    support_power,
    tsallis_derivative,
)
from fenchel.kernels.reference.entmax import entmax, entmax_normalizer, widen

InPlace = Callable[..., tuple[Tensor, Tensor | None]]


def loss_in_place(
    loss_of: Callable[..., tuple[Tensor, Tensor]],
    slope_in_alpha: Callable[..., Tensor],
    backward: Callable[..., Tensor],
) -> InPlace:
    """Loss, ∂L/∂α and gradient in one call, for scores that the gradient may overwrite."""

    def entmax_loss_in_place(
        grad: Tensor | None,
        scores: Tensor,
        target: Tensor,
        alpha: float | Tensor,
        ignore_index: int,
        smoothing: float,
        by_alpha: bool,
    ) -> tuple[Tensor, Tensor | None]:
        """The loss and, if `by_alpha`, ∂L/∂α of every row; g (p − q) overwrites the scores."""
        options = ignore_index, smoothing
        loss, normalizer = loss_of(scores, target, alpha, *options)
        slope = None
        if by_alpha and isinstance(alpha, Tensor):
            slope = slope_in_alpha(scores, target, alpha, normalizer, *options)
        if grad is not None:
            backward(grad, scores, target, alpha, normalizer, *options, out=scores)
        return loss, slope

    return entmax_loss_in_place


def entmax_loss(
    scores: Tensor,
    target: Tensor,
    alpha: float | Tensor,
    ignore_index: int,
    smoothing: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """The loss and the normalizer A of every row; +inf if the target has a class at −inf."""
    wide = widen(scores)
    eps, q = epsilon(alpha, wide), dense_target(target, wide, ignore_index, smoothing)
    normalizer = entmax_normalizer(wide, alpha)
    argument = wide - normalizer.unsqueeze(-1)
    log_p = log_exponential(argument, eps)
    p, t = torch.exp(log_p), (1 + eps * argument).clamp(min=0)
    ratio = torch.expm1(eps * (support_log(q) - log_p)) / eps
    divergence = torch.where(q > 0, q * ratio, 0.0) + p - q
    slack = torch.where(q > 0, q * (-(1 + eps * argument) / eps), 0.0)
    outside = torch.where(q > 0, support_power(q, 1 + eps) / ((1 + eps) * eps) + slack, 0.0)
    terms = torch.where(t > 0, t * divergence / (1 + eps), outside)
    absent = wide == float("-inf")
    terms = torch.where(absent, torch.where(q > 0, float("inf"), 0.0), terms)
    loss = torch.where(counted(target, ignore_index), terms.sum(-1), 0.0)
    return loss.to(scores.dtype), normalizer


def entmax_loss_backward(
    grad: Tensor,
    scores: Tensor,
    target: Tensor,
    alpha: float | Tensor,
    normalizer: Tensor,
    ignore_index: int,
    smoothing: float = 0.0,
    out: Tensor | None = None,
) -> Tensor:
    """g (p − q); zero for an ignored row and for a row of −inf. `out` may be the scores."""
    p, q, counts = _solution(scores, target, alpha, normalizer, ignore_index, smoothing)
    by_scores = torch.where(counts, grad.to(p.dtype), 0.0).unsqueeze(-1) * (p - q)
    return by_scores.to(scores.dtype) if out is None else out.copy_(by_scores)


def entmax_loss_alpha(
    scores: Tensor,
    target: Tensor,
    alpha: Tensor,
    normalizer: Tensor,
    ignore_index: int,
    smoothing: float = 0.0,
) -> Tensor:
    """∂L/∂α = ∂Ω_α(q)/∂α − ∂Ω_α(p)/∂α, by the envelope theorem."""
    p, q, counts = _solution(scores, target, alpha, normalizer, ignore_index, smoothing)
    return torch.where(counts, loss_slope_alpha(p, q, alpha), 0.0)


entmax_loss_in_place = loss_in_place(entmax_loss, entmax_loss_alpha, entmax_loss_backward)


def _solution(
    scores: Tensor,
    target: Tensor,
    alpha: float | Tensor,
    normalizer: Tensor,
    ignore_index: int,
    smoothing: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """p, q, and which rows count: those that are neither ignored nor all −inf."""
    wide = widen(scores)
    q = dense_target(target, wide, ignore_index, smoothing)
    return entmax(wide, alpha), q, counted(target, ignore_index) & (normalizer != float("-inf"))


def loss_slope_alpha(p: Tensor, q: Tensor, alpha: float | Tensor) -> Tensor:
    return tsallis_derivative(q, alpha) - tsallis_derivative(p, alpha)


def dense_target(
    target: Tensor, scores: Tensor, ignore_index: int, smoothing: float = 0.0
) -> Tensor:
    """The target as probabilities; an ignored row is all zeros. Only class indices are smoothed."""
    if target.dtype.is_floating_point:
        return target.to(scores.dtype)
    counts = counted(target, ignore_index)
    index = torch.where(counts, target, 0).unsqueeze(-1)
    one = counts.unsqueeze(-1).to(scores.dtype)
    one_hot = torch.zeros_like(scores).scatter(-1, index, one)
    if smoothing == 0:
        return one_hot
    return (1 - smoothing) * one_hot + smoothing / scores.shape[-1] * one


def counted(target: Tensor, ignore_index: int) -> Tensor:
    """Which rows count: those of class indices that are not `ignore_index`, all rows of probabilities."""
    if target.dtype.is_floating_point:
        return torch.ones(target.shape[:-1], dtype=torch.bool, device=target.device)
    return target != ignore_index
