"""The loss in chunks never holds the scores, and computes only the gradients that are needed."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

import fenchel
from fenchel.operators import linear_chunks
from tests.implementations import GPU, on_every, parameters, running_on, widest
from tests.linear_loss.layers import Inside, layer, some_target, unfused


@pytest.mark.parametrize("implementation", parameters("cpu", GPU))
@pytest.mark.parametrize("reduction", ["mean", "none"])
@pytest.mark.parametrize("kind", ["indices", "probabilities"])
def test_no_more_than_a_chunk_of_the_scores_ever_exists(implementation, reduction, kind):
    rows, width, classes, chunk = 24, 2, 512, 4
    hidden = torch.randn(rows, width, requires_grad=True)
    weight = torch.randn(classes, width, requires_grad=True)
    alpha = torch.tensor(1.4, requires_grad=True)
    target = torch.arange(rows)
    if kind == "probabilities":
        target = F.one_hot(target, classes).float()
    options = {"reduction": reduction, "label_smoothing": 0.1}
    with running_on(implementation), Inside() as made:
        loss = fenchel.linear_entmax_loss(
            hidden, weight, target, alpha, chunk_rows=chunk, **options
        )
        loss.sum().backward()
    assert max(made.elements) == chunk * classes
    with Inside() as made:
        unfused(hidden, weight, target, alpha, **options)
    assert max(made.elements) == rows * classes, "the plain layer holds all its scores"


def test_there_are_sixteen_chunks_unless_they_would_be_small():
    assert 15 * linear_chunks.default_rows(10**6) < 10**6 <= 16 * linear_chunks.default_rows(10**6)
    assert linear_chunks.default_rows(1000) == 256
    assert all(linear_chunks.default_rows(count) % 128 == 0 for count in (1, 5000, 8192, 99999))


@on_every
def test_gradients_are_only_computed_for_what_needs_them(implementation):
    inputs, target = layer(widest()), some_target("indices", widest())
    with running_on(implementation):
        for name in inputs:
            alone = {key: x.detach() for key, x in inputs.items()}
            alone[name].requires_grad_()
            both = [
                torch.autograd.grad(function(target=target, **alone), alone[name])[0]
                for function in (fenchel.linear_entmax_loss, unfused)
            ]
            torch.testing.assert_close(*both)


def test_gradients_are_computed_ahead_only_where_a_sum_needs_them():
    inputs, target = layer(torch.float32, 2), some_target("indices", torch.float32, 2)
    made = {}
    for case in ("sum", "none", "no grad"):
        reduction = "none" if case == "none" else "sum"
        with torch.set_grad_enabled(case != "no grad"), Inside() as inside:
            fenchel.linear_entmax_loss(target=target, reduction=reduction, **inputs)
        made[case] = inputs["weight"].numel() in inside.elements
    assert made == {"sum": True, "none": False, "no grad": False}


def test_the_gradient_of_the_weight_is_scaled_in_the_memory_that_holds_it():
    inputs, target = layer(torch.float32, 2), some_target("indices", torch.float32, 2)
    loss = 3 * fenchel.linear_entmax_loss(target=target, **inputs)
    with Inside() as made:
        loss.backward()
    assert max(made.elements) < inputs["weight"].numel()
