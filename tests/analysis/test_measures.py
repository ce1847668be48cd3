"""Measures of attention, against values computed by hand."""

from __future__ import annotations

import math

import pytest
import torch

from fenchel.analysis import measures
from fenchel.analysis.measures import entropy

# One sentence, two heads, three queries, three keys.
WEIGHTS = torch.tensor(
    [[[[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, 0.25, 0.75]],
      [[0.0, 1.0, 0.0], [0.0, 0.5, 0.5], [0.0, 0.25, 0.75]]]]
)  # fmt: skip
ALL = torch.ones(1, 1, 3, 3, dtype=torch.bool)
CAUSAL = ALL.tril()


def test_density_counts_visible_keys_only():
    found = measures.density(WEIGHTS, ALL)
    assert found.values[0, 0].tolist() == pytest.approx([1 / 3, 2 / 3, 2 / 3])
    assert found.values[0, 1].tolist() == pytest.approx([1 / 3, 2 / 3, 2 / 3])
    weights = torch.where(CAUSAL, WEIGHTS, 0)
    found = measures.density(weights, CAUSAL)
    assert found.values[0, 0].tolist() == pytest.approx([1, 1, 2 / 3])
    assert found.defined.all()
    nothing = measures.density(weights * 0, torch.zeros_like(ALL))
    assert not nothing.defined.any()


def test_uncertainty_is_entropy_in_units_of_its_maximum():
    quarter = -(0.25 * math.log(0.25) + 0.75 * math.log(0.75))
    found = measures.uncertainty(entropy(WEIGHTS), ALL)
    expected = [0, math.log(2) / math.log(3), quarter / math.log(3)]
    assert found.values[0, 0].tolist() == pytest.approx(expected, abs=1e-6)
    found = measures.uncertainty(entropy(torch.where(CAUSAL, WEIGHTS, 0)), CAUSAL)
    assert found.defined[0, 0].tolist() == [False, True, True]  # the first query sees one key
    assert found.values[0, 0, 1] == pytest.approx(1)
    torch.testing.assert_close(
        measures.uncertainty(entropy(ALL / 3), ALL).values, torch.ones(1, 1, 3)
    )


def test_diversity_is_the_divergence_of_the_heads():
    found = measures.diversity(WEIGHTS, entropy(WEIGHTS), ALL)
    # First query: each head has a key of its own, so the mean is uniform over two keys, H = log 2.
    # Second query: the mean is (1/4, 1/2, 1/4), H = 1.5 log 2, and both heads have H = log 2.
    # Third query: the heads are equal.
    expected = [math.log(2) / math.log(3), 0.5 * math.log(2) / math.log(3), 0]
    assert found.values[0, 0].tolist() == pytest.approx(expected, abs=1e-6)
    one_key_each = torch.eye(4).view(1, 4, 1, 4)
    seen = torch.ones(1, 1, 1, 4, dtype=torch.bool)
    assert measures.diversity(
        one_key_each, entropy(one_key_each), seen
    ).values.item() == pytest.approx(1)


def test_diversity_is_the_same_for_keys_that_nobody_sees():
    padded = torch.nn.functional.pad(WEIGHTS, (0, 2))
    visible = torch.nn.functional.pad(ALL, (0, 2))
    found = measures.diversity(padded, entropy(padded), visible)
    assert found.values.equal(measures.diversity(WEIGHTS, entropy(WEIGHTS), ALL).values)


@pytest.mark.parametrize(
    ("offset", "expected"), [(-1, [0.5, 0.25]), (0, [1.0, 0.5, 0.75]), (1, [0.0, 0.0])]
)
def test_weight_at_an_offset(offset, expected):
    found = measures.weight_at(offset, WEIGHTS, ALL)
    assert found.values[0, 0].tolist() == expected
    assert found.defined.all()


def test_a_query_that_cannot_see_the_offset_is_left_out():
    assert not measures.weight_at(1, WEIGHTS, CAUSAL).defined.any()
    assert measures.weight_at(-1, WEIGHTS, CAUSAL).defined.all()


def test_weight_at_an_offset_with_cached_keys():
    last = WEIGHTS[:, :, 2:]  # the last query alone
    assert (
        measures.weight_at(-1, last, ALL[:, :, 2:], start=2).values.flatten().tolist() == [0.25] * 2
    )
    assert (
        measures.weight_at(0, last, ALL[:, :, 2:], start=2).values.flatten().tolist() == [0.75] * 2
    )


def test_merging_takes_the_best_token_of_each_word():
    words = torch.tensor([[0, 0, 1]])
    scores, sizes = measures.merging(WEIGHTS, words, 2)
    # Word 0: its tokens put 0 and 0.5 (first head), 1 and 0 (second) on each other. Word 1: 0.75.
    assert scores.tolist() == [[[0.5, 0.75], [1.0, 0.75]]]
    assert sizes.tolist() == [[[2, 1]]]


def test_merging_of_three_tokens_sums_the_other_two():
    scores, sizes = measures.merging(WEIGHTS, torch.tensor([[0, 0, 0]]), 1)
    assert scores.flatten().tolist() == pytest.approx([0.5, 1.0])
    assert sizes.item() == 3


def test_special_tokens_are_in_no_word():
    scores, sizes = measures.merging(WEIGHTS, torch.tensor([[-1, 0, -1]]), 1)
    assert scores.flatten().tolist() == [0.5, 0.5]
    assert sizes.item() == 1
    within = measures.weight_on_word(WEIGHTS, torch.tensor([[-1, 0, 0]]))
    assert within.defined.flatten().tolist() == [False, True, True]
    assert within.values[0, 0, 1:].tolist() == [0.5, 1.0]


def test_weight_on_marked_keys():
    marks = torch.tensor([[False, True, False]])
    found = measures.weight_on(marks, WEIGHTS, CAUSAL)
    assert found.values[0, 1].tolist() == [1.0, 0.5, 0.25]
    assert found.defined.flatten().tolist() == [False, True, True]
