"""The table of heads becomes the data of the interactive view."""

from __future__ import annotations

import torch

from fenchel.analysis import Sentences, Tokens, heads
from fenchel.analysis.report_heads import model_heads
from fenchel.report import HeadsView
from fenchel.report.heads_rendering import heads_data
from tests.analysis.given import Given, GivenPair, random_weights

SHAPES = {"encoder": (4, 4), "decoder": (3, 3), "context": (3, 4)}


def test_an_encoder_decoder():
    inputs = tuple(random_weights(1, 2, *shape) for shape in SHAPES.values())
    tokens = {"source": [list("abcd")], "target": [list("xyz")]}
    table = heads(GivenPair(2), [Sentences(inputs, **tokens)], examples=1)
    log = {
        "loss": [(1, 2.0)],
        "alpha.encoder.0.1": [(1, 1.5), (2, 1.25)],
        "alpha.other": [(1, 1.5)],
    }
    found = model_heads("ours", table, log)
    assert [entry.key for entry in found.heads] == [
        (kind, 0, head) for kind in ("encoder", "context", "decoder") for head in (0, 1)
    ]
    (sentence,) = found.sentences
    assert (sentence.source, sentence.target) == (list("abcd"), list("xyz"))
    assert sentence.weights["context", 0, 1] == table.examples[0].rows("context", 0, 1)
    assert found.trajectories.x == [1, 2]
    assert found.trajectories.alpha == {("encoder", 0, 1): [1.5, 1.25]}
    assert found.heads[0].roles["previous token"] == table.records()[0]["previous_token"]
    assert heads_data(HeadsView([found]))["models"][0]["name"] == "ours"


def test_a_single_sequence_is_an_encoder_unless_it_is_causal():
    weights, future = random_weights(1, 2, 3, 3), torch.ones(3, 3, dtype=torch.bool).triu(1)
    for mask, kind, side in ((None, "encoder", "source"), (future, "decoder", "target")):
        for tokens in (Tokens([["a", "b", "c"]]), None):
            batch = Sentences((weights, None, mask), tokens)
            found = model_heads("ours", heads(Given(2), [batch], examples=1))
            assert {entry.kind for entry in found.heads} == {kind}
            strings = ["a", "b", "c"] if tokens else ["0", "1", "2"]
            assert list(getattr(found.sentences[0], side)) == strings
            assert found.trajectories is None
