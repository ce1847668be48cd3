"""The Triton kernels of normmax against the float64 reference: on the GPU, or interpreted."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from fenchel.kernels.reference import normmax as reference
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
    from fenchel.kernels.triton import normmax as kernels

pytestmark = MARKS

ACCURACY = 1e-7
INF, NAN = math.inf, math.nan
ROWS = "rows"
ALPHAS = (1.05, 1.5, 2.0, 3.5, ROWS)


def _exponent(value: float | str) -> float | Tensor:
    if isinstance(value, float):
        return value
    return torch.tensor([[1.2], [1.7], [2.0], [2.6]], dtype=torch.float64, device=DEVICE)


def _relative_error(actual: Tensor, expected: Tensor) -> float:
    error = (actual.double() - expected).abs().max() / expected.abs().max().clamp(min=1)
    return error.item()


@pytest.mark.usefixtures("length")
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("alpha", ALPHAS)
def test_probabilities_and_gradients(alpha: float | str, scale: float):
    x, value = scores(scale), _exponent(alpha)
    p = kernels.normmax(x, value)
    expected = reference.normmax(x.double(), value)
    assert _relative_error(p, expected) <= ACCURACY
    assert torch.equal(p == 0, expected.float() == 0)
    grad = torch.randn(4, 21).to(DEVICE)
    slopes = reference.normmax_backward(grad.double(), p.double(), value)
    assert _relative_error(kernels.normmax_backward(grad, p, value), slopes) <= ACCURACY


@pytest.mark.usefixtures("length")
@pytest.mark.parametrize("scale", SCALES)
def test_the_gradient_in_alpha(scale: float):
    x, alpha, grad = scores(scale), _exponent(ROWS), torch.randn(4, 21).to(DEVICE)
    p = kernels.normmax(x, alpha)
    slopes = reference.normmax_backward_alpha(grad.double(), p.double(), alpha)
    by_scores, by_alpha = kernels.normmax_backward_alpha(grad, p, alpha)
    assert _relative_error(by_scores, slopes[0]) <= ACCURACY
    assert by_alpha.shape == (4, 1)
    assert _relative_error(by_alpha.squeeze(-1), slopes[1]) <= 1e-12


@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("alpha", [1.5, 2.0])
def test_every_width(alpha: float, columns: int):
    x, grad = torch.randn(3, columns).to(DEVICE), torch.randn(3, columns).to(DEVICE)
    p = kernels.normmax(x, alpha)
    assert _relative_error(p, reference.normmax(x.double(), alpha)) <= ACCURACY
    slopes = reference.normmax_backward(grad.double(), p.double(), alpha)
    assert _relative_error(kernels.normmax_backward(grad, p, alpha), slopes) <= ACCURACY


def test_powers_that_leave_float64_do_so_in_pairs():
    """For p = 1/n both p^alpha and p^(2 - alpha) do, but J g = n^(-1/alpha) (g - mean)/(alpha - 1)."""
    entries, alpha = 200, 150.0
    p, grad = torch.full((1, entries), 1 / entries).to(DEVICE), torch.randn(1, entries).to(DEVICE)
    centred = grad.double() - grad.double().mean()
    slope = kernels.normmax_backward(grad, p, alpha)
    torch.testing.assert_close(
        slope.double(), entries ** (-1 / alpha) / (alpha - 1) * centred, rtol=1e-5, atol=1e-9
    )


@pytest.mark.parametrize("alpha", [1.5, 2.0])
@pytest.mark.parametrize("dtype", HALF)
def test_half_precision_is_rounded_once(dtype: torch.dtype, alpha: float):
    x = scores().to(dtype)
    p, exact = kernels.normmax(x, alpha), reference.normmax(x.double(), alpha)
    assert p.dtype == dtype
    assert_rounded_once(p, exact)
    slopes = reference.normmax_backward(x.double().nan_to_num(0, 0, 0), p.double(), alpha)
    found = kernels.normmax_backward(x.nan_to_num(0, 0, 0), p, alpha)
    assert _relative_error(found, slopes) <= torch.finfo(dtype).eps


@pytest.mark.usefixtures("length")
def test_masks_strides_and_other_dimensions():
    x = torch.randn(2, 19, 3).to(DEVICE).transpose(0, 2)
    mask = (torch.rand(3, 19, 1) > 0.3).to(DEVICE)
    alpha = torch.tensor([1.3, 2.5], dtype=torch.float64, device=DEVICE)
    expected = reference.normmax(
        x.double().masked_fill(~mask, -INF).transpose(1, 2), alpha[:, None]
    ).transpose(1, 2)
    p = kernels.normmax(x, alpha, mask, 1)
    assert p.stride() == torch.empty_like(x).stride()
    assert _relative_error(p, expected) <= ACCURACY
    slopes = reference.normmax_backward(x.double(), p.double(), alpha, dim=1)
    by_scores, by_alpha = kernels.normmax_backward_alpha(x, p, alpha, 1)
    assert _relative_error(by_scores, slopes) <= ACCURACY
    slope = (x.double() * reference.normmax_derivative(p.double(), alpha, dim=1)).sum(1, True)
    assert _relative_error(by_alpha, slope) <= 1e-12


@pytest.mark.usefixtures("length")
def test_masks_and_strides_at_two():
    x = torch.randn(2, 19, 3).to(DEVICE).transpose(0, 2)
    mask = (torch.rand(3, 19, 1) > 0.3).to(DEVICE)
    rows = x.double().masked_fill(~mask, -INF).transpose(1, 2)
    p = kernels.normmax(x, 2.0, mask, 1)
    assert p.stride() == torch.empty_like(x).stride()
    assert _relative_error(p, reference.normmax(rows, 2.0).transpose(1, 2)) <= ACCURACY
    slopes = reference.normmax_backward(x.double(), p.double(), 2.0, dim=1)
    assert _relative_error(kernels.normmax_backward(x, p, 2.0, 1), slopes) <= ACCURACY


@pytest.mark.usefixtures("length")
def test_ties_and_far_scores_at_two():
    x = torch.zeros(4, 20).to(DEVICE)
    x[1, 3:] = -1e9
    x[2] = 1e6 + torch.arange(20) % 3
    x[3, 7] = 1e30
    p = kernels.normmax(x, 2.0)
    expected = reference.normmax(x.double(), 2.0)
    assert _relative_error(p, expected) <= ACCURACY
    assert torch.equal(p == 0, expected == 0)


def test_strides_that_cannot_be_merged_are_copied():
    x = torch.randn(2, 2, 2, 2, 3).to(DEVICE).permute(3, 2, 1, 0, 4)
    grad = torch.randn(2, 2, 2, 2, 3).to(DEVICE)
    alpha = torch.linspace(1.2, 3.0, 4, dtype=torch.float64, device=DEVICE).view(2, 1, 2, 1, 1)
    p = kernels.normmax(x, alpha)
    assert _relative_error(p, reference.normmax(x.double(), alpha)) <= ACCURACY
    by_scores, by_alpha = kernels.normmax_backward_alpha(grad, p, alpha)
    slopes = reference.normmax_backward_alpha(grad.double(), p.double(), alpha)
    assert _relative_error(by_scores, slopes[0]) <= ACCURACY
    assert _relative_error(by_alpha.squeeze(-1), slopes[1]) <= 1e-12


@pytest.mark.usefixtures("length")
@pytest.mark.parametrize("alpha", [1.5, 2.0])
def test_a_row_that_is_not_a_number_stays_one(alpha: float):
    x = torch.randn(3, 20).to(DEVICE)
    x[0, 17], x[1, 3] = NAN, INF
    p = kernels.normmax(x, alpha)
    assert p.isnan().all(-1).tolist() == [True, True, False]
    slope = kernels.normmax_backward(torch.ones_like(x), p, alpha)
    assert slope.isnan().all(-1).tolist() == [True, True, False]
    assert slope[2].isfinite().all()


@pytest.mark.parametrize("alpha", [1.5, 2.0])
def test_a_gradient_is_not_looked_at_where_p_is_zero(alpha: float):
    x = torch.tensor([[0.0, 0.5, -9.0, 0.2]]).to(DEVICE)
    grad = torch.tensor([[1.0, 2.0, NAN, 0.0]]).to(DEVICE)
    p = kernels.normmax(x, alpha)
    slope = kernels.normmax_backward(grad, p, alpha)
    assert slope[0, 2] == 0
    assert slope.isfinite().all()


@pytest.mark.usefixtures("length")
def test_ties_on_the_edge_at_two_are_zero():
    """Of four equal scores tau is 1/2 below, and of sixteen 1/4."""
    x = torch.zeros(2, 20).to(DEVICE)
    x[0, 4:], x[1, 16:] = -0.5, -0.25
    p = kernels.normmax(x + 0.7, 2.0)
    assert torch.equal(p == 0, x < 0)
