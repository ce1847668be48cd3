"""What the tests of maps with one threshold a row share: rows with ties and gaps, held or in blocks."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from tests.kernels.interpreted import DEVICE, defining_kernels

with defining_kernels():
    from fenchel.kernels.triton import row_programs

BLOCK = 16  # columns of a row that is read in blocks
SCALES = (0.05, 1.0, 20.0) if DEVICE == "cuda" else (0.3,)
WIDTHS = (300, 5000, 70_000) if DEVICE == "cuda" else (1, 2, 130)
# Where kernels are interpreted, bfloat16 is cut off instead of rounded.
HALF = (torch.float16, torch.bfloat16) if DEVICE == "cuda" else (torch.float16,)


@pytest.fixture(params=["held", "blocks"])
def length(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Whether a program holds a row, or reads it block by block."""
    if request.param == "blocks":
        monkeypatch.setattr(row_programs, "LONGEST", BLOCK)
    return request.param


def scores(scale: float = 1.0) -> Tensor:
    """Four rows: with ties, with entries left out, with nothing in it, and a plain one."""
    x = (torch.randn(4, 21, dtype=torch.float64) * scale).float()
    x[0, 2:5] = x[0, 7]
    x[1, 3:9] = -math.inf
    x[2, :] = -math.inf
    return x.to(DEVICE)


def assert_rounded_once(actual: Tensor, exact: Tensor) -> None:
    """To half a step of the dtype, up to what float32 in between may add."""
    limits = torch.finfo(actual.dtype)
    step = limits.eps * exact.abs() + limits.smallest_normal
    assert ((actual.double() - exact).abs() <= 0.5001 * step).all()
