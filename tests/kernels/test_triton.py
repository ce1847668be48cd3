"""The Triton kernels against the float64 reference: on the GPU, or interpreted where there is none.

The interpreter runs one Python operation an element, so shapes are small; tiles and the lengths from
which other kernels take over are shrunk to reach every branch all the same.
"""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from fenchel.kernels.reference import entmax as reference
from fenchel.kernels.reference import entmax_loss as reference_loss
from tests.kernels.interpreted import DEVICE, MARKS, defining_kernels

with defining_kernels():
    import triton
    import triton.language as tl
    from triton.runtime.interpreter import InterpretedFunction

    from fenchel.kernels.triton import entmax, entmax_loss, scaling, weight_gradient
    from fenchel.kernels.triton.launch import addressing, long_row_shapes, tile_shapes
    from fenchel.kernels.triton.launch.whole_numbers import ceiling, power_of_two
    from fenchel.kernels.triton.losses import forward, kept
    from fenchel.kernels.triton.rows import long_rows
    from fenchel.kernels.triton.tiles.memory import tile_rows

    @triton.jit
    def _write_rows_of_tile(out, tile, R: tl.constexpr) -> None:
        tl.store(out + tl.arange(0, R), tl.reshape(tile_rows(tile + tl.program_id(0), R), [R]))


pytestmark = MARKS

ACCURACY = 2e-7
ALPHAS = (2.0, 1.5, 1.3, 1.0, 0.6, 1.75, 2.5, 10.0)
INF, NAN = math.inf, math.nan
IGNORED = -100


@pytest.mark.skipif(DEVICE == "cuda", reason="kernels are compiled")
def test_tritons_own_functions_are_interpreted_too() -> None:
    assert isinstance(tl.sum, InterpretedFunction)


@pytest.fixture(params=["tile", "groups"])
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Which kernels take a row: those that hold it, or those that stream over it."""
    if request.param == "groups":
        for name in ("LONGEST_TILE", "LONGEST_POWER_TILE"):
            monkeypatch.setattr(tile_shapes, name, 4)
        monkeypatch.setattr(long_row_shapes, "SOFTMAX_BLOCK", 4)
        monkeypatch.setattr(long_row_shapes, "MOST_PARTS", 2)
        monkeypatch.setattr(entmax, "LONGEST_BACKWARD", 4)
        monkeypatch.setattr(entmax, "BACKWARD_BLOCK", 16)
        monkeypatch.setattr(tile_shapes, "LONGEST_LOSS_TILE", 4)
        monkeypatch.setattr(entmax, "near_rows_shape", lambda *_: tile_shapes.Tile(2, 1, 4, 1, 2))
        monkeypatch.setattr(forward, "near_loss_shape", lambda: tile_shapes.Tile(4, 1, 4, 1))
        for module in (long_rows, kept, entmax_loss, weight_gradient):
            monkeypatch.setattr(module, "groups_shape", _small_groups)
    return request.param


def _small_groups(columns: int) -> long_row_shapes.Groups:
    groups = ceiling(columns, 4)
    return long_row_shapes.Groups(4, groups, power_of_two(groups), 4, 1, 2, 1)


def _tensor(*shape: int, scale: float = 1.0) -> Tensor:
    return (torch.randn(shape, dtype=torch.float64) * scale).float().to(DEVICE)


def _per_row(count: int) -> Tensor:
    """One alpha a row, on both sides of 1 and of 2."""
    return torch.linspace(0.7, 3.0, count, dtype=torch.float64, device=DEVICE).unsqueeze(-1)


def _error(actual: Tensor, expected: Tensor) -> float:
    return (actual.double() - expected.double()).abs().max().item()


@pytest.mark.parametrize("alpha", [*ALPHAS, 1.02, "rows"])
@pytest.mark.parametrize("scale", [1.0, 0.02])
def test_entmax_is_exact(kernel: str, alpha: float | str, scale: float) -> None:
    scores = _tensor(4, 21, scale=scale)
    value = _per_row(4) if isinstance(alpha, str) else alpha
    p = entmax.entmax(scores, value)
    assert _error(p, reference.entmax(scores, value)) <= ACCURACY
    assert _error(p.double().sum(-1), torch.ones(4, device=DEVICE)) <= 1e-6


PASSED = {  # Halley's first step passes the root, and Newton's leads back from there to the start
    1.8: [0.908, 0.0, -0.006, -0.027, -0.126, -0.341, -0.436, -0.489],
    1.9286: [0.5673, 0.0, -0.0204, -0.2502, -0.5088, -0.8924, -0.9679, -INF],
    1.97: [0.6662, 0.0, -0.0012, -0.0355, -0.0747, -0.2012, -0.3643, -0.3927],
    1.99: [0.5409, 0.0, -0.0061, -0.044, -0.15, -0.4105, -0.4692, -INF],
}


def test_a_step_that_passes_the_root_is_taken_back(kernel: str) -> None:
    scores = torch.tensor(list(PASSED.values()), device=DEVICE)
    alphas = torch.tensor(list(PASSED), device=DEVICE).unsqueeze(-1)
    exact = reference.entmax(scores.double(), alphas)
    assert _error(entmax.entmax(scores, alphas), exact) <= ACCURACY
    for row in (0, 2):
        alpha = alphas[row].item()
        assert _error(entmax.entmax(scores[row], alpha), exact[row]) <= ACCURACY


def test_a_row_whose_moments_mislead_is_solved_all_the_same() -> None:
    """The steps from the first guess, which softmax's moments give, do not end where they should."""
    scores = torch.full((2, 61), -2.0, device=DEVICE)
    scores[:, 0] = 0.0
    exact = reference.entmax(scores.double(), 1.45)
    assert _error(entmax.entmax(scores, 1.45), exact) <= ACCURACY
    alphas = torch.full((2, 1), 1.45, dtype=torch.float64, device=DEVICE)
    assert _error(entmax.entmax(scores, alphas), exact) <= ACCURACY


