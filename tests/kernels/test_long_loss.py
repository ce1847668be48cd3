"""Losses of long rows: near alpha = 1, next to zero, and gradients that read listed groups alone.

On the GPU, or interpreted without one.
"""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from fenchel.kernels.reference import entmax_loss as reference
from tests.kernels.interpreted import DEVICE, MARKS, defining_kernels

with defining_kernels():
    from fenchel.kernels.triton import entmax_loss
    from fenchel.kernels.triton.entmax import long_rows
    from fenchel.kernels.triton.entmax_loss import (
        alpha_gradient,
        backward,
        near_softmax,
        saved_for_backward,
    )
    from fenchel.kernels.triton.launch import tile_shapes
    from fenchel.kernels.triton.launch.tile_shapes import ceil_div, next_power_of_two

pytestmark = MARKS

CLASSES = 45
IGNORED = -100
OPTIONS = (IGNORED, 0.0)


@pytest.fixture(autouse=True)
def _short_rows_are_long(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (long_rows, saved_for_backward, backward, alpha_gradient):
        monkeypatch.setattr(module, "groups_shape", _small_groups)
    monkeypatch.setattr(tile_shapes, "MAX_LOSS_TILE_COLUMNS", 4)
    monkeypatch.setattr(
        near_softmax, "near_softmax_loss_tile", lambda: tile_shapes.Tile(4, 1, 4, 1)
    )


def _small_groups(columns: int) -> tile_shapes.Groups:
    groups = ceil_div(columns, 4)
    return tile_shapes.Groups(4, groups, next_power_of_two(groups), 4, 1, 2, 1)


def _problem(scale: float) -> tuple[Tensor, Tensor]:
    """Rows of which one is ignored, one empty, one holds a NaN and one has its class at -inf."""
    scores = scale * torch.randn(7, CLASSES, device=DEVICE)
    target = torch.tensor([int(scores[0].argmax()), 3, IGNORED, 9, 0, 1, 44], device=DEVICE)
    scores[1, 3], scores[4], scores[5, 2] = -math.inf, -math.inf, math.nan
    return scores, target


@pytest.mark.parametrize(("alpha", "scale"), [(1.02, 1.0), (1.001, 20.0), (1.06, 0.02)])
def test_a_walk_along_the_row_gives_loss_and_gradient(alpha: float, scale: float) -> None:
    scores, target = _problem(scale)
    expected, normalizer = reference.entmax_loss(scores.double(), target, alpha, *OPTIONS)
    loss, found = entmax_loss.entmax_loss(scores, target, alpha, *OPTIONS)
    torch.testing.assert_close(loss.double(), expected, rtol=1e-6, atol=1e-12, equal_nan=True)
    torch.testing.assert_close(found, normalizer, rtol=2e-7, atol=2e-7, equal_nan=True)
    grad = torch.randn(7, device=DEVICE)
    arguments = (scores.double(), target, alpha, normalizer, *OPTIONS)
    slope = reference.entmax_loss_backward(grad.double(), *arguments)
    overwritten, _ = entmax_loss.entmax_loss_in_place(grad, scores, target, alpha, *OPTIONS, False)
    assert torch.equal(overwritten.nan_to_num(-1.0), loss.nan_to_num(-1.0))
    torch.testing.assert_close(scores.double(), slope, rtol=0, atol=4e-7, equal_nan=True)


def test_a_walk_serves_probabilities_and_finds_no_class_that_is_none() -> None:
    scores = torch.randn(3, CLASSES, device=DEVICE)
    target = torch.rand(3, CLASSES, device=DEVICE).softmax(-1)
    loss, _ = entmax_loss.entmax_loss(scores, target, 1.02, *OPTIONS)
    expected, _ = reference.entmax_loss(scores.double(), target.double(), 1.02, *OPTIONS)
    torch.testing.assert_close(loss.double(), expected, rtol=1e-6, atol=0)
    classes = torch.tensor([0, CLASSES, -1], device=DEVICE)
    loss, _ = entmax_loss.entmax_loss(scores, classes, 1.02, *OPTIONS)
    assert loss.isnan().tolist() == [False, True, True]


@pytest.mark.parametrize("alpha", [1.02, 1.3, 1.5, 2.0])
def test_a_loss_next_to_zero_has_its_digits(alpha: float) -> None:
    """p of the target is next to one, and a float32 holds little of 1 - p."""
    second = -torch.tensor([0.5, 0.9, 0.99, 1.01], device=DEVICE) / (alpha - 1)
    scores = torch.full((4, CLASSES), -1e4, device=DEVICE)
    scores[:, 7], scores[:, 20] = 0.0, second
    target = torch.full((4,), 7, device=DEVICE)
    loss, _ = entmax_loss.entmax_loss(scores, target, alpha, *OPTIONS)
    expected, _ = reference.entmax_loss(scores.double(), target, alpha, *OPTIONS)
    torch.testing.assert_close(loss.double(), expected, rtol=5e-5, atol=1e-37)
    assert loss[3].item() == 0


def _spoil_unlisted(scores: Tensor, listed: Tensor) -> int:
    """Write NaN over groups that are not to be read, and count them."""
    unread, count = 0, listed.shape[1] - 1
    for row, (*groups, found) in enumerate(listed.tolist()):
        if 2 * found <= count:
            for group in set(range(count)).difference(groups[:found]):
                scores[row, 4 * group : 4 * group + 4] = math.nan
                unread += 1
    return unread


def _rooms(alpha: float | Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Room for the listed groups, and for the support's smallest score and its probability."""
    numbers = entmax_loss.listed_numbers(CLASSES, target, alpha)
    listed = torch.empty(7, numbers, dtype=torch.int32, device=DEVICE)
    return listed, torch.empty(7, entmax_loss.support_numbers(alpha), device=DEVICE)


@pytest.mark.parametrize(
    ("alpha", "smoothing"), [(2.0, 0.0), (1.5, 0.2), (1.3, 0.0), (2.5, 0.2), (3.0, 0.0)]
)
def test_the_gradient_reads_listed_groups_alone(alpha: float, smoothing: float) -> None:
    scores, target = _problem(8.0)
    listed, support = _rooms(alpha, target)
    assert listed.shape[1] == 13
    options = IGNORED, smoothing
    _, normalizer = entmax_loss.entmax_loss(scores, target, alpha, *options, listed, support)
    grad = torch.randn(7, device=DEVICE)
    arguments = (grad, scores, target, alpha, normalizer, *options)
    expected = entmax_loss.entmax_loss_backward(*arguments)
    assert _spoil_unlisted(scores, listed) > 4 * listed.shape[1]
    slope = entmax_loss.entmax_loss_backward(*arguments, listed, support)
    torch.testing.assert_close(slope, expected, rtol=0, atol=3e-7, equal_nan=True)


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("scale", [0.3, 8.0])
def test_gradients_with_one_alpha_a_row_solve_nothing_again(scale: float, smoothing: float) -> None:
    scores, target = _problem(scale)
    alpha = torch.tensor([1.5, 1.3, 2.0, 2.5, 3.0, 2.2, 5.0], device=DEVICE).unsqueeze(-1)
    rooms, options = _rooms(alpha, target), (IGNORED, smoothing)
    _, normalizer = entmax_loss.entmax_loss(scores, target, alpha, *options, *rooms)
    exact = (scores.double(), target, alpha.double(), normalizer, *options)
    unread = _spoil_unlisted(scores, rooms[0])
    assert unread > 26 or scale < 1
    grad = torch.randn(7, device=DEVICE)
    arguments = (scores, target, alpha, normalizer, *options, *rooms)
    slope = entmax_loss.entmax_loss_backward(grad, *arguments)
    expected = reference.entmax_loss_backward(grad.double(), *exact)
    torch.testing.assert_close(slope.double(), expected, rtol=0, atol=4e-7, equal_nan=True)
    by_alpha = entmax_loss.entmax_loss_alpha(*arguments)
    expected = reference.entmax_loss_alpha(*exact)
    torch.testing.assert_close(by_alpha.double(), expected, rtol=0, atol=2e-5, equal_nan=True)


def test_rows_of_which_much_is_listed_are_read_throughout() -> None:
    scores, target = _problem(0.5)
    listed = torch.empty(7, 13, dtype=torch.int32, device=DEVICE)
    _, normalizer = entmax_loss.entmax_loss(scores, target, 1.3, *OPTIONS, listed)
    assert (2 * listed[:4, -1] > 12).all()
    arguments = (torch.randn(7, device=DEVICE), scores, target, 1.3, normalizer, *OPTIONS)
    slope = entmax_loss.entmax_loss_backward(*arguments, listed)
    expected = entmax_loss.entmax_loss_backward(*arguments)
    torch.testing.assert_close(slope, expected, rtol=0, atol=3e-7, equal_nan=True)


def test_nothing_is_listed_where_no_score_is_left_out() -> None:
    target = torch.zeros(7, dtype=torch.int64, device=DEVICE)
    assert [entmax_loss.listed_numbers(CLASSES, target, alpha) for alpha in (1.0, 1.02)] == [0, 0]
    assert entmax_loss.listed_numbers(CLASSES, target.float(), 1.5) == 0
    assert entmax_loss.listed_numbers(4, target, 1.5) == 0
