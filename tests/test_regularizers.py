"""Ω, Ω*, ∇Ω* and the loss are four sides of one function."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.func import grad, hessian, jacrev

import fenchel
from tests.accuracy import assert_rounded_once, assert_within
from tests.catalogue import tensor
from tests.implementations import DEFAULT, GPU, parameters

MAPS = [
    (fenchel.Shannon, {}, fenchel.softmax, {}),
    (fenchel.Gini, {}, fenchel.sparsemax, {}),
    (fenchel.Tsallis, {"alpha": 0.5}, fenchel.entmax, {"alpha": 0.5}),
    (fenchel.Tsallis, {"alpha": 1.0}, fenchel.softmax, {}),
    (fenchel.Tsallis, {"alpha": 1.5}, fenchel.entmax, {"alpha": 1.5}),
    (fenchel.Tsallis, {"alpha": 4.0}, fenchel.entmax, {"alpha": 4.0}),
    (fenchel.Tsallis, {"alpha": tensor(1.3)}, fenchel.entmax, {"alpha": 1.3}),
    (fenchel.Norm, {"alpha": 1.5}, fenchel.normmax, {"alpha": 1.5}),
    (fenchel.Norm, {"alpha": 3.0}, fenchel.normmax, {"alpha": 3.0}),
    (fenchel.PNorm, {"p": 1.5}, fenchel.pnormmax, {"p": 1.5}),
    (fenchel.Fused, {"strength": 0.03}, fenchel.fusedmax, {"strength": 0.03}),
    (fenchel.Oscar, {"strength": tensor(0.02)}, fenchel.oscarmax, {"strength": 0.02}),
]
KINDS = pytest.mark.parametrize(
    ("kind", "options", "function", "arguments"),
    [pytest.param(*case, id=repr(case[0](**case[1]))) for case in MAPS],
)
GAMMAS = pytest.mark.parametrize("gamma", [0.3, 1.0, 5.0])


@pytest.fixture(params=parameters(DEFAULT, GPU), autouse=True)
def implementation(request):
    return request.param


def scores(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def points(*shape: int) -> Tensor:
    """Points of the simplex, some of them on its faces."""
    return fenchel.sparsemax(2 * scores(*shape))


@GAMMAS
@KINDS
def test_the_map_is_the_function_at_the_temperature(kind, options, function, arguments, gamma):
    x = scores(3, 4, 5)
    omega = kind(**options, gamma=gamma)
    mask = torch.rand(3, 4, 5) < 0.7
    expected = function(x / gamma, **arguments, dim=1, mask=mask)
    assert_within(omega.map(x, dim=1, mask=mask), expected, 1e-12)


@GAMMAS
@KINDS
def test_the_gradient_of_the_conjugate_is_the_map(kind, options, function, arguments, gamma):
    x = scores(4, 5)
    omega = kind(**options, gamma=gamma)
    assert_within(grad(lambda row: omega.max(row).sum())(x), omega.map(x), 1e-12)
    shifted = x.clone().requires_grad_()
    omega.max(shifted).sum().backward()
    assert_within(shifted.grad, omega.map(x), 1e-12)


@GAMMAS
@KINDS
def test_the_conjugate_is_the_maximum(kind, options, function, arguments, gamma):
    """Attained by the map, and by nothing else on the simplex exceeded."""
    x = scores(4, 1, 5)
    omega = kind(**options, gamma=gamma)
    p = omega.map(x)
    attained = (p * x).sum(-1) - omega.value(p)
    assert_within(omega.max(x), attained, 1e-10)
    others = points(200, 5)
    assert ((others * x).sum(-1) - omega.value(others) <= omega.max(x) + 1e-12).all()


@KINDS
def test_the_temperature_scales(kind, options, function, arguments):
    x, p = scores(4, 5), points(4, 5)
    omega, warm = kind(**options), kind(**options, gamma=2.5)
    assert_within(warm.value(p), 2.5 * omega.value(p), 1e-12)
    assert_within(warm.max(x), 2.5 * omega.max(x / 2.5), 1e-12)
    assert_within(warm.map(x), omega.map(x / 2.5), 1e-12)


@GAMMAS
@KINDS
def test_the_value_is_convex(kind, options, function, arguments, gamma):
    omega = kind(**options, gamma=gamma)
    p, q = points(100, 5), points(100, 5)
    middle = omega.value((p + q) / 2)
    assert (middle <= (omega.value(p) + omega.value(q)) / 2 + 1e-12).all()


@pytest.mark.parametrize(
    ("omega", "at_a_vertex", "in_the_middle"),
    [
        (fenchel.PNorm(1.5), [0.5] * 4, 4 ** (-2 / 3) / 2),
        (fenchel.Fused(0.1), [0.6, 0.7, 0.7, 0.6], 0.125),
        (fenchel.Oscar(0.1), [0.8] * 4, 0.125 + 0.1 * 6 / 4),
    ],
)
def test_values_of_the_structured_regularizers(omega, at_a_vertex, in_the_middle):
    vertices, middle = torch.eye(4, dtype=torch.float64), torch.full((4,), 0.25).double()
    assert_within(omega.value(vertices), torch.tensor(at_a_vertex).double(), 1e-7)
    assert_within(omega.value(middle), torch.tensor(in_the_middle).double(), 1e-7)


@pytest.mark.parametrize("kind", [fenchel.Fused, fenchel.Oscar])
def test_the_conjugate_and_the_value_are_differentiable_in_the_strength(kind):
    x = (0.1 * scores(3, 4)).requires_grad_()
    strength = torch.tensor([[0.01], [0.03], [0.1]], dtype=torch.float64, requires_grad=True)
    gradcheck(lambda s, a: kind(a).max(s), (x, strength), check_forward_ad=True)
    gradgradcheck(lambda s, a: kind(a).max(s), (x, strength))
    p = fenchel.softmax(x.detach())
    gradcheck(lambda a: kind(a).value(p), strength)
    wide, along = p.mT.contiguous(), strength.detach().mT
    assert_within(kind(along).value(wide, dim=0), kind(strength.detach()).value(p), 1e-12)


@pytest.mark.parametrize("kind", [fenchel.Fused, fenchel.Oscar])
def test_a_structured_loss_leaves_out_what_is_at_minus_infinity(kind):
    omega, x = kind(0.2), scores(3, 5)
    target = torch.tensor([1, 0, 2])
    x[:, 3] = -math.inf
    kept = omega.loss(x[:, [0, 1, 2, 4]], target, reduction="none")
    assert_within(omega.loss(x, target, reduction="none"), kept, 1e-12)
    zero = omega.loss(scores(4, 5), torch.eye(5, dtype=torch.float64)[:4] * 1.0, reduction="none")
    assert (zero >= 0).all()
    p = omega.map(scores(4, 5))
    assert (omega.loss(scores(4, 5), p, reduction="none") >= -1e-12).all()


@KINDS
def test_values_at_the_vertices_and_in_the_middle(kind, options, function, arguments):
    strength = float(options.get("strength", 0.0))
    alpha = float(options.get("alpha", options.get("p", 1.0 if kind is fenchel.Shannon else 2.0)))
    vertices, middle = [0.0] * 4, (4 ** (1 - alpha) - 1) / (alpha * (alpha - 1) or math.inf)
    if kind is fenchel.Norm:
        vertices, middle = [1.0] * 4, 4 ** (1 / alpha - 1)
    elif kind is fenchel.PNorm:
        vertices, middle = [0.5] * 4, 4 ** (2 / alpha - 2) / 2
    elif kind is fenchel.Fused:  # neighbours of an entry
        vertices, middle = [0.5 + strength * n for n in (1, 2, 2, 1)], 1 / 8
    elif kind is fenchel.Oscar:  # pairs with an entry, all pairs
        vertices, middle = [0.5 + strength * 3] * 4, 1 / 8 + strength * 6 / 4
    elif alpha == 1:
        middle = -math.log(4)
    omega = kind(**options, gamma=2.0)
    corners = omega.value(torch.eye(4, dtype=torch.float64))
    assert_within(corners, 2 * torch.tensor(vertices, dtype=torch.float64), 1e-12)
    assert_within(omega.value(torch.full((4,), 0.25)), torch.tensor(2 * middle), 1e-6)


def test_the_named_entropies():
    p, x = points(4, 5), scores(4, 5)
    assert_within(fenchel.Shannon().value(p), -torch.special.entr(p).sum(-1), 1e-12)
    assert_within(fenchel.Gini().value(p), (p.square().sum(-1) - 1) / 2, 1e-12)
    assert_within(fenchel.Norm(3.0).value(p), p.norm(3, dim=-1), 1e-12)
    assert_within(fenchel.Shannon().max(x), x.logsumexp(-1), 1e-12)
    projected = fenchel.sparsemax(x)
    moreau = (projected * x).sum(-1) - (projected.square().sum(-1) - 1) / 2
    assert_within(fenchel.Gini().max(x), moreau, 1e-12)


@pytest.mark.parametrize("alpha", [1 - 1e-6, 1 - 1e-12, 1.0, 1 + 1e-12, 1 + 1e-6])
def test_tsallis_is_smooth_through_shannon(alpha):
    p, x = points(4, 5), scores(4, 5)
    distance = 10 * abs(alpha - 1) + 1e-12
    assert_within(fenchel.Tsallis(alpha).value(p), fenchel.Shannon().value(p), distance)
    assert_within(fenchel.Tsallis(alpha).max(x), fenchel.Shannon().max(x), distance)


@KINDS
def test_derivatives_of_the_conjugate_in_every_mode(kind, options, function, arguments):
    omega, x = kind(**options), (0.1 * scores(2, 4)).requires_grad_()
    gradcheck(omega.max, x, check_forward_ad=True, check_batched_grad=True)
    gradgradcheck(omega.max, x, check_fwd_over_rev=True)
    row = x.detach()[0]
    torch.testing.assert_close(hessian(omega.max)(row), jacrev(omega.map)(row))


@pytest.mark.parametrize("kind", [fenchel.Tsallis, fenchel.Norm])
def test_the_conjugate_and_the_value_are_differentiable_in_alpha(kind):
    x = (0.1 * scores(3, 4)).requires_grad_()
    alpha = torch.tensor([[1.2], [1.5], [2.0]], dtype=torch.float64, requires_grad=True)
    gradcheck(lambda s, a: kind(a).max(s), (x, alpha), check_forward_ad=True)
    gradgradcheck(lambda s, a: kind(a).max(s), (x, alpha))
    p = fenchel.softmax(x.detach())
    gradcheck(lambda a: kind(a).value(p), alpha)


@GAMMAS
@KINDS
def test_minus_infinity_and_masks_in_the_conjugate(kind, options, function, arguments, gamma):
    omega, x = kind(**options, gamma=gamma), scores(3, 5).requires_grad_()
    mask = torch.tensor([[True] * 5, [False] * 5, [True, False, True, False, True]])
    values = omega.max(x, mask=mask)
    assert values[1] == -math.inf
    assert_within(values[2], omega.max(x[2, [0, 2, 4]]), 1e-12)
    assert torch.equal(values, omega.max(x.masked_fill(~mask, -math.inf)))
    (slope,) = torch.autograd.grad(values.sum(), x)
    assert slope[1].count_nonzero() == 0
    assert slope[~mask].count_nonzero() == 0
    assert slope.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@GAMMAS
@KINDS
def test_half_precision_rounds_once(kind, options, function, arguments, gamma, dtype):
    omega, x = kind(**options, gamma=gamma), scores(20, 5).to(dtype)
    assert_rounded_once(omega.map(x), omega.map(x.double()))
    exact = omega.max(x.double()).to(dtype)
    assert omega.max(x).dtype == dtype
    torch.testing.assert_close(omega.max(x), exact, rtol=torch.finfo(dtype).eps, atol=1e-6)
    p = points(20, 5).to(dtype)
    exact = omega.value(p.double()).to(dtype)
    torch.testing.assert_close(omega.value(p), exact, rtol=torch.finfo(dtype).eps, atol=1e-6)


def test_a_regularizer_says_what_it_is():
    assert repr(fenchel.Tsallis(1.5, gamma=2.0)) == "Tsallis(alpha=1.5, gamma=2.0)"
    assert repr(fenchel.Norm(3.0)) == "Norm(alpha=3.0, gamma=1.0)"
    assert repr(fenchel.PNorm(1.2)) == "PNorm(p=1.2, gamma=1.0)"
    assert repr(fenchel.Fused(0.2)) == "Fused(strength=0.2, gamma=1.0)"
    assert repr(fenchel.Oscar(gamma=0.5)) == "Oscar(strength=0.01, gamma=0.5)"
    assert repr(fenchel.Gini()) == "Gini(gamma=1.0)"
    assert repr(fenchel.Shannon(0.5)) == "Shannon(gamma=0.5)"


ONE_A_ROW = pytest.mark.parametrize(
    ("kind", "between"),
    [
        (fenchel.Tsallis, (1.2, 2.0)),
        (fenchel.Norm, (1.5, 3.0)),
        (fenchel.PNorm, (1.2, 1.9)),
        (fenchel.Fused, (0.0, 0.2)),
        (fenchel.Oscar, (0.01, 0.1)),
    ],
)


@ONE_A_ROW
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_of_a_map_of_labels_takes_one_parameter_a_row(kind, between, smoothing):
    """Scores (N, C, d) and a parameter (N, 1, d), as the map takes them along the classes."""
    x, target = scores(2, 5, 3), torch.tensor([[0, 3, -100], [1, 4, 2]])
    values = torch.empty(2, 1, 3, dtype=x.dtype).uniform_(*between)
    options = {"reduction": "none", "label_smoothing": smoothing}
    together = kind(values, gamma=0.7).loss(x, target, **options)
    for n, d in torch.cartesian_prod(torch.arange(2), torch.arange(3)).tolist():
        alone = kind(values[n, 0, d].item(), gamma=0.7).loss(x[n, :, d], target[n, d], **options)
        torch.testing.assert_close(together[n, d], alone)


@ONE_A_ROW
def test_the_value_takes_the_parameters_that_the_map_takes(kind, between):
    p = points(2, 3)
    for shape in ((3,), (2, 3)):
        with pytest.raises(fenchel.FenchelError, match="must have a shape that broadcasts"):
            kind(torch.full(shape, between[1])).value(p)
    with pytest.raises(fenchel.FenchelError, match="must be dense, got layout"):
        kind(torch.full((2, 1), between[1]).to_sparse()).value(p)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    "omega",
    [fenchel.Norm(1.5), fenchel.PNorm(1.2), fenchel.Fused(0.1), fenchel.Oscar(0.05)],
    ids=str,
)
def test_no_loss_is_negative(omega, dtype):
    """At the minimum, rounding alone decides the sign of Ω(q) + Ω*(x) − ⟨q, x⟩."""
    x = (3 * scores(64, 30)).to(dtype).requires_grad_()
    q = omega.map(x.detach().float())
    q = q / q.sum(-1, keepdim=True)
    loss = omega.loss(x, q, reduction="none")
    assert (loss >= 0).all()
    assert (loss <= 1e-2 if dtype == torch.bfloat16 else loss <= 1e-5).all()
    loss.sum().backward()
    torch.testing.assert_close(x.grad.float(), omega.map(x.detach()).float() - q, atol=1e-2, rtol=0)
