"""Samples follow the distribution of the model."""

from __future__ import annotations

from collections import Counter

import pytest
import torch

import fenchel
from fenchel.search import PrefixStepper, sample
from fenchel.search.sampling import draw
from tests.search.models import RandomModel, RecurrentStepper, all_sequences

COUNT = 4000


def test_frequencies_are_the_probabilities():
    models = [RandomModel(seed) for seed in range(4)]
    drawn = sample(
        PrefixStepper(models), COUNT, max_length=6, generator=torch.Generator().manual_seed(3)
    )
    for hypotheses, model in zip(drawn, models, strict=True):
        everything, _ = all_sequences(model, 6)
        counts = Counter(h.tokens for h in hypotheses)
        assert set(counts) <= set(everything)
        for sequence, p in everything.items():
            deviation = (p * (1 - p) / COUNT) ** 0.5
            assert abs(counts[sequence] / COUNT - p) <= 4.5 * deviation
        for hypothesis in hypotheses:
            assert hypothesis.finished
            assert hypothesis.probability == pytest.approx(everything[hypothesis.tokens])


def test_samples_are_reproducible_with_a_generator():
    stepper = RecurrentStepper(torch.randn(3, 4, dtype=torch.float64))
    one, two, three = (
        sample(stepper, 5, max_length=9, generator=torch.Generator().manual_seed(seed))
        for seed in (1, 1, 2)
    )
    assert one == two != three


def test_unfinished_samples_are_cut_at_the_length_limit():
    row = torch.tensor([0, 0, 0, 0.75, 0.25])
    (drawn,) = sample(PrefixStepper([lambda prefix: row]), 6, max_length=4)
    for hypothesis in drawn:
        assert len(hypothesis.tokens) == 4
        assert not hypothesis.finished
        expected = torch.tensor([row[token] for token in hypothesis.tokens]).prod()
        assert hypothesis.probability == pytest.approx(float(expected))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_a_token_of_probability_zero_is_never_drawn(dtype):
    sparse = fenchel.sparsemax(3 * torch.randn(2000, 50)).to(dtype)
    tokens, scores = draw(sparse, None)
    assert (sparse.gather(-1, tokens.unsqueeze(-1)) > 0).all()
    assert torch.isfinite(scores).all()


@pytest.mark.parametrize("uniform", [0.0, 1 - 2**-53])
def test_the_smallest_and_largest_uniform_numbers_draw_possible_tokens(uniform, monkeypatch):
    monkeypatch.setattr(
        torch, "rand", lambda shape, **_: torch.full(shape, uniform, dtype=torch.float64)
    )
    rows = torch.tensor([[0, 0.1, 0.2, 0.7, 0, 0], [0, 0, 1.0, 0, 0, 0]])
    assert draw(rows, None)[0].tolist() == ([1, 2] if uniform == 0 else [3, 2])


@pytest.mark.parametrize("row", [[0.0] * 4, [float("nan")] * 4])
def test_invalid_distributions_are_rejected(row):
    with pytest.raises(fenchel.FenchelError, match="probabilities"):
        sample(PrefixStepper([lambda prefix: torch.tensor(row)]), 2, max_length=3)


@pytest.mark.parametrize("argument", ["count", "max_length"])
def test_sizes_must_be_positive(argument):
    arguments = {"count": 2, "max_length": 3, argument: 0}
    with pytest.raises(fenchel.FenchelError, match=f"{argument} must be a positive integer"):
        sample(PrefixStepper([RandomModel(0)]), **arguments)
