"""entmax on the GPU where its first guess of the edge is poor: on the device, or interpreted.

The kernels for alpha above 1.45 start from moments of the scores over an edge. Whatever they start
from, the result must be exact.
"""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from fenchel.kernels.reference import entmax as reference
from tests.kernels.interpreted import DEVICE, MARKS, defining_kernels

with defining_kernels():
    from fenchel.kernels.triton import entmax

pytestmark = MARKS

ACCURACY = 2e-7
COLUMNS = 40


def _awkward_rows() -> Tensor:
    """Rows in which the edge of the support is hard to guess, or many scores lie close to it."""
    place = torch.arange(COLUMNS)
    noise = torch.randn(COLUMNS)
    return torch.stack([
        -0.3 * (place % 2),  # two values
        -torch.logspace(-7, 1, COLUMNS),
        torch.where(place == 0, 0.0, -0.6),  # one large score before a wall
        -1.0 * ((place > 0).float() + (place > 6)),  # many scores enter the support at once
        -place / COLUMNS,
        (0.1 * noise).round(decimals=2),  # ties
        torch.where(place % 3 == 0, -math.inf, 30 * noise),
    ]).to(DEVICE)  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("alpha", [0.6, 1.46, 1.75, 1.999, 2.2, 5.0])
def test_a_bad_guess_does_not_matter(alpha: float, dtype: torch.dtype) -> None:
    scores = _awkward_rows().to(dtype)
    exact = reference.entmax(scores.double(), alpha)
    error = (entmax.entmax(scores, alpha).double() - exact).abs()
    # p is rounded to bfloat16 once; the interpreter cuts it off.
    rounding = torch.finfo(dtype).eps if dtype == torch.bfloat16 else 0.0
    assert (error - rounding * exact).max().item() <= ACCURACY


def test_a_last_step_is_short_where_small_entries_make_the_slope() -> None:
    """One score above many equal ones: A moves little, and the slope of F is another one.

    In these rows the interpreter, which adds entries one by one, sums well.
    """
    alpha, columns = 1.44, 2000
    largest = torch.tensor([[0.35], [0.5], [0.95]], dtype=torch.float64)
    others = (1 - largest) / (columns - 1)
    below = (others ** (alpha - 1) - largest ** (alpha - 1)) / (alpha - 1)
    scores = below.float().expand(-1, columns).clone()
    scores[:, 7] = 0
    scores = scores.to(DEVICE)
    exact = reference.entmax(scores.double(), alpha)
    assert (entmax.entmax(scores, alpha).double() - exact).abs().max().item() <= ACCURACY
