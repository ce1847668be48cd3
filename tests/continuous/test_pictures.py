"""The pictures show the densities."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.distributions import MultivariateNormal, Normal

from fenchel import FenchelError, plot
from fenchel.continuous import BetaGaussian, Mixture, TruncatedParabola, TruncatedParaboloid

WORDS = ["the", "sea", "was", "calm", "and", "the", "boats", "came", "home"]


def ink(figure) -> float:
    figure.canvas.draw()
    pixels = np.asarray(figure.canvas.buffer_rgba())[..., :3]
    return float((pixels < 250).any(-1).mean())


def test_the_density_is_drawn_over_its_words():
    density = TruncatedParabola(torch.tensor(0.2), torch.tensor(0.02))
    ax = plot.density_over_text(WORDS, density)
    (line,) = ax.get_lines()
    t, height = line.get_data()
    expected = density.log_prob(torch.as_tensor(t).float()).exp().double()
    torch.testing.assert_close(torch.as_tensor(height), expected)
    labels = ax.get_xticklabels()
    assert [label.get_text() for label in labels] == WORDS
    bold = [label.get_text() for label in labels if label.get_fontweight() == "bold"]
    assert bold == ["sea", "was"]
    assert ink(ax.figure) > 0.01


@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0])
def test_a_layers_mixture_may_be_drawn(alpha):
    mixture = Mixture(torch.tensor([0.5, 0.5]), torch.tensor([0.2, 0.8]), torch.full((2,), 1e-3))
    ax = plot.density_over_text(WORDS, mixture, alpha=alpha)
    height = ax.get_lines()[0].get_data()[1]
    assert height[:401].max() == pytest.approx(height[401:].max(), rel=1e-2)
    assert height.mean() == pytest.approx(1, rel=1e-2)
    matrix = torch.tensor([[0.01, 0.002], [0.002, 0.02]])
    plane = Mixture(torch.tensor([0.7, 0.3]), torch.rand(2, 2), matrix.expand(2, 2, 2))
    ax = plot.ellipse_over_image(torch.rand(20, 30), plane, alpha=alpha)
    rings = 3 if alpha == 1 else 4
    assert len(ax.get_lines()) == 2 * (rings + 1)


@pytest.mark.parametrize("alpha", [1.5, 2.0])
def test_the_outer_ellipse_is_the_edge_of_the_support_and_rings_are_heights(alpha):
    matrix = torch.tensor([[0.01, 0.002], [0.002, 0.02]])
    density = BetaGaussian(torch.tensor([0.4, 0.5]), matrix, alpha)
    ax = plot.ellipse_over_image(np.zeros((4, 4, 3)), density, alpha=alpha)
    edge, *rings, _ = [
        torch.as_tensor(np.array(line.get_data())).T.float() for line in ax.get_lines()
    ]
    top = density.log_prob(density.loc)
    inside, outside = (density.loc + (edge - density.loc) * s for s in (0.999, 1.001))
    assert density.log_prob(inside).isfinite().all()
    assert density.log_prob(outside).isneginf().all()
    for ring, share in zip(rings, (0.25, 0.5, 0.75), strict=True):
        height = torch.exp(density.log_prob(ring) - top)
        torch.testing.assert_close(height, torch.full_like(height, share), rtol=1e-3, atol=0)


def test_gaussians_and_paraboloids_are_drawn_alike():
    eye = 0.01 * torch.eye(2)
    for density in (
        MultivariateNormal(torch.rand(2), eye),
        TruncatedParaboloid(torch.rand(2), eye),
    ):
        assert ink(plot.ellipse_over_image(torch.rand(5, 5), density).figure) > 0.1
    assert plot.density_over_text(WORDS, Normal(0.5, 0.1), alpha=1.0).figure is not None


def test_what_cannot_be_drawn_says_so():
    line = TruncatedParabola(torch.tensor([0.2, 0.7]), torch.tensor([0.02, 0.1]))
    with pytest.raises(FenchelError, match=r"must be a single density.*got batch shape \(2,\)"):
        plot.density_over_text(WORDS, line)
    with pytest.raises(FenchelError, match=r"single density on the plane.*event shape \(\)"):
        plot.ellipse_over_image(torch.rand(4, 4), TruncatedParabola(0.2, 0.1))
    with pytest.raises(FenchelError, match="words must contain at least one word"):
        plot.density_over_text([], TruncatedParabola(0.2, 0.1))


def test_a_density_that_is_being_learned_may_be_drawn():
    loc = torch.tensor([0.5, 0.5], requires_grad=True)
    matrix = (0.01 * torch.eye(2)).requires_grad_()
    assert plot.ellipse_over_image(torch.rand(4, 4), TruncatedParaboloid(loc, matrix)).get_lines()


def test_figure_one_has_its_panels():
    figure = plot.densities()
    assert len(figure.axes) == 4
    assert ink(figure) > 0.1
