"""The continuous part of "combined" attention: that of the library's own layer, at less cost."""

from __future__ import annotations

import pytest
import torch

from fenchel.continuous import entmax as continuous_entmax
from fenchel.continuous import ridge_values
from fenchel.models import Seq2Seq, Seq2SeqConfig
from fenchel.models.seq2seq.continuous import Continuous
from fenchel.models.seq2seq.interval import Expectation
from fenchel.nn import ContinuousAttention1d
from tests.models.batches import SOURCE, TARGET, random_batch, small_model

BASES = 30


def _mask(symbols: int) -> torch.Tensor:
    """Sources of several lengths, the first of one symbol."""
    lengths = torch.tensor([1, max(symbols // 2, 1), symbols])
    return torch.arange(symbols) < lengths.unsqueeze(-1)


def _weights(mask: torch.Tensor) -> torch.Tensor:
    """All on one symbol, spread out, and adding up to nearly one only."""
    draw = torch.Generator().manual_seed(0)
    raw = torch.rand(3, 2, mask.shape[1], generator=draw, dtype=torch.float64) ** 8
    raw = raw * mask.unsqueeze(1)
    weights = raw / raw.sum(-1, keepdim=True)
    weights[2] *= 1.01
    return weights


@pytest.mark.parametrize("symbols", [1, 7, 64, 512])
def test_coefficients_are_those_of_ridge_regression(symbols: int):
    layer, mask = Continuous(BASES, 2.0), _mask(symbols)
    values = torch.randn(3, symbols, 5, dtype=torch.float64) * mask.unsqueeze(-1)
    expected = ridge_values(values, None, layer.basis, lengths=mask.sum(1))
    fitted = layer.fit(values, mask, layer.positions(mask))
    torch.testing.assert_close(fitted, expected, atol=1e-11, rtol=1e-11)


@pytest.mark.parametrize("symbols", [1, 7, 64, 512])
@pytest.mark.parametrize("alpha", [1.0, 2.0])
def test_closed_expectations_have_the_values_and_the_derivative_of_the_map(
    alpha: float, symbols: int
):
    layer, mask = Continuous(BASES, alpha), _mask(symbols)
    t = (torch.arange(symbols, dtype=torch.float64) + 0.5) / mask.sum(1)[:, None, None]
    floor = mask.sum(1)[:, None].double() ** -2 / 12
    weights = _weights(mask).requires_grad_()
    mean = (weights * t).sum(-1)
    variance = (weights * (t - mean.unsqueeze(-1)) ** 2).sum(-1) + floor
    expected = continuous_entmax(mean, variance, layer.basis, alpha)
    found = Expectation.apply(weights, layer.positions(mask))
    pull = torch.randn(found.shape, dtype=torch.float64)
    ours, theirs = (torch.autograd.grad(each, weights, pull)[0] for each in (found, expected))
    torch.testing.assert_close(found, expected, atol=1e-9, rtol=1e-9)
    scale = theirs.abs().amax((-2, -1), keepdim=True)
    torch.testing.assert_close(ours / scale, theirs / scale, atol=1e-7, rtol=0)


class _Given(torch.nn.Module):
    """An attention whose query is its weights."""

    def forward(self, query: torch.Tensor, keys: torch.Tensor, **_: object):
        return None, query


@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0])
def test_the_context_is_that_of_the_combined_layer(alpha: float):
    model = small_model(attention_map="combined", attention_alpha=1.3, continuous_alpha=alpha)
    attention, batch = model.decoder.attention, random_batch()
    states, mask, *_ = model.encoder(batch.source)
    query = torch.randn(5, 2, 8, dtype=torch.float64)
    seen, weights = attention(query, attention.remember(states, mask))
    layer = ContinuousAttention1d.combined(_Given(), attention.continuous.basis, alpha=alpha)
    context, _ = layer(weights, attention.of_context(states), lengths=mask.sum(1))
    expected = torch.tanh(attention.of_query(query) + context)
    torch.testing.assert_close(seen, expected, atol=1e-12, rtol=1e-10)


def test_long_sources_cost_little_and_checkpoints_nothing():
    model = Seq2Seq(Seq2SeqConfig(SOURCE, TARGET, 6, 8, attention_map="combined"))
    before = {name: value.shape for name, value in model.state_dict().items()}
    continuous = model.decoder.attention.continuous
    mask = torch.ones(1, 300, dtype=torch.bool)
    continuous.fit(torch.randn(1, 300, 8), mask, continuous.positions(mask))
    (kept,) = continuous._kept.values()
    assert kept.shape == (512, BASES, BASES)
    assert {name: value.shape for name, value in model.state_dict().items()} == before
    mine = {name for name in before if "continuous" in name}
    assert mine == {f"decoder.attention.continuous.basis.{part}" for part in ("centers", "scales")}
