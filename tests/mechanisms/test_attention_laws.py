"""Attention on drawn shapes, masks, windows and lengths is the map of its scores, times the values."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

import fenchel
from tests.accuracy import accuracy, assert_within
from tests.implementations import on_every, running_on

ALPHAS = (1.0, 1.2, 1.5, 1.75, 2.0, 2.5)


@on_every
@given(data=st.data())
def test_attention_is_the_map_of_its_scores(implementation: str, data: st.DataObject) -> None:
    batch, heads, queries, keys = (data.draw(st.integers(1, most)) for most in (3, 3, 9, 12))
    depth, alpha = data.draw(st.integers(1, 5)), data.draw(st.sampled_from(ALPHAS))
    torch.manual_seed(data.draw(st.integers(0, 2**31)))
    size = data.draw(st.sampled_from([0.0, 0.3, 3.0, 30.0]))
    q = size * torch.randn(batch, heads, queries, depth)
    k, v = torch.randn(2, batch, heads, keys, depth)
    allowed = torch.ones(batch, heads, queries, keys, dtype=torch.bool)
    options = {}
    if data.draw(st.booleans()):
        options["mask"] = torch.rand(batch, 1, queries, keys) < 0.7
        allowed = allowed & options["mask"]
    if data.draw(st.booleans()):
        options["lengths"] = torch.randint(0, keys + 1, (batch,))
        allowed = allowed & (torch.arange(keys) < options["lengths"].view(-1, 1, 1, 1))
    if data.draw(st.booleans()):
        options["is_causal"] = True
        allowed = allowed & torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries)
    with running_on(implementation):
        weights = fenchel.attention_weights(q, k, alpha=alpha, **options).to_dense()
        output = fenchel.attention(q, k, v, alpha=alpha, **options)
        scores = (q @ k.mT) * depth**-0.5
        expected = fenchel.entmax(scores, alpha, mask=allowed)
    tolerance = 64 * accuracy(torch.float32) * max(1.0, scores.abs().max().item())
    assert bool((weights[~allowed] == 0).all())
    assert_within(weights.sum(-1), allowed.any(-1), accuracy(torch.float32))
    assert_within(weights, expected, tolerance)
    assert_within(output, weights @ v, tolerance * v.abs().max().item() * keys)
