"""The losses are called as `F.cross_entropy` is, and at α = 1 they are it."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

import fenchel
from tests.accuracy import assert_within
from tests.implementations import DEFAULT, GPU, parameters, widest

SHAPES = [(5,), (4, 5), (4, 5, 3), (2, 5, 3, 2)]
REDUCTIONS = ["mean", "sum", "none"]
LOSSES = {
    "sparsemax": fenchel.sparsemax_loss,
    "entmax": lambda *args, **options: fenchel.entmax_loss(*args, alpha=1.3, **options),
    "shannon": lambda *args, **options: fenchel.Shannon().loss(*args, **options),
    "gini": lambda *args, **options: fenchel.Gini(gamma=0.5).loss(*args, **options),
    "tsallis": lambda *args, **options: fenchel.Tsallis(1.5).loss(*args, **options),
    "warm tsallis": lambda *args, **options: fenchel.Tsallis(1.5, 0.7).loss(*args, **options),
    "norm": lambda *args, **options: fenchel.Norm(2.0).loss(*args, **options),
}


class Counting(TorchDispatchMode):
    """Counts what PyTorch dispatches."""

    count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += 1
        return func(*args, **(kwargs or {}))


@pytest.fixture(params=parameters(DEFAULT, GPU), autouse=True)
def implementation(request):
    return request.param


@pytest.fixture(params=LOSSES)
def loss(request):
    return LOSSES[request.param]


def near(tolerance: float) -> float:
    """What is allowed where a law is tested in float64; a few roundings where it is in float32."""
    return tolerance if widest() == torch.float64 else 4e-6


def index_target(shape: tuple[int, ...]) -> Tensor:
    where = shape[:0] if len(shape) == 1 else (shape[0], *shape[2:])
    return torch.randint(5, where)


def soft_target(shape: tuple[int, ...]) -> Tensor:
    return torch.softmax(torch.randn(shape, dtype=widest()), 0 if len(shape) == 1 else 1)


def assert_same_with_gradient(ours: Tensor, theirs: Tensor, x: Tensor) -> None:
    assert_within(ours, theirs, near(1e-10))
    gradients = [torch.autograd.grad(v.sum(), x, retain_graph=True)[0] for v in (ours, theirs)]
    assert_within(*gradients, near(1e-10))


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ignore_index", [-100, 2])
@pytest.mark.parametrize("shape", SHAPES)
def test_at_alpha_one_class_indices_cost_cross_entropy(shape, ignore_index, weighted, reduction):
    x = torch.randn(shape, dtype=widest(), requires_grad=True)
    target = index_target(shape)
    if target.ndim:
        target.view(-1)[0] = ignore_index
    options = {
        "weight": torch.rand(5, dtype=widest()) if weighted else None,
        "ignore_index": ignore_index,
        "reduction": reduction,
    }
    if not target.ndim and target == ignore_index:
        target += 1
    expected = F.cross_entropy(x, target, **options)
    assert_same_with_gradient(fenchel.entmax_loss(x, target, 1.0, **options), expected, x)
    shannon = fenchel.Shannon()
    assert_same_with_gradient(shannon.loss(x, target, **options), expected, x)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("shape", SHAPES)
def test_at_alpha_one_probabilities_cost_cross_entropy_less_their_entropy(shape, reduction):
    x = torch.randn(shape, dtype=widest(), requires_grad=True)
    q = soft_target(shape)
    entropy = torch.special.entr(q).sum(0 if len(shape) == 1 else 1)
    if reduction != "none":
        entropy = entropy.mean() if reduction == "mean" else entropy.sum()
    expected = F.cross_entropy(x, q, reduction=reduction) - entropy
    assert_same_with_gradient(fenchel.entmax_loss(x, q, 1.0, reduction=reduction), expected, x)


@pytest.mark.parametrize("smoothing", [0.1, 1.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_at_alpha_one_smoothed_labels_cost_cross_entropy_less_their_entropy(shape, smoothing):
    x = torch.randn(shape, dtype=widest(), requires_grad=True)
    target = index_target(shape)
    smooth = (1 - smoothing) * torch.eye(5, dtype=widest())[0] + smoothing / 5
    entropy = torch.special.entr(smooth).sum()
    expected = F.cross_entropy(x, target, label_smoothing=smoothing, reduction="none") - entropy
    ours = fenchel.entmax_loss(x, target, 1.0, label_smoothing=smoothing, reduction="none")
    assert_same_with_gradient(ours, expected, x)


@pytest.mark.parametrize("shape", SHAPES[1:])
def test_class_indices_are_one_hot_probabilities(loss, shape):
    x, target = torch.randn(shape, dtype=widest()), index_target(shape)
    q = F.one_hot(target, 5).movedim(-1, 1).to(x.dtype)
    for reduction in REDUCTIONS:
        assert_within(
            loss(x, target, reduction=reduction), loss(x, q, reduction=reduction), near(1e-12)
        )


@pytest.mark.parametrize("shape", SHAPES[2:])
def test_further_dimensions_are_rows(loss, shape):
    x, target = torch.randn(shape, dtype=widest()), index_target(shape)
    rows = x.movedim(1, -1).reshape(-1, 5)
    losses = loss(x, target, reduction="none")
    assert losses.shape == target.shape
    assert_within(losses.flatten(), loss(rows, target.flatten(), reduction="none"), near(1e-12))


def test_reductions_of_weighted_rows(loss):
    x, target = torch.randn(6, 5, dtype=widest()), torch.tensor([0, 1, -100, 3, 4, 1])
    weight = torch.rand(5, dtype=widest()) + 0.1
    plain = loss(x, target, reduction="none")
    rows = torch.where(target == -100, 0.0, weight[target.clamp(min=0)])
    weighed = loss(x, target, weight=weight, reduction="none")
    assert_within(weighed, plain * rows, near(1e-12))
    assert_within(loss(x, target, weight=weight, reduction="sum"), weighed.sum(), near(1e-12))
    mean = weighed.sum() / rows.sum()
    assert_within(loss(x, target, weight=weight), mean, near(1e-12))
    assert_within(loss(x, target), plain.sum() / 5, near(1e-12))


def test_a_row_of_probabilities_weighs_the_mean_of_its_classes(loss):
    x, q = torch.randn(6, 5, dtype=widest()), soft_target((6, 5))
    weight = torch.rand(5, dtype=widest()) + 0.1
    weighed = loss(x, q, weight=weight, reduction="none")
    assert_within(weighed, loss(x, q, reduction="none") * (q @ weight), near(1e-12))


def test_an_ignored_row_costs_nothing_and_passes_no_gradient(loss):
    x = torch.randn(4, 5, dtype=widest())
    x[1] = -math.inf
    x.requires_grad_()
    target = torch.tensor([0, -100, 2, -100])
    for smoothing in (0.0, 0.1):
        losses = loss(x, target, reduction="none", label_smoothing=smoothing)
        (slope,) = torch.autograd.grad(losses.sum(), x)
        assert losses[[1, 3]].tolist() == [0.0, 0.0]
        assert slope[[1, 3]].count_nonzero() == 0
        assert slope.isfinite().all()
        total = loss(x, target, label_smoothing=smoothing)
        assert_within(total, losses[[0, 2]].mean(), near(1e-12))


def test_if_every_row_is_ignored_the_mean_is_that_of_cross_entropy(loss):
    x, target = torch.randn(2, 5), torch.tensor([-100, -100])
    assert loss(x, target).isnan()
    assert F.cross_entropy(x, target).isnan()
    assert loss(x, target, reduction="sum") == 0


def test_label_smoothing_is_the_smoothed_distribution(loss):
    x, target = torch.randn(4, 5, dtype=widest()), torch.tensor([0, 3, 1, 2])
    smooth = 0.9 * torch.eye(5, dtype=widest())[target] + 0.02
    expected = loss(x, smooth, reduction="none")
    for actual in (target, torch.eye(5, dtype=widest())[target]):
        assert_within(loss(x, actual, reduction="none", label_smoothing=0.1), expected, near(1e-12))


def test_a_class_at_minus_infinity_is_as_if_it_were_not_there(loss):
    x = torch.randn(3, 5, dtype=widest())
    target = torch.tensor([0, 2, 3])
    more = torch.cat([x, torch.full((3, 1), -math.inf, dtype=widest())], -1).requires_grad_()
    losses = loss(more, target, reduction="none")
    assert_within(losses, loss(x, target, reduction="none"), near(1e-10))
    (slope,) = torch.autograd.grad(losses.sum(), more)
    assert slope.isfinite().all()
    assert slope[:, 5].count_nonzero() == 0


def test_a_target_at_minus_infinity_costs_infinitely_much(loss):
    x = torch.tensor([[1.0, -math.inf, 0.0], [1.0, 0.0, 2.0]], requires_grad=True)
    losses = loss(x, torch.tensor([1, 1]), reduction="none")
    assert losses[0] == math.inf
    assert losses[1].isfinite()


def test_a_row_of_minus_infinity_costs_infinitely_much_and_passes_no_gradient(loss):
    x = torch.tensor([[-math.inf] * 3, [1.0, 0.0, 2.0]], requires_grad=True)
    losses = loss(x, torch.tensor([1, 1]), reduction="none")
    (slope,) = torch.autograd.grad(losses.sum(), x)
    assert losses[0] == math.inf
    assert slope[0].tolist() == [0.0, 0.0, 0.0]
    assert slope[1].isfinite().all()
    assert slope[1].any()


def test_nan_stays_in_its_row(loss):
    x = torch.randn(3, 5)
    clean = loss(x, torch.tensor([0, 1, 2]), reduction="none")
    x[1, 4] = math.nan
    x.requires_grad_()
    dirty = loss(x, torch.tensor([0, 1, 2]), reduction="none")
    (slope,) = torch.autograd.grad(dirty.sum(), x)
    assert dirty[1].isnan()
    assert torch.equal(dirty[[0, 2]], clean[[0, 2]])
    assert slope[[0, 2]].isfinite().all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_losses_round_once(loss, dtype):
    x, target = torch.randn(40, 5).to(dtype), torch.arange(40) % 5
    expected = loss(x.double(), target, reduction="none")
    actual = loss(x, target, reduction="none")
    assert actual.dtype == dtype
    torch.testing.assert_close(
        actual.double(), expected, rtol=torch.finfo(dtype).eps, atol=torch.finfo(dtype).tiny
    )


@pytest.mark.parametrize("shape", SHAPES[1:])
def test_losses_of_rows_may_be_changed_in_place(loss, shape):
    x, target = torch.randn(shape, dtype=widest(), requires_grad=True), index_target(shape)
    losses = loss(x, target, reduction="none")
    (once,) = torch.autograd.grad(losses[1:].sum(), x)
    changed = loss(x, target, reduction="none")
    changed *= 2
    changed[0] = 0
    assert_within(torch.autograd.grad(changed.sum(), x)[0], 2 * once, near(1e-12))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_large_batch_has_a_mean_in_half_precision(loss, dtype):
    rows = 70_000  # more than the largest number of float16
    x = torch.tensor([1.5, 0.0, 0.5]).expand(rows, 3).to(dtype).requires_grad_()
    target = torch.arange(rows) % 3
    mean = loss(x, target)
    exact = loss(x, target, reduction="none").double().mean()
    torch.testing.assert_close(mean.double(), exact, rtol=torch.finfo(dtype).eps, atol=0)
    assert mean.dtype == dtype
    assert torch.autograd.grad(mean, x)[0].isfinite().all()


@pytest.mark.parametrize(("reduction", "forward", "backward"), [("none", 1, 1), ("mean", 5, 4)])
def test_a_loss_and_its_mean_are_few_operators(reduction, forward, backward):
    x, target = torch.randn(4, 5, requires_grad=True), torch.tensor([0, -100, 3, 1])
    grad = torch.ones(4) if reduction == "none" else None
    with Counting() as operators:
        loss = fenchel.entmax_loss(x, target, reduction=reduction)
    with Counting() as of_gradient:
        torch.autograd.grad(loss, x, grad)
    assert operators.count <= forward
    assert of_gradient.count <= backward


@pytest.mark.parametrize("shape", [(0, 5), (0, 5, 3)])
def test_an_empty_batch_costs_nothing(loss, shape):
    x = torch.empty(shape, requires_grad=True)
    target = torch.empty((0, *shape[2:]), dtype=torch.long)
    assert loss(x, target, reduction="none").shape == target.shape
    total = loss(x, target, reduction="sum")
    total.backward()
    assert total == 0
    assert x.grad.shape == shape


def test_an_empty_batch_has_no_mean_as_in_cross_entropy(loss):
    x = torch.empty(0, 5)
    for target in (torch.empty(0, dtype=torch.long), torch.empty(0, 5)):
        assert F.cross_entropy(x, target).isnan()
        assert loss(x, target).isnan()


@pytest.mark.parametrize("integer", [torch.int8, torch.uint8, torch.int32, torch.int64])
def test_class_indices_may_be_of_any_integer_dtype(loss, integer):
    x, target = torch.randn(3, 5), torch.tensor([0, 4, 2])
    assert torch.equal(loss(x, target.to(integer)), loss(x, target))
