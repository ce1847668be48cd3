"""Tensors of any shape, strides and dtype become rows and back."""

from __future__ import annotations

import pytest
import torch

from fenchel.operators.layout import from_rows, parameter_from_rows, parameter_to_rows, to_rows


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("dim", [-1, -2, -3])
def test_rows_and_back_is_the_identity(dim, dtype):
    x = torch.randn(2, 3, 4).to(dtype)
    for view in (x, x.transpose(0, 2), x.permute(1, 2, 0), x[:, :1].expand(2, 5, 4)):
        rows = to_rows(view, dim)
        assert rows.is_contiguous()
        assert rows.shape[1] == view.shape[dim]
        assert rows.dtype == (torch.float32 if dtype.itemsize == 2 else dtype)
        back = from_rows(rows, view, dim)
        assert torch.equal(back, view)
        assert back.dtype == dtype
        assert back.shape == view.shape


def test_a_mask_becomes_minus_infinity():
    rows = to_rows(torch.zeros(2, 3), -1, torch.tensor([True, False, True]))
    assert rows.tolist() == [[0.0, -torch.inf, 0.0]] * 2


@pytest.mark.parametrize("dim", [-1, -2, -3])
def test_a_parameter_has_one_value_a_row_and_its_gradient_is_summed_back(dim):
    x = torch.randn(2, 3, 4)
    shape = [1 if i == 3 + dim else size for i, size in enumerate(x.shape)]
    full = torch.randn(shape, dtype=torch.float64)
    rows = parameter_to_rows(full, x, dim)
    assert rows.shape == (24 // x.shape[dim], 1)
    assert torch.equal(rows, full.movedim(dim, -1).reshape(-1, 1))
    assert torch.equal(parameter_from_rows(rows, x, full, dim), full)
    total = parameter_from_rows(rows, x, torch.zeros(()).double(), dim)
    torch.testing.assert_close(total, full.sum())
    assert parameter_to_rows(1.5, x, dim) == 1.5