@pytest.mark.parametrize("alpha", [1.5, 2.0, 1.2, 1.0])
def test_a_dense_row_sums_to_one(alpha: float) -> None:
    columns = 100_000 if DEVICE == "cuda" else 300  # the interpreter is slow
    scores = torch.zeros(1, columns, device=DEVICE)
    scores[0, ::3] = -1e-4
    p = entmax.entmax(scores, alpha)
    assert abs(p.double().sum().item() - 1) <= 1e-6
    assert _error(p, reference.entmax(scores, alpha)) <= ACCURACY


def test_softmax_keeps_the_digits_of_small_numbers(kernel: str) -> None:
    scores = torch.linspace(0, -80, 23, device=DEVICE).repeat(2, 1)
    exact = reference.entmax(scores.double(), 1.0)
    assert _error(entmax.entmax(scores, 1.0) / exact, torch.ones_like(exact)) <= 1e-6
    scores[1, 1:] -= 10
    target = torch.zeros(2, dtype=torch.int64, device=DEVICE)
    exact, _ = reference_loss.entmax_loss(scores.double(), target, 1.0, IGNORED, 0.0)
    loss, _ = entmax_loss.entmax_loss(scores, target, 1.0, IGNORED, 0.0)
    assert _error(loss / exact, torch.ones_like(exact)) <= 1e-6


@pytest.mark.parametrize("columns", [1, 2, 3, 64, 65, 130, 1030])
def test_every_tile_shape(columns: int) -> None:
    scores = _tensor(3, columns)
    assert _error(entmax.entmax(scores, 1.5), reference.entmax(scores, 1.5)) <= ACCURACY


@pytest.mark.parametrize("alpha", [1.5, 2.0, 1.2, 1.02, 1.0, 0.6, 0.1, 1.8, 3.0])
def test_nothing_left_is_zero_and_nan_stays_in_its_row(kernel: str, alpha: float) -> None:
    scores = _tensor(5, 19)
    scores[0, 3], scores[1], scores[2, 0], scores[3, 1:] = NAN, -INF, INF, -INF
    p = entmax.entmax(scores, alpha)
    assert p[0].isnan().all()
    assert p[1].eq(0).all()
    assert p[2].isnan().all()
    assert p[3].tolist() == [1.0] + [0.0] * 18
    assert _error(p[4], reference.entmax(scores[4], alpha)) <= ACCURACY


@pytest.mark.parametrize("dim", [-1, -2, 0])
@pytest.mark.parametrize("shape", [(3, 1, 7), (1, 5, 1), (3, 5, 7), (1, 1, 7)])
def test_masks_broadcast_along_any_dim(kernel: str, dim: int, shape: tuple[int, ...]) -> None:
    scores = _tensor(3, 5, 7)
    mask = torch.rand(shape, device=DEVICE) > 0.4
    alpha = torch.tensor([1.5, 1.2, 2.0], device=DEVICE).view(3, 1, 1) if dim != 0 else 1.5
    p = entmax.entmax(scores, alpha, mask, dim)
    rows = scores.masked_fill(~mask, -INF).movedim(dim, -1)
    value = alpha if isinstance(alpha, float) else alpha.expand(3, rows.shape[1], 1)
    assert _error(p.movedim(dim, -1), reference.entmax(rows, value)) <= ACCURACY


