"""The language model predicts every token from those before it, in training and generation."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn

from fenchel import FenchelError, entmax
from fenchel.data.vocabulary import BOS, PAD
from fenchel.models import LanguageModel, LanguageModelConfig
from fenchel.models.means import read_means, stack_means
from fenchel.models.next_token import tokens_before
from fenchel.search import beam_search, sample
from tests.models.transformer.small import SIZES

WORDS = 15


class Texts(NamedTuple):
    tokens: Tensor
    lengths: Tensor


def random_texts(size: int = 4, length: int = 7, seed: int = 0) -> Texts:
    draw = torch.Generator().manual_seed(seed)
    lengths = torch.randint(2, length + 1, (size,), generator=draw)
    lengths[0] = length
    tokens = torch.randint(4, WORDS, (size, length), generator=draw)
    return Texts(tokens.masked_fill(torch.arange(length) >= lengths[:, None], PAD), lengths)


def small_model(**choices: Any) -> LanguageModel:
    torch.manual_seed(1)
    config = LanguageModelConfig(**{"vocabulary_size": WORDS, **SIZES, **choices})
    model = LanguageModel(config).double()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(2)
    return model


def test_softmax_with_the_weights_of_pytorch_is_pytorchs_encoder_with_a_causal_mask():
    ours = small_model(attention_map="softmax").float()
    layer = nn.TransformerEncoderLayer(8, 2, 12, dropout=0.0, batch_first=True, norm_first=True)
    theirs = nn.TransformerEncoder(layer, 2, nn.LayerNorm(8), enable_nested_tensor=False)
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.normal_(std=0.3)
    ours.decoder.load_state_dict(theirs.state_dict())
    texts = random_texts()
    x = ours.embedding(tokens_before(texts.tokens))
    mask = nn.Transformer.generate_square_subsequent_mask(7)
    hidden, _ = ours.hidden(texts.tokens)
    torch.testing.assert_close(hidden, theirs(x, mask=mask, is_causal=True), atol=1e-5, rtol=0)


def test_a_token_depends_on_those_before_it_only():
    model, texts = small_model().eval(), random_texts()
    scores, weights = model(*texts)
    changed = texts.tokens.clone()
    changed[:, 3] = 4 + (changed[:, 3] + 1) % 11
    other, _ = model(changed, texts.lengths)
    assert torch.equal(scores[:, :4], other[:, :4])
    assert not torch.equal(scores[0, 4], other[0, 4])
    assert (weights.triu(1) == 0).all()
    torch.testing.assert_close(weights.sum(-1), torch.ones(4, 7).double())


def test_padding_changes_nothing():
    model, texts = small_model(output_alpha=1.5).eval(), random_texts()
    alone = torch.zeros_like(together := stack_means(model.loss(texts)))
    for tokens, length in zip(*texts, strict=True):
        alone += stack_means(model.loss(Texts(tokens[None, :length], length[None])))
    torch.testing.assert_close(together, alone)


def test_the_loss_is_the_logarithm_of_the_perplexity():
    model, texts = small_model().eval(), random_texts()
    found = model.loss(texts)
    assert list(found) == [
        "loss",
        "accuracy",
        "exact",
        "output_support",
        "attention_support",
    ]
    means = read_means(list(found), stack_means(found))
    probabilities = model(*texts)[0].softmax(-1).gather(2, texts.tokens.unsqueeze(2)).squeeze(2)
    logarithms = probabilities.log()[texts.tokens != PAD]
    assert math.exp(means["loss"]) == pytest.approx(logarithms.mean().neg().exp().item())
    seen = model.attend(*texts)
    support = seen.attention_support[seen.valid].double().mean()
    assert means["attention_support"] == pytest.approx(support.item())


@pytest.mark.parametrize("alpha", [1.5, "learned"])
def test_every_parameter_has_a_gradient(alpha: float | str):
    model = small_model(attention_alpha=alpha, share_embeddings=False)
    model.loss(random_texts(), describe=False)["loss"].total.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert (parameter.grad != 0).any(), name


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("attention", [{"attention_map": "softmax"}, {}], ids=str)
def test_continuations_of_texts_are_those_of_teacher_forcing(attention: dict[str, Any], norm: str):
    model = small_model(norm=norm, **attention).eval()
    texts, following = random_texts(), random_texts(length=5, seed=3).tokens[:, :4]
    following = following.clamp(min=4)
    stepper = model.stepper(*texts)
    state, tokens = stepper.start(2), torch.full((4, 2), BOS)
    for step in range(4):
        probabilities, state = stepper(tokens, state)
        tokens = following[:, step : step + 1].expand(-1, 2)
        for row, length in enumerate(texts.lengths.tolist()):
            whole = torch.cat([texts.tokens[row, :length], following[row]])[None]
            scores, weights = model(whole, torch.tensor([whole.shape[1]]))
            expected = entmax(scores[0, length + step], 1.0)
            torch.testing.assert_close(probabilities[row], expected.expand(2, -1))
            assert stepper.attention is not None
            own = weights[0, length + step, : length + step + 1]
            torch.testing.assert_close(stepper.attention[row, 1, -len(own) :], own)
            assert (stepper.attention[row, :, : -len(own)] == 0).all()


def test_an_empty_text_is_continued_from_the_beginning():
    model = small_model().eval()
    nothing = Texts(torch.zeros(2, 0, dtype=torch.int64), torch.zeros(2, dtype=torch.int64))
    stepper = model.stepper(*nothing)
    probabilities, state = stepper(torch.full((2, 1), BOS), stepper.start(1))
    following, _ = stepper(torch.full((2, 1), 6), state)
    scores, _ = model(torch.tensor([[6, 5]]), torch.tensor([2]))
    expected = scores.softmax(-1)
    torch.testing.assert_close(probabilities, expected[:, :1].expand(2, -1, -1))
    torch.testing.assert_close(following, expected[:, 1:].expand(2, -1, -1))


def test_a_selected_stepper_continues_with_its_texts():
    model, texts, rows = small_model().eval(), random_texts(), torch.tensor([3, 1])
    stepper = model.stepper(*texts)
    probabilities, _ = stepper(torch.full((4, 1), BOS), stepper.start(1))
    chosen = stepper.select(rows)
    found, _ = chosen(torch.full((2, 1), BOS), chosen.start(1))
    torch.testing.assert_close(found, probabilities[rows])


def test_searches_and_samples_run():
    stepper = small_model(output_alpha=1.5).eval().stepper(*random_texts())
    assert len(beam_search(stepper, width=3, max_length=5)) == 4
    assert all(len(drawn) == 2 for drawn in sample(stepper, 2, max_length=5))


def test_wrong_texts_are_refused():
    model, texts = small_model(), random_texts(length=31)
    with pytest.raises(FenchelError, match="longer than max_positions = 30, got 31 tokens"):
        model.loss(texts)
    with pytest.raises(FenchelError, match="longer than max_positions = 30, got 31 tokens"):
        model.stepper(*texts)
    with pytest.raises(FenchelError, match="tokens must be integers"):
        model(texts.tokens.float(), texts.lengths)
    with pytest.raises(FenchelError, match="lengths must be between 0 and 4"):
        model.stepper(texts.tokens[:, :4], texts.lengths)
    with pytest.raises(FenchelError, match="vocabulary_size must be a whole number"):
        LanguageModelConfig(vocabulary_size=0)
