"""Attention for recurrent models, against the formulas of its papers."""

from __future__ import annotations

import math

import pytest
import torch

import fenchel
from fenchel.mechanisms.recurrent import AdditiveAttention, GeneralAttention
from fenchel.nn import Entmax

B, T, L, Q, K, V = 2, 3, 5, 4, 6, 7


def general_score(layer, q, k):
    return q @ layer.key_projection.weight @ k


def additive_score(layer, q, k):
    hidden = layer.query_projection.weight @ q + layer.key_projection.weight @ k
    return layer.direction.weight[0] @ torch.tanh(hidden + layer.key_projection.bias)


LAYERS = {
    "general": (lambda **options: GeneralAttention(Q, K, **options), general_score),
    "additive": (lambda **options: AdditiveAttention(Q, K, 8, **options), additive_score),
}


@pytest.fixture(params=LAYERS)
def case(request):
    torch.manual_seed(0)
    make, score = LAYERS[request.param]
    return make, score, 3 * torch.randn(B, T, Q).double(), torch.randn(B, L, K).double()


@pytest.mark.parametrize("map", [None, fenchel.softmax, fenchel.entmax, Entmax("learned")])
def test_context_is_the_average_that_the_scores_give(case, map):
    make, score, query, keys = case
    layer = make(**({} if map is None else {"map": map})).double()
    values = torch.randn(B, L, V).double()
    context, weights = layer(query, keys, values)
    scores = torch.stack(
        [torch.stack([torch.stack([score(layer, q, k) for k in ks]) for q in qs])
         for qs, ks in zip(query, keys, strict=True)]
    )  # fmt: skip
    torch.testing.assert_close(weights, (map or fenchel.sparsemax)(scores))
    torch.testing.assert_close(context, torch.einsum("btl,blv->btv", weights, values))


def test_a_decoder_may_go_step_by_step_with_projected_keys(case):
    make, _, query, keys = case
    layer = make().double()
    lengths = torch.tensor([2, L])
    context, weights = layer(query, keys, lengths=lengths)
    projected = layer.project_keys(keys)
    for t in range(T):
        step = layer(query[:, t], keys, lengths=lengths, projected_keys=projected)
        torch.testing.assert_close(step, (context[:, t], weights[:, t]))
    assert (weights[0, :, 2:] == 0).all()


def test_masks_and_lengths_hide_keys(case):
    make, _, query, keys = case
    layer = make().double()
    lengths, mask = torch.tensor([4, 0]), torch.rand(B, T, L) < 0.7
    context, weights = layer(query, keys, lengths=lengths, mask=mask)
    visible = mask & (torch.arange(L) < lengths[:, None, None])
    assert (weights[~visible] == 0).all()
    assert (weights[1] == 0).all()
    assert (context[1] == 0).all()
    biased = layer.scores(query, layer.project_keys(keys)).masked_fill(~visible, -math.inf)
    torch.testing.assert_close(weights, fenchel.sparsemax(biased))


def test_a_learned_map_is_part_of_the_layer(case):
    make, _, query, keys = case
    layer = make(map=Entmax("learned")).double()
    layer(query, keys)[0].square().sum().backward()
    assert layer.map.exponent.logit.grad.abs() > 0


def test_a_training_step_compiles_whole(case):
    make, _, query, keys = case
    layer = make().double()
    step = torch.compile(
        lambda q, k, n: layer(q, k, lengths=n)[0], fullgraph=True, backend="aot_eager"
    )
    lengths = torch.tensor([2, L])
    torch.testing.assert_close(step(query, keys, lengths), layer(query, keys, lengths=lengths)[0])
    step(query, keys, lengths).sum().backward()
    assert all(p.grad.isfinite().all() for p in layer.parameters())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"query": torch.zeros(B, K)},
            r"query must have the shape \(B, 4\) or \(B, T, 4\), got \(2, 6\)",
        ),
        ({"keys": torch.zeros(B, L, Q)}, r"keys must have the shape \(B, L, 6\), got \(2, 5, 4\)"),
        ({"keys": torch.zeros(B + 1, L, K)}, "must have the same batch size, got 2 and 3"),
        (
            {"values": torch.zeros(B, L + 1, V)},
            r"values must have the shape \(2, 5, …\), got \(2, 6, \d\)",
        ),
        (
            {"projected_keys": torch.zeros(1, L, Q)},
            r"projected_keys must have the shape \(2, 5, \d\), got \(1, 5, 4\)",
        ),
        (
            {"projected_keys": torch.zeros(2, L, 11)},
            r"projected_keys must have the shape \(2, 5, \d\), got \(2, 5, 11\)",
        ),
        ({"lengths": torch.tensor([1, 2, 3])}, r"lengths must have shape \(2,\), .* got \(3,\)"),
        (
            {"lengths": torch.tensor([1, 6])},
            r"lengths must be between 0 and 5, got \[1, 6\]",
        ),
        ({"mask": torch.zeros(B, L)}, "mask must be a boolean tensor"),
        (
            {"mask": torch.ones(B, 2).bool()},
            r"mask must have a shape that broadcasts to \(2, 5\), got \(2, 2\)",
        ),
    ],
)
def test_a_broken_rule_is_named(arguments, message):
    correct = {"query": torch.zeros(B, Q), "keys": torch.zeros(B, L, K)}
    with pytest.raises(fenchel.FenchelError, match=message):
        GeneralAttention(Q, K)(**{**correct, **arguments})
