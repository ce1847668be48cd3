"""Expectations are those of adaptive quadrature: narrow, wide and far, in value and derivatives."""

from __future__ import annotations

import math
import warnings
from functools import cache

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.distributions import MultivariateNormal

from fenchel.continuous import (
    BetaGaussian,
    GaussianBasis,
    TruncatedParaboloid,
    covariance,
    entmax,
)
from tests.continuous import oracle

ALPHAS = (1.0, 4 / 3, 1.5, 2.0)
VARIANCES = (1e-6, 1e-3, 0.03, 1.0, 1e3)
LOCATIONS = (0.5, 0.04, 1.1, 6.0)
CENTERS = torch.tensor([0.0, 0.5, 0.5, 0.5, 1.0], dtype=torch.float64)
SCALES = torch.tensor([0.1, 1e-3, 0.03, 10.0, 0.5], dtype=torch.float64)
FLOAT32_SMALLEST = 1.2e-38


def number(value: float) -> Tensor:
    return torch.tensor(value, dtype=torch.float64)


def line_basis() -> GaussianBasis:
    return GaussianBasis(CENTERS, SCALES)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_on_the_line_they_are_those_of_adaptive_quadrature(alpha):
    basis = line_basis()
    for variance in VARIANCES:
        for loc in LOCATIONS:
            computed = entmax(number(loc), number(variance), basis, alpha)
            for value, center, scale in zip(computed.tolist(), CENTERS, SCALES, strict=True):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # scipy has more digits than it can promise
                    exact = oracle.expectation(loc, variance, float(center), float(scale), alpha)
                assert abs(value - exact) <= 1e-9
                assert abs(value - exact) <= 1e-8 * exact or exact < 1e-300


@pytest.mark.parametrize("alpha", [1.0, 1.1, 4 / 3, 1.5, 1.9, 2.0])
def test_in_float32_every_one_keeps_its_digits(alpha):
    variance = torch.tensor(VARIANCES).unsqueeze(-1)
    loc = torch.tensor(LOCATIONS).expand(len(VARIANCES), -1)
    variance = variance.expand_as(loc).contiguous()
    basis = line_basis().float()
    computed = entmax(loc, variance, basis, alpha)
    exact = entmax(loc.double(), variance.double(), line_basis().float().double(), alpha)
    assert computed.dtype == torch.float32
    assert_relative(computed, exact, 1e-6)


def assert_relative(computed: Tensor, exact: Tensor, tolerance: float) -> None:
    """Entry by entry, as far down as float32 has numbers."""
    error = (computed.double() - exact).abs()
    assert (error <= tolerance * exact.abs() + FLOAT32_SMALLEST).all()


PLANES = {
    "ordinary": ((0.4, 0.6), ((0.05, 0.01), (0.01, 0.03)), (0.5, 0.5), ((0.01, 0.0), (0.0, 0.01))),
    "narrow": (
        (0.4, 0.6),
        ((1e-6, 2e-7), (2e-7, 2e-6)),
        (0.42, 0.58),
        ((0.001, 0.0), (0.0, 0.001)),
    ),
    "wide": ((0.4, 0.6), ((1e3, 200.0), (200.0, 500.0)), (1.5, -2.5), ((0.3, 0.1), (0.1, 0.2))),
    "edge": ((0.4, 0.6), ((0.05, 0.01), (0.01, 0.03)), (0.95, 0.7), ((0.001, 0.0), (0.0, 0.001))),
    "far": ((0.4, 0.6), ((0.02, 0.0), (0.0, 0.01)), (2.0, 1.9), ((0.05, 0.02), (0.02, 0.04))),
    "ridge": ((0.4, 0.6), ((0.05, 0.01), (0.01, 0.03)), (0.5, 0.3), ((1e-4, 0.0), (0.0, 4.0))),
    "slanted": (
        (0.0, 0.0),
        ((0.5, 0.45), (0.45, 0.5)),
        (0.3, 0.9),
        ((0.02, -0.019), (-0.019, 0.02)),
    ),
}


@pytest.mark.parametrize("plane", PLANES)
def test_in_the_plane_they_are_those_of_nested_quadrature(plane):
    loc, variance, center, scale = PLANES[plane]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exact = oracle.expectation_2d(loc, variance, center, scale)
    basis = GaussianBasis(number_of([center]), number_of([scale]))
    value = float(entmax(number_of(loc), number_of(variance), basis, 2.0))
    assert abs(value - exact) <= 1e-7 * min(exact, 1.0)
    assert exact > 0


