"""Many rows too long for the chip, each read, solved and written by one program: as exact as others.

Groups of four columns stand for the usual ones of 128 bytes, read in two steps; a row with much support
lists more of them than a program holds.
"""

from __future__ import annotations

import math

import pytest
import torch

from tests.kernels.interpreted import DEVICE, MARKS, defining_kernels
from tests.kernels.long_rows import assert_exact, rows_of_every_sort

with defining_kernels():
    from fenchel.kernels.triton import entmax
    from fenchel.kernels.triton.entmax import forward, long_rows, streamed_rows
    from fenchel.kernels.triton.launch import tile_shapes
    from fenchel.kernels.triton.launch.addressing import Rows
    from fenchel.kernels.triton.launch.parameters import FAST_STEPS, SPARSEMAX
    from fenchel.kernels.triton.launch.tile_shapes import ceil_div, next_power_of_two

pytestmark = MARKS

COLUMNS = 61


def _small_groups(columns: int, _itemsize: int = 4) -> tile_shapes.Groups:
    groups = ceil_div(columns, 4)
    return tile_shapes.Groups(4, groups, next_power_of_two(groups), 8, 1, 4, 1)


@pytest.fixture(autouse=True)
def _streamed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tile_shapes, "MAX_TILE_COLUMNS", 4)
    monkeypatch.setattr(forward, "streams_rows", lambda *_: True)
    monkeypatch.setattr(streamed_rows, "streamed_groups", _small_groups)
    monkeypatch.setattr(long_rows, "solve_groups", None)


@pytest.mark.parametrize("alpha", [2.0, 1.5])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_streamed_rows_are_exact(alpha: float, dtype: torch.dtype) -> None:
    assert_exact(rows_of_every_sort(dtype, COLUMNS), alpha)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_groups_of_the_usual_size(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamed_rows, "streamed_groups", tile_shapes.streamed_groups)
    columns = 100_000 if DEVICE == "cuda" else 3_000  # the interpreter compares one by one
    scores = torch.randn(2, columns, device=DEVICE).to(dtype)
    scores[1] *= 0.02
    assert_exact(scores, 1.5)


@pytest.mark.parametrize("alpha", [2.0, 1.5])
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_row_with_nan_or_inf_is_nan_alone(alpha: float, bad: float) -> None:
    scores = torch.randn(2, COLUMNS, device=DEVICE)
    scores[1, 50] = bad
    probabilities = entmax.entmax(scores, alpha)
    assert probabilities[0].isfinite().all()
    assert probabilities[1].isnan().all()


def test_only_many_rows_of_a_measured_length_are_streamed() -> None:
    def streamed(kind: int, count: int, columns: int) -> bool:
        return tile_shapes.streams_rows(kind, Rows(count, columns, 1, 1, 1))

    assert streamed(SPARSEMAX.value, 2048, 128_256)
    assert not streamed(SPARSEMAX.value, 512, 128_256)
    assert not streamed(SPARSEMAX.value, 2048, 40_000)
    assert not streamed(SPARSEMAX.value, 2048, 131_073)
    assert not streamed(FAST_STEPS.value, 2048, 128_256)


def test_masked_rows_and_columns_that_are_not_neighbours_are_solved_by_three_kernels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(tile_shapes, "MAX_TILE_COLUMNS", 4)
    monkeypatch.setattr(forward, "streams_rows", lambda *_: True)
    monkeypatch.setattr(streamed_rows, "entmax_streamed", None)
    monkeypatch.setattr(long_rows, "groups_shape", _small_groups)
    scores = torch.randn(3, 8, device=DEVICE)
    mask = torch.arange(8, device=DEVICE) < 5
    assert entmax.entmax(scores, 1.5, mask)[:, 5:].eq(0).all()
    assert entmax.entmax(scores.mT.contiguous(), 1.5, dim=0).isfinite().all()