def test_softmax_takes_a_mask(kernel: str) -> None:
    scores, mask = _tensor(3, 9, 2), torch.rand(1, 9, 2, device=DEVICE) > 0.4
    rows = scores.masked_fill(~mask, -INF).movedim(1, -1)
    p = entmax.entmax(scores, 1.0, mask, 1).movedim(1, -1)
    assert _error(p, reference.entmax(rows, 1.0)) <= ACCURACY


def test_strides_are_followed() -> None:
    roomy = torch.full((4, 6, 22), NAN, device=DEVICE)
    roomy[:, ::2, ::2] = _tensor(4, 3, 11)
    scores = roomy[:, ::2, ::2].transpose(0, 1)
    p = entmax.entmax(scores, 1.5)
    assert p.shape == scores.shape
    assert _error(p, reference.entmax(scores, 1.5)) <= ACCURACY


def test_strides_that_cannot_be_merged_are_copied() -> None:
    scores = _tensor(2, 2, 2, 2, 2, 3).permute(4, 3, 2, 1, 0, 5)
    grad = _tensor(2, 2, 2, 2, 2, 3)
    p = entmax.entmax(scores, 1.5)
    assert _error(p, reference.entmax(scores, 1.5)) <= ACCURACY
    expected = reference.entmax_backward(grad.double(), p.double(), 1.5, -1)
    slope = entmax.entmax_backward(grad, p, 1.5)
    assert _error(slope, expected) <= 1e-6
    assert slope.stride() == p.stride() == scores.stride()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_rounds_once(dtype: torch.dtype) -> None:
    scores = _tensor(2, 30).to(dtype)
    expected = reference.entmax(scores.double(), 1.5)
    # The interpreter cuts bfloat16 off where a GPU rounds it.
    ulp = torch.finfo(dtype).eps * (0.5 if DEVICE == "cuda" else 1.0)
    assert _error(entmax.entmax(scores, 1.5), expected) <= ulp


@pytest.mark.parametrize("alpha", [*ALPHAS[:7], "rows"])
def test_backward(kernel: str, alpha: float | str) -> None:
    scores, grad = _tensor(4, 21), _tensor(4, 21)
    value = _per_row(4) if isinstance(alpha, str) else alpha
    p = entmax.entmax(scores, value)
    expected = reference.entmax_backward(grad.double(), p.double(), value)
    size = expected.abs().max().item()
    assert _error(entmax.entmax_backward(grad, p, value), expected) <= 1e-6 * max(size, 1)
    values = torch.full((4, 1), value).to(DEVICE) if isinstance(value, float) else value
    by_scores, by_alpha = entmax.entmax_backward_alpha(grad, p, values)
    _, expected_alpha = reference.entmax_backward_alpha(grad.double(), p.double(), values.double())
    assert _error(by_scores, expected) <= 1e-6 * max(size, 1)
    assert _error(by_alpha.squeeze(-1), expected_alpha) <= 2e-6


def test_backward_of_nothing_is_zero_and_nan_stays_in_its_row(kernel: str) -> None:
    p = entmax.entmax(_tensor(3, 9), 1.5)
    p[0], p[1, 2] = 0.0, NAN
    grad = torch.full_like(p, 0.5)
    out = entmax.entmax_backward(grad, p, 1.5)
    assert out[0].eq(0).all()
    assert out[1].isnan().any()
    assert not out[2].isnan().any()


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
    scores = _tensor(5, 10, scale=2.0)
    scores[1, 3], scores[4] = -INF, -INF
    target = torch.tensor([int(scores[0].argmax()), 5, IGNORED, 9, 0], device=DEVICE)
    if targets == PROBABILITIES:
        weights = torch.rand(5, 10, device=DEVICE) * (torch.rand(5, 10, device=DEVICE) > 0.5)
        weights[1, 3] = 0.0
        target = weights / weights.sum(-1, keepdim=True)
    value = _per_row(5) if isinstance(alpha, str) else alpha
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
    assert _error(loss[finite], expected[finite]) <= 1e-6 * expected[finite].max().item()
    assert _error(found[:4], normalizer[:4]) <= 2e-6
    grad = _tensor(5)
    slope = entmax_loss.entmax_loss_backward(grad, scores, target, value, found, *options)
    arguments = (grad.double(), scores.double(), *exact, normalizer, *options)
    assert _error(slope, reference_loss.entmax_loss_backward(*arguments)) <= 3 * ACCURACY
    values = torch.full((5, 1), value).to(DEVICE) if isinstance(value, float) else value
    by_alpha = entmax_loss.entmax_loss_alpha(scores, target, values, found, *options)
    arguments = (scores.double(), exact[0], values.double(), normalizer, *options)
    assert _error(by_alpha, reference_loss.entmax_loss_alpha(*arguments)) <= 2e-5


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
    assert _error(loss[finite], expected[finite]) <= 1e-6 * expected[finite].max().item()
    grad = _tensor(4)
    slope = entmax_loss.entmax_loss_backward(grad, scores, target, value, found, *options)
    arguments = (grad.double(), scores.double(), target, value, normalizer, *options)
    assert _error(slope, reference_loss.entmax_loss_backward(*arguments)) <= 3 * ACCURACY


