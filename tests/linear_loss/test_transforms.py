"""The loss in chunks under derivatives of any order, vmap, forward mode, compilation and autocast."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.func import grad, jacfwd, vmap

import fenchel
from tests.implementations import on_every, running_on, widest
from tests.linear_loss.layers import CLASSES, ROWS, WIDTH, layer, some_target, unfused


@on_every
def test_a_second_backward_pass_is_the_first(implementation):
    inputs, target = layer(widest()), some_target("indices", widest())
    with running_on(implementation):
        loss = 3 * fenchel.linear_entmax_loss(target=target, chunk_rows=4, **inputs)
        first, second, third = (
            torch.autograd.grad(loss, list(inputs.values()), retain_graph=True) for _ in range(3)
        )
    torch.testing.assert_close(second, first)
    torch.testing.assert_close(third, first)


@on_every
@pytest.mark.parametrize("reduction", ["mean", "none"])
@pytest.mark.parametrize("kind", ["indices", "probabilities"])
def test_derivatives_of_first_and_second_order(implementation, kind, reduction):
    inputs = {k: 0.5 * v.detach() for k, v in layer(torch.float64, 3).items()}
    inputs["alpha"] += 0.7
    target = some_target(kind, torch.float64, 3)

    def loss(*values: Tensor) -> Tensor:
        given = dict(zip(inputs, values, strict=True))
        return fenchel.linear_entmax_loss(
            target=target, reduction=reduction, label_smoothing=0.1, chunk_rows=2, **given
        )

    values = tuple(value.requires_grad_() for value in inputs.values())
    with running_on(implementation):
        # a second backward pass adds up anew, in another order
        options = {"nondet_tol": 1e-12, "fast_mode": True}
        gradcheck(loss, values, check_forward_ad=True, check_batched_grad=True, **options)
        gradgradcheck(loss, values, check_fwd_over_rev=True, **options)


@on_every
@pytest.mark.parametrize("transform", [lambda loss: loss, grad], ids=["loss", "gradient"])
def test_vmap_is_a_loop(implementation, transform):
    weight = torch.randn(CLASSES, WIDTH, dtype=widest())
    hidden, target = torch.randn(3, 2, WIDTH, dtype=widest()), torch.arange(6).reshape(3, 2)

    def losses(function: Callable) -> Tensor:
        mapped = transform(lambda w, x, t: function(x, w, t, 1.5, reduction="sum"))
        return vmap(mapped, in_dims=(None, 0, 0))(weight, hidden, target)

    with running_on(implementation):
        torch.testing.assert_close(losses(fenchel.linear_entmax_loss), losses(unfused))


@on_every
def test_forward_mode_is_that_of_the_plain_layer(implementation):
    weight = torch.randn(CLASSES, WIDTH, dtype=widest())
    hidden, target = torch.randn(2, WIDTH, dtype=widest()), torch.arange(2)
    with running_on(implementation):
        ours, theirs = (
            jacfwd(lambda w, x, f=f: f(x, w, target, 1.5), argnums=(0, 1))(weight, hidden)
            for f in (fenchel.linear_entmax_loss, unfused)
        )
    torch.testing.assert_close(ours, theirs)


@on_every
@pytest.mark.parametrize(
    ("reduction", "dynamic"), [("mean", False), ("mean", True), ("none", False)]
)
def test_a_compiled_step_is_the_step(implementation, reduction, dynamic):
    torch.compiler.reset()
    inputs = layer(widest())

    def step(target: Tensor) -> Tensor:
        given = {**inputs, "hidden": 2 * inputs["hidden"][: target.shape[0]]}
        return fenchel.linear_entmax_loss(
            target=target, reduction=reduction, chunk_rows=4, **given
        ).sum()

    compiled = torch.compile(step, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    with running_on(implementation):
        for rows in (ROWS, 5):
            target = some_target("indices", widest(), rows)
            expected = torch.autograd.grad(step(target), list(inputs.values()))
            actual = torch.autograd.grad(compiled(target), list(inputs.values()))
            torch.testing.assert_close(actual, expected)


@pytest.mark.slow
def test_a_step_through_inductor_is_the_step():
    torch.compiler.reset()
    inputs, target = layer(torch.float32), some_target("indices", torch.float32)

    def step() -> Tensor:
        return fenchel.linear_entmax_loss(target=target, **inputs).square()

    expected = torch.autograd.grad(step(), list(inputs.values()))
    compiled = torch.compile(step, fullgraph=True)
    torch.testing.assert_close(torch.autograd.grad(compiled(), list(inputs.values())), expected)
