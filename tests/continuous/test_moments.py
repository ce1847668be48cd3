"""Densities from discrete attention: moments, and mixtures by expectation maximisation."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck
from torch.distributions import MultivariateNormal, Normal

from fenchel.continuous import Mixture, attention_moments, fit_mixture, regular_positions
from tests.implementations import GPU, parameters


def test_moments_on_the_line_are_the_papers():
    p = torch.softmax(torch.randn(3, 4, 7, dtype=torch.float64), -1)
    t = regular_positions(7, dtype=torch.float64)
    loc, variance = attention_moments(p, t, floor=0.01)
    torch.testing.assert_close(loc, (p * t).sum(-1))
    torch.testing.assert_close(variance, (p * t * t).sum(-1) - loc**2 + 0.01)


def test_moments_in_the_plane_are_the_papers():
    p = torch.softmax(torch.randn(3, 6, dtype=torch.float64), -1)
    t = torch.rand(3, 6, 2, dtype=torch.float64)
    loc, variance = attention_moments(p, t, dims=2)
    for i in range(3):
        torch.testing.assert_close(loc[i], p[i] @ t[i])
        torch.testing.assert_close(
            variance[i], (p[i] * t[i].mT) @ t[i] - torch.outer(loc[i], loc[i])
        )


@pytest.mark.parametrize("dims", [1, 2])
def test_one_mode_has_the_moments(dims):
    p = torch.softmax(torch.randn(2, 9, dtype=torch.float64), -1)
    t = regular_positions(9) if dims == 1 else regular_positions(3, 3)
    mixing, loc, variance = fit_mixture(p, t.double(), 1, 1e-3, dims=dims)
    expected = attention_moments(p, t.double(), 1e-3, dims=dims)
    assert mixing.tolist() == [[1.0], [1.0]]
    torch.testing.assert_close(loc[:, 0], expected[0])
    torch.testing.assert_close(variance[:, 0], expected[1])


@pytest.mark.parametrize("dims", [1, 2])
def test_a_mixture_keeps_the_mean_and_raises_the_likelihood_with_every_step(dims):
    p = torch.softmax(2 * torch.randn(5, 16, dtype=torch.float64), -1)
    t = (regular_positions(16) if dims == 1 else regular_positions(4, 4)).double()
    before = None
    for steps in (0, 1, 3, 10):
        mixture = fit_mixture(p, t, 3, 1e-4, dims=dims, steps=steps)
        torch.testing.assert_close(mixture.mixing.sum(-1), torch.ones(5).double())
        mean, _ = attention_moments(p, t, dims=dims)
        weights = mixture.mixing if dims == 1 else mixture.mixing.unsqueeze(-1)
        torch.testing.assert_close((weights * mixture.loc).sum(1), mean)
        likelihood = (p * log_likelihood(mixture, t)).sum(-1)
        assert before is None or (likelihood >= before - 1e-3).all()
        before = likelihood


def log_likelihood(mixture: Mixture, t: Tensor) -> Tensor:
    if mixture.loc.ndim == 2:
        each = Normal(mixture.loc.unsqueeze(-1), mixture.variance.sqrt().unsqueeze(-1)).log_prob(t)
    else:
        modes = MultivariateNormal(mixture.loc.unsqueeze(-2), mixture.variance.unsqueeze(-3))
        each = modes.log_prob(t)
    return torch.logsumexp(each + mixture.mixing.log().unsqueeze(-1), -2)


def test_two_far_groups_are_two_modes():
    p = torch.tensor([0.3, 0.3, 0.0, 0.0, 0.0, 0.2, 0.2])
    t = regular_positions(7)
    mixing, loc, variance = fit_mixture(p, t, 2, floor=1e-4)
    torch.testing.assert_close(mixing, torch.tensor([0.6, 0.4]), atol=1e-3, rtol=0)
    torch.testing.assert_close(loc, torch.tensor([1 / 7, 6 / 7]), atol=1e-3, rtol=0)
    assert (variance < 0.01).all()


def test_attention_to_one_piece_is_finite_with_several_modes():
    p = torch.zeros(4, 5)
    p[:, 2] = 1.0
    p.requires_grad_()
    mixture = fit_mixture(p, regular_positions(5), 3, floor=1e-3)
    torch.testing.assert_close((mixture.mixing * mixture.loc).sum(-1), torch.full((4,), 0.5))
    torch.testing.assert_close(mixture.mixing.sum(-1), torch.ones(4))
    assert (mixture.variance > 0).all()
    mixture.loc.sum().backward()
    assert p.grad.isfinite().all()


@pytest.mark.parametrize("dims", [1, 2])
def test_they_have_derivatives(dims):
    scores = torch.randn(2, 6, dtype=torch.float64).requires_grad_()
    t = torch.rand(6, dims, dtype=torch.float64).squeeze(-1)

    def fitted(scores: Tensor) -> tuple[Tensor, ...]:
        return tuple(fit_mixture(torch.softmax(scores, -1), t, 2, 0.05, dims=dims, steps=3))

    assert gradcheck(fitted, (scores,))


@pytest.mark.parametrize("implementation", parameters(GPU))
def test_moments_are_exact_whatever_matrix_products_may_round_to(monkeypatch, implementation):
    monkeypatch.setattr(torch.backends.cuda.matmul, "allow_tf32", True)
    weights, places = torch.softmax(torch.randn(8, 40), -1), torch.rand(8, 40)
    _, variance = attention_moments(weights, places)
    _, exact = attention_moments(weights.double(), places.double())
    torch.testing.assert_close(variance.double(), exact, rtol=1e-6, atol=0)
