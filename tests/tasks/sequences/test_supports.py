"""Supports and attention of a model are those of the model itself."""

from __future__ import annotations

import pytest
import torch

from fenchel.models.seq2seq import Seq2Seq, Seq2SeqConfig
from fenchel.tasks.sequences.codec import Codec
from fenchel.tasks.sequences.encoded import SequencePairs
from fenchel.tasks.sequences.example import Example
from fenchel.tasks.sequences.report import attention_weights
from fenchel.tasks.sequences.supports import supports

EXAMPLES = [
    Example("ab", "ba", ("V",)),
    Example("abc", "c", ("V", "PL")),
    Example("c", "abca", ("N",)),
]


def tiny(**choices) -> tuple[Seq2Seq, Codec]:
    codec = Codec.fit(EXAMPLES)
    sizes = {
        "source_size": len(codec.source_vocabulary),
        "target_size": len(codec.target_vocabulary),
    }
    config = Seq2SeqConfig(**sizes, embedding_size=8, hidden_size=8, layers=1, **choices)
    return Seq2Seq(config).eval(), codec


def test_means_by_position_are_those_of_single_sentences():
    model, codec = tiny(output_alpha=2.0)
    with torch.no_grad():
        model.output.bias.mul_(40)  # so that the output is sparse
    found = supports(model, codec, EXAMPLES, batch=2)
    singles = []
    for example in EXAMPLES:
        batch = SequencePairs.of([example], codec).batch([0])
        singles.append(model.attend(batch.source, batch.source_lengths, batch.target))
    longest = max(one.valid.shape[1] for one in singles)
    assert found.counts == [sum(one.valid.shape[1] > t for one in singles) for t in range(longest)]
    for t in range(longest):
        reached = [one for one in singles if one.valid.shape[1] > t]
        for name, values in (("attention", found.attention), ("output", found.output)):
            wanted = [getattr(one, f"{name}_support")[0, t].item() for one in reached]
            assert values[t] == pytest.approx(sum(wanted) / len(wanted)), name
    assert min(found.output) < len(codec.target_vocabulary)


def test_softmax_attends_to_everything():
    model, codec = tiny(attention_map="softmax", output_alpha=1.0)
    found = supports(model, codec, EXAMPLES)
    assert found.output == [len(codec.target_vocabulary)] * 5
    assert found.attention[0] == pytest.approx((3 + 5 + 2) / 3)


def test_attention_has_a_row_for_every_symbol_and_for_the_end():
    model, codec = tiny()
    tokens = codec.encode_target(EXAMPLES[0])[:-1]
    weights = attention_weights(model, codec, EXAMPLES[0], tokens)
    batch = SequencePairs.of([EXAMPLES[0]], codec).batch([0])
    own = model.attend(batch.source, batch.source_lengths, batch.target).attention
    assert torch.tensor(weights).shape == (3, 3)
    assert torch.tensor(weights).sum(-1).tolist() == pytest.approx([1.0] * 3)
    torch.testing.assert_close(torch.tensor(weights), own[0])


def test_means_over_few_examples_are_not_drawn():
    model, codec = tiny()
    many = [EXAMPLES[0]] * 6 + [EXAMPLES[2]]
    drawn = supports(model, codec, many).series("attention")
    assert [place for place, _ in drawn] == [1, 2, 3]