def number_of(values) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def random_planes(count: int, seed: int = 0) -> tuple[Tensor, Tensor, GaussianBasis]:
    """Densities with variances from 1e-6 to 1e3, near and far, of any shape and slant."""
    generator = torch.Generator().manual_seed(seed)

    def uniform(*shape: int) -> Tensor:
        return torch.rand(shape, generator=generator, dtype=torch.float64)

    angle = math.pi * uniform(count)
    turn = torch.stack((angle.cos(), -angle.sin(), angle.sin(), angle.cos()), -1).view(-1, 2, 2)
    size = 10 ** (-6 + 9 * uniform(count, 1))
    axes = size * 10 ** (-3 * uniform(count, 2) ** 2)
    variance = turn @ torch.diag_embed(axes) @ turn.mT
    variance = 0.5 * (variance + variance.mT)
    loc = 0.5 + (uniform(count, 2) - 0.5) * 10 ** (2 * uniform(count, 1))
    centers = uniform(12, 2)
    widths = 10 ** (-2 + 1.5 * uniform(12, 1, 1))
    scales = widths.square() * torch.eye(2, dtype=torch.float64)
    scales[::3, 0, 1] = scales[::3, 1, 0] = 0.8 * widths[::3, 0, 0].square()
    return loc, variance, GaussianBasis(centers, scales)


def test_in_the_plane_the_default_number_of_angles_is_enough_everywhere():
    loc, variance, basis = random_planes(1000)
    computed = entmax(loc, variance, basis, 2.0)
    exact = entmax(loc, variance, basis, 2.0, angles=120)
    assert_relative(computed, exact, 1e-7)
    assert (exact > 1e-3).sum() > 1000
    assert ((exact < 1e-6) & (exact > 1e-30)).sum() > 500


def test_in_the_plane_float32_keeps_its_digits():
    loc, variance, basis = random_planes(1000, seed=1)
    loc, variance, basis = loc.float(), variance.float(), basis.float()
    exact = entmax(loc.double(), variance.double(), basis.double(), 2.0)
    assert_relative(entmax(loc, variance, basis.float(), 2.0), exact, 1e-5)
    gaussian = entmax(loc.double(), variance.double(), basis.double(), 1.0)
    assert_relative(entmax(loc, variance, basis.float(), 1.0), gaussian, 1e-5)


def test_the_gaussian_has_a_closed_form_in_any_dimension():
    for dims in (1, 2, 3, 5):
        root = torch.randn(4, dims, dims, dtype=torch.float64)
        variance = root @ root.mT + torch.eye(dims, dtype=torch.float64)
        root = torch.randn(6, dims, dims, dtype=torch.float64)
        scales = root @ root.mT + torch.eye(dims, dtype=torch.float64)
        loc, centers = torch.randn(4, dims).double(), torch.randn(6, dims).double()
        computed = entmax(loc, variance, GaussianBasis(centers, scales), 1.0)
        for j in range(6):
            exact = MultivariateNormal(loc, variance + scales[j]).log_prob(centers[j]).exp()
            torch.testing.assert_close(computed[:, j], exact, rtol=1e-12, atol=0)


def test_one_dimension_may_be_written_as_matrices():
    loc, variance = torch.rand(4, dtype=torch.float64), torch.rand(4, dtype=torch.float64)
    matrices = GaussianBasis(CENTERS.unsqueeze(-1), SCALES.square()[:, None, None])
    for alpha in ALPHAS:
        computed = entmax(loc.unsqueeze(-1), variance[:, None, None], matrices, alpha)
        torch.testing.assert_close(computed, entmax(loc, variance, line_basis(), alpha))


def test_the_family_is_continuous_in_alpha():
    basis = line_basis()
    loc, variance = number(0.4), number(0.03)
    for alpha, near in ((1.0, 1 + 1e-9), (2.0, 2 - 1e-9)):
        torch.testing.assert_close(
            entmax(loc, variance, basis, alpha),
            entmax(loc, variance, basis, near),
            rtol=1e-7,
            atol=1e-12,
        )


