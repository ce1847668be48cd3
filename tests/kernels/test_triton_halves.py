"""Long rows in half precision, of which two scores share a register: as exact as rows of float32 where
the result is float32, and rounded once where it is not.

A tile of two slabs stands for the usual one of sixteen, with and without columns missing at its end.
"""

from __future__ import annotations

import math

import pytest
import torch

from fenchel.kernels.reference import entmax as reference
from tests.kernels.interpreted import DEVICE, MARKS, defining_kernels
from tests.kernels.long_rows import ACCURACY, assert_exact, rows_of_every_sort

with defining_kernels():
    from fenchel.kernels.triton import entmax
    from fenchel.kernels.triton.entmax import forward, packed_half
    from fenchel.kernels.triton.launch import tile_shapes
    from fenchel.kernels.triton.launch.addressing import Rows
    from fenchel.kernels.triton.launch.parameters import SOFTMAX, SPARSEMAX

pytestmark = MARKS

COLUMNS = 400
TILE = tile_shapes.Tile(slabs=2, rows=1, width=256, warps=1, vector=8)


@pytest.fixture(autouse=True)
def _short_tile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forward, "fits_packed_tile", lambda *_: True)
    monkeypatch.setattr(packed_half, "packed_tile", lambda _: TILE)
    monkeypatch.setattr(forward, "entmax_tile", None)


@pytest.mark.parametrize("alpha", [2.0, 1.5])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("columns", [COLUMNS, TILE.slabs * TILE.width])
def test_halves_are_exact(alpha: float, dtype: torch.dtype, columns: int) -> None:
    assert_exact(rows_of_every_sort(dtype, columns), alpha)


@pytest.mark.parametrize("alpha", [2.0, 1.5])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_results_in_half_precision_are_rounded_once(alpha: float, dtype: torch.dtype) -> None:
    scores = rows_of_every_sort(dtype, COLUMNS)
    expected = reference.entmax(scores.double(), alpha)
    error = (entmax.entmax(scores, alpha).double() - expected).abs()
    # The interpreter cuts bfloat16 off where a GPU rounds it.
    step = torch.finfo(dtype).eps * (0.5 if DEVICE == "cuda" else 1.0)
    assert (error <= step * expected + ACCURACY).all()


@pytest.mark.parametrize("alpha", [2.0, 1.5])
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_row_with_nan_or_inf_is_nan_alone(alpha: float, bad: float) -> None:
    scores = torch.randn(2, COLUMNS, dtype=torch.bfloat16, device=DEVICE)
    scores[1, 300] = bad
    probabilities = entmax.entmax(scores, alpha)
    assert probabilities[0].isfinite().all()
    assert probabilities[1].isnan().all()


def test_only_many_long_rows_in_half_precision_are_held_in_halves() -> None:
    def held(kind: int, count: int, columns: int, itemsize: int) -> bool:
        return tile_shapes.fits_packed_tile(kind, Rows(count, columns, 1, 1, 1), itemsize)

    sparsemax, softmax = SPARSEMAX.value, SOFTMAX.value
    assert held(sparsemax, 4096, 32_000, 2)
    assert not held(sparsemax, 4096, 32_000, 4)
    assert not held(sparsemax, 4096, 1024, 2)
    assert not held(sparsemax, 4096, 40_000, 2)
    assert not held(sparsemax, 4, 32_000, 2)
    assert not held(softmax, 4096, 32_000, 2)


def test_masked_rows_and_columns_that_are_not_neighbours_are_held_in_float32(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(forward, "fits_packed_tile", lambda *_: True)
    monkeypatch.setattr(packed_half, "entmax_packed_half", None)
    scores = torch.randn(3, 8, dtype=torch.bfloat16, device=DEVICE)
    mask = torch.arange(8, device=DEVICE) < 5
    assert entmax.entmax(scores, 1.5, mask)[:, 5:].eq(0).all()
    assert entmax.entmax(scores, 1.5, dim=0).isfinite().all()
