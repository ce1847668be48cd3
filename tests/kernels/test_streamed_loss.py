"""Losses of which a program solves and overwrites whole rows: on the GPU, or interpreted without one.

Blocks of 16 columns stand for the long ones, so that few rows of 40 reach every branch.
"""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from fenchel.kernels.reference import entmax_loss as reference
from tests.kernels.interpreted import DEVICE, MARKS, defining_kernels

with defining_kernels():
    from fenchel.kernels.triton import entmax_loss, linear_entmax_loss
    from fenchel.kernels.triton.entmax_loss import (
        alpha_gradient,
        backward,
        in_place,
        saved_for_backward,
    )
    from fenchel.kernels.triton.launch import tile_shapes
    from fenchel.kernels.triton.launch.parameters import ENTMAX15, SOFTMAX, SPARSEMAX
    from fenchel.kernels.triton.linear_entmax_loss import weight_gradient

pytestmark = MARKS

ROWS, CLASSES, IGNORED = 9, 40, -100
SPARSE, FLAT, HALF_FLAT, NOT_A_NUMBER, EMPTY, OFF, LEFT_OUT, INFINITE, SURE = range(ROWS)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    groups = tile_shapes.Groups(4, CLASSES // 4, 16, 4, 1, 2, 1)
    monkeypatch.setattr(in_place, "streams_losses", lambda *_: True)
    for module in (in_place, saved_for_backward, backward, alpha_gradient):
        monkeypatch.setattr(module, "groups_shape", lambda _: groups)
    monkeypatch.setattr(in_place, "streamed_loss_tile", lambda: tile_shapes.Tile(2, 1, 8, 1))


def _problem(dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    scores = 2 * torch.randn(ROWS, CLASSES)
    scores[FLAT] *= 0.01
    scores[HALF_FLAT] *= 0.2
    scores[NOT_A_NUMBER, 3] = math.nan
    scores[EMPTY] = -math.inf
    scores[INFINITE, 30] = math.inf
    target = torch.arange(ROWS) * 4
    scores[OFF, target[OFF]] = -math.inf
    target[LEFT_OUT] = IGNORED
    scores[SURE, target[SURE]] = 30.0
    return scores.to(DEVICE, dtype), target.to(DEVICE), torch.linspace(0.5, 2.0, ROWS).to(DEVICE)


@pytest.mark.parametrize(
    ("alpha", "dtype"),
    [(2.0, torch.float32), (1.5, torch.float32), (1.5, torch.float16)],
)
def test_whole_rows_are_solved_and_overwritten(alpha: float, dtype: torch.dtype) -> None:
    scores, target, grad = _problem(dtype)
    wide = scores.double()
    arguments = (target, alpha, IGNORED, 0.0, False)
    expected, _ = reference.entmax_loss_in_place(grad.double(), wide, *arguments)
    loss, _ = entmax_loss.entmax_loss_in_place(grad, scores, *arguments)
    assert loss.isnan().nonzero().flatten().tolist() == [NOT_A_NUMBER, INFINITE]
    assert loss.isinf().nonzero().flatten().tolist() == [EMPTY, OFF]
    assert loss[LEFT_OUT] == 0
    finite = loss.isfinite()
    torch.testing.assert_close(loss[finite].double(), expected[finite], rtol=1e-6, atol=1e-9)
    assert scores[[NOT_A_NUMBER, INFINITE]].isnan().all()
    assert scores[[EMPTY, LEFT_OUT]].eq(0).all()
    rounded = 1e-6 if dtype == torch.float32 else 2.0**-10
    known = [SPARSE, FLAT, HALF_FLAT, OFF, SURE]
    torch.testing.assert_close(scores[known].double(), wide[known], rtol=rounded, atol=1e-6)


def test_the_groups_of_a_row_that_hold_support_are_listed() -> None:
    scores, target, grad = _problem(torch.float32)
    listed = torch.full((ROWS, CLASSES // 4 + 1), -1, dtype=torch.int32, device=DEVICE)
    entmax_loss.entmax_loss_in_place(grad, scores, target, 1.5, IGNORED, 0.0, False, listed)
    assert listed[[FLAT, EMPTY, NOT_A_NUMBER], -1].tolist() == [CLASSES // 4, 0, 0]
    few = int(listed[SPARSE, -1])
    assert 0 < few <= 4, "so few stay in registers"
    others = scores[SPARSE].clone()
    others[target[SPARSE]] = 0
    touched = others.nonzero().flatten() // 4
    assert set(touched.tolist()) <= set(listed[SPARSE, :few].tolist())


def test_an_index_that_is_no_class_gives_nan_and_moves_nothing_else() -> None:
    scores = torch.randn(2, CLASSES, device=DEVICE)
    target, grad = torch.tensor([-3, CLASSES], device=DEVICE), torch.ones(2, device=DEVICE)
    for alpha in (1.5, 2.0):
        slopes = torch.cat([scores, torch.full_like(scores[:1], 7.0)])
        loss, _ = entmax_loss.entmax_loss_in_place(
            grad, slopes[:2], target, alpha, IGNORED, 0.0, False
        )
        assert loss.isnan().all()
        torch.testing.assert_close(slopes[:2].sum(-1), grad)
        assert slopes[2].eq(7).all()


def test_many_long_rows_in_half_precision_are_streamed() -> None:
    kinds = {1.5: ENTMAX15, 2.0: SPARSEMAX, 1.0: SOFTMAX}
    chosen = {
        (alpha, rows, columns, size)
        for alpha in kinds
        for rows in (16, 512)
        for columns in (4096, 128256)
        for size in (2, 4)
        if tile_shapes.streams_losses(kinds[alpha].value, rows, columns, size)
    }
    assert chosen == {(1.5, 512, 128256, 2), (2.0, 512, 128256, 2)}


@pytest.mark.parametrize("factor", [1.0, 0.37, math.nan])
def test_numbers_are_scaled_unless_that_leaves_them_as_they_are(
    factor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weight_gradient, "MAX_SCALE_PROGRAMS", 2)
    numbers = torch.randn(3, 5000, device=DEVICE).half()
    expected = (numbers.float() * factor).half()
    linear_entmax_loss.scale(numbers, torch.tensor(factor, device=DEVICE))
    torch.testing.assert_close(numbers, expected, rtol=0, atol=0, equal_nan=True)
