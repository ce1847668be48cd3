"""A few scores far above many that are nearly equal, in rows on chip and in longer ones.

The errors of equal entries are equal and add up, and a short way from the root, where these entries
enter or leave the support, F is another function.
"""

from __future__ import annotations

import pytest
import torch

from fenchel.kernels.reference import entmax as reference
from tests.kernels.interpreted import DEVICE, MARKS, defining_kernels
from tests.kernels.peaked_rows import peaked_rows

with defining_kernels():
    from fenchel.kernels.triton import entmax
    from fenchel.kernels.triton.entmax import long_rows
    from fenchel.kernels.triton.launch import tile_shapes
    from fenchel.kernels.triton.launch.tile_shapes import ceil_div, next_power_of_two

pytestmark = MARKS

ACCURACY = 2e-7
COLUMNS = 769
FEW_COLUMNS = 128  # of which a tile holds several rows


def _groups_of_four(columns: int) -> tile_shapes.Groups:
    groups = ceil_div(columns, 4)
    return tile_shapes.Groups(4, groups, next_power_of_two(groups), 256, 1, 4, 1)


@pytest.fixture
def _long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows count as long, and a program adds four groups of four at once."""
    for name in ("MAX_TILE_COLUMNS", "MAX_POWER_TILE_COLUMNS"):
        monkeypatch.setattr(tile_shapes, name, 4)
    monkeypatch.setattr(long_rows, "groups_shape", _groups_of_four)


@pytest.mark.parametrize("alpha", [0.5, 0.95, 1.02, 1.19, 1.46, 1.5, 1.6, 1.8])
def test_short_peaked_rows_are_exact(alpha: float) -> None:
    alpha = float(torch.tensor(alpha - 1)) + 1  # which float32 holds
    scores = peaked_rows(FEW_COLUMNS, alpha, 6).to(DEVICE)
    p = entmax.entmax(scores, alpha)
    assert (p - reference.entmax(scores.double(), alpha)).abs().max() <= ACCURACY


@pytest.mark.usefixtures("_long")
@pytest.mark.parametrize("alpha", [1.3, 1.44, 1.46, 1.5, 1.6])
def test_peaked_rows_are_exact(alpha: float) -> None:
    scores = peaked_rows(COLUMNS, alpha, 2).to(DEVICE)
    p = entmax.entmax(scores, alpha)
    assert (p - reference.entmax(scores.double(), alpha)).abs().max() <= ACCURACY


@pytest.mark.usefixtures("_long")
@pytest.mark.parametrize("alpha", [0.95, 1.1])
def test_peaked_rows_with_an_alpha_each_are_exact(alpha: float) -> None:
    scores = peaked_rows(COLUMNS, alpha, 2).to(DEVICE)
    alphas = torch.full((scores.shape[0], 1), alpha, dtype=torch.float64, device=DEVICE)
    p = entmax.entmax(scores, alphas)
    assert (p - reference.entmax(scores.double(), alpha)).abs().max() <= ACCURACY
