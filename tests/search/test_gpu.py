"""On a GPU a search finds the same, and its steps never wait for the device."""

from __future__ import annotations

import pytest
import torch

from fenchel.search import autocomplete, beam_search, exact_search, sample
from fenchel.search.beam import Beam
from fenchel.search.candidates import Candidates
from fenchel.search.history import History
from fenchel.search.largest import largest
from fenchel.search.soundness import Soundness
from fenchel.search.stepper import reorder
from tests.implementations import needs_gpu, waiting_is_an_error
from tests.search.models import EOS, RecurrentStepper

pytestmark = list(needs_gpu)


def steppers(count=12):
    inputs = torch.randn(count, 5, dtype=torch.float64)
    return RecurrentStepper(inputs), RecurrentStepper(inputs.cuda())


@pytest.mark.parametrize("search", [beam_search, exact_search])
def test_it_finds_what_the_cpu_finds(search):
    for one, two in zip(*(search(stepper, max_length=12) for stepper in steppers()), strict=True):
        assert [h.tokens for h in one.hypotheses] == [h.tokens for h in two.hypotheses]
        assert one.dropped == pytest.approx(two.dropped)
        assert one.best.log_probability == pytest.approx(two.best.log_probability)


def test_batched_is_one_by_one():
    _, stepper = steppers()
    for row, answer in enumerate(beam_search(stepper, max_length=12)):
        (alone,) = beam_search(stepper.select(torch.tensor([row], device="cuda")), max_length=12)
        assert [h.tokens for h in alone.hypotheses] == [h.tokens for h in answer.hypotheses]


def test_equal_entries_are_chosen_in_the_same_way_for_any_number_of_rows():
    values = torch.randint(0, 4, (300, 20000), device="cuda").float()
    together = largest(values, 6)[1]
    assert torch.equal(together, torch.cat([largest(row, 6)[1] for row in values.split(1)]))
    assert torch.equal(together.cpu(), largest(values.cpu(), 6)[1])


def test_samples_and_completions_are_made_there():
    _, stepper = steppers(3)
    generator = torch.Generator("cuda").manual_seed(0)
    assert len(sample(stepper, 4, max_length=9, generator=generator)[2]) == 4
    assert len(autocomplete(stepper, [(3,), (), (4, 5)])[2].steps) == 3


@pytest.mark.parametrize("size", [12, 5000])
def test_a_step_never_waits_for_the_device(size):
    _, stepper = steppers()
    beam, history = Beam.start(stepper, 5, 5), History(stepper, 5, 9)
    state = stepper.start(5)
    probabilities = torch.rand(12, 5, size, device="cuda").square()
    sound = Soundness(stepper.device)
    with waiting_is_an_error():
        for length in range(3):
            candidates = Candidates.of(probabilities, EOS)
            sound.look(candidates.summaries, beam.scores == float("-inf"))
            beam, tokens, parents = beam.advance(candidates, EOS, length)
            history.append(beam.rows, tokens, parents)
            state = reorder(state, parents + beam.first_slots)
        beam.close(candidates, EOS, 3)
