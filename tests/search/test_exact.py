"""Exact search finds the optimum, or says that it gave up."""

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
from fenchel.search.frontier import Frontier
from tests.search.models import RandomModel, RecurrentStepper, all_sequences


def best_of(everything, count):
    return sorted(everything.values(), reverse=True)[:count]


@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("answers", [1, 4])
@pytest.mark.parametrize("max_length", [2, 6])
def test_the_most_probable_sequences_are_found(width, answers, max_length):
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
def test_the_support_is_complete_or_its_most_probable_part(width):
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
def test_states_are_read_with_their_prefixes_in_sparse_and_dense_models(alpha):
    stepper = RecurrentStepper(torch.randn(5, 4, dtype=torch.float64), alpha=alpha, size=5)
    for row, answer in enumerate(exact_search(stepper, max_length=4, answers=3, width=2)):
        everything, cut = all_sequences(stepper.of_prefix(row), 4)
        assert [h.probability for h in answer.hypotheses] == pytest.approx(best_of(everything, 3))
        assert answer.certified == (cut <= answer.best.probability)


def test_results_are_never_worse_and_sometimes_better_than_a_beam():
    models = [RandomModel(seed, support=5) for seed in range(60)]
    beams = beam_search(PrefixStepper(models), width=1, max_length=6)
    exact = exact_search(PrefixStepper(models), width=1, max_length=6)
    pairs = list(zip(beams, exact, strict=True))
    assert all(e.certified and e.best.probability >= b.best.probability for b, e in pairs)
    assert any(e.best.probability > b.best.probability for b, e in pairs)


def test_results_do_not_depend_on_the_batch():
    models = [RandomModel(seed, support=4, levels=4) for seed in range(20)]
    together = exact_search(PrefixStepper(models), max_length=6, answers=3, width=2)
    for answer, model in zip(together, models, strict=True):
        (alone,) = exact_search(PrefixStepper([model]), max_length=6, answers=3, width=2)
        assert [h.probability for h in alone.hypotheses] == [
            h.probability for h in answer.hypotheses
        ]


def test_the_node_limit_is_respected_and_the_bound_stays_valid():
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


def test_a_model_that_never_ends_is_cut_at_the_length_limit():
    endless = torch.tensor([0, 0, 0, 0.75, 0.25])
    (answer,) = exact_search(PrefixStepper([lambda prefix: endless]), max_length=3, width=1)
    assert not answer.best.finished
    assert not answer.certified
    assert answer.dropped == pytest.approx(0.75**4)


@pytest.mark.parametrize("argument", ["nodes", "answers", "width"])
def test_sizes_must_be_positive(argument):
    with pytest.raises(fenchel.FenchelError, match=f"{argument} must be a positive integer"):
        exact_search(PrefixStepper([RandomModel(0)]), max_length=3, **{argument: 0})


def test_the_frontier_is_pruned_to_the_node_limit():
    frontier = Frontier(Answer((Hypothesis((), 1e-9, -20.0, True),), 1.0), answers=2)
    assert frontier.pop(0, 1)[0].tokens == ()
    for token in range(30):
        frontier.push((token,), -1.0 - token, frontier.free_slot(1))
    frontier.prune(15)
    assert len(frontier.prefixes[1]) == 30
    frontier.prune(10)
    assert sorted(prefix.tokens for prefix in frontier.prefixes[1]) == [(t,) for t in range(10)]
    assert frontier.cut == -11.0
    assert frontier.free_slot(1) == 11
    assert [prefix.slot for prefix in frontier.pop(1, 2)] == [1, 2]
    assert frontier.free_slot(1) == 1
    frontier.prune(0)
    assert not frontier.prefixes
    assert frontier.cut == -3.0
