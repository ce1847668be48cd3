"""The document classifier: attention by any map over words, whichever encoder reads them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from fenchel import FenchelError, entmax, entmax_loss
from fenchel.continuous import Mixture
from fenchel.data.texts import TextBatch
from fenchel.models import DocumentClassifier, DocumentClassifierConfig
from fenchel.models.attention_maps import ATTENTION_MAPS, attention_map
from fenchel.models.documents import ATTENTIONS, ENCODERS, density_heights
from fenchel.nn import Entmax, Fusedmax, Normmax, Pnormmax
from tests.models.test_waiting import NoWaiting

VOCABULARY, CLASSES = 30, 3


def _batch(size: int = 6, longest: int = 9) -> TextBatch:
    draw = torch.Generator().manual_seed(0)
    lengths = torch.randint(2, longest, (size,), generator=draw)
    lengths[0] = longest
    tokens = torch.randint(4, VOCABULARY, (size, longest), generator=draw)
    tokens = tokens.masked_fill(torch.arange(longest) >= lengths[:, None], 0)
    return TextBatch((tokens, lengths), torch.randint(CLASSES, (size,), generator=draw))


def _config(**choices: Any) -> DocumentClassifierConfig:
    sizes: dict[str, Any] = {"embedding_size": 8, "hidden_size": 6, "dropout": 0.0}
    return DocumentClassifierConfig(VOCABULARY, CLASSES, **{**sizes, **choices})


def _model(*, spread: float = 5.0, **choices: Any) -> DocumentClassifier:
    """A model in float64 whose weights are large enough for sparse attention and output."""
    torch.manual_seed(1)
    model = DocumentClassifier(_config(**choices)).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(spread)
    return model


@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("name", ATTENTION_MAPS)
def test_weights_are_a_distribution_over_the_words_alone(name: str, encoder: str):
    model, batch = _model(attention_map=name, encoder=encoder), _batch()
    scores, (weights, _) = model(*batch.inputs)
    assert scores.shape == (6, CLASSES)
    tokens = batch.inputs[0]
    assert weights.shape == tokens.shape
    assert weights[tokens == 0].abs().max() == 0
    if name == "logistic":
        assert (weights[tokens != 0] > 0).all()
        return
    total = 2.0 if name == "budget" else 1.0
    torch.testing.assert_close(weights.sum(1), torch.full_like(scores[:, 0], total))


@pytest.mark.parametrize("kernel_size", [1, 3])
@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("name", ATTENTION_MAPS)
def test_padding_changes_nothing(name: str, encoder: str, kernel_size: int):
    model = _model(attention_map=name, encoder=encoder, kernel_size=kernel_size)
    batch = _batch()
    model.load_embeddings(torch.randn_like(model.embedding.weight))  # that of padding stays zero
    scores, (weights, _) = model(*batch.inputs)
    tokens, lengths = batch.inputs
    for row, length in enumerate(lengths.tolist()):
        alone, (its_weights, _) = model(tokens[row : row + 1, :length], lengths[row : row + 1])
        torch.testing.assert_close(scores[row : row + 1], alone)
        torch.testing.assert_close(weights[row : row + 1, :length], its_weights)


def test_the_lstm_encoder_is_a_packed_bidirectional_lstm():
    encoder, batch = _model(encoder="lstm").encoder, _batch()
    whole = torch.nn.LSTM(8, 6, batch_first=True, bidirectional=True).double()
    whole.load_state_dict(
        {
            name + way: value
            for way, part in (("", encoder.onwards), ("_reverse", encoder.backwards))
            for name, value in part.state_dict().items()
        }
    )
    tokens, lengths = batch.inputs
    words = torch.randn(*tokens.shape, 8, dtype=torch.float64)
    packed = pack_padded_sequence(words, lengths, batch_first=True, enforce_sorted=False)
    expected, _ = pad_packed_sequence(whole(packed)[0], batch_first=True)
    valid = tokens != 0
    torch.testing.assert_close(encoder(words, lengths)[valid], expected[valid])


CONTINUOUS = [kind for kind in ATTENTIONS if kind != "discrete"]


@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0])
@pytest.mark.parametrize("kind", CONTINUOUS)
def test_continuous_attention_does_not_see_padding_either(kind: str, alpha: float):
    model = _model(attention=kind, continuous_alpha=alpha, attention_bases=6, spread=2.0).eval()
    batch = _batch()
    scores, (weights, density) = model(*batch.inputs)
    tokens, lengths = batch.inputs
    assert weights[tokens == 0].abs().max() == 0
    for row, length in enumerate(lengths.tolist()):
        alone, (its_weights, its_density) = model(
            tokens[row : row + 1, :length], lengths[row : row + 1]
        )
        torch.testing.assert_close(scores[row : row + 1], alone)
        torch.testing.assert_close(weights[row : row + 1, :length], its_weights)
        torch.testing.assert_close(density.loc[row : row + 1], its_density.loc)


@pytest.mark.parametrize("alpha", [1.0, 2.0])
def test_the_moments_are_those_of_the_discrete_weights(alpha: float):
    model = _model(attention="combined", continuous_alpha=alpha, attention_map="softmax").eval()
    _, (weights, density) = model(*_batch().inputs)
    lengths = _batch().inputs[1]
    places = (torch.arange(9) + 0.5) / lengths[:, None]
    mean = (weights * places).sum(1)
    variance = (weights * (places - mean[:, None]) ** 2).sum(1) + 1 / (12 * lengths**2)
    torch.testing.assert_close(density.loc.squeeze(1), mean)
    torch.testing.assert_close(density.variance.squeeze(1), variance)


def test_the_combined_context_is_the_sum_of_both():
    choices: dict[str, Any] = {"attention_map": "softmax", "attention_bases": 6}
    models = {
        kind: _model(attention=kind, **choices) for kind in ("discrete", "moments", "combined")
    }
    weights = models["discrete"].state_dict()
    for kind, model in models.items():
        part = (
            model.attention if kind == "discrete" else model.attention.parameters_of.attentions[0]
        )
        own = {k.removeprefix("attention."): v for k, v in weights.items() if "attention." in k}
        part.load_state_dict(own)
        model.load_state_dict(
            {k: v for k, v in weights.items() if "attention." not in k}, strict=False
        )
        torch.nn.init.zeros_(model.output.bias)
    discrete, moments, combined = (model(*_batch().inputs)[0] for model in models.values())
    torch.testing.assert_close(discrete + moments, combined)


def test_a_pooled_density_starts_within_the_text():
    torch.manual_seed(0)
    model = DocumentClassifier(_config(attention="pooled", attention_bases=64, ridge_penalty=0.01))
    _, (_, density) = model(*_batch().inputs)
    assert ((density.variance - 1 / 12).abs() < 0.02).all()
    assert ((density.loc - 0.5).abs() < 0.3).all()


def test_a_density_has_mass_on_its_words_alone():
    density = Mixture(torch.ones(1, 1), torch.tensor([[0.5]]), torch.tensor([[5e-4]]))
    lengths = torch.tensor([5])
    masses = density_heights(density, lengths, 5, alpha=2.0).mean(-1) / 5
    assert masses[0, [0, 1, 3, 4]].tolist() == [0, 0, 0, 0]
    assert masses[0, 2].item() == pytest.approx(1, abs=0.02)
    assert (density_heights(density, lengths, 5, alpha=1.0) > 0).all()


@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0])
def test_the_loss_is_that_of_the_library(alpha: float):
    model, batch = _model(output_alpha=alpha), _batch()
    scores, (weights, _) = model(*batch.inputs)
    means = model.loss(batch)
    assert set(means) == {"loss", "accuracy", "attention_support", "attention_share"}
    assert means["attention_share"].count == batch.inputs[1].sum()
    del means["attention_share"]
    assert all(mean.count == 6 and mean.total.ndim == 0 for mean in means.values())
    torch.testing.assert_close(
        means["loss"].total / means["loss"].count, entmax_loss(scores, batch.labels, alpha)
    )
    assert means["accuracy"].total == (scores.argmax(-1) == batch.labels).sum()
    assert means["attention_support"].total == (weights != 0).sum()
    assert means["loss"].total.requires_grad
    assert not any(means[name].total.requires_grad for name in ("accuracy", "attention_support"))


def test_a_training_step_needs_the_loss_alone():
    assert set(_model().loss(_batch(), describe=False)) == {"loss"}


STEPS = [{"attention_map": name, "encoder": kind} for name in ATTENTION_MAPS for kind in ENCODERS]
STEPS += [{"attention": kind, "attention_map": "softmax"} for kind in CONTINUOUS]


@pytest.mark.parametrize("choices", STEPS, ids=str)
def test_a_step_looks_at_no_number(choices: dict[str, Any]):
    model = DocumentClassifier(_config(**choices)).to("meta")
    inputs, labels = _batch()
    batch = TextBatch(tuple(part.to("meta") for part in inputs), labels.to("meta"))
    with NoWaiting():
        total, count = model.loss(batch, describe=False)["loss"]
        (total / count).backward()


@pytest.mark.parametrize("alpha", [1.0, 2.0])
def test_predictions_are_probabilities_with_the_zeros_of_the_loss(alpha: float):
    model, batch = _model(output_alpha=alpha, spread=9.0), _batch()
    scores, (weights, _) = model(*batch.inputs)
    probabilities, (attended, _) = model.predict(*batch.inputs)
    torch.testing.assert_close(probabilities, entmax(scores, alpha))
    torch.testing.assert_close(attended, weights)
    assert not probabilities.requires_grad
    assert bool((probabilities == 0).any()) == (alpha == 2.0)


@pytest.mark.parametrize("name", ["entmax", "normmax"])
def test_a_learned_alpha_is_learned(name: str):
    model = _model(attention_map=name, attention_alpha="learned")
    model.loss(_batch())["loss"].total.backward()
    assert model.attention.map.exponent.logit.grad.abs() > 0


def test_embeddings_can_be_loaded_and_frozen():
    given = torch.randn(VOCABULARY, 8, dtype=torch.float64)
    for frozen in (False, True):
        model = _model(freeze_embeddings=frozen)
        model.load_embeddings(given)
        assert torch.equal(model.embedding.weight[1:], given[1:])
        assert model.embedding.weight[0].abs().max() == 0
        model.loss(_batch())["loss"].total.backward()
        assert (model.embedding.weight.grad is None) == frozen
    with pytest.raises(FenchelError, match=r"embeddings must have shape \(30, 8\), got \(30, 7\)"):
        model.load_embeddings(given[:, :7])


@pytest.mark.parametrize("encoder", ENCODERS)
def test_dropout_is_for_training(encoder: str):
    model, batch = _model(encoder=encoder, dropout=0.5), _batch()
    noisy = [model(*batch.inputs)[0] for _ in range(2)]
    assert not torch.allclose(*noisy)
    model.eval()
    assert torch.equal(*(model(*batch.inputs)[0] for _ in range(2)))


@pytest.mark.parametrize("encoder", ENCODERS)
def test_it_learns_which_of_three_words_a_document_has(encoder: str):
    torch.manual_seed(0)
    tokens = torch.randint(8, VOCABULARY, (90, 12))
    labels = torch.arange(90) % CLASSES
    tokens[torch.arange(90), torch.randint(12, (90,))] = 4 + labels
    batch = TextBatch((tokens, torch.full((90,), 12)), labels)
    model = DocumentClassifier(_config(encoder=encoder, hidden_size=16))
    optimizer = torch.optim.Adam(model.parameters(), 0.02)
    for _ in range(60):
        optimizer.zero_grad()
        total, count = model.loss(batch, describe=False)["loss"]
        (total / count).backward()
        optimizer.step()
    means = model.loss(batch)
    assert means["accuracy"].total == 90
    probabilities, _ = model.predict(*batch.inputs)
    assert torch.equal(probabilities.argmax(-1), labels)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"classes": 0}, "classes must be a whole number of at least 1, got 0"),
        ({"kernel_size": 1.5}, "kernel_size must be a whole number of at least 1, got 1.5"),
        ({"kernel_size": 4}, "kernel_size must be odd, got 4"),
        ({"encoder": "rnn"}, "encoder must be one of.*'rnn'"),
        ({"dropout": 1.0}, r"dropout must be in \[0, 1\), got 1.0"),
        ({"dropout": "much"}, "dropout must be a number, got 'much'"),
        ({"output_alpha": 0.0}, "output_alpha must be above 0 and finite, got 0.0"),
        ({"attention_map": "hardmax"}, "attention_map must be one of.*'hardmax'"),
        ({"attention_alpha": -1}, "attention_alpha must be above 0 and finite, got -1"),
        ({"attention_alpha": "fast"}, "attention_alpha must be a number or 'learned', got 'fast'"),
        (
            {"attention_map": "normmax", "attention_alpha": 1},
            "attention_alpha must be above 1 and finite, got 1",
        ),
        (
            {"attention_map": "softmax", "attention_alpha": "learned"},
            "attention_alpha must be a number for softmax, got 'learned'",
        ),
        (
            {"attention_map": "fusedmax", "attention_strength": -0.1},
            "attention_strength must be at least 0 and finite, got -0.1",
        ),
        ({"attention": "both"}, "attention must be one of.*'both'"),
        ({"attention_bases": 33}, "attention_bases must be even, got 33"),
        ({"continuous_alpha": 2.5}, "continuous_alpha must be from 1 to 2, got 2.5"),
        ({"ridge_penalty": 0}, "ridge_penalty must be above 0 and finite, got 0"),
        (
            {"attention": "combined", "attention_map": "logistic"},
            "attention combined requires weights that sum to one",
        ),
        ({"attention_strength": 0.1}, "attention_strength cannot be combined with entmax, got 0.1"),
    ],
)
def test_a_bad_setting_is_refused(choices: dict[str, Any], message: str):
    with pytest.raises(FenchelError, match=message):
        DocumentClassifierConfig(**{"vocabulary_size": VOCABULARY, "classes": CLASSES, **choices})


def test_the_settings_of_a_map_reach_it():
    for name, expected in [("entmax", Entmax(1.2)), ("normmax", Normmax(1.2))]:
        assert repr(attention_map(name, 1.2)) == repr(expected)
    for name, expected in [("fusedmax", Fusedmax(1.2)), ("pnormmax", Pnormmax(1.2))]:
        assert repr(attention_map(name, strength=1.2)) == repr(expected)
        assert repr(attention_map(name)) == repr(type(expected)())
