"""The gradient in place of the scores: the same numbers, no memory, and no silent misuse."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import fenchel
from tests.allocations import Allocations
from tests.implementations import on_every, running_on, widest

ROWS, CLASSES = 5, 9


def layer() -> tuple[Tensor, Tensor]:
    hidden = torch.randn(ROWS, 4, dtype=widest(), requires_grad=True)
    return hidden, torch.randn(4, CLASSES, dtype=widest())


def some_target(kind: str) -> Tensor:
    if kind == "indices":
        return torch.tensor([0, CLASSES - 1, -100, 3, 3])
    return torch.softmax(torch.randn(ROWS, CLASSES, dtype=widest()), -1)


@on_every
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize(
    ("kind", "smoothing"), [("indices", 0.0), ("indices", 0.1), ("probabilities", 0.0)]
)
@pytest.mark.parametrize("alpha", [1.0, 1.5, "rows"])
def test_loss_and_gradients_are_the_same(implementation, alpha, kind, smoothing, reduction):
    hidden, weight = layer()
    target = some_target(kind)
    value = (
        torch.linspace(1.1, 1.9, ROWS, dtype=widest()).unsqueeze(-1) if alpha == "rows" else alpha
    )
    leaves = [hidden, value.requires_grad_()] if isinstance(value, Tensor) else [hidden]
    results = []
    for inplace in (False, True):
        with running_on(implementation):
            loss = fenchel.entmax_loss(
                hidden @ weight,
                target,
                value,
                label_smoothing=smoothing,
                reduction=reduction,
                inplace=inplace,
            )
            factor = torch.linspace(1, 2, loss.numel(), dtype=widest()).reshape(loss.shape)
            results.append((loss, *torch.autograd.grad(loss, leaves, factor)))
    for mine, other in zip(*results, strict=True):
        torch.testing.assert_close(mine, other)


def test_no_matrix_of_the_size_of_the_scores_is_made():
    scores = torch.randn(200, 50, requires_grad=True) + 0
    place = scores.data_ptr()
    with Allocations() as made:
        loss = fenchel.sparsemax_loss(scores, torch.arange(200) % 50, inplace=True)
        (gradient,) = torch.autograd.grad(loss, scores)
    assert max(made.elements) < scores.numel()
    assert gradient.data_ptr() == place


@pytest.mark.parametrize("module", [fenchel.nn.SparsemaxLoss, fenchel.nn.EntmaxLoss])
def test_a_module_says_whether_the_gradient_may_replace_the_scores(module):
    (hidden, weight), target = layer(), some_target("indices")
    gradients = []
    for inplace in (False, True):
        criterion = module(reduction="sum", inplace=inplace)
        assert ("inplace=True" in repr(criterion)) == inplace
        scores = hidden @ weight
        place = scores.data_ptr()
        gradients += torch.autograd.grad(criterion(scores, target), scores)
        assert (gradients[-1].data_ptr() == place) == inplace
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision(dtype):
    scores = torch.randn(ROWS, CLASSES).to(dtype).requires_grad_()
    target = some_target("indices")
    (expected,) = torch.autograd.grad(fenchel.entmax_loss(scores, target, reduction="sum"), scores)
    loss = fenchel.entmax_loss(scores + 0, target, reduction="sum", inplace=True)
    assert loss.dtype == dtype
    assert torch.equal(torch.autograd.grad(loss, scores)[0], expected)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_under_autocast_the_loss_is_float32_as_without_it(dtype, reduction):
    """A scaler of gradients multiplies it by 65536, which float16 does not hold."""
    model, x, target = torch.nn.Linear(4, CLASSES), torch.randn(ROWS, 4), some_target("indices")
    results = []
    for inplace in (False, True):
        with torch.autocast("cpu", dtype):
            loss = fenchel.entmax_loss(model(x), target, reduction=reduction, inplace=inplace)
        results.append((loss, *torch.autograd.grad(loss.sum(), model.parameters())))
    assert results[1][0].dtype == torch.float32
    tolerance = 4 * torch.finfo(dtype).eps  # of the gradients, which take the place of the scores
    for mine, other in zip(*results, strict=True):
        torch.testing.assert_close(mine, other, rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(results[1][0], results[0][0])


def test_nothing_changes_where_there_is_no_gradient_or_no_matrix():
    scores, target = torch.randn(ROWS, CLASSES), some_target("indices")
    before = scores.clone()
    loss = fenchel.entmax_loss(scores, target, inplace=True)
    assert torch.equal(scores, before)
    assert torch.equal(loss, fenchel.entmax_loss(scores, target))
    moved = scores.clone().requires_grad_() + 0
    image = moved.T.unsqueeze(0)
    fenchel.entmax_loss(image, target.unsqueeze(0), inplace=True).backward()
    assert torch.equal(moved, before)


@pytest.mark.parametrize(
    ("view", "has_room"),
    [
        (lambda x: x[:9].expand(ROWS, CLASSES), False),
        (lambda x: x[:ROWS, None].expand(ROWS, CLASSES), False),
        (lambda x: x.unfold(0, CLASSES, 1)[:ROWS], False),
        (lambda x: x.as_strided((ROWS, CLASSES), (1, 4)), False),
        (lambda x: x.reshape(CLASSES, -1)[:, :ROWS].T, True),
        (lambda x: x.as_strided((ROWS, CLASSES), (17, 2)), True),
    ],
)
def test_scores_that_share_memory_are_not_overwritten(view, has_room):
    leaf, target = torch.randn(90, dtype=widest(), requires_grad=True), some_target("indices")
    results, kept = [], []
    for inplace in (False, True):
        scores = view(leaf + 0)
        before = scores.detach().clone()
        loss = fenchel.entmax_loss(scores, target, inplace=inplace)
        kept.append(torch.equal(scores, before))
        results.append((loss, *torch.autograd.grad(loss, leaf)))
    assert kept == [True, not has_room]
    for mine, other in zip(*results, strict=True):
        torch.testing.assert_close(mine, other)


def test_an_operation_that_needs_its_result_is_told():
    scores = torch.randn(ROWS, CLASSES, requires_grad=True).exp()
    loss = fenchel.entmax_loss(scores, some_target("indices"), inplace=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_a_leaf_is_not_overwritten():
    scores = torch.randn(ROWS, CLASSES, requires_grad=True)
    with pytest.raises(fenchel.FenchelError, match="cannot overwrite a leaf tensor"):
        fenchel.entmax_loss(scores, some_target("indices"), inplace=True)


def test_there_is_one_backward_pass_and_no_derivative_of_it():
    hidden, weight = layer()

    def loss_of(scores: Tensor) -> Tensor:
        return fenchel.entmax_loss(scores, some_target("indices"), inplace=True)

    loss = loss_of(hidden @ weight)
    loss.backward(retain_graph=True)
    with pytest.raises(fenchel.FenchelError, match=r"one backward pass, .* got a second one"):
        loss.backward()
    with pytest.raises(fenchel.FenchelError, match="cannot be differentiated"):
        torch.autograd.grad(loss_of(hidden @ weight), hidden, create_graph=True)
    scores = hidden @ weight
    loss = loss_of(scores)
    with torch.no_grad():
        scores.zero_()
    with pytest.raises(fenchel.FenchelError, match="got scores that were modified"):
        loss.backward()


def test_transforms_ignore_it():
    hidden, weight = layer()
    target = some_target("indices")

    def loss_of(x: Tensor, inplace: bool) -> Tensor:
        return fenchel.entmax_loss(x @ weight, target, inplace=inplace)

    slope = torch.func.grad(loss_of)
    x = hidden.detach()
    torch.testing.assert_close(slope(x, True), slope(x, False))
    compiled = torch.compile(lambda: loss_of(hidden, True), fullgraph=True, backend="aot_eager")
    (actual,) = torch.autograd.grad(compiled(), hidden)
    torch.testing.assert_close(actual, slope(x, False))
