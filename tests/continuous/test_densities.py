"""Densities integrate to one, solve their problem, and behave as torch's distributions do."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck
from torch.distributions import (
    Categorical,
    Distribution,
    Laplace,
    MixtureSameFamily,
    MultivariateNormal,
    Normal,
    kl_divergence,
)

from fenchel.continuous import (
    BetaGaussian,
    LocationScale,
    Mixture,
    Triangular,
    TruncatedParabola,
    TruncatedParaboloid,
    deformed_exp,
    deformed_log,
    tsallis_negentropy,
)

LOC, SCALE = torch.tensor([0.3, -1.0, 2.0]).double(), torch.tensor([0.2, 1.0, 3.0]).double()
LINES = {
    "parabola": (TruncatedParabola(LOC, SCALE), lambda t: -((t - LOC) ** 2) / (2 * SCALE**2)),
    "triangular": (Triangular(LOC, SCALE), lambda t: -(t - LOC).abs() / SCALE),
    "location-scale": (
        LocationScale(LOC, SCALE, lambda s: s**4 / 4 + s**2),
        lambda t: -(((t - LOC).abs() / SCALE) ** 3 + 2 * (t - LOC).abs() / SCALE) / SCALE,
    ),
    "beta": (
        BetaGaussian(LOC.unsqueeze(-1), SCALE.square()[:, None, None], 1.5),
        lambda t: -((t - LOC) ** 2) / (2 * SCALE**2),
    ),
}


def points(density, count: int = 40_001) -> tuple[Tensor, Tensor]:
    """Evenly spaced points of each support, a little beyond it, and their weight."""
    half = getattr(density, "half_width", None)
    if half is None:
        half = density.radius * density.scale_tril[..., 0, 0]
    t = LOC + 1.02 * half * torch.linspace(-1, 1, count, dtype=torch.float64).unsqueeze(-1)
    return t, 1.02 * half * 2 / (count - 1)


def log_density(density, t: Tensor) -> Tensor:
    return density.log_prob(t.unsqueeze(-1) if density.event_shape else t)


@pytest.mark.parametrize("name", LINES)
def test_a_density_has_the_moments_it_says(name):
    density, _ = LINES[name]
    t, weight = points(density)
    log_p = log_density(density, t)
    p = log_p.exp()
    assert (p[0] == 0).all()
    assert (log_p[0] == -math.inf).all()
    mean, variance = density.mean.reshape(3), density.variance.reshape(3)
    close = {"rtol": 1e-5, "atol": 1e-6}
    torch.testing.assert_close((p * weight).sum(0), torch.ones(3).double(), **close)
    torch.testing.assert_close((p * t * weight).sum(0), mean, **close)
    torch.testing.assert_close((p * (t - mean) ** 2 * weight).sum(0), variance, **close)
    entropy = -(torch.xlogy(p, p) * weight).sum(0)
    torch.testing.assert_close(density.entropy(), entropy, **close)
    for alpha in (0.7, 1.0, 1.5, 2.0, 3.0):
        power = torch.where(p > 0, p, 1.0) ** alpha * (p > 0)
        exact = -entropy if alpha == 1 else ((power * weight).sum(0) - 1) / (alpha * (alpha - 1))
        computed = tsallis_negentropy(density, alpha)
        torch.testing.assert_close(computed, exact, rtol=1e-3 if alpha < 1 else 1e-5, atol=1e-5)


@pytest.mark.parametrize("name", LINES)
def test_a_density_maximises_its_regularized_score(name):
    """E_p[f] − Ω_α(p) is larger at p than at its neighbours on the way to other densities."""
    density, score = LINES[name]
    alpha = float(getattr(density, "alpha", torch.tensor(2.0)).flatten()[0])
    t, weight = points(density, 4001)
    p, f = log_density(density, t).exp(), score(t)

    def objective(q: Tensor) -> Tensor:
        return ((q * f - q**alpha / (alpha * (alpha - 1))) * weight).sum(0)

    for shift in (0.3, -0.7):
        bump = torch.exp(-((t - LOC - shift * weight * 2000) ** 2) / (weight * 500) ** 2)
        other = bump / (bump * weight).sum(0)
        p_exact = p / (p * weight).sum(0)
        assert (objective(0.99 * p_exact + 0.01 * other) < objective(p_exact)).all()


@pytest.mark.parametrize("name", ["parabola", "triangular", "location-scale"])
def test_the_distribution_function_is_the_integral_and_has_an_inverse(name):
    density, _ = LINES[name]
    t, weight = points(density, 20_001)
    mass = (log_density(density, t).exp() * weight).cumsum(0)
    torch.testing.assert_close(density.cdf(t), mass, rtol=0, atol=1e-3)
    torch.testing.assert_close(
        density.cdf(t)[[0, -1]], torch.tensor([[0.0], [1.0]]).double().expand(2, 3)
    )
    q = torch.linspace(0.001, 0.999, 101, dtype=torch.float64).unsqueeze(-1)
    torch.testing.assert_close(density.cdf(density.icdf(q)), q.expand(-1, 3), rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", LINES)
def test_samples_have_the_moments_and_stay_in_the_support(name):
    density, _ = LINES[name]
    torch.manual_seed(1)
    count = 20_000 if name == "location-scale" else 200_000  # which inverts numerically
    t = density.rsample((count,))
    assert density.support.check(t).all()
    mean, deviation = t.mean(0), density.stddev
    assert ((mean - density.mean).abs() < 5 * deviation / math.sqrt(count)).all()
    torch.testing.assert_close(t.var(0), density.variance, rtol=6 / math.sqrt(count), atol=0)


@pytest.mark.parametrize("family", [TruncatedParabola, Triangular])
def test_reparametrised_gradients_move_samples_with_the_parameters(family):
    loc, scale = torch.tensor(0.3).requires_grad_(), torch.tensor(2.0).requires_grad_()
    torch.manual_seed(2)
    samples = family(loc, scale).rsample((100_000,))
    by_loc, by_scale = torch.autograd.grad(samples.square().mean(), (loc, scale))
    exact = torch.autograd.grad(family(loc, scale).variance + loc**2, (loc, scale))
    torch.testing.assert_close(by_loc, exact[0], rtol=0.05, atol=0.01)
    torch.testing.assert_close(by_scale, exact[1], rtol=0.05, atol=0.01)


def test_reparametrised_gradients_of_the_family_reach_the_covariance_and_alpha():
    matrix = torch.tensor([[0.5, 0.1], [0.1, 0.3]], dtype=torch.float64).requires_grad_()
    loc = torch.zeros(2, dtype=torch.float64).requires_grad_()
    alpha = torch.tensor(1.5, dtype=torch.float64).requires_grad_()
    torch.manual_seed(3)
    samples = BetaGaussian(loc, matrix, alpha).rsample((100_000,))
    computed = torch.autograd.grad(samples.square().sum(-1).mean(), (loc, matrix, alpha))
    exact = torch.autograd.grad(BetaGaussian(loc, matrix, alpha).variance.sum(), (matrix, alpha))
    assert computed[0].abs().max() < 0.02
    torch.testing.assert_close(computed[1], exact[0], rtol=0.05, atol=0.01)
    torch.testing.assert_close(computed[2], exact[1], rtol=0.05, atol=0.01)


@pytest.mark.parametrize("dims", [1, 2, 3, 4])
@pytest.mark.parametrize("alpha", [1.0, 1.25, 1.5, 2.0])
def test_the_family_in_any_dimension_has_mass_one_and_its_covariance(alpha, dims):
    torch.manual_seed(dims)
    root = torch.randn(dims, dims, dtype=torch.float64)
    density = BetaGaussian(torch.randn(dims).double(), root @ root.mT + torch.eye(dims), alpha)
    radius = 9.0 if alpha == 1 else float(density.radius)
    r = torch.linspace(0, radius, 20_001, dtype=torch.float64)
    unit = density.scale_tril[:, 0]
    p = density.log_prob(density.loc + r.unsqueeze(-1) * unit).exp()
    shell = 2 * math.pi ** (dims / 2) / math.gamma(dims / 2) * r ** (dims - 1)
    volume = density.scale_tril.det()
    mass = torch.trapezoid(p * shell, r) * volume
    spread = torch.trapezoid(p * shell * r * r, r) * volume / dims
    assert abs(float(mass) - 1) < 1e-5
    torch.testing.assert_close(
        density.covariance, spread * density.covariance_matrix, rtol=1e-4, atol=0
    )
    entropy = -torch.trapezoid(torch.xlogy(p, p) * shell, r) * volume
    torch.testing.assert_close(density.entropy(), entropy, rtol=1e-4, atol=1e-5)
    samples = density.rsample((50_000,))
    torch.testing.assert_close(
        samples.T.cov().reshape(dims, dims), density.covariance, rtol=0.06, atol=0.06
    )


def test_at_alpha_one_the_family_is_the_gaussian_and_it_is_smooth_there():
    matrix = torch.tensor([[0.5, 0.1], [0.1, 0.3]], dtype=torch.float64)
    loc, t = torch.zeros(2).double(), torch.randn(7, 2, dtype=torch.float64)
    gaussian = MultivariateNormal(loc, matrix)
    density = BetaGaussian(loc, matrix, 1.0)
    torch.testing.assert_close(density.log_prob(t), gaussian.log_prob(t))
    torch.testing.assert_close(density.entropy(), gaussian.entropy())
    torch.testing.assert_close(density.variance, gaussian.variance)
    for alpha in (0.6, 2.0):
        a = tsallis_negentropy(density, alpha)
        torch.testing.assert_close(a, tsallis_negentropy(gaussian, alpha))

    def everything(alpha: Tensor) -> Tensor:
        each = BetaGaussian(loc, matrix, alpha)
        return torch.cat((each.log_prob(t), each.entropy()[None], each.variance))

    at = torch.tensor(1.0, dtype=torch.float64)
    slope = torch.func.jacfwd(everything)(at)
    step = 1e-5
    forward = (everything(at + step) - everything(at)) / step
    torch.testing.assert_close(slope, forward, rtol=1e-3, atol=1e-3)


def test_log_prob_has_derivatives_in_every_parameter():
    t = torch.tensor([[0.1, 0.2], [0.3, -0.2]], dtype=torch.float64)

    def log_prob(loc: Tensor, root: Tensor, alpha: Tensor) -> Tensor:
        return BetaGaussian(loc, root @ root.mT + torch.eye(2), alpha).log_prob(t)

    inputs = [
        torch.tensor(x, dtype=torch.float64) for x in ([0.1, 0.0], [[1.0, 0.2], [0.1, 0.8]], 1.4)
    ]
    assert gradcheck(log_prob, [x.requires_grad_() for x in inputs])


def test_the_paraboloid_is_that_of_equation_11_and_its_line_the_parabola():
    matrix = torch.tensor([[0.5, 0.1], [0.1, 0.3]], dtype=torch.float64)
    density = TruncatedParaboloid(torch.zeros(2).double(), matrix)
    t = 0.6 * torch.randn(50, 2, dtype=torch.float64)
    q = (t @ torch.linalg.inv(matrix) * t).sum(-1)
    lam = -((math.gamma(3) / (2 * math.pi * matrix.det().sqrt())) ** 0.5)
    torch.testing.assert_close(density.log_prob(t).exp(), (-lam - 0.5 * q).clamp(min=0))
    line = BetaGaussian(LOC.unsqueeze(-1), SCALE.square()[:, None, None], 2.0)
    t = LOC + 0.1 * SCALE
    torch.testing.assert_close(
        line.log_prob(t.unsqueeze(-1)), TruncatedParabola(LOC, SCALE).log_prob(t)
    )
    torch.testing.assert_close(line.entropy(), TruncatedParabola(LOC, SCALE).entropy())


def test_location_scale_contains_the_parabola_and_the_triangle():
    t = LOC + torch.linspace(-2, 2, 41, dtype=torch.float64).unsqueeze(-1)
    parabola = LocationScale(LOC, SCALE ** (2 / 3), lambda s: s**3 / 6)
    torch.testing.assert_close(
        parabola.log_prob(t).exp(), TruncatedParabola(LOC, SCALE).log_prob(t).exp()
    )
    triangle = LocationScale(LOC, SCALE.sqrt(), lambda s: s**2 / 2, derivative=lambda s: s)
    exact = Triangular(LOC, SCALE)
    torch.testing.assert_close(triangle.log_prob(t).exp(), exact.log_prob(t).exp())
    for computed, wanted in ((parabola, TruncatedParabola(LOC, SCALE)), (triangle, exact)):
        torch.testing.assert_close(computed.entropy(), wanted.entropy(), rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(computed.variance, wanted.variance)
        torch.testing.assert_close(computed.cdf(t), wanted.cdf(t))


@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0])
@pytest.mark.parametrize("beta", [0.25, 1.0, 3.0])
def test_an_escort_is_the_normalised_power_on_the_same_support(alpha, beta):
    matrix = torch.tensor([[0.6, 0.2], [0.2, 0.4]], dtype=torch.float64)
    density = BetaGaussian(torch.zeros(2, dtype=torch.float64), matrix, alpha)
    escort = density.escort(beta)
    t = torch.linspace(-3, 3, 41, dtype=torch.float64)
    grid = torch.cartesian_prod(t, t)
    log_p, log_q = density.log_prob(grid), escort.log_prob(grid)
    inside = log_p > -math.inf
    torch.testing.assert_close(log_q > -math.inf, inside)
    size = density.log_power_integral(beta)
    torch.testing.assert_close(log_q[inside], beta * log_p[inside] - size, rtol=1e-8, atol=1e-8)


def test_moments_of_a_location_scale_family_are_exact_where_g_has_infinite_slopes():
    """g = s^1.5 has g′ = 1.5 √s; its density ∝ 1 − √u on the unit interval has known moments."""
    density = LocationScale(LOC, SCALE, lambda s: s**1.5)
    half = density.half_width
    torch.testing.assert_close(density.variance, half.square() / 7, rtol=1e-12, atol=0)
    # √u is Beta(2, 2), for which E[log(1 − √u)] = −5/6.
    entropy = half.log() - math.log(1.5) + 5 / 6
    torch.testing.assert_close(density.entropy(), entropy, rtol=1e-12, atol=1e-12)
    square = (1.5**2 / 6 * 2 / half - 1) / 2
    torch.testing.assert_close(tsallis_negentropy(density, 2.0), square, rtol=1e-12, atol=1e-12)


def test_a_location_scale_density_is_never_negative_at_its_edge():
    density = LocationScale(0.0, 1.0, lambda s: torch.sqrt(1 + s * s))
    near = density.half_width * (1 - torch.logspace(-8, -2, 20_001))
    assert not density.log_prob(near).isnan().any()


def test_torch_densities_have_tsallis_negentropies_too():
    t = torch.linspace(-40, 40, 200_001, dtype=torch.float64)
    for density in (Normal(0.3, 1.2), Laplace(0.3, 1.2)):
        p = density.log_prob(t).exp()
        for alpha in (1.5, 2.0):
            exact = (torch.trapezoid(p**alpha, t) - 1) / (alpha * (alpha - 1))
            computed = tsallis_negentropy(density, alpha).double()
            torch.testing.assert_close(computed, exact, rtol=1e-5, atol=1e-6)


DENSITIES = [
    TruncatedParabola(LOC, SCALE),
    Triangular(LOC, SCALE),
    LocationScale(LOC, SCALE, lambda s: s**2),
    BetaGaussian(torch.rand(3, 2), torch.eye(2).expand(3, 2, 2), 1.5),
    TruncatedParaboloid(torch.rand(3, 2), torch.eye(2).expand(3, 2, 2)),
]


@pytest.mark.parametrize("density", DENSITIES, ids=lambda d: type(d).__name__)
def test_they_expand_and_repeat_as_distributions_do(density):
    larger = density.expand((4, 3))
    assert type(larger) is type(density)
    assert larger.batch_shape == (4, 3)
    assert larger.rsample((2,)).shape == (2, 4, 3, *density.event_shape)
    t = density.sample()
    torch.testing.assert_close(larger.log_prob(t), density.log_prob(t).expand(4, 3))
    torch.testing.assert_close(larger.variance, density.variance.expand(larger.variance.shape))
    assert larger.rsample((0,)).shape == (0, 4, 3, *density.event_shape)
    assert larger.log_prob(torch.nan * t).isnan().all()
    assert repr(density)


def test_they_are_components_of_mixtures():
    modes = TruncatedParabola(torch.tensor([0.2, 0.8]), torch.tensor([0.01, 0.02]))
    mixture = MixtureSameFamily(Categorical(torch.tensor([0.25, 0.75])), modes, False)
    t = torch.tensor([0.2, 0.5, 0.8])
    each = modes.log_prob(t.unsqueeze(-1)).exp()
    torch.testing.assert_close(mixture.log_prob(t).exp(), each @ torch.tensor([0.25, 0.75]))
    torch.testing.assert_close(mixture.mean, torch.tensor(0.65))
    named = Mixture(torch.tensor([0.25, 0.75]), modes.loc, modes.scale**2).distribution(2.0)
    torch.testing.assert_close(named.log_prob(t), mixture.log_prob(t))


@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0])
@pytest.mark.parametrize("dims", [1, 2])
def test_a_mixture_has_the_density_of_its_modes(alpha, dims):
    mixing = torch.tensor([[0.5, 0.5], [0.1, 0.9]])
    loc = torch.rand(2, 2) if dims == 1 else torch.rand(2, 2, 2)
    variance = torch.full((2, 2), 0.02) if dims == 1 else (0.02 * torch.eye(2)).expand(2, 2, 2, 2)
    mixture = Mixture(mixing, loc, variance)
    density = mixture.distribution(alpha)
    assert density.batch_shape == (2,)
    assert density.sample((5,)).shape[:2] == (5, 2)


def test_a_narrower_parabola_has_less_entropy_and_a_larger_negentropy():
    wide, tight = TruncatedParabola(0.0, 2.0), TruncatedParabola(0.0, 1.0)
    assert wide.entropy() > tight.entropy()
    assert tsallis_negentropy(wide) < tsallis_negentropy(tight)
    with pytest.raises(NotImplementedError):
        kl_divergence(wide, tight)


@pytest.mark.parametrize("beta", [-1.0, 0.0, 0.5, 1 - 1e-9, 1.0, 1 + 1e-9, 1.5, 2.0])
def test_deformed_functions_invert_each_other_and_have_their_derivatives(beta):
    u = torch.tensor([0.01, 0.5, 1.0, 3.0], dtype=torch.float64).requires_grad_()
    torch.testing.assert_close(deformed_exp(deformed_log(u, beta), beta), u, rtol=1e-12, atol=0)
    (slope,) = torch.autograd.grad(deformed_log(u, beta).sum(), u)
    torch.testing.assert_close(slope, u**-beta, rtol=1e-10, atol=0)
    x = deformed_log(u, beta).detach().requires_grad_()
    (slope,) = torch.autograd.grad(deformed_exp(x, beta).sum(), x)
    torch.testing.assert_close(slope, u.detach() ** beta, rtol=1e-10, atol=0)


def test_deformed_functions_at_their_ends():
    inf = math.inf
    zero = torch.tensor([0.0], dtype=torch.float64)
    assert deformed_log(zero, 0.5).item() == -2.0
    assert deformed_log(zero, 1.0).item() == -inf
    assert deformed_log(-zero - 1, 0.5).isnan()
    far = torch.tensor([-inf, -3.0], dtype=torch.float64)
    assert deformed_exp(far, 0.5).tolist() == [0.0, 0.0]
    assert deformed_exp(-far, 1.5).tolist() == [inf, inf]
    assert deformed_exp(far[:1], 1.0).item() == 0.0


@pytest.mark.parametrize("density", [TruncatedParabola, Triangular])
@pytest.mark.parametrize("scale", [1e-37, 1e-25, 1e25, 1e37])
def test_every_scale_of_single_precision_has_a_density(density, scale):
    scale = torch.tensor(scale)
    single, double = density(0.0, scale), density(torch.zeros(1).double(), scale.double())
    places = (double.half_width * torch.linspace(-0.9, 0.9, 7).double()).float()
    expected = double.log_prob(places.double())
    torch.testing.assert_close(single.log_prob(places).double(), expected, rtol=0, atol=1e-5)
    torch.testing.assert_close(single.cdf(places).double(), double.cdf(places.double()))


SHAPES = {
    "one dimension": torch.eye(1),
    "a circle": torch.eye(2),
    "two dimensions": torch.tensor([[2.0, 1.0], [1.0, 3.0]]),
    "three dimensions": torch.tensor([[2.0, 1.0, 0.0], [1.0, 2.0, 1.0], [0.0, 1.0, 2.0]]),
}
MATRICES = {
    f"{name}, {scale:g}": (scale * shape.double()).float()
    for name, shape in SHAPES.items()
    for scale in (1e-43, 1e-38, 1e-30, 1e30, 1e38)
} | {"unequal": torch.diag(torch.tensor([1.0, 1e-40, 1e38]))}


@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0])
@pytest.mark.parametrize("name", MATRICES)
def test_every_covariance_of_single_precision_has_a_density(name, alpha):
    matrix = MATRICES[name]
    loc = torch.zeros(len(matrix))
    single = BetaGaussian(loc, matrix, alpha)
    double = BetaGaussian(loc.double(), matrix.double(), alpha)
    places = (0.5 * double.scale_tril * double.radius.clamp(max=1)).mT.float()
    torch.testing.assert_close(single.log_peak.double(), double.log_peak, rtol=1e-6, atol=1e-5)
    expected = double.log_prob(places.double())
    torch.testing.assert_close(single.log_prob(places).double(), expected, rtol=1e-6, atol=1e-4)
    assert single.rsample((3,)).isfinite().all()
    if alpha == 2:
        paraboloid = TruncatedParaboloid(loc, matrix)
        torch.testing.assert_close(paraboloid.log_prob(places), single.log_prob(places))
    mixture = Mixture(torch.ones(1), loc[None], matrix[None]).modes(alpha)
    if len(matrix) > 1 or alpha != 2:
        logs = mixture.log_prob(places.unsqueeze(-2)).double().squeeze(-1)
        torch.testing.assert_close(logs, expected, rtol=1e-6, atol=1e-4)


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("scale", [1e-306, 1e-200, 1e200, 1e307])
def test_every_covariance_of_double_precision_has_a_density_and_a_slope(scale, dims):
    # Scaling a covariance by s shifts log p(μ) by −D log(s)/(2 + Dε): 2 at α = 1, 2 + D at α = 2.
    unit = torch.eye(dims, dtype=torch.float64) + 0.25
    for alpha in (1.0, 2.0):
        matrix = (scale * unit).requires_grad_()
        density = BetaGaussian(torch.zeros(dims, dtype=torch.float64), matrix, alpha)
        power = 0.5 * dims / (1 + 0.5 * dims * (alpha - 1))
        at_unit = BetaGaussian(density.loc, unit, alpha).log_peak
        expected = at_unit - power * math.log(scale)
        torch.testing.assert_close(density.log_peak, expected, rtol=1e-9, atol=0)
        (slope,) = torch.autograd.grad(density.log_peak, matrix)
        exact = -power / dims * torch.linalg.inv(unit)
        torch.testing.assert_close(slope * scale, exact, rtol=1e-9, atol=1e-12)


def test_a_covariance_that_is_singular_in_single_precision_has_a_density():
    roots = torch.randn(400, 3, 2, generator=torch.Generator().manual_seed(0))
    matrices = roots @ roots.mT
    fails, definite = (torch.linalg.cholesky_ex(m)[1] for m in (matrices, matrices.double()))
    matrices = matrices[(fails != 0) & (definite == 0)]
    assert len(matrices)
    single = BetaGaussian(torch.zeros(3), matrices)
    double = BetaGaussian(torch.zeros(3).double(), matrices.double())
    torch.testing.assert_close(single.log_peak.double(), double.log_peak, rtol=1e-6, atol=1e-6)


def test_without_validation_a_matrix_without_factor_is_not_a_number():
    for dims in (1, 2, 3):
        for matrix in (torch.nan * torch.eye(dims), -torch.eye(dims)):
            density = BetaGaussian(torch.zeros(dims), matrix, validate_args=False)
            assert density.log_prob(torch.zeros(dims)).isnan()


BROKEN = {
    "parabola": lambda **more: TruncatedParabola(0.0, -1.0, **more),
    "triangular": lambda **more: Triangular(0.0, -1.0, **more),
    "location-scale": lambda **more: LocationScale(0.0, -1.0, torch.cosh, **more),
    "beta": lambda **more: BetaGaussian(torch.zeros(2), torch.eye(2), 0.5, **more),
    "paraboloid": lambda **more: TruncatedParaboloid(
        torch.tensor([torch.nan]), torch.eye(1), **more
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_values_are_checked_unless_torch_or_the_caller_says_no(name):
    with pytest.raises(ValueError, match="must be"):
        BROKEN[name]()
    BROKEN[name](validate_args=False)
    Distribution.set_default_validate_args(False)
    try:
        BROKEN[name]()
        with pytest.raises(ValueError, match="must be"):
            BROKEN[name](validate_args=True)
    finally:
        Distribution.set_default_validate_args(True)
