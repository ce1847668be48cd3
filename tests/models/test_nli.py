"""The classifier of pairs of sentences: the hypothesis attends to words of the premise."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from fenchel import FenchelError
from fenchel.data.texts import TextBatch
from fenchel.models import EntailmentClassifier, EntailmentConfig
from fenchel.models.nli import PaperGRU
from tests.models.test_waiting import NoWaiting

VOCABULARY, CLASSES = 30, 3
MAPS = EntailmentConfig.maps


def _texts(size: int, longest: int, draw: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    lengths = torch.randint(2, longest, (size,), generator=draw)
    lengths[0] = longest
    tokens = torch.randint(4, VOCABULARY, (size, longest), generator=draw)
    return tokens.masked_fill(torch.arange(longest) >= lengths[:, None], 0), lengths


def _batch(size: int = 5) -> TextBatch:
    draw = torch.Generator().manual_seed(0)
    inputs = (*_texts(size, 7, draw), *_texts(size, 4, draw))
    return TextBatch(inputs, torch.randint(CLASSES, (size,), generator=draw))


def _model(*, spread: float = 3.0, **choices: Any) -> EntailmentClassifier:
    """A model in float64 whose weights are large enough for sparse attention."""
    torch.manual_seed(1)
    config = EntailmentConfig(VOCABULARY, CLASSES, 8, 6, **{"dropout": 0.0, **choices})
    model = EntailmentClassifier(config).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(spread)
    return model


@pytest.mark.parametrize("name", MAPS)
def test_padding_changes_nothing(name: str):
    model, batch = _model(attention_map=name), _batch()
    scores, (weights, density) = model(*batch.inputs)
    assert density is None
    premise, lengths, hypothesis, others = batch.inputs
    for row, (length, other) in enumerate(zip(lengths.tolist(), others.tolist(), strict=True)):
        one = slice(row, row + 1)
        alone, (its_weights, _) = model(
            premise[one, :length], lengths[one], hypothesis[one, :other], others[one]
        )
        torch.testing.assert_close(scores[one], alone)
        if name == "none":
            assert weights is None
        else:
            torch.testing.assert_close(weights[one, :length], its_weights)
            assert weights[row, length:].abs().sum() == 0


def test_the_gru_follows_the_equations_of_the_paper():
    torch.manual_seed(0)
    gru = PaperGRU(4, 3).double()
    words = torch.randn(2, 5, 4, dtype=torch.float64)
    start = torch.randn(2, 3, dtype=torch.float64)
    states, last = gru(words, torch.tensor([5, 2]), start)
    weight, bias = gru.inputs.weight, gru.inputs.bias
    before = start
    for t in range(5):
        gates = words[:, t] @ weight[:6].T + bias[:6] + before @ gru.gates.weight.T
        update, reset = torch.sigmoid(gates[:, :3]), torch.sigmoid(gates[:, 3:])
        inner = words[:, t] @ weight[6:].T + bias[6:] + (reset * before) @ gru.candidate.weight.T
        before = (1 - update) * before + update * torch.tanh(inner)
        torch.testing.assert_close(states[:, t], before)
    torch.testing.assert_close(last, torch.stack([states[0, 4], states[1, 1]]))


def test_the_hypothesis_goes_on_from_the_premise():
    model, batch = _model(attention_map="none"), _batch()
    premise, lengths, hypothesis, others = batch.inputs
    states, last = model.premise(model.projection(model.embedding(premise)), lengths)
    _, query = model.hypothesis(model.projection(model.embedding(hypothesis)), others, last)
    features = torch.tanh(model.of_premise(last) + model.of_hypothesis(query))
    torch.testing.assert_close(model(*batch.inputs)[0], model.output(features))
    attending = _model(attention_map="sparsemax")
    _, (weights, _) = attending(*batch.inputs)
    states, last = attending.premise(attending.projection(attending.embedding(premise)), lengths)
    context = (weights.unsqueeze(1) @ states).squeeze(1)
    assert bool((weights[premise != 0] == 0).any())
    _, query = attending.hypothesis(
        attending.projection(attending.embedding(hypothesis)), others, last
    )
    features = torch.tanh(attending.of_premise(context) + attending.of_hypothesis(query))
    torch.testing.assert_close(attending(*batch.inputs)[0], attending.output(features))


@pytest.mark.parametrize("name", MAPS)
def test_a_step_looks_at_no_number(name: str):
    model = _model(attention_map=name).to("meta")
    inputs, labels = _batch()
    batch = TextBatch(tuple(part.to("meta") for part in inputs), labels.to("meta"))
    with NoWaiting():
        total, count = model.loss(batch, describe=False)["loss"]
        (total / count).backward()


def test_means_have_the_share_of_the_premise_that_is_attended():
    model, batch = _model(attention_map="sparsemax"), _batch()
    _, (weights, _) = model(*batch.inputs)
    means = model.loss(batch)
    assert means["attention_share"].total == (weights > 0).sum()
    assert means["attention_share"].count == batch.inputs[1].sum()
    assert set(_model(attention_map="none").loss(batch)) == {"loss", "accuracy"}


def test_a_learned_alpha_is_learned():
    model = _model(attention_map="entmax", attention_alpha="learned")
    model.loss(_batch())["loss"].total.backward()
    assert model.attention.map.exponent.logit.grad.abs() > 0
    assert set(model.alphas()) == {"attention"}
    assert _model(attention_map="none").alphas() == {}


def test_a_bad_setting_is_refused():
    with pytest.raises(FenchelError, match=r"attention_map must be one of none, .*'hardmax'"):
        EntailmentConfig(attention_map="hardmax")
    with pytest.raises(FenchelError, match="hidden_size must be a whole number of at least 1"):
        EntailmentConfig(hidden_size=0)
