"""Prediction: the order of the input, whatever the batches; one model or several."""

from __future__ import annotations

import pytest
import torch

from fenchel import FenchelError
from fenchel.data import Codec, Example
from fenchel.models import Seq2Seq, Seq2SeqConfig
from fenchel.search import Answer
from fenchel.training import predict

EXAMPLES = [Example("ab" * (1 + place % 4) + "c" * (place % 3), "cab") for place in range(11)]
CODEC = Codec.fit(EXAMPLES)


def _model(seed: int) -> Seq2Seq:
    torch.manual_seed(seed)
    sizes = len(CODEC.source_vocabulary), len(CODEC.target_vocabulary)
    model = Seq2Seq(Seq2SeqConfig(*sizes, embedding_size=6, hidden_size=8)).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(5)
    return model


def _figures(answers: list[Answer]) -> list[list[tuple[tuple[int, ...], float]]]:
    return [[(h.tokens, round(h.probability, 9)) for h in a.hypotheses] for a in answers]


def test_answers_come_in_the_order_of_the_examples_whatever_the_batch():
    model, done = _model(0), []
    together = predict(model, CODEC, EXAMPLES, max_length=6, batch_size=4, progress=done.append)
    alone = [predict(model, CODEC, [example], max_length=6)[0] for example in EXAMPLES]
    assert _figures(together) == _figures(alone)
    assert done == [4, 4, 3]


def test_targets_are_not_looked_at():
    model = _model(0)
    bare = [Example(example.source) for example in EXAMPLES]
    told = predict(model, CODEC, EXAMPLES, max_length=6)
    assert _figures(told) == _figures(predict(model, CODEC, bare, max_length=6))


def test_several_models_are_averaged():
    models = [_model(0), _model(1)]
    one, other, both = (
        predict(chosen, CODEC, EXAMPLES, max_length=6) for chosen in (*models, models)
    )
    assert _figures(both) not in (_figures(one), _figures(other))
    twice = predict([models[0], models[0]], CODEC, EXAMPLES, max_length=6)
    assert _figures(twice) == _figures(one)


def test_nothing_in_nothing_out():
    assert predict(_model(0), CODEC, []) == []


def test_a_model_without_its_codec_is_refused():
    with pytest.raises(FenchelError, match="used with its codec"):
        predict(_model(0), None, EXAMPLES)
    other = Codec.fit([Example("abcdefghij", "xyz")])
    with pytest.raises(FenchelError, match=r"expected vocabularies of 7 and 7, got 14 and 7"):
        predict(_model(0), other, EXAMPLES)
