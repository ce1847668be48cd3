"""Top-k with ties broken by index."""

from __future__ import annotations

import pytest
import torch

from fenchel.search.topk import stable_topk


def sorted_rows(values, count):
    order = torch.sort(values, dim=-1, descending=True, stable=True)
    return order.values[..., :count], order.indices[..., :count]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("size", [3, 100, 257, 1000, 1024, 5003])
@pytest.mark.parametrize("levels", [2, 40, None])
def test_topk_is_the_head_of_a_stable_sort(dtype, size, levels):
    values = torch.rand(3, 2, size)
    if levels is not None:
        values = (values * levels).floor() / levels
    values = values.to(dtype)
    for count in (1, 3, 7):
        found = stable_topk(values, min(count, size))
        expected = sorted_rows(values, min(count, size))
        assert all(map(torch.equal, found, expected))


def test_ties_across_chunks_go_to_the_lower_index():
    values = torch.zeros(1, 2000)
    values[0, [70, 500, 1500, 1999]] = 0.5
    assert stable_topk(values, 2)[1].tolist() == [[70, 500]]
    assert stable_topk(values, 6)[1].tolist() == [[70, 500, 1500, 1999, 0, 1]]


def test_rows_may_be_non_contiguous():
    values = torch.rand(900, 4).t()
    assert all(map(torch.equal, stable_topk(values, 4), sorted_rows(values, 4)))
