"""Metrics of answers, compared with values computed by hand."""

from __future__ import annotations

from unicodedata import normalize

import pytest

from fenchel import FenchelError
from fenchel.search import Answer, Hypothesis
from fenchel.tasks.sequences import evaluate_answers
from fenchel.tasks.sequences.codec import Codec
from fenchel.tasks.sequences.example import Example
from fenchel.tasks.sequences.metrics import bleu, rouge

EXAMPLES = [
    Example("a", "ab", group="one"),
    Example("b", "ba", group="one"),
    Example("c", "cc", group="two"),
]
CODEC = Codec.fit(EXAMPLES)


def _answer(
    text: str, *, probability: float = 1.0, dropped: float = 0.0, others: int = 0
) -> Answer:
    tokens = tuple(CODEC.target_vocabulary.ids(text))
    best = Hypothesis(tokens, probability, -0.1, finished=True)
    return Answer((best, *[Hypothesis((4,), 0.01, -4.6, finished=True)] * others), dropped)


def test_accuracy_is_averaged_over_groups():
    answers = [_answer("ab"), _answer("ab"), _answer("cc")]
    metrics = evaluate_answers(answers, EXAMPLES, CODEC)
    assert metrics.groups == {"one": 50.0, "two": 100.0}
    assert metrics.main == 75.0
    assert metrics.state()["accuracy"] == 75.0


@pytest.mark.parametrize("metric", ["accuracy", "bleu", "rouge_l"])
def test_a_target_is_compared_in_the_normal_form_of_the_codec(metric):
    given = [Example("a", normalize("NFD", "más canción según él"))]
    codec = Codec.fit(given, normalization="NFC")
    tokens = tuple(codec.target_vocabulary.ids(normalize("NFC", given[0].target or "")))
    answer = Answer((Hypothesis(tokens, 1.0, -0.1, finished=True),), 0.0)
    assert evaluate_answers([answer], given, codec, metric).main == pytest.approx(100)


def test_shares_follow_the_certificates():
    answers = [
        _answer("ab"),  # one sequence has all the probability
        _answer("ab", probability=0.9, others=2),  # all of three sequences are known
        _answer("cc", probability=0.5, dropped=0.3),  # something was dropped, nothing better
    ]
    metrics = evaluate_answers(answers, EXAMPLES, CODEC)
    assert metrics.single == pytest.approx(100 / 3)
    assert metrics.complete == pytest.approx(200 / 3)
    assert metrics.certified == 100


def test_bleu_has_a_signature():
    texts = ["the cat sat on the mat today", "a dog ran away from the house"]
    values, signature = bleu(texts, texts)
    assert values["bleu"] == pytest.approx(100)
    assert values["chrf"] == pytest.approx(100)
    assert "tok:13a" in signature
    assert bleu(["nothing in common at all"] * 2, texts)[0]["bleu"] < 5


@pytest.mark.parametrize(
    ("prediction", "reference", "expected"),
    [
        ("the cat", "the cat", (100, 100, 100)),
        ("The CAT!", "the, cat", (100, 100, 100)),
        ("cat the", "the cat", (100, 0, 50)),
        ("", "the cat", (0, 0, 0)),
        ("a b c d", "a x c d e", (200 / 3, 200 / 7, 200 / 3)),
        ("the the the", "the cat", (40, 0, 40)),
    ],
)
def test_rouge_by_hand(prediction: str, reference: str, expected: tuple[float, ...]):
    found = rouge([prediction], [reference])
    assert tuple(found.values()) == pytest.approx(expected)


def test_rouge_is_a_mean_over_pairs():
    found = rouge(["a b", "x"], ["a b", "y"])
    assert found == {"rouge_1": 50.0, "rouge_2": 50.0, "rouge_l": 50.0}


def test_wrong_calls_are_refused():
    answers = [_answer("ab")]
    with pytest.raises(FenchelError, match=r"unknown metric 'blue'.*bleu"):
        evaluate_answers(answers, EXAMPLES[:1], CODEC, "blue")
    with pytest.raises(
        FenchelError, match="one answer per example and at least one, got 1 answers for 3"
    ):
        evaluate_answers(answers, EXAMPLES, CODEC)
    with pytest.raises(FenchelError, match="at least one, got 0 answers for 0 examples"):
        evaluate_answers([], [], CODEC)
    with pytest.raises(FenchelError, match="every example must have a target, got none for 'a'"):
        evaluate_answers(answers, [Example("a")], CODEC)
