"""Exact search is exact, and says when it gave up."""

from __future__ import annotations

import pytest
import torch

import fenchel
from fenchel.search import (
    Answer,
    Hypothesis,
    PrefixStepper,
    beam_search,
    exact_search,
    support,
)
from fenchel.search.frontier import Sentence
from tests.search.models import RandomModel, RecurrentStepper, all_sequences


def best_of(everything, count):
    return sorted(everything.values(), reverse=True)[:count]


@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("answers", [1, 4])
@pytest.mark.parametrize("max_length", [2, 6])
def test_it_finds_the_most_probable_sequences(width, answers, max_length):
    models = [RandomModel(seed, support=4) for seed in range(30)]
    found = exact_search(PrefixStepper(models), max_length=max_length, answers=answers, width=width)
    for answer, model in zip(found, models, strict=True):
        everything, cut = all_sequences(model, max_length)
        expected = best_of(everything, answers)
        if not expected:
            assert not answer.best.finished
            continue
        assert [h.probability for h in answer.hypotheses] == pytest.approx(expected)
        for hypothesis in answer.hypotheses:
            assert everything[hypothesis.tokens] == pytest.approx(hypothesis.probability)
        others = sorted(everything.values(), reverse=True)[answers:]
        assert max([cut, *others]) <= answer.dropped * (1 + 1e-12)
        if cut < expected[-1] and len(expected) == answers:
            assert answer.dropped <= answer.hypotheses[-1].probability
        assert answer.certified == (cut <= expected[0])


@pytest.mark.parametrize("width", [1, 8])
def test_the_support_is_everything_or_its_best_part(width):
    models = [RandomModel(seed, support=4, depth=5) for seed in range(30)]
    wholes = []
    for answer, model in zip(
        support(PrefixStepper(models), max_length=6, limit=25, width=width), models, strict=True
    ):
        everything, _ = all_sequences(model, 6)
        assert [h.probability for h in answer.hypotheses] == pytest.approx(best_of(everything, 25))
        assert answer.complete == (len(everything) <= 25)
        if answer.complete:
            assert {h.tokens for h in answer.hypotheses} == set(everything)
            assert sum(h.probability for h in answer.hypotheses) == pytest.approx(1, abs=1e-12)
        else:
            assert 0 < answer.dropped <= answer.hypotheses[-1].probability
        wholes.append(answer.complete)
    assert 3 < sum(wholes) < 27


@pytest.mark.parametrize("alpha", [1.0, 1.5])
def test_states_follow_their_prefixes_and_a_dense_model_is_searched_too(alpha):
    stepper = RecurrentStepper(torch.randn(5, 4, dtype=torch.float64), alpha=alpha, size=5)
    for row, answer in enumerate(exact_search(stepper, max_length=4, answers=3, width=2)):
        everything, cut = all_sequences(stepper.of_prefix(row), 4)
        assert [h.probability for h in answer.hypotheses] == pytest.approx(best_of(everything, 3))
        assert answer.certified == (cut <= answer.best.probability)


def test_it_is_at_least_as_good_as_a_beam_and_better_somewhere():
    models = [RandomModel(seed, support=5) for seed in range(60)]
    beams = beam_search(PrefixStepper(models), width=1, max_length=6)
    exact = exact_search(PrefixStepper(models), width=1, max_length=6)
    pairs = list(zip(beams, exact, strict=True))
    assert all(e.certified and e.best.probability >= b.best.probability for b, e in pairs)
    assert any(e.best.probability > b.best.probability for b, e in pairs)


def test_batched_is_one_by_one():
    models = [RandomModel(seed, support=4, levels=4) for seed in range(20)]
    together = exact_search(PrefixStepper(models), max_length=6, answers=3, width=2)
    for answer, model in zip(together, models, strict=True):
        (alone,) = exact_search(PrefixStepper([model]), max_length=6, answers=3, width=2)
        assert [h.probability for h in alone.hypotheses] == [
            h.probability for h in answer.hypotheses
        ]


def test_the_limit_of_nodes_is_kept_and_confessed():
    models = [RandomModel(seed, support=6, depth=6) for seed in range(12)]
    asked = []

    class Counting(PrefixStepper):
        def __call__(self, tokens, state):
            asked.append(tokens.numel())
            return super().__call__(tokens, state)

    found = exact_search(Counting(models[:1]), max_length=9, answers=500, width=4, nodes=20)
    assert sum(asked) <= 4 * 10 + 24
    assert not found[0].complete
    for answer, model in zip(
        exact_search(PrefixStepper(models), max_length=9, answers=5, width=1, nodes=3),
        models,
        strict=True,
    ):
        everything, _ = all_sequences(model, 9)
        shown = {h.tokens for h in answer.hypotheses}
        missing = max(p for y, p in everything.items() if y not in shown)
        assert missing <= answer.dropped * (1 + 1e-12)
        if answer.certified:
            assert answer.best.probability == pytest.approx(max(everything.values()))


def test_a_model_that_never_ends_is_cut():
    endless = torch.tensor([0, 0, 0, 0.75, 0.25])
    (answer,) = exact_search(PrefixStepper([lambda prefix: endless]), max_length=3, width=1)
    assert not answer.best.finished
    assert not answer.certified
    assert answer.dropped == pytest.approx(0.75**4)


@pytest.mark.parametrize("argument", ["nodes", "answers", "width"])
def test_sizes_must_be_positive(argument):
    with pytest.raises(fenchel.FenchelError, match=f"{argument} must be positive"):
        exact_search(PrefixStepper([RandomModel(0)]), max_length=3, **{argument: 0})


def test_what_waits_stays_within_the_limit_of_nodes():
    sentence = Sentence(Answer((Hypothesis((), 1e-9, -20.0, True),), 1.0), answers=2)
    assert sentence.pop(0, 1)[0].tokens == ()
    for token in range(30):
        sentence.push((token,), -1.0 - token, sentence.free_slot(1))
    sentence.keep(15)
    assert len(sentence.waiting[1]) == 30
    sentence.keep(10)
    assert sorted(prefix.tokens for prefix in sentence.waiting[1]) == [(t,) for t in range(10)]
    assert sentence.cut == -11.0
    assert sentence.free_slot(1) == 11
    assert [prefix.slot for prefix in sentence.pop(1, 2)] == [1, 2]
    assert sentence.free_slot(1) == 1
    sentence.keep(0)
    assert not sentence.waiting
    assert sentence.cut == -3.0
