"""Searches on a GPU: the same results as on a CPU, and steps without synchronization."""

from __future__ import annotations

import pytest
import torch

from fenchel.search import autocomplete, beam_search, exact_search, sample
from fenchel.search.beam import Backpointers, Beam
from fenchel.search.stepper import reorder
from fenchel.search.topk import Candidates, stable_topk
from fenchel.search.validate import ProbabilityCheck
from tests.implementations import needs_gpu, waiting_is_an_error
from tests.search.models import EOS, RecurrentStepper

pytestmark = list(needs_gpu)


def steppers(count=12):
    inputs = torch.randn(count, 5, dtype=torch.float64)
    return RecurrentStepper(inputs), RecurrentStepper(inputs.cuda())


@pytest.mark.parametrize("search", [beam_search, exact_search])
def test_gpu_and_cpu_results_agree(search):
    for one, two in zip(*(search(stepper, max_length=12) for stepper in steppers()), strict=True):
        assert [h.tokens for h in one.hypotheses] == [h.tokens for h in two.hypotheses]
        assert one.dropped == pytest.approx(two.dropped)
        assert one.best.log_probability == pytest.approx(two.best.log_probability)


def test_results_do_not_depend_on_the_batch():
    _, stepper = steppers()
    for row, answer in enumerate(beam_search(stepper, max_length=12)):
        (alone,) = beam_search(stepper.select(torch.tensor([row], device="cuda")), max_length=12)
        assert [h.tokens for h in alone.hypotheses] == [h.tokens for h in answer.hypotheses]


def test_topk_ties_do_not_depend_on_the_number_of_rows():
    values = torch.randint(0, 4, (300, 20000), device="cuda").float()
    together = stable_topk(values, 6)[1]
    assert torch.equal(together, torch.cat([stable_topk(row, 6)[1] for row in values.split(1)]))
    assert torch.equal(together.cpu(), stable_topk(values.cpu(), 6)[1])


def test_sampling_and_autocompletion_run():
    _, stepper = steppers(3)
    generator = torch.Generator("cuda").manual_seed(0)
    assert len(sample(stepper, 4, max_length=9, generator=generator)[2]) == 4
    assert len(autocomplete(stepper, [(3,), (), (4, 5)])[2].steps) == 3


@pytest.mark.parametrize("size", [12, 5000])
def test_a_step_never_synchronizes(size):
    _, stepper = steppers()
    beam, backpointers = Beam.start(stepper, 5, 5), Backpointers(stepper, 5, 9)
    state = stepper.start(5)
    probabilities = torch.rand(12, 5, size, device="cuda").square()
    check = ProbabilityCheck(stepper.device)
    with waiting_is_an_error():
        for length in range(3):
            candidates = Candidates.of(probabilities, EOS)
            check.add(candidates.statistics, unused=beam.scores == float("-inf"))
            beam, tokens, parents = beam.advance(candidates, EOS, length)
            backpointers.append(beam.rows, tokens, parents)
            state = reorder(state, parents + beam.first_slots)
        beam.close(candidates, EOS, 3)
