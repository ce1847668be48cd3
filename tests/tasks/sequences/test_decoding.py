"""Decoding keeps the order of the examples whatever the batches, with one model or several."""

from __future__ import annotations

import pytest
import torch

from fenchel import FenchelError
from fenchel.models import Seq2Seq, Seq2SeqConfig
from fenchel.search import Answer
from fenchel.tasks.sequences import Seq2SeqTask, decode
from fenchel.tasks.sequences.codec import Codec
from fenchel.tasks.sequences.decoding import search_batch, validation_batch
from fenchel.tasks.sequences.example import Example

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


def _rounded(answers: list[Answer]) -> list[list[tuple[tuple[int, ...], float]]]:
    return [[(h.tokens, round(h.probability, 9)) for h in a.hypotheses] for a in answers]


def test_answers_come_in_the_order_of_the_examples_whatever_the_batch():
    model, done = _model(0), []
    together = decode(model, CODEC, EXAMPLES, max_length=6, batch_size=4, progress=done.append)
    alone = [decode(model, CODEC, [example], max_length=6)[0] for example in EXAMPLES]
    assert _rounded(together) == _rounded(alone)
    assert done == [4, 4, 3]


def test_targets_are_ignored():
    model = _model(0)
    bare = [Example(example.source) for example in EXAMPLES]
    with_targets = decode(model, CODEC, EXAMPLES, max_length=6)
    assert _rounded(with_targets) == _rounded(decode(model, CODEC, bare, max_length=6))


def test_several_models_are_averaged():
    models = [_model(0), _model(1)]
    one, other, both = (
        decode(chosen, CODEC, EXAMPLES, max_length=6) for chosen in (*models, models)
    )
    assert _rounded(both) not in (_rounded(one), _rounded(other))
    twice = decode([models[0], models[0]], CODEC, EXAMPLES, max_length=6)
    assert _rounded(twice) == _rounded(one)


def test_no_examples_have_no_answers():
    assert decode(_model(0), CODEC, []) == []


def test_models_must_fit_the_codec():
    other = Codec.fit([Example("abcdefghij", "xyz")])
    message = r"must have equal vocabulary sizes, got \(7, 7\) and \(14, 7\)"
    for models in (_model(0), [_model(0), _model(1)]):
        with pytest.raises(FenchelError, match=message):
            decode(models, other, EXAMPLES)


def test_no_model_is_refused():
    with pytest.raises(FenchelError, match="models must not be empty"):
        decode([], CODEC, EXAMPLES)


def test_a_gpu_decodes_more_sentences_per_batch_while_their_scores_are_few():
    assert validation_batch("cpu", 777) == (256, None)
    assert validation_batch("cuda", 777) == (2048, 2**16)
    assert validation_batch("cuda", 32_000) == (2048, 2**27 // 32_000)
    assert [search_batch(device, 777, width=5) for device in ("cpu", "cuda")] == [256, 2048]
    assert search_batch("cuda", 10**9, width=5) == 1
    assert validation_batch("cuda", 10**9) == (2048, 1)


def test_validation_batches_of_the_task_depend_on_its_vocabulary():
    model = Seq2SeqConfig(4, 32_000)
    task = Seq2SeqTask(model=model)
    for device in ("cpu", "cuda"):
        assert task.validation_batch(device) == validation_batch(device, 32_000)
