"""Beam search agrees with a plain implementation, and its certificates hold."""

from __future__ import annotations

import math

import pytest
import torch

import fenchel
from fenchel.search import (
    Answer,
    Hypothesis,
    PrefixStepper,
    autocomplete,
    beam_search,
    exact_search,
    sample,
)
from fenchel.search.topk import stable_topk
from tests.search.models import (
    EOS,
    RandomModel,
    RecurrentStepper,
    all_sequences,
    plain_beam_search,
)

SEEDS = range(40)


def compare(answer, model, width, answers, max_length):
    finished, prefixes, dropped = plain_beam_search(model, width, answers, max_length)
    expected = finished or prefixes
    assert [h.tokens for h in answer.hypotheses] == [y for y, _ in expected]
    assert [h.log_probability for h in answer.hypotheses] == pytest.approx([s for _, s in expected])
    assert all(h.finished == bool(finished) for h in answer.hypotheses)
    assert answer.dropped == pytest.approx(math.exp(dropped), rel=1e-12)


@pytest.mark.parametrize("width", [1, 2, 5])
@pytest.mark.parametrize("max_length", [1, 3, 8])
def test_results_agree_with_a_plain_beam_search(width, max_length):
    models = [RandomModel(seed) for seed in SEEDS]
    for answers in (1, width):
        found = beam_search(
            PrefixStepper(models), width=width, max_length=max_length, answers=answers
        )
        for answer, model in zip(found, models, strict=True):
            compare(answer, model, width, answers, max_length)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_ties_are_broken_by_prefix_then_by_token(dtype):
    models = [RandomModel(seed, levels=4, support=4, dtype=dtype) for seed in SEEDS]
    together = beam_search(PrefixStepper(models), width=3, max_length=6)
    for answer, model in zip(together, models, strict=True):
        compare(answer, model, 3, 3, 6)
        assert beam_search(PrefixStepper([model]), width=3, max_length=6) == [answer]


def test_certified_answers_are_optimal_and_complete_answers_are_exhaustive():
    certified = complete = uncertain = single = 0
    for max_length in (2, 6):
        models = [RandomModel(seed, support=1 + seed % 4) for seed in range(100)]
        for answer, model in zip(
            beam_search(PrefixStepper(models), width=4, max_length=max_length), models, strict=True
        ):
            everything, cut = all_sequences(model, max_length)
            missing = [
                p for y, p in everything.items() if y not in {h.tokens for h in answer.hypotheses}
            ]
            assert max([*missing, cut]) <= answer.dropped * (1 + 1e-12)
            if answer.certified:
                assert answer.best.probability == pytest.approx(max([*everything.values(), cut]))
            if answer.complete:
                assert {h.tokens for h in answer.hypotheses} == set(everything)
                total = sum(h.probability for h in answer.hypotheses)
                assert total == pytest.approx(1, abs=1e-12)
            else:
                assert len(everything) > 4 or cut > 0
            assert answer.single == (answer.complete and len(everything) == 1)
            certified += answer.certified
            complete += answer.complete
            single += answer.single
            uncertain += not answer.certified
    assert min(certified - complete, complete, single, uncertain) > 5


@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0])
@pytest.mark.parametrize("selects", [True, False])
def test_states_are_reordered_with_their_prefixes(alpha, selects):
    stepper = RecurrentStepper(torch.randn(9, 5, dtype=torch.float64), alpha=alpha)
    models = [stepper.of_prefix(row) for row in range(9)]
    if not selects:
        stepper.select = None
    answers = beam_search(stepper, width=4, max_length=12)
    for answer, model in zip(answers, models, strict=True):
        compare(answer, model, 4, 4, 12)
    assert any(len(h.tokens) > 3 for answer in answers for h in answer.hypotheses)


def test_finished_sentences_are_not_computed():
    depths = [1, 1, 2, 9, 9, 2, 1, 1]
    models = [RandomModel(seed, depth=depth) for seed, depth in enumerate(depths)]
    rows = []

    class Counting(PrefixStepper):
        def __call__(self, tokens, state):
            rows.append(len(tokens))
            return super().__call__(tokens, state)

        def select(self, chosen):
            return Counting([self._distributions[row] for row in chosen.tolist()])

    answers = beam_search(Counting(models), width=3, max_length=50)
    assert rows[0] == 8
    assert rows[-1] <= 2
    assert len(rows) <= 10
    for answer, model in zip(answers, models, strict=True):
        compare(answer, model, 3, 3, 50)


