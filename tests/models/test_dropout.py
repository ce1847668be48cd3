"""Dropout of hidden states: each entry is dropped on its own, and the mean stays the same."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from fenchel.models.dropout import dropout

DTYPES = (torch.float32, torch.float64, torch.bfloat16)


@pytest.mark.parametrize("probability", [0.1, 0.2, 0.5, 0.9])
def test_entries_are_dropped_with_the_probability_and_independently(probability):
    torch.manual_seed(0)
    ones = torch.ones(40_000, 4, dtype=torch.float64)
    result = dropout(ones, probability, training=True)
    scaled = result[result > 0]
    assert_close(scaled, torch.full_like(scaled, 1 / (1 - probability)), rtol=1e-4, atol=0)
    error = (probability * (1 - probability) / len(ones)) ** 0.5
    dropped = (result == 0).double()
    assert ((dropped.mean(0) - probability).abs() < 5 * error).all()
    correlation = torch.corrcoef(dropped.T) - torch.eye(4)
    assert correlation.abs().max() < 5 / len(ones) ** 0.5


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_gradient_is_dropped_as_the_entries_are(dtype):
    torch.manual_seed(0)
    x = torch.randn(5, 7, dtype=dtype).T.requires_grad_()
    result = dropout(x, 0.25, training=True)
    (gradient,) = torch.autograd.grad(result.sum(), x)
    assert result.dtype == gradient.dtype == dtype
    assert_close(gradient * x, result)
    assert (result == 0).any()


def test_the_seed_determines_the_entries():
    results = []
    for _ in range(2):
        torch.manual_seed(3)
        results.append(dropout(torch.ones(99), 0.5, training=True))
    assert torch.equal(*results)


@pytest.mark.parametrize(("probability", "training"), [(0.0, True), (0.3, False)])
def test_nothing_is_dropped_in_evaluation(probability, training):
    x = torch.randn(9)
    assert torch.equal(dropout(x, probability, training), x)


def test_probabilities_near_one_and_zero_and_empty_tensors():
    assert torch.equal(dropout(torch.ones(8), 1 - 1e-7, training=True), torch.zeros(8))
    assert torch.equal(dropout(torch.ones(8), 1e-9, training=True), torch.ones(8))
    assert dropout(torch.ones(0, 3), 0.5, training=True).shape == (0, 3)


def test_transforms_and_compiled_code_take_the_dropout_of_pytorch():
    x = torch.ones(6, 50)
    each = torch.vmap(lambda row: dropout(row, 0.5, training=True), randomness="different")(x)
    assert not torch.equal(each[0], each[1])
    compiled = torch.compile(
        lambda x: dropout(x, 0.5, training=True), backend="eager", fullgraph=True
    )
    assert set(compiled(x).unique().tolist()) == {0.0, 2.0}