@pytest.mark.parametrize("alpha", [1.0, 1.5, "rows"])
def test_a_smoothed_class_left_out_by_the_lowest_number(kernel: str, alpha: float | str) -> None:
    """Scores at finfo.min, as masks make them: their sum is no float32, their mean is."""
    scores, target, value, options = _loss_problem(alpha, SMOOTHED)
    scores[:, 5:9] = torch.finfo(torch.float32).min
    expected, _ = reference_loss.entmax_loss(scores.double(), target, value, *options)
    loss, _ = entmax_loss.entmax_loss(scores, target, value, *options)
    finite = expected.isfinite()
    assert torch.equal(loss.isfinite(), finite)
    assert _error(loss[finite] / expected[finite].clamp(min=1), expected[finite].sign()) <= 1e-6


@pytest.mark.parametrize(("alpha", "targets"), IN_PLACE)
def test_the_gradient_in_place_of_the_scores(kernel: str, alpha: float | str, targets: str) -> None:
    scores, target, value, options = _loss_problem(alpha, targets)
    scores[3, 7] = NAN
    grad, wide = _tensor(5), scores.double()
    expected, _ = reference_loss.entmax_loss_in_place(
        grad.double(), wide, _exact(target), value, *options, False
    )
    loss, _ = entmax_loss.entmax_loss_in_place(grad, scores, target, value, *options, False)
    assert torch.equal(loss.isinf(), expected.isinf())
    assert loss.isnan().tolist() == [False, False, False, True, False]
    finite = expected.isfinite()
    assert _error(loss[finite], expected[finite]) <= 1e-6 * expected[finite].max().item()
    assert scores[3].isnan().all()
    assert _error(scores[[0, 1, 2, 4]], wide[[0, 1, 2, 4]]) <= 3 * ACCURACY


def test_the_slope_in_alpha_beside_the_gradient_in_place(kernel: str) -> None:
    scores, target, _, options = _loss_problem(1.5, CLASSES)
    value, grad = torch.linspace(1.2, 1.8, 5, device=DEVICE).unsqueeze(-1), _tensor(5)
    wide = scores.double()
    arguments = (grad.double(), wide, target, value.double(), *options, True)
    _, expected = reference_loss.entmax_loss_in_place(*arguments)
    _, slope = entmax_loss.entmax_loss_in_place(grad, scores, target, value, *options, True)
    assert expected is not None
    assert slope is not None
    assert _error(slope, expected) <= 2e-5
    assert _error(scores, wide) <= 3 * ACCURACY


