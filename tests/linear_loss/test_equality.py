"""The loss of an output layer in chunks is the loss of the output layer, in every dtype and shape."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import fenchel
from fenchel.operators import linear_chunks
from tests.catalogue import tensor
from tests.implementations import on_every, running_on, widest
from tests.linear_loss.layers import CLASSES, ROWS, WIDTH, layer, some_target, unfused

REDUCTIONS = ["mean", "sum", "none"]
TOLERANCE = {torch.float64: 1e-12, torch.float32: 2e-6, torch.bfloat16: 2.0**-6}


def assert_same(target: Tensor, inputs: dict[str, Tensor], **options: Any) -> None:
    """The fused and the unfused loss and all their gradients, by the error of the unfused pair."""
    given = {name: x for name, x in inputs.items() if name != "alpha" or x.requires_grad}
    dtype = inputs["hidden"].dtype
    results = []
    for function in (fenchel.linear_entmax_loss, unfused):
        loss = function(target=target, **inputs, **options)
        weigh = torch.linspace(1, 2, loss.numel(), dtype=loss.dtype).reshape(loss.shape)
        results.append([loss, *torch.autograd.grad((loss * weigh).sum(), list(given.values()))])
    for name, ours, theirs in zip(("loss", *given), *results, strict=True):
        assert ours.dtype == theirs.dtype
        size = theirs.abs().max().item()
        error = (ours - theirs).abs().max().item()
        assert error <= TOLERANCE[dtype] * max(size, 1e-3), f"{name}: {error:.2g} of {size:.2g}"


@on_every
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind", ["indices", "probabilities"])
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_the_loss_and_its_gradients_are_those_of_the_plain_layer(
    implementation, dtype, kind, reduction
):
    inputs, target = layer(dtype), some_target(kind, dtype)
    with running_on(implementation):
        for options in ({}, {"label_smoothing": 0.1}, {"class_weight": torch.rand(CLASSES) + 0.5}):
            assert_same(target, inputs, reduction=reduction, chunk_rows=4, **options)


@on_every
@pytest.mark.parametrize("chunk_rows", [1, np.int64(4), ROWS - 1, ROWS, 100, None])
def test_chunks_of_any_size_give_the_same(implementation, chunk_rows):
    inputs = layer(widest())
    with running_on(implementation):
        assert_same(some_target("indices", widest()), inputs, chunk_rows=chunk_rows)


@on_every
def test_a_chunk_may_take_its_losses_in_parts(implementation, monkeypatch):
    monkeypatch.setattr(linear_chunks, "LOSS_ROWS", 2)
    inputs = layer(widest())
    with running_on(implementation):
        assert_same(some_target("indices", widest()), inputs, chunk_rows=5)


@on_every
@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0, 3.0, "rows"])
def test_every_alpha(implementation, alpha):
    inputs = layer(widest())
    value = torch.linspace(0.8, 2.5, ROWS, dtype=widest()).unsqueeze(-1)
    inputs["alpha"] = value.requires_grad_() if alpha == "rows" else tensor(alpha)
    with running_on(implementation):
        assert_same(some_target("indices", widest()), inputs, chunk_rows=3)
        if alpha != "rows":
            inputs["alpha"] = alpha
            del inputs["bias"]
            names = [inputs[name] for name in ("hidden", "weight")]
            target = some_target("indices", widest())
            pair = [
                torch.autograd.grad(function(target=target, **inputs), names)
                for function in (fenchel.linear_entmax_loss, unfused)
            ]
            torch.testing.assert_close(*pair)


def test_inputs_may_have_any_number_of_dimensions():
    inputs = layer(torch.float64, 12)
    flat = fenchel.linear_entmax_loss(target=torch.arange(12) % 7, reduction="none", **inputs)
    inputs["hidden"] = inputs["hidden"].reshape(3, 2, 2, WIDTH)
    target = (torch.arange(12) % 7).reshape(3, 2, 2)
    deep = fenchel.linear_entmax_loss(target=target, reduction="none", **inputs)
    torch.testing.assert_close(deep, flat.reshape(3, 2, 2))
    alpha = torch.linspace(1.1, 2.0, 3, dtype=torch.float64).reshape(3, 1, 1, 1)
    inputs["alpha"] = alpha
    deep = fenchel.linear_entmax_loss(target=target, reduction="none", **inputs)
    scores = F.linear(inputs["hidden"], inputs["weight"], inputs["bias"]).movedim(-1, 1)
    expected = fenchel.entmax_loss(scores, target, alpha, reduction="none")
    torch.testing.assert_close(deep, expected)
    row = fenchel.linear_entmax_loss(inputs["hidden"][0, 0, 0], inputs["weight"], target[0, 0, 0])
    assert row.shape == ()
    pixels = some_target("probabilities", torch.float64, 12).reshape(3, 2, 2, CLASSES)
    soft = fenchel.linear_entmax_loss(target=pixels, reduction="none", **inputs)
    assert soft.shape == (3, 2, 2)


def test_rows_that_are_all_ignored_are_as_in_the_plain_layer():
    inputs = layer(torch.float64)
    target = torch.full((ROWS,), -100)
    assert fenchel.linear_entmax_loss(target=target, **inputs).isnan()
    assert fenchel.linear_entmax_loss(target=target, reduction="sum", **inputs) == 0


@pytest.mark.parametrize("shape", [(0, WIDTH), (2, 0, WIDTH), (3, 0), (0, 0)])
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("kind", ["indices", "probabilities"])
def test_sizes_of_zero_are_as_in_the_plain_layer(shape, reduction, kind):
    """No rows have no mean; a layer without inputs scores all classes alike."""
    *batch, width = shape
    hidden, weight = torch.zeros(shape, requires_grad=True), torch.zeros(CLASSES, width)
    target = torch.ones(batch, dtype=torch.long)
    if kind == "probabilities":
        target = F.one_hot(target, CLASSES).float()
    ours = fenchel.linear_entmax_loss(hidden, weight, target, 1.5, reduction=reduction)
    rows, targets = hidden.flatten(0, -2), target.flatten(0, len(batch) - 1)
    theirs = unfused(rows, weight, targets, 1.5, reduction=reduction)
    torch.testing.assert_close(ours.flatten(), theirs.flatten(), equal_nan=True)
    (gradient,) = torch.autograd.grad(ours.sum(), hidden)
    assert gradient.shape == shape


def test_an_empty_batch_costs_nothing():
    inputs = layer(torch.float32, 0)
    total = fenchel.linear_entmax_loss(
        target=torch.empty(0, dtype=torch.long), reduction="sum", **inputs
    )
    total.backward()
    assert total == 0
    assert inputs["weight"].grad.count_nonzero() == 0
    assert inputs["hidden"].grad.shape == (0, WIDTH)
