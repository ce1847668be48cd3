"""The Triton kernels of the loss and of the output layer against the float64 reference."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from fenchel.kernels.reference import entmax_loss as reference_loss
from tests.kernels.interpreted import DEVICE, MARKS, defining_kernels
from tests.kernels.small_kernels import ACCURACY, IGNORED, error, per_row, tensor

with defining_kernels():
    from fenchel.kernels.triton import entmax_loss
    from fenchel.kernels.triton.linear_entmax_loss import weight_gradient

pytestmark = MARKS

INF, NAN = math.inf, math.nan

CLASSES, SMOOTHED, PROBABILITIES = "classes", "smoothed classes", "probabilities"
SLOPES = [
    *((alpha, targets) for alpha in (2.0, 1.5, 1.3, 1.0, 2.5, "rows")
      for targets in (CLASSES, PROBABILITIES)),
    (1.5, SMOOTHED), (1.0, SMOOTHED), ("rows", SMOOTHED),
]  # fmt: skip
IN_PLACE = [
    (2.0, CLASSES), (1.5, CLASSES), (1.3, CLASSES), (1.0, CLASSES), ("rows", CLASSES),
    (1.5, SMOOTHED), (1.5, PROBABILITIES),
]  # fmt: skip


def _loss_problem(alpha: float | str, targets: str) -> tuple:
    """Scores with a class that cannot be and a last row of nothing, target, alpha, and options."""
    scores = tensor(5, 10, scale=2.0)
    scores[1, 3], scores[4] = -INF, -INF
    target = torch.tensor([int(scores[0].argmax()), 5, IGNORED, 9, 0], device=DEVICE)
    if targets == PROBABILITIES:
        weights = torch.rand(5, 10, device=DEVICE) * (torch.rand(5, 10, device=DEVICE) > 0.5)
        weights[1, 3] = 0.0
        target = weights / weights.sum(-1, keepdim=True)
    value = per_row(5) if isinstance(alpha, str) else alpha
    return scores, target, value, (IGNORED, 0.2 if targets == SMOOTHED else 0.0)


def _exact(target: Tensor) -> Tensor:
    return target.double() if target.dtype.is_floating_point else target


@pytest.mark.parametrize(("alpha", "targets"), SLOPES)
def test_loss_and_its_slopes(kernel: str, alpha: float | str, targets: str) -> None:
    scores, target, value, options = _loss_problem(alpha, targets)
    exact = (_exact(target), value)
    expected, normalizer = reference_loss.entmax_loss(scores.double(), *exact, *options)
    loss, found = entmax_loss.entmax_loss(scores, target, value, *options)
    assert torch.equal(loss.isinf(), expected.isinf())
    assert loss[4].item() == INF
    assert found[4].item() == -INF
    finite = expected.isfinite()
    assert error(loss[finite], expected[finite]) <= 1e-6 * expected[finite].max().item()
    assert error(found[:4], normalizer[:4]) <= 2e-6
    grad = tensor(5)
    slope = entmax_loss.entmax_loss_backward(grad, scores, target, value, found, *options)
    arguments = (grad.double(), scores.double(), *exact, normalizer, *options)
    assert error(slope, reference_loss.entmax_loss_backward(*arguments)) <= 3 * ACCURACY
    values = torch.full((5, 1), value).to(DEVICE) if isinstance(value, float) else value
    by_alpha = entmax_loss.entmax_loss_alpha(scores, target, values, found, *options)
    arguments = (scores.double(), exact[0], values.double(), normalizer, *options)
    assert error(by_alpha, reference_loss.entmax_loss_alpha(*arguments)) <= 2e-5


def test_a_class_that_cannot_be_has_no_gradient_for_the_smallest_alpha(kernel: str) -> None:
    scores, target, _, options = _loss_problem(0.1, CLASSES)
    _, normalizer = entmax_loss.entmax_loss(scores, target, 0.1, *options)
    ones = torch.ones(5, device=DEVICE)
    slope = entmax_loss.entmax_loss_backward(ones, scores, target, 0.1, normalizer, *options)
    assert slope[1, 3].item() == 0.0


@pytest.mark.parametrize(("alpha", "targets"), [(1.0, CLASSES), ("rows", SMOOTHED)])
def test_a_loss_is_exact_far_from_zero(kernel: str, alpha: float | str, targets: str) -> None:
    scores, target, value, options = _loss_problem(alpha, targets)
    scores, target = scores[:4] + 1e4, target[:4]
    value = value[:4] if isinstance(value, Tensor) else value
    expected, normalizer = reference_loss.entmax_loss(scores.double(), target, value, *options)
    loss, found = entmax_loss.entmax_loss(scores, target, value, *options)
    finite = expected.isfinite()
    assert error(loss[finite], expected[finite]) <= 1e-6 * expected[finite].max().item()
    grad = tensor(4)
    slope = entmax_loss.entmax_loss_backward(grad, scores, target, value, found, *options)
    arguments = (grad.double(), scores.double(), target, value, normalizer, *options)
    assert error(slope, reference_loss.entmax_loss_backward(*arguments)) <= 3 * ACCURACY


@pytest.mark.parametrize("alpha", [1.0, 1.5, "rows"])
def test_a_smoothed_class_left_out_by_the_lowest_number(kernel: str, alpha: float | str) -> None:
    """Scores at finfo.min, as masks make them: their sum is no float32, their mean is."""
    scores, target, value, options = _loss_problem(alpha, SMOOTHED)
    scores[:, 5:9] = torch.finfo(torch.float32).min
    expected, _ = reference_loss.entmax_loss(scores.double(), target, value, *options)
    loss, _ = entmax_loss.entmax_loss(scores, target, value, *options)
    finite = expected.isfinite()
    assert torch.equal(loss.isfinite(), finite)
    assert error(loss[finite] / expected[finite].clamp(min=1), expected[finite].sign()) <= 1e-6


@pytest.mark.parametrize(("alpha", "targets"), IN_PLACE)
def test_the_gradient_in_place_of_the_scores(kernel: str, alpha: float | str, targets: str) -> None:
    scores, target, value, options = _loss_problem(alpha, targets)
    scores[3, 7] = NAN
    grad, wide = tensor(5), scores.double()
    expected, _ = reference_loss.entmax_loss_in_place(
        grad.double(), wide, _exact(target), value, *options, False
    )
    loss, _ = entmax_loss.entmax_loss_in_place(grad, scores, target, value, *options, False)
    assert torch.equal(loss.isinf(), expected.isinf())
    assert loss.isnan().tolist() == [False, False, False, True, False]
    finite = expected.isfinite()
    assert error(loss[finite], expected[finite]) <= 1e-6 * expected[finite].max().item()
    assert scores[3].isnan().all()
    assert error(scores[[0, 1, 2, 4]], wide[[0, 1, 2, 4]]) <= 3 * ACCURACY


def test_the_slope_in_alpha_beside_the_gradient_in_place(kernel: str) -> None:
    scores, target, _, options = _loss_problem(1.5, CLASSES)
    value, grad = torch.linspace(1.2, 1.8, 5, device=DEVICE).unsqueeze(-1), tensor(5)
    wide = scores.double()
    arguments = (grad.double(), wide, target, value.double(), *options, True)
    _, expected = reference_loss.entmax_loss_in_place(*arguments)
    _, slope = entmax_loss.entmax_loss_in_place(grad, scores, target, value, *options, True)
    assert expected is not None
    assert slope is not None
    assert error(slope, expected) <= 2e-5
    assert error(scores, wide) <= 3 * ACCURACY


@pytest.mark.parametrize("kernel", ["groups"], indirect=True)
@pytest.mark.parametrize(("longest", "sums", "width"), [(16, 3, 5), (4, 1, 8)])
def test_the_gradients_of_a_layer_by_entries_that_are_not_zero(
    kernel: str, longest: int, sums: int, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some rows of a chunk have more entries than are listed, or none has, or all have."""
    tile = weight_gradient.Product(16, 16, 16, {"num_warps": 1})
    small = {
        "MAX_LISTED_ENTRIES": longest,
        "LIST_PARTS": sums,
        "WEIGHT_BLOCK": 4,
        "HIDDEN_BLOCK": 4,
        "MIN_FULL_PROGRAMS": 3,
    }
    tiles = dict.fromkeys(("TILE", "HIDDEN_TILE", "LARGE_HIDDEN_TILE"), tile)
    for name, value in (small | tiles).items():
        monkeypatch.setattr(weight_gradient, name, value)
    count, classes, rows, part = 11, 32, 4, 2
    hidden, scores, weight = (
        tensor(count, width), tensor(count, classes), tensor(classes, width)
    )  # fmt: skip
    scores[3] *= 0.1
    scores[8:] *= 0.01
    target = torch.tensor([0, 7, IGNORED, 29, 4, 4, 11, 1, 2, 3, 4], device=DEVICE)
    by_hidden, by_weight = (torch.full_like(each, NAN) for each in (hidden, weight))
    total, full = weight_gradient.SparseWeightGradient(by_weight, hidden, target, rows), []
    for first in range(0, count, rows):
        chunk = scores[first : first + rows]
        for offset in range(0, len(chunk), part):
            some = chunk[offset : offset + part]
            own = target[first + offset :][: len(some)]
            weigh, listed = (
                torch.ones(len(some), device=DEVICE),
                total.empty_support_groups(len(some)),
            )
            entmax_loss.entmax_loss_in_place(weigh, some, own, 1.5, IGNORED, 0.0, False, listed)
            total.list_part(some, listed, first + offset, offset)
        total.add(chunk, first, by_hidden[first : first + rows], weight)
        total.finish(first + len(chunk))
        full.append(int(total.full[0]))
    assert full[2] == 3
    assert full[0] > 0 if longest == 4 else full[1] == 0
    assert scores[2].eq(0).all()
    assert error(by_hidden, scores.double() @ weight.double()) <= 2e-6
    assert error(by_weight, scores.double().t() @ hidden.double()) <= 2e-6


def test_numbers_are_scaled_in_place() -> None:
    numbers = tensor(3, 5000).half()
    expected = (numbers.float() * 0.37).half()
    assert weight_gradient.scale(numbers, torch.tensor(0.37, device=DEVICE)) is numbers
    torch.testing.assert_close(numbers, expected, rtol=0, atol=0)


@pytest.mark.parametrize("alpha", [1.5, 1.0])
def test_an_index_that_is_no_class_gives_nan(kernel: str, alpha: float) -> None:
    target = torch.tensor([0, 7], device=DEVICE)
    loss, _ = entmax_loss.entmax_loss(tensor(2, 7), target, alpha, IGNORED, 0.0)
    assert loss.isnan().tolist() == [False, True]
