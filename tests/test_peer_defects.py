"""What other libraries of sparse maps get wrong, one test a defect."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import grad, hessian, jacfwd, jacrev, jvp, vmap

import fenchel
from tests.accuracy import assert_within
from tests.catalogue import tensor
from tests.implementations import DEFAULT, GPU, parameters, running_on

MAPS = [fenchel.softmax, fenchel.sparsemax, fenchel.entmax, fenchel.normmax, fenchel.budget]
LOSSES = [fenchel.sparsemax_loss, fenchel.entmax_loss]


@pytest.fixture(params=parameters("reference", DEFAULT, GPU), autouse=True)
def implementation(request):
    with running_on(request.param):
        yield request.param


def scores(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def test_alpha_one_is_softmax_not_uniform_and_has_a_gradient():
    x, alpha = scores(3, 5), torch.ones((), dtype=torch.float64, requires_grad=True)
    p = fenchel.entmax(x, alpha)
    assert_within(p, torch.softmax(x, -1), 1e-12)
    (slope,) = torch.autograd.grad(p[0, 0], alpha)
    log_p, q = torch.log_softmax(x[0], -1), torch.softmax(x[0], -1)
    expected = q[0] * ((q * log_p.square()).sum() - log_p[0].square()) / 2
    assert_within(slope, expected, 1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_alpha_near_one_is_stable(dtype):
    x = (5 * scores(3, 50)).to(dtype)
    for offset in (1e-7, 1e-6, 1e-5, 1e-4):
        for alpha in (1 - offset, 1 + offset):
            # |dp/dα| is below 10 for such scores, so p moves by less than 10 offsets.
            tolerance = 10 * offset + 2 * torch.finfo(dtype).eps
            assert_within(fenchel.entmax(x, alpha), torch.softmax(x.double(), -1), tolerance)


def test_a_large_alpha_is_smooth_in_float32():
    t = torch.linspace(-0.2, 0.2, 2001)
    p = fenchel.entmax(torch.stack([t, torch.zeros_like(t)], -1), 10.0)[:, 0]
    exact = fenchel.entmax(torch.stack([t, torch.zeros_like(t)], -1).double(), 10.0)[:, 0]
    assert_within(p, exact, 1e-6)
    assert (p.diff() >= -torch.finfo(torch.float32).eps).all()


def test_a_learned_alpha_that_falls_below_one_still_gives_probabilities():
    x = scores(3, 5)
    alpha = torch.tensor(0.6, dtype=torch.float64, requires_grad=True)
    p = fenchel.entmax(x, alpha)
    assert_within(p.sum(-1), torch.ones(3), 1e-12)
    assert (p > 0).all()
    (slope,) = torch.autograd.grad(p.square().sum(), alpha)
    assert slope.isfinite()


@pytest.mark.parametrize("function", MAPS)
def test_a_fully_masked_row_neither_raises_nor_is_nan(function):
    x = scores(2, 4).requires_grad_()
    p = function(x, mask=torch.tensor([[False] * 4, [True] * 4]))
    p.square().sum().backward()
    assert p[0].tolist() == [0.0] * 4
    assert x.grad.isfinite().all()


@pytest.mark.parametrize("loss", LOSSES)
def test_minus_infinite_logits_do_not_make_the_loss_nan(loss):
    x = torch.tensor([[1.0, -math.inf, 0.5]], requires_grad=True)
    without = torch.tensor([[1.0, 0.5]], requires_grad=True)
    value, expected = (loss(each, torch.tensor([0])) for each in (x, without))
    (value + expected).backward()
    assert_within(value, expected, 1e-7)
    assert_within(x.grad[:, [0, 2]], without.grad, 1e-7)
    assert x.grad[0, 1] == 0


@pytest.mark.parametrize("loss", LOSSES)
def test_a_target_of_minus_one_hundred_is_ignored(loss):
    x = scores(3, 4)
    assert_within(loss(x, torch.tensor([1, -100, -100])), loss(x[:1], torch.tensor([1])), 1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_losses_know_mean_soft_labels_and_smoothing(loss):
    x, q = scores(3, 4), torch.softmax(scores(3, 4), -1)
    assert_within(loss(x, q, reduction="mean"), loss(x, q, reduction="none").mean(), 1e-12)
    smoothed = 0.9 * F.one_hot(torch.tensor([0, 1, 2]), 4).double() + 0.025
    labels = torch.tensor([0, 1, 2])
    assert_within(loss(x, labels, label_smoothing=0.1), loss(x, smoothed), 1e-12)


@pytest.mark.parametrize("dim", [-3, -2, -1, 0, 1, 2])
@pytest.mark.parametrize("function", MAPS)
def test_negative_dims_are_dims(function, dim):
    x = scores(3, 4, 5)
    expected = function(x.movedim(dim, -1)).movedim(-1, dim)
    assert_within(function(x, dim=dim), expected, 1e-12)


def test_there_may_be_one_alpha_a_head():
    x, alpha = scores(2, 3, 4, 5), torch.tensor([1.0, 1.5, 2.0], dtype=torch.float64)
    p = fenchel.entmax(x, alpha[:, None, None])
    for head in range(3):
        assert_within(p[:, head], fenchel.entmax(x[:, head], alpha[head].item()), 1e-12)


def test_alpha_may_be_an_nn_parameter():
    alpha = nn.Parameter(torch.tensor(1.5))
    fenchel.entmax(torch.randn(3, 5), alpha).square().sum().backward()
    assert alpha.grad.isfinite()
    assert alpha.grad != 0


def test_alpha_has_a_gradient_through_the_loss():
    x, target = scores(3, 5), torch.tensor([0, 1, 2])
    alpha = tensor(1.5).requires_grad_()
    (slope,) = torch.autograd.grad(fenchel.entmax_loss(x, target, alpha), alpha)
    above, below = (fenchel.entmax_loss(x, target, 1.5 + h) for h in (1e-6, -1e-6))
    assert_within(slope, (above - below) / 2e-6, 1e-8)


@pytest.mark.parametrize("function", MAPS)
def test_vmap_functional_gradients_and_forward_mode_work(function):
    x = 0.3 * scores(3, 5)
    assert_within(vmap(function)(x), function(x), 1e-12)
    weights = scores(5)

    def total(row: Tensor) -> Tensor:
        return (function(row) * weights).sum()

    slopes = vmap(grad(total))(x)
    leaf = x.clone().requires_grad_()
    (expected,) = torch.autograd.grad((function(leaf) * weights).sum(), leaf)
    assert_within(slopes, expected, 1e-12)
    _, rise = jvp(total, (x[0],), (weights,))
    assert_within(rise, (slopes[0] * weights).sum(), 1e-12)


def test_training_compiles_as_one_graph():
    model = nn.Linear(5, 4)

    def step(x: Tensor, target: Tensor) -> Tensor:
        return fenchel.entmax_loss(fenchel.sparsemax(model(x)), target, 1.5)

    x, target = torch.randn(3, 5), torch.tensor([0, 1, 2])
    (expected,) = torch.autograd.grad(step(x, target), model.weight)
    torch.compile(step, fullgraph=True, backend="aot_eager")(x, target).backward()
    assert expected.any()
    assert_within(model.weight.grad, expected, 1e-6)


SMOOTH = [
    lambda x: fenchel.entmax(x, 1.5),
    lambda x: fenchel.entmax(x, 1.2),
    lambda x: fenchel.normmax(x, 3.0),
]


@pytest.mark.parametrize("function", SMOOTH, ids=["entmax15", "entmax", "normmax"])
def test_double_backward_is_neither_nan_nor_wrong(function):
    x, weights = 0.1 * scores(5), scores(5)
    second = hessian(lambda row: (function(row) * weights).sum())(x)
    slope = jacrev(lambda row: (function(row) * weights).sum())
    moves = 1e-5 * torch.eye(5, dtype=torch.float64)
    expected = torch.stack([(slope(x + m) - slope(x - m)) / 2e-5 for m in moves])
    assert second.abs().max() > 0
    assert_within(second, expected, 1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_hessian_of_a_loss_is_not_silently_zero(loss):
    x = 0.1 * scores(5)
    alpha = 2.0 if loss is fenchel.sparsemax_loss else 1.5
    second = hessian(lambda row: loss(row, torch.tensor(1)))(x)
    assert_within(second, jacfwd(lambda row: fenchel.entmax(row, alpha))(x), 1e-10)
    assert second.abs().max() > 0.1


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("function", MAPS[:-1])
def test_half_precision_rows_sum_to_one(function, dtype):
    p = function((3 * scores(20, 50)).to(dtype))
    assert_within(p.double().sum(-1), torch.ones(20), torch.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("function", MAPS)
def test_half_precision_survives_a_shift_by_a_thousand(function, dtype):
    x = torch.tensor([0.0, -8.0, 0.0, -16.0, -8.0])
    shifted = (x - 1000).to(dtype)
    assert torch.equal(shifted.float() + 1000, x)
    assert_within(function(shifted), function(x), torch.finfo(dtype).eps)


def test_autocast_has_a_rule():
    with torch.autocast(torch.get_default_device().type, torch.bfloat16):
        hidden = nn.Linear(5, 4)(torch.randn(3, 5))
        p = fenchel.entmax(hidden, 1.5)
    assert hidden.dtype == torch.bfloat16
    assert p.dtype == torch.float32
    assert_within(p.sum(-1), torch.ones(3), 1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("function", MAPS[:-1])
def test_a_mask_by_the_smallest_number_is_a_mask(function, dtype):
    x = torch.tensor([1.0, 0.5, 0.0, -0.5]).to(dtype)
    x[1] = torch.finfo(dtype).min
    expected = function(x, mask=torch.tensor([True, False, True, True]))
    assert torch.equal(function(x), expected)
    lowest = torch.full((4,), torch.finfo(dtype).min, dtype=dtype)
    assert_within(function(lowest), torch.full((4,), 0.25), torch.finfo(dtype).eps)


def test_two_forwards_before_a_backward_keep_their_gradients_apart():
    first, second = scores(5).requires_grad_(), scores(5).requires_grad_()
    p, q = fenchel.entmax(first, 1.3), fenchel.entmax(second, 1.3)
    p[0].backward(), q[0].backward()
    for leaf in (first, second):
        alone = leaf.detach().clone().requires_grad_()
        fenchel.entmax(alone, 1.3)[0].backward()
        assert torch.equal(leaf.grad, alone.grad)
