"""The Triton kernels of pnormmax against the float64 reference: on the GPU, or interpreted."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from fenchel.kernels.reference import pnormmax as reference
from tests.kernels.interpreted import DEVICE, MARKS, defining_kernels
from tests.kernels.threshold_rows import scores

with defining_kernels():
    from fenchel.kernels.triton import pnormmax as kernels
    from fenchel.kernels.triton.shared import float64_rows

pytestmark = MARKS

ACCURACY = 1e-7
INF, NAN = math.inf, math.nan
EXPONENTS = (1.05, 1.5, 2.0, 3.5, "rows")


def _exponent(value: float | str) -> float | Tensor:
    if isinstance(value, float):
        return value
    return torch.tensor([[1.2], [1.7], [2.0], [2.6]], dtype=torch.float64, device=DEVICE)


@pytest.mark.parametrize("scale", [0.05, 1.0, 20.0])
@pytest.mark.parametrize("p", EXPONENTS)
def test_probabilities_and_gradients(p: float | str, scale: float):
    x, s = scores(scale), _exponent(p)
    expected = reference.pnormmax(x.double(), s)
    q = kernels.pnormmax(x, s)
    assert (q.double() - expected).abs().max() <= ACCURACY
    grad = torch.randn(4, 21).to(DEVICE)
    slopes = reference.pnormmax_backward(grad.double(), q.double(), s)
    found = kernels.pnormmax_backward(grad, q, s)
    assert (found.double() - slopes).abs().max() <= ACCURACY * slopes.abs().max().clamp(min=1)


def test_masks_strides_and_other_dimensions():
    x = torch.randn(3, 7, 5).to(DEVICE).transpose(0, 2)
    mask = (torch.rand(5, 1, 3) > 0.3).to(DEVICE)
    expected = reference.pnormmax(
        x.double().masked_fill(~mask, -INF).transpose(1, 2), 1.5
    ).transpose(1, 2)
    q = kernels.pnormmax(x, 1.5, mask, 1)
    assert q.stride() == torch.empty_like(x).stride()
    assert (q.double() - expected).abs().max() <= ACCURACY
    slopes = reference.pnormmax_backward(x.double(), q.double(), 1.5, dim=1)
    found = kernels.pnormmax_backward(x, q, 1.5, 1)
    assert (found.double() - slopes).abs().max() <= 1e-6


def test_a_row_that_is_not_a_number_stays_one():
    x = torch.tensor([[0.0, NAN, 1.0], [0.0, INF, 1.0], [0.0, 0.5, 1.0]]).to(DEVICE)
    assert kernels.pnormmax(x, 1.5).isnan().all(-1).tolist() == [True, True, False]


def test_a_long_row_runs_on_the_reference(monkeypatch: pytest.MonkeyPatch):
    x = scores()
    short = kernels.pnormmax(x, 1.5)
    monkeypatch.setattr(float64_rows, "MAX_HELD_COLUMNS", 8)
    torch.testing.assert_close(kernels.pnormmax(x, 1.5), short)
    torch.testing.assert_close(
        kernels.pnormmax_backward(x.nan_to_num(0, 0, 0), short, 1.5),
        reference.pnormmax_backward(x.nan_to_num(0, 0, 0), short, 1.5),
    )
