"""What the tests of maps with one threshold a row share: rows with ties and gaps, held or in blocks."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from tests.kernels.interpreted import DEVICE, defining_kernels

with defining_kernels():
    from fenchel.kernels.triton.launch.tile_shapes import Groups, ceil_div, next_power_of_two
    from fenchel.kernels.triton.shared import float64_rows, threshold_backward, threshold_rows

BLOCK, GROUP = 16, 2  # columns of a row that is read in blocks, and in groups
SCALES = (0.05, 1.0, 20.0) if DEVICE == "cuda" else (0.3,)
WIDTHS = (300, 5000, 70_000) if DEVICE == "cuda" else (1, 2, 130)
# Where kernels are interpreted, bfloat16 is cut off instead of rounded.
HALF = (torch.float16, torch.bfloat16) if DEVICE == "cuda" else (torch.float16,)


@pytest.fixture(params=["held", "blocks"])
def length(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Whether a program holds a row, or reads it block by block."""
    if request.param == "blocks":
        monkeypatch.setattr(float64_rows, "MAX_HELD_COLUMNS", BLOCK)
        monkeypatch.setattr(threshold_rows, "MAX_TILE_COLUMNS_HELD", BLOCK)
        monkeypatch.setattr(threshold_backward, "MAX_COLUMNS", BLOCK)
        monkeypatch.setattr(threshold_backward, "BACKWARD_BLOCK_COLUMNS", BLOCK)
        monkeypatch.setattr(threshold_rows, "groups_shape", _small_groups)
    return request.param


def _small_groups(columns: int) -> Groups:
    """Some groups of every row, a few of them listed at once."""
    groups = ceil_div(columns, GROUP)
    return Groups(GROUP, groups, next_power_of_two(groups), BLOCK // GROUP, 1, 4, 1)


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
