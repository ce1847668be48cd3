"""What is said of an answer is what the search has proven."""

from __future__ import annotations

import pytest

from fenchel.search import Answer, Hypothesis
from fenchel.tasks.search_options import PROOFS, proof
from fenchel.tasks.sequences.answers import as_json
from fenchel.tasks.sequences.codec import Codec
from fenchel.tasks.sequences.example import Example

CODEC = Codec.fit([Example("ab", "ab"), Example("ba", "ba")])


def answer(*texts: str, dropped: float = 0.0) -> Answer:
    share = (1 - dropped) / len(texts)
    ways = [CODEC.encode_target(Example("", text))[:-1] for text in texts]
    return Answer(tuple(Hypothesis(tuple(way), share, -1.0, True) for way in ways), dropped)


@pytest.mark.parametrize(
    ("found", "word"),
    [
        (answer("a"), "only"),
        (answer("a", "b"), "complete"),
        (answer("a", dropped=0.25), "best"),
        (answer("a", "b", dropped=0.5), "unproven"),
    ],
)
def test_a_proof_is_named(found, word):
    assert proof(found) == word
    assert word in PROOFS


def test_only_answers_as_probable_as_the_first_are_the_best():
    ways = (Hypothesis((4,), 0.5, -0.7, True), Hypothesis((5,), 0.3, -1.2, True))
    assert [proof(Answer(ways, 0.2), rank) for rank in (0, 1)] == ["best", "unproven"]
    assert [proof(Answer(ways, 0.0), rank) for rank in (0, 1)] == ["complete", "complete"]
    equals = (ways[0], Hypothesis((5,), 0.5, -0.7, True))
    assert proof(Answer(equals, 0.1), 1) == "best"


def test_json_has_the_input_all_answers_and_what_is_proven():
    assert as_json(Example("ac", "b", ("x",)), answer("a", "b"), CODEC) == {
        "source": "ac",
        "tags": ["x"],
        "target": "b",
        "answers": [{"text": text, "probability": 0.5, "finished": True} for text in ("a", "b")],
        "single": False,
        "complete": True,
        "certified": True,
        "dropped": 0.0,
        "unknown": ["<x>", "c"],
    }
