"""What the tests of long rows for alpha = 2 and 3/2 share: rows of every sort, and how exact they are."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from fenchel.kernels.reference import entmax as reference
from tests.kernels.interpreted import DEVICE, defining_kernels

with defining_kernels():
    from fenchel.kernels.triton import entmax

ACCURACY = 2e-7


def rows_of_every_sort(dtype: torch.dtype, columns: int) -> Tensor:
    """Rows with little support, with much, with ties, with one score and with none."""
    scores = torch.randn(5, columns)
    scores[1] *= 0.02
    scores[2] = scores[2].round() * 100
    scores[3, 1:] = -math.inf
    scores[4] = -math.inf
    return scores.to(dtype).to(DEVICE)


def assert_exact(scores: Tensor, alpha: float) -> None:
    """Every entry is written, in float32, within the promise."""
    probabilities = torch.full_like(scores, math.nan, dtype=torch.float32)
    entmax.entmax_into(probabilities, scores, alpha, None, -1)
    expected = reference.entmax(scores.double(), alpha)
    assert (probabilities.double() - expected).abs().max() <= ACCURACY
