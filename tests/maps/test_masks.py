"""Rows that are masked, empty or not numbers: each keeps to itself."""

from __future__ import annotations

import math

import pytest
import torch

from tests.accuracy import accuracy, assert_within
from tests.catalogue import Map, on_every_implementation
from tests.implementations import running_on, widest

ALL_DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


def rows(dtype: torch.dtype, *, columns: int = 6, scale: float = 2.0) -> torch.Tensor:
    return (scale * torch.randn(4, columns, dtype=torch.float64)).to(dtype)


@pytest.mark.parametrize("dtype", ALL_DTYPES)
@pytest.mark.parametrize(("each", "implementation"), on_every_implementation())
def test_a_fully_masked_row_is_zero_and_passes_no_gradient(each: Map, implementation, dtype):
    x = rows(dtype, scale=0.02).requires_grad_()  # so close that no map is one-hot
    mask = torch.tensor([True, False, True, True])[:, None].expand(4, 6)
    with running_on(implementation):
        p = each(x, mask=mask)
        (p * torch.arange(6).to(dtype)).sum().backward()
        alone = each(x[[0, 2, 3]])
    assert p[1].tolist() == [0.0] * 6
    assert x.grad[1].tolist() == [0.0] * 6
    assert_within(p[[0, 2, 3]], alone, accuracy(dtype))
    assert x.grad.isfinite().all()
    assert x.grad[[0, 2, 3]].any() or each.fuses


@pytest.mark.parametrize("columns", [1, 6, 300])
@pytest.mark.parametrize(("each", "implementation"), on_every_implementation())
def test_a_row_of_minus_infinity_is_zero_and_passes_no_gradient(each: Map, implementation, columns):
    x = rows(widest(), columns=max(columns, math.ceil(each.total)))
    x[1] = -math.inf
    x.requires_grad_()
    with running_on(implementation):
        p = each(x)
        p.square().sum().backward()
    assert p[1].count_nonzero() == 0
    assert x.grad[1].count_nonzero() == 0
    assert x.grad.isfinite().all()


@pytest.mark.parametrize("columns", [6, 300])
@pytest.mark.parametrize("dtype", ALL_DTYPES)
@pytest.mark.parametrize(("each", "implementation"), on_every_implementation())
def test_a_row_with_nan_or_infinity_is_nan_and_no_other(each: Map, implementation, dtype, columns):
    x = rows(dtype, columns=columns)
    poisoned = x.clone()
    poisoned[1, 5], poisoned[2, 4] = math.inf, math.nan
    x.requires_grad_(), poisoned.requires_grad_()
    weights = torch.arange(columns).to(dtype)
    with running_on(implementation):
        clean, dirty = each(x), each(poisoned)
        (clean * weights).sum().backward()
        (dirty * weights).sum().backward()
    others = [0, 3]
    assert dirty[1:3].isnan().all()
    assert torch.equal(dirty[others], clean[others])
    assert torch.equal(poisoned.grad[others], x.grad[others])
    assert poisoned.grad[1:3].isnan().all()


@pytest.mark.parametrize(("each", "implementation"), on_every_implementation())
def test_a_masked_nan_is_not_seen(each: Map, implementation):
    x = rows(widest())
    mask = torch.ones_like(x, dtype=torch.bool)
    mask[2, 4] = False
    with running_on(implementation):
        clean = each(x, mask=mask)
        x[2, 4] = math.nan
        assert torch.equal(each(x, mask=mask), clean)


@pytest.mark.parametrize(("each", "implementation"), on_every_implementation())
def test_masked_entries_pass_no_gradient(each: Map, implementation):
    x = rows(widest()).requires_grad_()
    mask = torch.tensor([True, True, False, True, False, True])
    with running_on(implementation):
        each(x, mask=mask).square().sum().backward()
    assert x.grad[:, ~mask].count_nonzero() == 0


@pytest.mark.parametrize("shape", [(6,), (4, 1), (1, 6), (1, 1), (4, 6)])
@pytest.mark.parametrize(("each", "implementation"), on_every_implementation())
def test_a_mask_broadcasts_as_any_tensor_does(each: Map, implementation, shape):
    x, mask = rows(widest()), torch.rand(shape) < 0.7
    with running_on(implementation):
        expected = each(x, mask=mask.expand(4, 6).contiguous())
        assert torch.equal(each(x, mask=mask), expected)


@pytest.mark.parametrize("shape", [(0, 6), (3, 0, 6), (0,), (4, 0)])
@pytest.mark.parametrize(("each", "implementation"), on_every_implementation())
def test_an_empty_tensor_gives_an_empty_tensor_and_gradient(each: Map, implementation, shape):
    if shape[-1] == 0 and not isinstance(each.parameters.get("k", 0), torch.Tensor):
        shape = (0, 6)
    x = torch.empty(shape, requires_grad=True)
    with running_on(implementation):
        p = each(x)
        p.sum().backward()
    assert p.shape == shape
    assert x.grad.shape == shape


@pytest.mark.parametrize(("each", "implementation"), on_every_implementation())
def test_a_row_with_one_entry_gets_everything(each: Map, implementation):
    if each.total > 1:
        pytest.skip("a budget above one needs more than one entry")
    x = torch.tensor([[3.0], [-1e30], [-math.inf]], requires_grad=True)
    with running_on(implementation):
        p = each(x)
        p.sum().backward()
    assert p.flatten().tolist() == [1.0, 1.0, 0.0]
    assert x.grad.count_nonzero() == 0
