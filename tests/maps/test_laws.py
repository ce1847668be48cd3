"""One list of maps × one list of laws × dtypes × implementations, on whatever scores there may be."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import fenchel
from tests.accuracy import accuracy, assert_rounded_once, assert_within
from tests.catalogue import Map, on_every_implementation
from tests.implementations import running_on
from tests.strategies import grid_scores, layouts, scores

WIDE, HALF = (torch.float64, torch.float32), (torch.bfloat16, torch.float16)
FAR = 2.0**60  # a temperature so low that every map is at its limit
FLAT = 2.0**-80  # so high; for alpha = 10, p changes by 1e7 times what a score does


def shortest_for(each: Map) -> int:
    return math.ceil(each.total)


def anything(each: Map, dtype: torch.dtype):
    return scores(dtype, shortest=shortest_for(each))


def rows_on_a_grid(each: Map, dtype: torch.dtype):
    return grid_scores(dtype, shortest=shortest_for(each))


def exactly(each: Map, x: Tensor) -> Tensor:
    with fenchel.implementation("reference"):
        return each(x.double())


def the_probabilities_share_out_the_total(each: Map, x: Tensor, data: st.DataObject) -> None:
    p = each(x)
    assert p.shape == x.shape
    assert p.dtype == x.dtype
    assert bool(((p >= 0) & (p <= 1 + torch.finfo(x.dtype).eps)).all())
    available = (x > -math.inf).sum(-1).clamp(max=each.total).double()
    assert_within(p.double().sum(-1), available, accuracy(x.dtype, each.total))


def nothing_is_given_to_minus_infinity(each: Map, x: Tensor, data: st.DataObject) -> None:
    assert bool((each(x)[x == -math.inf] == 0).all())


def the_result_is_exact(each: Map, x: Tensor, data: st.DataObject) -> None:
    if x.dtype in HALF:
        assert_rounded_once(each(x), exactly(each, x))
    else:
        assert_within(each(x), exactly(each, x), accuracy(x.dtype))


def larger_scores_get_no_less(each: Map, x: Tensor, data: st.DataObject) -> None:
    if each.in_order:
        return
    ordered = torch.gather(each(x), -1, x.argsort(-1)).double()
    drops = (ordered[..., :-1] - ordered[..., 1:]).clamp(min=0)
    rounding = torch.finfo(x.dtype).eps * ordered[..., 1:]
    assert bool((drops <= 4 * rounding).all())


def equal_scores_get_the_same(each: Map, x: Tensor, data: st.DataObject) -> None:
    if each.in_order:
        return
    p, ties = each(x).double(), x.unsqueeze(-1) == x.unsqueeze(-2)
    apart = torch.where(ties, p.unsqueeze(-1) - p.unsqueeze(-2), 0.0).abs()
    assert bool((apart <= torch.finfo(x.dtype).eps * p.unsqueeze(-1)).all())


def the_order_of_the_columns_does_not_matter(each: Map, x: Tensor, data: st.DataObject) -> None:
    columns = range(x.shape[-1])
    kept = data.draw(st.permutations(columns)) if not each.in_order else columns[::-1]
    order = torch.tensor(list(kept))
    assert_within(each(x[..., order]), each(x)[..., order], 2 * accuracy(x.dtype))


def memory_layout_and_dim_do_not_matter(each: Map, x: Tensor, data: st.DataObject) -> None:
    view, dim = data.draw(layouts(x))
    assert torch.equal(each(view, dim=dim).movedim(dim, -1), each(x))


def a_mask_is_minus_infinity(each: Map, x: Tensor, data: st.DataObject) -> None:
    bits = data.draw(st.lists(st.booleans(), min_size=x.numel(), max_size=x.numel()))
    mask = torch.tensor(bits, dtype=torch.bool).reshape(x.shape)
    assert torch.equal(each(x, mask=mask), each(x.masked_fill(~mask, -math.inf)))


def a_masked_row_is_the_map_of_what_is_left(each: Map, x: Tensor, data: st.DataObject) -> None:
    keep = data.draw(
        st.sets(st.integers(0, x.shape[-1] - 1), min_size=shortest_for(each)).map(sorted)
    )
    mask = torch.zeros(x.shape[-1], dtype=torch.bool)
    mask[keep] = True
    expected = torch.zeros_like(x)
    expected[..., keep] = each(x[..., keep])
    assert_within(each(x, mask=mask), expected, 2 * accuracy(x.dtype))


def a_shift_changes_nothing(each: Map, x: Tensor, data: st.DataObject) -> None:
    shift = data.draw(st.integers(-4096, 4096))
    assert torch.equal((x + shift) - shift, x)
    assert_within(each(x + shift), each(x), 2 * accuracy(x.dtype))


def equal_scores_share_evenly(each: Map, x: Tensor, data: st.DataObject) -> None:
    for flat in (torch.zeros_like(x), x * FLAT):
        expected = torch.full_like(x, each.total / x.shape[-1])
        assert_within(each(flat), expected, accuracy(x.dtype))


def at_zero_temperature_the_largest_take_all(each: Map, x: Tensor, data: st.DataObject) -> None:
    if not x.numel() or each.in_order:
        return
    last = x.sort(-1, descending=True).values[..., shortest_for(each) - 1, None]
    sure, tied = (x > last).double(), (x == last).double()
    left = each.total - sure.sum(-1, keepdim=True)
    expected = sure + tied * left / tied.sum(-1, keepdim=True)
    assert_within(each(x * FAR), expected, accuracy(x.dtype))


def probabilities_differ_no_more_than_scores(each: Map, x: Tensor, data: st.DataObject) -> None:
    if each.steepness is None:
        return
    p = each(x).double()
    gaps = (x.unsqueeze(-1) - x.unsqueeze(-2)).double().clamp(min=0)
    differences = p.unsqueeze(-1) - p.unsqueeze(-2)
    assert bool((differences <= each.steepness * gaps + 2 * accuracy(x.dtype)).all())


LAWS_OF_ALL_SCORES = [
    the_probabilities_share_out_the_total,
    nothing_is_given_to_minus_infinity,
    the_result_is_exact,
    larger_scores_get_no_less,
    equal_scores_get_the_same,
    the_order_of_the_columns_does_not_matter,
    memory_layout_and_dim_do_not_matter,
    a_mask_is_minus_infinity,
    a_masked_row_is_the_map_of_what_is_left,
]
LAWS_OF_DIFFERENCES = [
    a_shift_changes_nothing,
    equal_scores_share_evenly,
    at_zero_temperature_the_largest_take_all,
    probabilities_differ_no_more_than_scores,
]
HALF_LAWS = [the_probabilities_share_out_the_total, the_result_is_exact, a_mask_is_minus_infinity]


def _name(value: object) -> str:
    return getattr(value, "__name__", str(value).removeprefix("torch."))


def of_every_map(laws: Sequence[Callable], dtypes: Sequence[torch.dtype]) -> Callable:
    """A test of laws on all maps and implementations; Hypothesis draws its scores."""

    def decorate(test: Callable) -> Callable:
        test = given(data=st.data())(test)
        for name, values in (("law", laws), ("dtype", dtypes)):
            test = pytest.mark.parametrize(name, values, ids=_name)(test)
        everywhere = on_every_implementation()
        return pytest.mark.parametrize(("each", "implementation"), everywhere)(test)

    return decorate


def check(law, each: Map, implementation: str, kind, dtype: torch.dtype, data) -> None:
    x = data.draw(kind(each, dtype))
    with running_on(implementation):
        law(each, x, data)


@of_every_map(LAWS_OF_ALL_SCORES, WIDE)
def test_on_any_scores(law, dtype, each, implementation, data):
    check(law, each, implementation, anything, dtype, data)


@of_every_map(LAWS_OF_DIFFERENCES, WIDE)
def test_on_scores_with_exact_differences(law, dtype, each, implementation, data):
    check(law, each, implementation, rows_on_a_grid, dtype, data)


@of_every_map(HALF_LAWS, HALF)
def test_in_half_precision(law, dtype, each, implementation, data):
    check(law, each, implementation, anything, dtype, data)
