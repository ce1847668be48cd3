"""Every search rejects invalid probabilities and invalid arguments."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch

from fenchel import FenchelError, search

NAN = float("nan")
GOOD = torch.tensor([0, 0, 0.5, 0.3, 0.2])
SEARCHES = {
    "beam": partial(search.beam_search, max_length=4),
    "exact": partial(search.exact_search, max_length=4),
    "support": partial(search.support, max_length=4),
    "sample": partial(search.sample, count=5, max_length=4),
    "autocomplete": partial(search.autocomplete, sequences=[(3, 4)]),
}
INVALID_ROWS = {
    "NaN": [0, 0, 0.5, NAN, 0.2],
    "NaN at the end": [0, 0, NAN, 0.3, 0.2],
    "scores": [-3, -2, 1, 2, 3],
    "a sum of 2": [0, 0, 0.5, 0.8, 0.7],
    "a negative entry": [0, 0, 0.5, -0.3, 0.8],
    "a slightly negative entry": [0, 0, 0.5, -0.01, 0.51],
    "an entry above 1": [0, 0, 1.019, 0, 0],
}


@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.parametrize("row", INVALID_ROWS.values(), ids=INVALID_ROWS)
@pytest.mark.parametrize("depth", [0, 1])
def test_invalid_distributions_are_rejected(name: str, row: list[float], depth: int) -> None:
    bad = torch.tensor(row, dtype=torch.float32)
    onwards = torch.tensor([0, 0, 0.0, 0.6, 0.4])
    stepper = search.PrefixStepper([lambda prefix: bad if len(prefix) >= depth else onwards])
    with pytest.raises(FenchelError, match="a stepper must return probabilities"):
        SEARCHES[name](stepper)


@pytest.mark.parametrize("name", SEARCHES)
def test_rows_may_sum_to_less_than_one(name: str) -> None:
    row = torch.tensor([0, 0, 0.5, 0.1, 0.1])
    assert SEARCHES[name](search.PrefixStepper([lambda prefix: row]))


@pytest.mark.parametrize("width", [1, 4])
@pytest.mark.parametrize("name", ["beam", "exact"])
def test_unused_rows_are_not_checked(name: str, width: int) -> None:
    certain = torch.tensor([0, 0, 0.0, 1.0, 0])
    ends, nonsense = torch.tensor([0, 0, 1.0, 0, 0]), torch.full((5,), NAN)
    ways = {(): certain, (3,): ends}
    stepper = search.PrefixStepper([lambda prefix: ways.get(prefix, nonsense)])
    (answer,) = SEARCHES[name](stepper, width=width)
    assert answer.single
    assert answer.best.tokens == (3,)


@pytest.mark.parametrize("name", ["beam", "exact", "support"])
@pytest.mark.parametrize("width", [1, 4])
def test_entries_just_outside_the_unit_interval_are_clamped(name: str, width: int) -> None:
    rows = {(): [0, 0, 0.5, -1e-5, 0.49998], (4,): [-1e-5, 0, 1.00005, 0, 0]}
    stepper = search.PrefixStepper([lambda prefix: torch.tensor(rows.get(prefix, [NAN] * 5))])
    (answer,) = SEARCHES[name](stepper, width=width)
    assert answer.certified
    found = {h.tokens: h.probability for h in answer.hypotheses}
    possible = {(): 0.5, (4,): 0.49998}
    assert found == pytest.approx({tokens: possible[tokens] for tokens in found})


def test_a_subnormal_bound_is_rounded_up() -> None:
    unlikely = search.Hypothesis.of((3,), -745.0, finished=True)
    assert not search.Answer.of([unlikely], log_dropped=-744.6).certified


COUNTS = {
    "max_length": search.beam_search,
    "width": search.beam_search,
    "answers": search.beam_search,
    "nodes": search.exact_search,
    "limit": search.support,
    "count": search.sample,
}


@pytest.mark.parametrize("wrong", [0, -1, 2.5, "3", True])
@pytest.mark.parametrize("name", COUNTS)
def test_sizes_must_be_positive_integers(name: str, wrong: object) -> None:
    stepper = search.PrefixStepper([lambda prefix: GOOD])
    sizes: dict = {"max_length": 4, name: wrong}
    with pytest.raises(FenchelError, match=f"{name} must be a positive integer"):
        COUNTS[name](stepper, **sizes)
    assert COUNTS[name](stepper, **{**sizes, name: np.int64(3)})


@pytest.mark.parametrize("wrong", [-1, 2.0, "3", True, None])
@pytest.mark.parametrize("mark", ["bos", "eos"])
@pytest.mark.parametrize("name", SEARCHES)
def test_bos_and_eos_must_be_token_ids(name: str, mark: str, wrong: object) -> None:
    with pytest.raises(FenchelError, match=f"{mark} must be a non-negative integer"):
        SEARCHES[name](search.PrefixStepper([lambda prefix: GOOD]), **{mark: wrong})


@pytest.mark.parametrize("token", [5, -1])
def test_autocompletion_rejects_tokens_outside_the_vocabulary(token: int) -> None:
    with pytest.raises(FenchelError, match=r"must contain tokens in \[0, 4\]"):
        search.autocomplete(search.PrefixStepper([lambda prefix: GOOD]), [(3, token)])


def test_autocompletion_accepts_tensors() -> None:
    stepper = search.PrefixStepper([lambda prefix: GOOD])
    given = search.autocomplete(stepper, torch.tensor([[3, 4]]))  # type: ignore[arg-type]
    assert given == search.autocomplete(stepper, [(3, 4)])


def test_prefix_stepper_accepts_lists() -> None:
    lists = search.PrefixStepper([lambda prefix: GOOD.tolist()])  # type: ignore[list-item]
    rows = search.PrefixStepper([lambda prefix: GOOD])
    assert search.beam_search(lists, max_length=2) == search.beam_search(rows, max_length=2)


def test_prefix_stepper_requires_one_vocabulary() -> None:
    stepper = search.PrefixStepper([lambda prefix: GOOD, lambda prefix: torch.eye(4)[2]])
    with pytest.raises(FenchelError, match=r"must share a vocabulary.*\[\(4,\), \(5,\)\]"):
        search.beam_search(stepper, max_length=2)


def test_prefix_stepper_requires_a_function() -> None:
    with pytest.raises(FenchelError, match="at least one function"):
        search.PrefixStepper([])


def test_a_token_without_a_symbol_is_rejected() -> None:
    (answer,) = search.beam_search(search.PrefixStepper([lambda prefix: GOOD]), max_length=2)
    with pytest.raises(
        FenchelError, match="symbols must contain every token, got 3 symbols and token 3"
    ):
        search.Lattice.of(answer).text("abc")


def test_repeated_samples_are_counted_once_in_a_lattice() -> None:
    twice = (search.Hypothesis.of((3,), -0.7, finished=True),) * 2
    lattice = search.Lattice.of(search.Answer(twice, 1.0))
    assert lattice.edges[0].mass == pytest.approx(twice[0].probability)


@pytest.mark.parametrize("name", SEARCHES)
def test_a_row_in_bfloat16_is_summed_before_it_is_rounded(name: str) -> None:
    """The entries sum to 1.0199; rounded to bfloat16 that would be 1.0234, which is refused."""
    row = torch.tensor([0.0, 0.2832, 0.3945, 0.2988, 0.0432], dtype=torch.bfloat16)
    assert row.sum().item() > 1.02 > row.float().sum().item()
    SEARCHES[name](search.PrefixStepper([lambda prefix: row]))
