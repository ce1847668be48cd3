"""Prediction on a measure space: entmax where it is finite, its densities where it is continuous."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

import fenchel
from fenchel.continuous import (
    TruncatedParabola,
    covariance,
    escort,
    negentropy,
    normalizer,
    prediction,
)

ALPHAS = (0.5, 1.0, 1.2, 1.5, 2.0)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_with_weights_of_one_it_is_entmax(alpha):
    scores = 3 * torch.randn(5, 8, dtype=torch.float64)
    p = prediction(scores, torch.ones(8).double(), alpha)
    torch.testing.assert_close(p, fenchel.entmax(scores, alpha), rtol=0, atol=1e-12)
    omega = fenchel.Tsallis(alpha)
    torch.testing.assert_close(negentropy(p, torch.ones(8).double(), alpha), omega.value(p))


@pytest.mark.parametrize("alpha", ALPHAS)
def test_the_gradient_of_the_normalizer_is_the_escort_distribution(alpha):
    """Prop. 2, for weighted points; and the normalizer is convex."""
    scores = torch.randn(9, dtype=torch.float64)
    weights = 0.1 + torch.rand(9, dtype=torch.float64)
    slope = torch.func.grad(normalizer)(scores, weights, alpha)
    p = prediction(scores, weights, alpha)
    torch.testing.assert_close(slope, weights * escort(p, weights, 2 - alpha))
    bend = torch.func.hessian(normalizer)(scores, weights, alpha)
    assert torch.linalg.eigvalsh(bend).min() > -1e-10


@pytest.mark.parametrize("alpha", ALPHAS)
def test_the_jacobian_is_the_generalized_covariance(alpha):
    """Prop. 3: scores θᵀφ, expectations of ψ."""
    weights = 0.1 + torch.rand(9, dtype=torch.float64)
    phi, psi = torch.randn(3, 9, dtype=torch.float64), torch.randn(4, 9, dtype=torch.float64)
    theta = torch.randn(3, dtype=torch.float64)

    def expectations(theta: Tensor) -> Tensor:
        return psi @ (weights * prediction(theta @ phi, weights, alpha))

    computed = torch.func.jacrev(expectations)(theta)
    p = prediction(theta @ phi, weights, alpha)
    exact = covariance(p, weights, phi, psi, 2 - alpha).mT
    torch.testing.assert_close(computed, exact, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0])
def test_derivatives_are_those_of_differences(alpha):
    scores = (0.3 * torch.randn(2, 5, dtype=torch.float64)).requires_grad_()
    weights = (0.5 + torch.rand(5, dtype=torch.float64)).requires_grad_()

    def function(scores: Tensor, weights: Tensor) -> Tensor:
        return prediction(scores, weights, alpha)

    assert gradcheck(function, (scores, weights))
    assert gradgradcheck(function, (scores, weights))


def test_on_a_grid_it_is_the_truncated_parabola():
    t = torch.linspace(-3, 3, 20_001, dtype=torch.float64)
    weights = torch.full_like(t, 6 / 20_000)
    p = prediction(-((t - 0.2) ** 2) / (2 * 0.49), weights, 2.0)
    density = TruncatedParabola(torch.tensor(0.2).double(), torch.tensor(0.7).double())
    torch.testing.assert_close(p, density.log_prob(t).exp(), rtol=0, atol=1e-6)
    uniform = escort(p, weights, 0.0)
    inside = p > 0
    torch.testing.assert_close(
        uniform[inside], 0.5 / density.half_width.expand(inside.sum()), rtol=1e-3, atol=0
    )
    assert (uniform[~inside] == 0).all()


def test_points_of_weight_zero_are_not_there():
    scores = torch.tensor([0.3, 5.0, -0.2], dtype=torch.float64)
    for alpha in ALPHAS:
        weights = torch.tensor([0.5, 0.0, 0.7], dtype=torch.float64)
        without = normalizer(scores[[0, 2]], weights[[0, 2]], alpha)
        torch.testing.assert_close(normalizer(scores, weights, alpha), without)


def test_it_works_under_vmap():
    scores, weights = torch.randn(3, 6, dtype=torch.float64), torch.rand(6, dtype=torch.float64)

    def predict(row: Tensor) -> Tensor:
        return prediction(row, weights, 1.5)

    expected = torch.stack([predict(row) for row in scores])
    torch.testing.assert_close(torch.func.vmap(predict)(scores), expected)
