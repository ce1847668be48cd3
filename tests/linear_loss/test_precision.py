"""The dtypes in which the loss in chunks multiplies and sums."""

from __future__ import annotations

import pytest
import torch

import fenchel
from tests.implementations import on_every, running_on
from tests.linear_loss.layers import layer, some_target, unfused


@on_every
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_autocast_multiplies_in_its_dtype_and_sums_in_float32(implementation, reduction):
    inputs, target = layer(torch.float32), some_target("indices", torch.float32)
    kind = torch.get_default_device().type
    rounded = {key: x.detach().bfloat16().float().requires_grad_() for key, x in inputs.items()}
    rounded["alpha"] = inputs["alpha"].detach().clone().requires_grad_()
    with running_on(implementation):
        with torch.autocast(kind, torch.bfloat16):
            loss = fenchel.linear_entmax_loss(
                target=target, reduction=reduction, chunk_rows=4, **inputs
            )
        assert loss.dtype == torch.float32
        exact = unfused(target=target, reduction=reduction, **rounded)
        gradients = torch.autograd.grad(loss.sum(), list(inputs.values()))
        expected = torch.autograd.grad(exact.sum(), list(rounded.values()))
    torch.testing.assert_close(loss, exact, rtol=0.02, atol=0.02)
    for gradient, truth in zip(gradients, expected, strict=True):
        assert gradient.dtype == torch.float32
        torch.testing.assert_close(gradient, truth, rtol=0.03, atol=0.03 * truth.abs().max().item())


@on_every
def test_half_precision_weights_get_a_gradient_rounded_once_a_chunk(implementation):
    rows, classes, chunk = 320, 20, 16
    hidden = torch.randn(rows, 8, dtype=torch.bfloat16, requires_grad=True)
    weight = torch.randn(classes, 8, dtype=torch.bfloat16, requires_grad=True)
    target = torch.arange(rows) % classes
    exact = [x.detach().float().requires_grad_() for x in (hidden, weight)]
    with running_on(implementation):
        loss = fenchel.linear_entmax_loss(hidden, weight, target, 1.5, chunk_rows=chunk)
        truth = fenchel.linear_entmax_loss(*exact, target, 1.5)
        _, gradient = torch.autograd.grad(loss, (hidden, weight))
        _, expected = torch.autograd.grad(truth, exact)
    size = expected.abs().max().item()
    # scores and p − q are rounded too, and 20 sums of the size of the result
    allowed = 2.0**-8 * size * (2 + (rows / chunk) ** 0.5)
    assert (gradient.float() - expected).abs().max().item() <= allowed


@on_every
def test_a_mean_keeps_the_small_gradients_of_float16(implementation):
    """A gradient scaler multiplies the loss so that they can be held; the mean must come after that."""
    rows, classes = 1024, 40
    hidden = torch.randn(rows, 4, dtype=torch.float16, requires_grad=True)
    weight = (0.01 * torch.randn(classes, 4, dtype=torch.float16)).requires_grad_()
    target = torch.arange(rows) % classes
    with running_on(implementation):
        total = fenchel.linear_entmax_loss(hidden, weight, target, reduction="sum")
        mean = fenchel.linear_entmax_loss(hidden, weight, target)
        expected = torch.autograd.grad(total, (hidden, weight))
        gradients = torch.autograd.grad(rows * mean, (hidden, weight))
    for gradient, truth in zip(gradients, expected, strict=True):
        torch.testing.assert_close(gradient, truth, rtol=2.0**-9, atol=0)


@on_every
def test_the_mean_of_no_rows_has_no_gradient(implementation):
    inputs = layer(torch.float32)
    target = torch.full_like(some_target("indices", torch.float32), -100)
    with running_on(implementation):
        loss = fenchel.linear_entmax_loss(target=target, **inputs)
        gradients = torch.autograd.grad(loss, (inputs["hidden"], inputs["weight"]))
    assert loss.isnan()
    assert all(gradient.eq(0).all() for gradient in gradients)
