"""Fenchel–Young losses: the identities that define them, and their derivatives."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.func import hessian, jacfwd, jacrev

import fenchel
from tests import oracle
from tests.accuracy import assert_within
from tests.catalogue import ENTMAX_ALPHAS, tensor
from tests.implementations import DEFAULT, GPU, parameters, running_on
from tests.strategies import GRID, grid_scores

ALPHAS = (0.5, 1.0, 1 + 1e-6, 1.2, 1.5, 2.0, 3.0)
REGULARIZERS = [
    fenchel.Shannon(),
    fenchel.Shannon(gamma=2.0),
    fenchel.Gini(),
    fenchel.Gini(gamma=0.5),
    fenchel.Tsallis(0.5),
    fenchel.Tsallis(1.5),
    fenchel.Tsallis(1.3, gamma=0.7),
    fenchel.Tsallis(3.0),
    fenchel.Norm(1.5),
    fenchel.Norm(2.0, gamma=3.0),
    fenchel.Norm(4.0),
]


@pytest.fixture(params=parameters("reference", DEFAULT, GPU), autouse=True)
def implementation(request):
    """By default a loss runs on the kernels of its device where there are some."""
    with running_on(request.param):
        yield request.param


def distributions(rows: int, columns: int) -> Tensor:
    """Targets with zeros in them."""
    q = torch.softmax(2 * torch.randn(rows, columns, dtype=torch.float64), -1)
    q = torch.where(q < 0.1, 0.0, q)
    return q / q.sum(-1, keepdim=True)


def scores(rows: int, columns: int, scale: float = 1.0) -> Tensor:
    return scale * torch.randn(rows, columns, dtype=torch.float64)


@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("alpha", ENTMAX_ALPHAS)
def test_the_loss_and_its_slope_in_alpha_agree_with_50_digits(alpha, scale):
    x, q = scores(2, 6, scale), distributions(2, 6)
    q[0] = torch.eye(6)[2]
    value = tensor(alpha).requires_grad_()
    for row, target in zip(x, q, strict=True):
        loss = fenchel.entmax_loss(row, target, value)
        (slope,) = torch.autograd.grad(loss, value)
        arguments = tuple(row.tolist()), tuple(target.tolist()), alpha
        expected = float(oracle.entmax_loss(*arguments))
        expected_slope = float(oracle.loss_slope_in_alpha(*arguments))
        assert math.isclose(loss.item(), expected, rel_tol=1e-10, abs_tol=1e-10)
        assert math.isclose(slope.item(), expected_slope, rel_tol=1e-8, abs_tol=1e-10)


def steep_slope_in_alpha(largest: float, alpha: float) -> float:
    """∂L/∂α of the largest of 200 scores where the others are zero: p = (v, u, …, u)."""
    with oracle.mpmath.workdps(oracle.DIGITS):
        eps = oracle.mpf(alpha) - 1

        def rest(u):
            return 1 - 199 * u - (eps * oracle.mpf(largest) + u**eps) ** (1 / eps)

        u = oracle.mpmath.findroot(rest, (1e-5, 1e-4))
        p = (1 - 199 * u, *[u] * 199)
        above, below = (oracle.tsallis(p, alpha + step) for step in (oracle.STEP, -oracle.STEP))
        return float((below - above) / (2 * oracle.STEP))


@pytest.mark.parametrize("alpha", [2.5, 3.0, 10.0])
def test_tiny_scores_beside_a_larger_one_count_in_the_slope_in_alpha(alpha):
    """Above α = 2 no float64 A tells them from scores off the support."""
    x = torch.zeros(200, dtype=torch.float64)
    x[3] = 0.05
    value = tensor(alpha).requires_grad_()
    (slope,) = torch.autograd.grad(fenchel.entmax_loss(x, torch.tensor(3), value), value)
    expected = steep_slope_in_alpha(x[3].item(), alpha)
    assert math.isclose(slope.item(), expected, rel_tol=1e-13)


@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("alpha", ENTMAX_ALPHAS)
def test_the_loss_in_float32_is_as_good_as_its_scores(alpha, scale):
    x, q = scores(2, 6, scale).float(), torch.tensor([2, 4])
    losses = fenchel.entmax_loss(x, q, alpha, reduction="none")
    for row, target, loss in zip(x, torch.eye(6)[q], losses, strict=True):
        expected = float(oracle.entmax_loss(tuple(row.tolist()), tuple(target.tolist()), alpha))
        assert math.isclose(loss.item(), expected, rel_tol=1e-6, abs_tol=1e-6)


@pytest.mark.parametrize("omega", REGULARIZERS, ids=repr)
@pytest.mark.parametrize("kind", ["indices", "probabilities"])
def test_the_loss_is_the_fenchel_young_gap_and_its_gradient_the_map_minus_the_target(omega, kind):
    x = scores(5, 6).requires_grad_()
    target = torch.arange(5) if kind == "indices" else distributions(5, 6)
    q = torch.eye(6, dtype=torch.float64)[:5] if kind == "indices" else target
    for loss in (
        fenchel.fenchel_young_loss(x, target, omega, reduction="none"),
        omega.loss(x, target, reduction="none"),
    ):
        expected = omega.value(q) + omega.max(x) - (q * x).sum(-1)
        assert_within(loss, expected, 1e-10)
        (slope,) = torch.autograd.grad(loss.sum(), x)
        assert_within(slope, omega.map(x) - q, 1e-10)
        assert (loss >= -1e-15).all()


@pytest.mark.parametrize("omega", REGULARIZERS, ids=repr)
def test_the_loss_of_the_map_itself_is_zero(omega):
    x = scores(5, 6)
    assert_within(omega.loss(x, omega.map(x), reduction="none"), torch.zeros(5), 1e-10)


@pytest.mark.parametrize("alpha", ALPHAS)
@given(data=st.data())
def test_an_entmax_loss_is_never_negative(alpha, data):
    x = data.draw(grid_scores(torch.float64))
    if x.ndim != 2:
        return
    target = torch.arange(x.shape[0]) % x.shape[1]
    assert (fenchel.entmax_loss(x, target, alpha, reduction="none") >= 0).all()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("alpha", [1.25, 1.5, 2.0, 3.0])
def test_the_loss_is_zero_exactly_when_the_margin_holds(alpha, dtype):
    margin = 1 / (alpha - 1)
    leads = torch.tensor([margin, margin + GRID, 10 * margin], dtype=dtype)
    row = torch.tensor([0.0, 0.25, -math.inf, 1.0], dtype=dtype)
    x = row.repeat(3, 1)
    x[:, 1] = 1 + leads
    x.requires_grad_()
    loss = fenchel.entmax_loss(x, torch.ones(3).long(), alpha, reduction="none")
    loss.sum().backward()
    assert loss.tolist() == [0.0, 0.0, 0.0]
    assert x.grad.count_nonzero() == 0
    short = torch.tensor([1.0, 1 + margin - 16 * GRID], dtype=dtype)
    assert fenchel.entmax_loss(short, torch.tensor(1), alpha) > 0


def test_sparsemax_loss_of_two_classes_is_the_modified_huber_loss():
    t = torch.linspace(-3, 3, 97, dtype=torch.float64)
    x = torch.stack([t, torch.zeros_like(t)], -1)
    loss = fenchel.sparsemax_loss(x, torch.zeros(97).long(), reduction="none")
    huber = torch.where(t <= -1, -t, (t - 1).square() / 4)
    assert_within(loss, torch.where(t >= 1, 0.0, huber), 1e-12)


def test_sparsemax_loss_is_the_formula_of_the_paper_for_one_label_and_for_many():
    x, q = 2 * scores(20, 6), distributions(20, 6)
    q[:10] = torch.eye(6, dtype=torch.float64)[torch.arange(10) % 6]
    p = fenchel.sparsemax(x)
    support = p > 0
    tau = ((x * support).sum(-1) - 1) / support.sum(-1)
    squares = torch.where(support, x.square() - tau.square()[:, None], 0.0).sum(-1)
    expected = -(q * x).sum(-1) + squares / 2 + q.square().sum(-1) / 2
    assert_within(fenchel.sparsemax_loss(x, q, reduction="none"), expected, 1e-12)
    labels = q[:10].argmax(-1)
    assert_within(fenchel.sparsemax_loss(x[:10], labels, reduction="none"), expected[:10], 1e-12)


@pytest.mark.parametrize("omega", REGULARIZERS, ids=repr)
def test_the_hessian_is_the_jacobian_of_the_map_in_all_nestings(omega):
    x, target = 0.1 * scores(1, 5)[0], torch.tensor(2)

    def loss(row: Tensor) -> Tensor:
        return omega.loss(row, target)

    expected = jacrev(omega.map)(x)
    for outer in (jacrev, jacfwd):
        for inner in (jacrev, jacfwd):
            torch.testing.assert_close(outer(inner(loss))(x), expected, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(hessian(loss)(x), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", ["indices", "probabilities"])
@pytest.mark.parametrize("alpha", [0.7, 1.0, 1.3, 2.0])
def test_derivatives_in_scores_and_alpha_in_every_mode(alpha, kind):
    x = scores(3, 5, scale=0.2).requires_grad_()
    value = tensor(alpha).expand(3, 1).clone().requires_grad_()
    target = torch.tensor([0, -100, 3]) if kind == "indices" else distributions(3, 5)

    def loss(scores: Tensor, alpha: Tensor) -> Tensor:
        return fenchel.entmax_loss(scores, target, alpha, reduction="none")

    gradcheck(
        loss,
        (x, value),
        check_forward_ad=True,
        check_batched_grad=True,
        check_batched_forward_grad=True,
    )
    gradgradcheck(loss, (x, value), check_fwd_over_rev=True)


@pytest.mark.parametrize("offset", [0.0, *(10.0**-n for n in range(7, 0, -1)), 1.0])
def test_the_slope_of_the_loss_in_alpha_is_within_half_a_percent_in_float32(offset):
    alpha = torch.tensor(1 + offset, requires_grad=True)
    x = scores(1, 6)[0].float()
    q = torch.tensor([0.0, 0.25, 0.0, 0.5, 0.25, 0.0])
    (slope,) = torch.autograd.grad(fenchel.entmax_loss(x, q, alpha), alpha)
    expected = oracle.loss_slope_in_alpha(tuple(x.tolist()), tuple(q.tolist()), alpha.item())
    assert math.isclose(slope.item(), float(expected), rel_tol=0.005)


def test_alpha_may_differ_by_row_and_is_a_parameter_like_any_other():
    x, target = scores(4, 6), torch.arange(4)
    values = torch.tensor([1.0, 1.3, 1.7, 2.0], dtype=torch.float64)
    losses = fenchel.entmax_loss(x, target, values[:, None], reduction="none")
    for row, value in enumerate(values.tolist()):
        assert_within(losses[row], fenchel.entmax_loss(x[row], target[row], value), 1e-12)
    images, labels = torch.randn(2, 3, 4, 5).double(), torch.randint(3, (2, 4, 5))
    by_sample = torch.tensor([1.2, 1.8], dtype=torch.float64).reshape(2, 1, 1, 1)
    losses = fenchel.entmax_loss(images, labels, by_sample, reduction="none")
    for sample, value in enumerate((1.2, 1.8)):
        expected = fenchel.entmax_loss(
            images[sample : sample + 1], labels[sample : sample + 1], value, reduction="none"
        )
        assert_within(losses[sample : sample + 1], expected, 1e-12)