@pytest.mark.parametrize("alpha", ALPHAS)
def test_derivatives_on_the_line_are_those_of_differences(alpha):
    loc = number_of([0.5, 1.4, 0.31]).requires_grad_()
    variance = number_of([0.02, 0.02, 1e-3]).requires_grad_()
    centers = number_of([0.5, 0.2]).requires_grad_()
    scales = number_of([0.1, 0.3]).requires_grad_()

    def expectations(loc: Tensor, variance: Tensor, centers: Tensor, scales: Tensor) -> Tensor:
        basis = GaussianBasis(CENTERS[:1], SCALES[:1])
        basis.centers, basis.scales = centers, scales
        return entmax(loc, variance, basis, alpha)

    inputs = (loc, variance, centers, scales)
    assert gradcheck(expectations, inputs, check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(expectations, inputs, check_fwd_over_rev=True)


@pytest.mark.parametrize("alpha", [1.0, 2.0])
def test_derivatives_in_the_plane_are_those_of_differences(alpha):
    loc = number_of([[0.5, 0.5], [0.9, 0.1]]).requires_grad_()
    variance = number_of([[[0.02, 0.005], [0.005, 0.01]], [[0.3, -0.1], [-0.1, 0.2]]])
    variance.requires_grad_()
    basis = GaussianBasis.grid((2, 1), 0.2, dtype=torch.float64)

    def expectations(loc: Tensor, variance: Tensor) -> Tensor:
        return entmax(loc, 0.5 * (variance + variance.mT), basis, alpha)

    assert gradcheck(expectations, (loc, variance), check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(expectations, (loc, variance), check_fwd_over_rev=True)


@cache
def _gauss_legendre(count: int) -> tuple[Tensor, Tensor]:
    points, weights = np.polynomial.legendre.leggauss(count)
    return torch.from_numpy(points), torch.from_numpy(weights)


def nodes_of(density: BetaGaussian, count: int = 200) -> tuple[Tensor, Tensor]:
    """Gauss–Legendre × trapezoid nodes of the support of a density in one or two dimensions."""
    points, weights = _gauss_legendre(count)
    radius = density.radius
    if density.dims == 1:
        reach = radius * density.scale_tril[0, 0]
        return density.loc + (reach * points).unsqueeze(-1), reach * weights
    r, wr = 0.5 * (points + 1), 0.25 * weights * (points + 1)
    angle = 2 * math.pi * torch.arange(count, dtype=torch.float64) / count
    circle = torch.stack((angle.cos(), angle.sin()), -1)
    u = (r[:, None, None] * circle).reshape(-1, 2)
    area = radius**2 * density.scale_tril.det() * 2 * math.pi / count
    return density.loc + radius * u @ density.scale_tril.mT, (area * wr).repeat_interleave(count)


@pytest.mark.parametrize("alpha", [4 / 3, 1.5, 2.0])
@pytest.mark.parametrize("variance", [1e-4, 0.02, 3.0])
def test_the_jacobian_on_the_line_is_the_generalized_covariance(alpha, variance):
    """Prop. 3, in the canonical parameters θ = (μ/σ², −1/2σ²), whose statistics are (t, t²)."""
    basis = GaussianBasis(number_of([0.5, 0.2, 0.9]), number_of([0.1, 0.3, 0.05]))
    theta = number_of([0.45 / variance, -0.5 / variance])

    def expectations(theta: Tensor) -> Tensor:
        sigma2 = -0.5 / theta[1]
        return entmax(theta[0] * sigma2, sigma2, basis, alpha)

    computed = torch.func.jacrev(expectations)(theta)
    density = BetaGaussian(number_of([0.45]), number_of([[variance]]), alpha)
    t, weights = nodes_of(density)
    phi = torch.stack((t[:, 0], t[:, 0] ** 2))
    p = density.log_prob(t).exp()
    exact = covariance(p, weights, phi, basis(t[:, 0]).mT, 2 - alpha).mT
    tolerance = 1e-9 if alpha == 2 else 1e-5  # p^{2−α} has an infinite slope at the edge
    assert ((computed - exact).abs() <= tolerance * exact.abs().amax(0)).all()


def test_the_jacobian_in_the_plane_is_the_generalized_covariance():
    basis = GaussianBasis.grid((3, 3), 0.15, dtype=torch.float64)
    variance = number_of([[0.02, 0.005], [0.005, 0.01]])
    precision = torch.linalg.inv(variance)
    loc = number_of([0.5, 0.4])

    def expectations(first: Tensor, second: Tensor) -> Tensor:
        sigma = torch.linalg.inv(-second - second.mT)
        return entmax(sigma @ first, sigma, basis, 2.0)

    by_first, by_second = torch.func.jacrev(expectations, (0, 1))(precision @ loc, -0.5 * precision)
    density = TruncatedParaboloid(loc, variance)
    t, weights = nodes_of(density)
    squares = (t.unsqueeze(-1) * t.unsqueeze(-2)).flatten(1)
    p = density.log_prob(t).exp()
    exact = covariance(p, weights, torch.cat((t, squares), 1).mT, basis(t).mT, 0.0).mT
    computed = torch.cat((by_first, by_second.flatten(1)), 1)
    torch.testing.assert_close(computed, exact, rtol=1e-6, atol=1e-7)


def test_the_factor_that_equation_52_lacks():
    """cov(t², ψ) at α = 2, with ½ before its difference of error functions."""
    mu, sigma2, center, scale = 0.45, 0.02, 0.6, 0.1
    a = (1.5 * sigma2) ** (1 / 3)
    upper, lower = (mu - center + a) / scale, (mu - center - a) / scale
    erf = math.erf(upper / math.sqrt(2)) - math.erf(lower / math.sqrt(2))

    def normal(z: float) -> float:
        return math.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)

    corrected = 0.5 * (center**2 - mu**2 + scale**2 - a * a / 3) * erf
    corrected -= scale * (mu + center + a) * normal(upper)
    corrected += scale * (mu + center - a) * normal(lower)
    theta = number_of([mu / sigma2, -0.5 / sigma2]).requires_grad_()
    variance = -0.5 / theta[1]
    basis = GaussianBasis(number_of([center]), number_of([scale]))
    slope = torch.autograd.grad(entmax(theta[0] * variance, variance, basis).sum(), theta)[0]
    assert abs(float(slope[1]) - corrected) < 1e-9


@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0])
def test_gradients_in_float32_keep_their_digits(alpha):
    basis = GaussianBasis.grid(8, (0.05, 0.4))
    for size in VARIANCES:
        loc, variance = torch.tensor([0.3, 2.0]), torch.full((2,), size)
        slopes = []
        for dtype in (torch.float32, torch.float64):
            at = [x.to(dtype).requires_grad_() for x in (loc, variance)]
            r = entmax(*at, basis.to(dtype), alpha)
            slopes.append(torch.autograd.grad((r * r).sum(), at))
        for low, high in zip(*slopes, strict=True):
            assert_relative(low, high, 1e-5)


