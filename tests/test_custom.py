"""A regularizer that a person writes: the solution, its derivatives, and what is said when it fails."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.func import grad, hessian, jacfwd, jacrev, vmap

import fenchel
from tests.accuracy import assert_within
from tests.implementations import DEFAULT, GPU, parameters


@pytest.fixture(params=parameters(DEFAULT, GPU), autouse=True)
def implementation(request):
    return request.param


def half_square(p: Tensor) -> Tensor:
    return p.square().sum(-1) / 2


def squared_norm(p: Tensor) -> Tensor:
    return p.pow(1.5).sum(-1).pow(4 / 3) / 2


def quartic(p: Tensor) -> Tensor:
    return half_square(p) + p.pow(4).sum(-1) + p.diff(dim=-1).square().sum(-1)


FACTOR = torch.randn(6, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
CORRELATED = FACTOR @ FACTOR.mT / 3 + 0.02 * torch.eye(6)  # its condition number is about 400


def quadratic(p: Tensor) -> Tensor:
    return (p @ CORRELATED.to(p) * p).sum(-1)


SMOOTH = [half_square, quartic, quadratic]


def scores(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


@pytest.mark.parametrize("gamma", [0.3, 1.0, 4.0])
@pytest.mark.parametrize(
    ("fn", "known"), [(half_square, fenchel.Gini), (squared_norm, fenchel.PNorm)]
)
def test_a_known_regularizer_written_by_hand_is_the_known_one(fn, known, gamma):
    omega, expected = fenchel.Custom(fn, gamma), known(gamma=gamma)
    x = scores(20, 8)
    x[3, 2], x[4] = -math.inf, -math.inf
    constant = gamma / 2 if known is fenchel.Gini else 0.0  # Gini is zero at the vertices
    assert_within(omega.map(x), expected.map(x), 1e-9)
    assert_within(omega.max(x), expected.max(x) - constant, 1e-9)
    assert_within(omega.map(x.mT, dim=0).mT, expected.map(x), 1e-9)
    mask = torch.rand(20, 8) < 0.6
    assert_within(omega.map(x, mask=mask), expected.map(x, mask=mask), 1e-9)
    target = torch.arange(20) % 8
    x = scores(20, 8)
    assert_within(omega.loss(x, target), expected.loss(x, target), 1e-9)


@pytest.mark.parametrize("fn", SMOOTH)
def test_the_solution_satisfies_the_optimality_conditions(fn):
    """x − ∇Ω is one number on the support, and nowhere larger."""
    x, omega = scores(50, 6), fenchel.Custom(fn)
    p = omega.map(x)
    assert_within(p.sum(-1), torch.ones(50), 1e-12)
    slack = x - grad(lambda q: fn(q).sum())(p)
    level = (p * slack).sum(-1, keepdim=True)
    assert ((p == 0) | ((slack - level).abs() < 1e-9)).all()
    assert (slack <= level + 1e-9).all()


@pytest.mark.parametrize("fn", SMOOTH)
def test_derivatives_in_every_mode(fn):
    omega = fenchel.Custom(fn, gamma=0.7)
    x = scores(2, 6).requires_grad_()
    gradcheck(omega.map, x, check_forward_ad=True, check_batched_grad=True)
    gradcheck(omega.max, x, check_forward_ad=True, fast_mode=True)
    close = (0.05 * scores(2, 6)).requires_grad_()
    gradgradcheck(omega.map, close, fast_mode=True)
    gradgradcheck(omega.max, close, fast_mode=True)
    row = x.detach()[0]
    torch.testing.assert_close(jacrev(omega.map)(row), jacfwd(omega.map)(row))
    torch.testing.assert_close(hessian(omega.max)(row), jacrev(omega.map)(row))
    torch.testing.assert_close(grad(lambda v: omega.max(v).sum())(row), omega.map(row))


def test_vmap_is_a_loop_forwards_and_backwards():
    omega, x = fenchel.Custom(quartic), scores(4, 3, 6)
    torch.testing.assert_close(vmap(omega.map, in_dims=1)(x), omega.map(x).movedim(1, 0))

    def sensitivity(row: Tensor) -> Tensor:
        return grad(lambda v: omega.map(v).square().sum())(row)

    torch.testing.assert_close(vmap(sensitivity)(x[:, 0]), sensitivity(x[:, 0]))


def test_tensors_that_fn_uses_are_learned():
    x = 0.3 * scores(4, 6)
    weights = torch.linspace(0.5, 1.5, 6, dtype=torch.float64, requires_grad=True)

    def omega(w: Tensor) -> fenchel.Custom:
        return fenchel.Custom(lambda p: (w * p.square()).sum(-1) + (w * p.pow(3)).sum(-1))

    gradcheck(lambda w: omega(w).map(x), weights)
    gradcheck(lambda w: omega(w).max(x), weights)
    target = torch.tensor([0, 1, 2, 3])
    omega(weights).loss(x, target).backward()
    assert (weights.grad != 0).any()


def test_a_row_of_a_batch_is_the_row_alone():
    """Rows converge at their own pace, on steps of their own."""
    omega = fenchel.Custom(
        lambda p: half_square(p) * p.new_tensor([1.0, 50.0, 0.02])[: p.shape[-2]]
    )
    x = scores(3, 6) * torch.tensor([[1.0], [50.0], [0.02]])
    assert_within(omega.map(x)[0], fenchel.sparsemax(x[0]), 1e-9)
    assert_within(omega.map(x)[1], fenchel.sparsemax(x[1] / 50), 1e-9)
    assert_within(omega.map(x)[2], fenchel.sparsemax(x[2] / 0.02), 1e-9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_dtype_of_the_scores_is_kept(dtype):
    x = scores(5, 6).to(dtype)
    p = fenchel.Custom(half_square).map(x)
    assert p.dtype == dtype
    assert_within(p, fenchel.sparsemax(x), 1e-5 if dtype == torch.float32 else 2**-8)


def test_without_gradients_the_solution_is_the_same():
    omega, x, target = fenchel.Custom(quartic), scores(4, 5), torch.arange(4)
    expected = omega.map(x), omega.max(x), omega.loss(x, target)
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            y = x.clone()
            for actual, known in zip(
                (omega.map(y), omega.max(y), omega.loss(y, target)), expected, strict=True
            ):
                assert torch.equal(actual, known)


def test_rows_with_nothing_or_nan_keep_to_themselves():
    x = scores(3, 6)
    x[1], x[2, 0] = -math.inf, math.nan
    x.requires_grad_()
    p = fenchel.Custom(quartic).map(x)
    assert p[1].tolist() == [0.0] * 6
    assert p[2].isnan().all()
    p[:2].square().sum().backward()
    assert x.grad[:2].isfinite().all()
    assert x.grad[1].count_nonzero() == 0


@pytest.mark.parametrize("shape", [(0, 6), (3, 0), (0, 0)])
def test_nothing_has_derivatives_of_its_shape(shape):
    x = torch.empty(shape, requires_grad=True)
    for result in (fenchel.Custom(quartic).map(x), fenchel.Custom(quartic).max(x)):
        (gradient,) = torch.autograd.grad(result.sum(), x)
        assert gradient.shape == shape


@pytest.mark.parametrize(
    ("fn", "message"),
    [
        (lambda p: (p - 0.3).abs().sum(-1), "fn must (be smooth|have bounded curvature)"),
        (lambda p: (p * p.log()).sum(-1), "fn must have finite gradients on the simplex"),
        (lambda p: p.square().sum(), "fn must return shape"),
        (lambda p: p.square(), "fn must return shape"),
        (lambda p: 1.0, "fn must return shape .* got float"),
    ],
)
def test_a_function_that_will_not_do_is_named(fn, message):
    with pytest.raises(fenchel.FenchelError, match=message):
        fenchel.Custom(fn, max_iterations=200).map(2 * scores(4, 6))


def test_settings_are_checked_and_said():
    with pytest.raises(fenchel.FenchelError, match="fn must be callable, got float"):
        fenchel.Custom(1.5)
    with pytest.raises(fenchel.FenchelError, match="tolerance must be above 0"):
        fenchel.Custom(half_square, tolerance=0.0)
    with pytest.raises(
        fenchel.FenchelError, match=r"max_iterations must be a whole number.*got 2\.5"
    ):
        fenchel.Custom(half_square, max_iterations=2.5)
    with pytest.raises(fenchel.FenchelError, match="gamma must be above 0"):
        fenchel.Custom(half_square, gamma=-1.0)
    assert repr(fenchel.Custom(half_square, 2.0)) == "Custom(fn=half_square, gamma=2.0)"
