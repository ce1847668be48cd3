"""Autocompletion lists the candidates of the model at each step of a sequence."""

from __future__ import annotations

import pytest
import torch

import fenchel
from fenchel.search import PrefixStepper, autocomplete, beam_search
from tests.search.models import EOS, RandomModel, RecurrentStepper


def test_steps_are_the_distributions_of_the_model():
    models = [RandomModel(seed, size=8, support=6, depth=2 + seed % 4) for seed in range(6)]
    stepper = PrefixStepper(models)
    sequences = [answer.best.tokens for answer in beam_search(stepper, max_length=6)]
    assert len({len(sequence) for sequence in sequences}) > 1
    for completion, sequence, model in zip(
        autocomplete(stepper, sequences, candidates=3), sequences, models, strict=True
    ):
        assert [step.token for step in completion.steps] == [*sequence, EOS]
        for length, step in enumerate(completion.steps):
            probabilities = model(sequence[:length])
            assert step.probability == pytest.approx(float(probabilities[step.token]))
            assert step.support == int((probabilities > 0).sum())
            best = sorted(
                ((p, -t) for t, p in enumerate(probabilities.tolist()) if p), reverse=True
            )
            assert step.candidates == tuple((-t, pytest.approx(p)) for p, t in best[:3])
            assert step.certain == (step.probability == 1)


def test_states_are_passed_along_the_sequences():
    stepper = RecurrentStepper(torch.randn(3, 4, dtype=torch.float64))
    sequences = [(3, 4, 5), (), (7,)]
    for row, completion in enumerate(autocomplete(stepper, sequences)):
        model = stepper.of_prefix(row)
        for length, step in enumerate(completion.steps):
            expected = model(sequences[row][:length])[step.token]
            assert step.probability == pytest.approx(float(expected))


def test_consecutive_certain_steps_form_one_span():
    path = (3, 4, 5, 6)
    forks = {1: [0, 0, 0, 0, 0.5, 0.5, 0], 4: [0, 0, 0.25, 0, 0.25, 0.25, 0.25]}

    def model(prefix):
        ahead = [*path, EOS][len(prefix)]
        return torch.tensor(forks.get(len(prefix), torch.eye(7)[ahead].tolist()))

    (completion,) = autocomplete(PrefixStepper([model]), [path], candidates=2)
    spans = [[step.token for step in span] for span in completion.spans()]
    assert spans == [[3], [4], [5, 6], [EOS]]
    assert completion.text("···abcd").splitlines() == [
        "→ a",
        "? [b] 50.0 %   c 50.0 %",
        "→ c d",
        "? [■] 25.0 %   b 25.0 %   and 2 more",
    ]
    assert "and 2 more   [c] 25.0 %" in autocomplete(
        PrefixStepper([lambda prefix: torch.tensor(forks[4])]), [(5,)], candidates=2
    )[0].text("···abcd")


def test_a_token_of_probability_zero_is_not_certain():
    (completion,) = autocomplete(PrefixStepper([lambda prefix: torch.eye(5)[3]]), [(4,)])
    assert [step.certain for step in completion.steps] == [False, False]
    assert completion.text("··.ab").splitlines()[0] == "? a 100 %   [b] 0 %"


def test_one_sequence_per_sentence_is_required():
    with pytest.raises(fenchel.FenchelError, match=r"one sequence per sentence \(1\), got 2"):
        autocomplete(PrefixStepper([RandomModel(0)]), [(3,), (4,)])