@pytest.mark.parametrize("kernel", ["groups"], indirect=True)
@pytest.mark.parametrize(("longest", "sums", "width"), [(16, 3, 5), (4, 1, 8)])
def test_the_gradients_of_a_layer_by_entries_that_are_not_zero(
    kernel: str, longest: int, sums: int, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some rows of a chunk have more entries than are listed, or none has, or all have."""
    tile = weight_gradient.Product(16, 16, 16, {"num_warps": 1})
    small = {"LONGEST": longest, "SUMS": sums, "BLOCK": 4, "HIDDEN_BLOCK": 4, "SHARING": 3}
    tiles = dict.fromkeys(("TILE", "HIDDEN_TILE", "LARGE_HIDDEN_TILE"), tile)
    for name, value in (small | tiles).items():
        monkeypatch.setattr(weight_gradient, name, value)
    count, classes, rows, part = 11, 32, 4, 2
    hidden, scores, weight = (
        _tensor(count, width), _tensor(count, classes), _tensor(classes, width)
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
            weigh, listed = torch.ones(len(some), device=DEVICE), total.room(len(some))
            entmax_loss.entmax_loss_in_place(weigh, some, own, 1.5, IGNORED, 0.0, False, listed)
            total.list_part(some, listed, first + offset, offset)
        total.add(chunk, first, by_hidden[first : first + rows], weight)
        total.finish(first + len(chunk))
        full.append(int(total.full[0]))
    assert full[2] == 3
    assert full[0] > 0 if longest == 4 else full[1] == 0
    assert scores[2].eq(0).all()
    assert _error(by_hidden, scores.double() @ weight.double()) <= 2e-6
    assert _error(by_weight, scores.double().t() @ hidden.double()) <= 2e-6


def test_numbers_are_scaled_in_place() -> None:
    numbers = _tensor(3, 5000).half()
    expected = (numbers.float() * 0.37).half()
    assert scaling.scale(numbers, torch.tensor(0.37, device=DEVICE)) is numbers
    torch.testing.assert_close(numbers, expected, rtol=0, atol=0)


@pytest.mark.parametrize("alpha", [1.5, 1.0])
def test_an_index_that_is_no_class_gives_nan(kernel: str, alpha: float) -> None:
    target = torch.tensor([0, 7], device=DEVICE)
    loss, _ = entmax_loss.entmax_loss(_tensor(2, 7), target, alpha, IGNORED, 0.0)
    assert loss.isnan().tolist() == [False, True]


@pytest.mark.parametrize("bad", [NAN, -1.0])
def test_an_alpha_that_is_none_gives_nan_in_its_row(kernel: str, bad: float) -> None:
    """A person who learns alpha should see that it is lost; a GPU does not look at values."""
    scores, grad = _tensor(3, 21), torch.ones(3, device=DEVICE)
    alpha = torch.tensor([[1.5], [bad], [1.2]], dtype=torch.float64, device=DEVICE)
    target = torch.zeros(3, dtype=torch.int64, device=DEVICE)
    p = entmax.entmax(scores, alpha)
    loss, normalizer = entmax_loss.entmax_loss(scores, target, alpha, IGNORED, 0.0)
    slope = entmax_loss.entmax_loss_backward(
        grad, scores, target, alpha, normalizer, IGNORED, 0.0
    )  # fmt: skip
    by_scores, by_alpha = entmax.entmax_backward_alpha(scores, p, alpha)
    for result in (p, loss, slope, by_scores, by_alpha):
        assert result[1].isnan().all()
        assert result[[0, 2]].isfinite().all()
    exact = reference.entmax(scores[[0, 2]].double(), alpha[[0, 2]])
    assert _error(p[[0, 2]], exact) <= ACCURACY


def test_empty_tensors() -> None:
    empty = torch.empty(0, 5, device=DEVICE)
    assert entmax.entmax(empty, 1.5).shape == (0, 5)
    assert entmax.entmax_backward(empty, empty, 1.5).shape == (0, 5)


@pytest.mark.parametrize("height", [2, 4])
def test_more_rows_than_fit_in_32_bits_have_their_numbers(height: int) -> None:
    rows, tile = torch.empty(height, dtype=torch.int64, device=DEVICE), 2**30
    _write_rows_of_tile[(1,)](rows, tile, R=height)
    assert rows.tolist() == [tile * height + i for i in range(height)]


def test_rows_are_merged_where_every_tensor_allows() -> None:
    scores, mask = torch.empty(2, 3, 4, 5), torch.empty(2, 1, 4, 5)
    rows, _, (steps, mask_steps) = addressing.address(-1, scores, mask)
    assert (rows.count, rows.columns, rows.levels) == (24, 5, 3)
    assert (steps, mask_steps) == ((60, 20, 5, 1), (20, 0, 5, 1))
    rows, _, (steps,) = addressing.address(1, scores)
    assert (rows.levels, steps) == (2, (0, 60, 1, 20))
    rows, _, (steps,) = addressing.address(-1, scores)
    assert (rows.levels, steps) == (1, (0, 0, 5, 1))


def test_more_levels_than_there_are_cost_a_copy() -> None:
    scores = torch.empty(2, 2, 2, 2, 2, 3)
    mask = torch.empty(1, 2, 1, 2, 1, 3)
    rows, tensors, _ = addressing.address(-1, scores, mask)
    assert (rows.count, rows.levels) == (32, 1)
    assert tensors[1] is not None
    assert tensors[1].shape == scores.shape