@pytest.mark.parametrize("dims", [1, 2])
def test_a_second_forward_before_backward_does_not_change_a_gradient(dims):
    def inputs(shift: float) -> tuple[Tensor, Tensor]:
        loc = torch.full((dims,), 0.3 + shift).requires_grad_()
        variance = 0.05 * torch.eye(dims).requires_grad_() if dims > 1 else torch.full((1,), 0.05)
        return loc, variance

    basis = GaussianBasis.grid(5 if dims == 1 else (3, 3), 0.2)
    first, second = inputs(0.0), inputs(0.4)
    one, two = entmax(*first, basis), entmax(*second, basis)
    one.square().sum().backward()
    two.square().sum().backward()
    for leaf, shift in ((first, 0.0), (second, 0.4)):
        alone = inputs(shift)
        entmax(*alone, basis).square().sum().backward()
        assert torch.equal(leaf[0].grad, alone[0].grad)


def test_batches_of_any_shape_and_empty_ones():
    basis = GaussianBasis.grid((3, 3), 0.2)
    loc = torch.rand(2, 0, 3, 2)
    variance = torch.eye(2).expand(2, 0, 3, 2, 2)
    assert entmax(loc, variance, basis).shape == (2, 0, 3, 9)
    loc, variance = torch.rand(2, 4, 2), (0.1 * torch.eye(2)).expand(2, 4, 2, 2)
    together = entmax(loc, variance, basis)
    for i in range(2):
        for j in range(4):
            torch.testing.assert_close(together[i, j], entmax(loc[i, j], variance[i, j], basis))
