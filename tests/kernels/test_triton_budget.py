"""The Triton kernels of budget against the float64 reference: on the GPU, or interpreted."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from fenchel.kernels.reference import budget as reference
from tests.kernels.interpreted import DEVICE, MARKS, defining_kernels
from tests.kernels.threshold_rows import (
    HALF,
    SCALES,
    WIDTHS,
    assert_rounded_once,
    length,  # noqa: F401 (a fixture)
    scores,
)

with defining_kernels():
    from fenchel.kernels.triton import budget as kernels

pytestmark = MARKS

ACCURACY = 1e-7
INF, NAN = math.inf, math.nan
ROWS = "rows"


def _budget(value: float | str) -> float | Tensor:
    if not isinstance(value, str):
        return value
    return torch.tensor([[0.3], [17.0], [2.0], [6.5]], dtype=torch.float64, device=DEVICE)


def _assert_same(p: Tensor, expected: Tensor) -> None:
    """Up to rounding, and exactly 0 and exactly 1 where the reference is."""
    assert (p.double() - expected).abs().max() <= ACCURACY
    for end in (0, 1):
        assert torch.equal(p == end, expected.float() == end)


@pytest.mark.usefixtures("length")
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("k", [0, 1, 3.25, 9, 21, ROWS])
def test_probabilities_and_gradients(k: float | str, scale: float):
    x, value = scores(scale), _budget(k)
    p = kernels.budget(x, value)
    _assert_same(p, reference.budget(x.double(), value))
    grad = torch.randn(4, 21).to(DEVICE)
    slopes = reference.budget_backward(grad.double(), p.double(), value)
    found = kernels.budget_backward(grad, p, value)
    assert (found.double() - slopes).abs().max() <= 3e-7


@pytest.mark.usefixtures("length")
def test_the_gradient_in_k():
    x, k, grad = scores(), _budget(ROWS), torch.randn(4, 21).to(DEVICE)
    p = kernels.budget(x, k)
    slopes = reference.budget_backward_k(grad.double(), p.double(), k)
    by_scores, by_k = kernels.budget_backward_k(grad, p, k)
    assert (by_scores.double() - slopes[0]).abs().max() <= 3e-7
    assert by_k.shape == (4, 1)
    assert (by_k.squeeze(-1) - slopes[1]).abs().max() <= 1e-12


@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("share", [0.0, 0.1, 0.9, 1.0])
def test_every_width_sums_to_k(share: float, columns: int):
    x, k = torch.randn(3, columns).to(DEVICE), share * columns
    p = kernels.budget(x, k)
    _assert_same(p, reference.budget(x.double(), k))
    assert (p.double().sum(-1) - k).abs().max() <= 2e-7 * max(k, 1)


@pytest.mark.parametrize("scale", [1e-38, 1e-6, 1e4, 1e30])
@pytest.mark.parametrize("k", [1, 4.5])
def test_huge_and_tiny_scores(k: float, scale: float):
    x = scale * torch.randn(2, 21).to(DEVICE)
    x[1, 4:11] = x[1, 0]
    _assert_same(kernels.budget(x, k), reference.budget(x.double(), k))


@pytest.mark.usefixtures("length")
@pytest.mark.parametrize("k", [4.5, 15])
def test_rows_that_no_normal_law_describes(k: float):
    """Far scores, floats that lie apart by 2 and by 1/2, equal ones, and one above all others."""
    x = torch.randn(5, 20).to(DEVICE)
    x[0, 12:] = -1e9
    x[1] = 2.0**24 + 2 * torch.arange(20)
    x[2] = 2.0**22 + 0.5 * torch.arange(20)
    x[3] = 0.3
    x[4, 6] = 1e4
    _assert_same(kernels.budget(x, k), reference.budget(x.double(), k))


@pytest.mark.usefixtures("length")
@pytest.mark.parametrize("k", [1.5, 2.5, 3.0])
def test_the_least_finite_scores_are_scores(k: float):
    least, next_to_it = torch.finfo(torch.float32).min, torch.finfo(torch.bfloat16).min
    rows = [0, 0, least, least], [1, least, next_to_it, least], [3e38, 3e38, -3e38, -3e38]
    x = torch.tensor(rows, device=DEVICE)
    _assert_same(kernels.budget(x, k), reference.budget(x.double(), k))


@pytest.mark.parametrize("k", [1, 2, 3.5, 7])
def test_ties_of_every_sign(k: float):
    rows = [[0.0, -0.0, 0.0, -0.0, 1.0, -1.0, 2.0], [-3.0] * 7, [5.0] * 3 + [4.0] * 4]
    x = torch.tensor(rows).to(DEVICE)
    _assert_same(kernels.budget(x, k), reference.budget(x.double(), k))


@pytest.mark.parametrize("dtype", HALF)
def test_half_precision_is_rounded_once(dtype: torch.dtype):
    x = scores().to(dtype)
    p, exact = kernels.budget(x, 2.5), reference.budget(x.double(), 2.5)
    assert p.dtype == dtype
    assert_rounded_once(p, exact)
    slopes = reference.budget_backward(x.double().nan_to_num(0, 0, 0), p.double(), 2.5)
    found = kernels.budget_backward(x.nan_to_num(0, 0, 0), p, 2.5)
    assert (found.double() - slopes).abs().max() <= torch.finfo(dtype).eps * slopes.abs().max()


@pytest.mark.usefixtures("length")
def test_masks_strides_and_other_dimensions():
    x = torch.randn(2, 19, 3).to(DEVICE).transpose(0, 2)
    mask = (torch.rand(3, 19, 1) > 0.3).to(DEVICE)
    k = torch.tensor([1.3, 2.5], device=DEVICE)
    rows = x.double().masked_fill(~mask, -INF).transpose(1, 2)
    p = kernels.budget(x, k, mask, 1)
    assert p.stride() == torch.empty_like(x).stride()
    expected = reference.budget(rows, k.double()[:, None].expand(3, 2, 1))
    _assert_same(p, expected.transpose(1, 2))
    by_scores, by_k = kernels.budget_backward_k(x, p, k, 1)
    slopes = reference.budget_backward(x.double(), p.double(), 0.0, dim=1)
    assert (by_scores.double() - slopes).abs().max() <= 3e-7
    slope = (x.double() * reference.budget_derivative(p.double(), k, dim=1)).sum(1, True)
    assert (by_k - slope).abs().max() <= 1e-12


def test_strides_that_cannot_be_merged_are_copied():
    x = torch.randn(2, 2, 2, 2, 3).to(DEVICE).permute(3, 2, 1, 0, 4)
    grad = torch.randn(2, 2, 2, 2, 3).to(DEVICE)
    k = torch.tensor([0.5, 1.5], dtype=torch.float64, device=DEVICE).view(2, 1, 1, 1, 1)
    k = k.expand(2, 2, 2, 2, 1)
    p = kernels.budget(x, k)
    _assert_same(p, reference.budget(x.double(), k))
    by_scores, by_k = kernels.budget_backward_k(grad, p, k)
    slopes = reference.budget_backward_k(grad.double(), p.double(), k)
    assert (by_scores.double() - slopes[0]).abs().max() <= 3e-7
    assert (by_k.squeeze(-1) - slopes[1]).abs().max() <= 1e-12


@pytest.mark.usefixtures("length")
@pytest.mark.parametrize("k", [0, 2, 20])
def test_a_row_with_nan_or_infinity_is_not_a_number(k: float):
    x = torch.randn(4, 20).to(DEVICE)
    x[0, 17], x[1, 3], x[2, 18] = NAN, -NAN, INF
    p = kernels.budget(x, k)
    assert p.isnan().all(-1).tolist() == [True, True, True, False]
    slope = kernels.budget_backward(torch.ones_like(x), p, k)
    assert slope.isnan().all(-1).tolist() == [True, True, True, False]
    assert p[3].isfinite().all()
    assert slope[3].isfinite().all()


def test_a_gradient_is_not_looked_at_where_nothing_moves():
    x = torch.tensor([[0.0, 0.5, -9.0, 0.2, 9.0]]).to(DEVICE)
    grad = torch.tensor([[1.0, 2.0, NAN, 0.0, INF]]).to(DEVICE)
    p = kernels.budget(x, 2)
    slope = kernels.budget_backward(grad, p, 2)
    assert p[0, 4] == 1
    assert slope[0, [2, 4]].tolist() == [0, 0]
    assert slope.isfinite().all()