@pytest.mark.parametrize("max_length", [2, 7, 8])
def test_results_do_not_depend_on_the_interval_between_checks(max_length, monkeypatch):
    models = [RandomModel(seed, depth=1 + seed % 7) for seed in range(20)]
    often = beam_search(PrefixStepper(models), width=3, max_length=max_length)
    monkeypatch.setattr("fenchel.search.beam.steps_between_checks", lambda device: 3)
    assert beam_search(PrefixStepper(models), width=3, max_length=max_length) == often


@pytest.mark.parametrize("entries", [1, 100])
def test_results_do_not_depend_on_how_rows_are_split(entries, monkeypatch):
    models = [RandomModel(seed, levels=4, support=4) for seed in range(20)]
    at_once = beam_search(PrefixStepper(models), width=3, max_length=6)
    parts = []
    monkeypatch.setattr("fenchel.search.topk.CACHED_ENTRIES", entries)
    monkeypatch.setattr(
        "fenchel.search.topk.stable_topk", lambda *rows: parts.append(rows) or stable_topk(*rows)
    )
    assert beam_search(PrefixStepper(models), width=3, max_length=6) == at_once
    assert max(len(part) for part, _ in parts) == max(1, entries // (3 * models[0].size))


def test_prefixes_of_probability_zero_are_discarded():
    def certain(prefix):
        return torch.eye(5)[EOS if len(prefix) == 2 else 4]

    (answer,) = beam_search(PrefixStepper([certain]), width=10, max_length=5)
    assert answer == Answer((Hypothesis((4, 4), 1.0, 0.0, True),), 0.0)
    assert answer.single


def test_sequences_cut_at_the_length_limit_are_unfinished_and_bound_the_rest():
    def endless(prefix):
        return torch.tensor([0, 0, 0, 0.75, 0.25])

    (answer,) = beam_search(PrefixStepper([endless]), width=2, max_length=3)
    assert [h.tokens for h in answer.hypotheses] == [(3, 3, 3), (3, 3, 4)]
    assert not any(h.finished for h in answer.hypotheses)
    assert answer.dropped == pytest.approx(0.75**4)
    assert not answer.certified
    assert not answer.complete


def test_log_probabilities_of_long_sequences_do_not_underflow():
    tokens = (torch.arange(1000) != EOS) * 1e-3

    def long(prefix):
        return tokens if len(prefix) < 150 else torch.eye(1000)[EOS]

    (answer,) = beam_search(PrefixStepper([long]), width=1, max_length=200)
    assert answer.best.log_probability == pytest.approx(150 * math.log(1e-3))
    assert answer.best.probability == 0.0
    assert answer.dropped > 0
    assert not answer.certified
    assert not answer.complete


def test_inference_mode_changes_nothing():
    inputs = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)
    stepper = RecurrentStepper(inputs)
    plain = beam_search(stepper, max_length=10)
    with torch.inference_mode():
        assert beam_search(stepper, max_length=10) == plain


@pytest.mark.parametrize("argument", ["width", "max_length", "answers"])
def test_sizes_must_be_positive(argument):
    arguments = {"width": 2, "max_length": 3, argument: 0}
    with pytest.raises(fenchel.FenchelError, match=f"{argument} must be a positive integer, got 0"):
        beam_search(PrefixStepper([RandomModel(0)]), **arguments)


@pytest.mark.parametrize(
    "row", [[0.0] * 4, [math.nan] * 4, [0.5, 0.5, math.nan, 0], [3.0, 1, 2, 0]]
)
def test_invalid_distributions_are_rejected(row):
    with pytest.raises(fenchel.FenchelError, match="probabilities"):
        beam_search(PrefixStepper([lambda prefix: torch.tensor(row)]), max_length=3)


def test_states_without_leading_dimensions_are_rejected():
    class Wrong(PrefixStepper):
        def __call__(self, tokens, state):
            probabilities, state = super().__call__(tokens, state)
            return probabilities, state.flatten(0, 1)

    with pytest.raises(fenchel.FenchelError, match=r"\(sentences, prefixes\) = \(2, 3\)"):
        beam_search(Wrong([RandomModel(0), RandomModel(1)]), width=3, max_length=3)


def test_probabilities_of_the_wrong_shape_are_rejected():
    rows = torch.eye(5)
    for wrong in (lambda prefix: rows, lambda prefix: rows[0, :2]):
        with pytest.raises(fenchel.FenchelError, match=r"shape \(1, 3, V\) with V > 2"):
            beam_search(PrefixStepper([wrong]), width=3, max_length=3)


def test_an_empty_batch_has_no_answers():
    stepper = RecurrentStepper(torch.randn(0, 5))
    assert beam_search(stepper, max_length=3) == exact_search(stepper, max_length=3) == []
    assert sample(stepper, 2, max_length=3) == autocomplete(stepper, []) == []
