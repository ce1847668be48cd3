"""An ensemble is the mean of its models."""

from __future__ import annotations

import pytest
import torch

import fenchel
from fenchel.search import Ensemble, PrefixStepper, beam_search, exact_search
from tests.search.models import RandomModel, RecurrentStepper


def mean_of(models):
    return lambda prefix: sum(model(prefix) for model in models) / len(models)


def test_probabilities_are_averaged():
    members = [[RandomModel(seed + 100 * m) for seed in range(6)] for m in range(3)]
    means = [mean_of(models) for models in zip(*members, strict=True)]
    ensemble = Ensemble([PrefixStepper(models) for models in members])
    for search in (beam_search, exact_search):
        for one, two in zip(
            search(ensemble, width=4, max_length=6),
            search(PrefixStepper(means), width=4, max_length=6),
            strict=True,
        ):
            assert [h.tokens for h in one.hypotheses] == [h.tokens for h in two.hypotheses]
            assert one.dropped == pytest.approx(two.dropped)
            assert one.best.probability == pytest.approx(two.best.probability)


def test_an_ensemble_of_one_model_with_itself_is_the_model():
    stepper = RecurrentStepper(torch.randn(4, 5, dtype=torch.float64))
    assert beam_search(Ensemble([stepper] * 2), max_length=8) == beam_search(stepper, max_length=8)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
def test_half_precision_is_averaged_in_float32(dtype):
    rows = [
        torch.tensor([0, 0, 1.0, 0, 0], dtype=dtype),
        torch.tensor([0, 0, 0, 1, 0.0], dtype=dtype),
    ]
    ensemble = Ensemble([PrefixStepper([lambda prefix, row=row: row]) for row in rows])
    probabilities, _ = ensemble(torch.ones(1, 2, dtype=torch.int64), ensemble.start(2))
    assert probabilities.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    assert probabilities.tolist() == [[[0, 0, 0.5, 0.5, 0]] * 2]


def test_sentences_can_be_selected_if_all_models_support_it():
    able = PrefixStepper([RandomModel(0), RandomModel(1)])
    unable = RecurrentStepper(torch.randn(2, 5))
    unable.select = None
    assert Ensemble([able, able]).select(torch.tensor([1])).batch_size == 1
    assert Ensemble([able, unable]).select is None


def test_incompatible_models_are_rejected():
    one, two = PrefixStepper([RandomModel(0)]), PrefixStepper([RandomModel(0), RandomModel(1)])
    with pytest.raises(
        fenchel.FenchelError, match=r"the same batch size, got batch sizes \[1, 2\]"
    ):
        Ensemble([one, two])
    with pytest.raises(fenchel.FenchelError, match="at least one stepper"):
        Ensemble([])
    with pytest.raises(fenchel.FenchelError, match="must share a vocabulary"):
        beam_search(Ensemble([one, PrefixStepper([RandomModel(0, size=7)])]), max_length=3)
