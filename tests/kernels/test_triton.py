"""The Triton kernels against the float64 reference: on the GPU, or interpreted where there is none.

Shapes are small, and so are tiles (`small_kernels`). The loss has tests of its own (`test_triton_loss`).
"""

from __future__ import annotations

import math

import pytest
import torch

from fenchel.kernels.reference import entmax as reference
from fenchel.kernels.reference import entmax_loss as reference_loss
from tests.kernels.interpreted import DEVICE, MARKS, defining_kernels
from tests.kernels.small_kernels import ACCURACY, IGNORED, error, per_row, tensor

with defining_kernels():
    import triton
    import triton.language as tl
    from triton.runtime.interpreter import InterpretedFunction

    from fenchel.kernels.triton import entmax, entmax_loss
    from fenchel.kernels.triton.launch import addressing
    from fenchel.kernels.triton.tiles.layout import tile_rows

    @triton.jit
    def _write_rows_of_tile(out, tile, R: tl.constexpr) -> None:
        tl.store(out + tl.arange(0, R), tl.reshape(tile_rows(tile + tl.program_id(0), R), [R]))


pytestmark = MARKS

ALPHAS = (2.0, 1.5, 1.3, 1.0, 0.6, 1.75, 2.5, 10.0)
INF, NAN = math.inf, math.nan


@pytest.mark.skipif(DEVICE == "cuda", reason="kernels are compiled")
def test_tritons_own_functions_are_interpreted_too() -> None:
    assert isinstance(tl.sum, InterpretedFunction)


@pytest.mark.parametrize("alpha", [*ALPHAS, 1.02, "rows"])
@pytest.mark.parametrize("scale", [1.0, 0.02])
def test_entmax_is_exact(kernel: str, alpha: float | str, scale: float) -> None:
    scores = tensor(4, 21, scale=scale)
    value = per_row(4) if isinstance(alpha, str) else alpha
    p = entmax.entmax(scores, value)
    assert error(p, reference.entmax(scores, value)) <= ACCURACY
    assert error(p.double().sum(-1), torch.ones(4, device=DEVICE)) <= 1e-6


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
    assert error(entmax.entmax(scores, alphas), exact) <= ACCURACY
    for row in (0, 2):
        alpha = alphas[row].item()
        assert error(entmax.entmax(scores[row], alpha), exact[row]) <= ACCURACY


def test_a_row_whose_moments_mislead_is_solved_all_the_same() -> None:
    """The steps from the first guess, which softmax's moments give, do not end where they should."""
    scores = torch.full((2, 61), -2.0, device=DEVICE)
    scores[:, 0] = 0.0
    exact = reference.entmax(scores.double(), 1.45)
    assert error(entmax.entmax(scores, 1.45), exact) <= ACCURACY
    alphas = torch.full((2, 1), 1.45, dtype=torch.float64, device=DEVICE)
    assert error(entmax.entmax(scores, alphas), exact) <= ACCURACY


@pytest.mark.parametrize("alpha", [1.5, 2.0, 1.2, 1.0])
def test_a_dense_row_sums_to_one(alpha: float) -> None:
    columns = 100_000 if DEVICE == "cuda" else 300  # the interpreter is slow
    scores = torch.zeros(1, columns, device=DEVICE)
    scores[0, ::3] = -1e-4
    p = entmax.entmax(scores, alpha)
    assert abs(p.double().sum().item() - 1) <= 1e-6
    assert error(p, reference.entmax(scores, alpha)) <= ACCURACY


def test_softmax_keeps_the_digits_of_small_numbers(kernel: str) -> None:
    scores = torch.linspace(0, -80, 23, device=DEVICE).repeat(2, 1)
    exact = reference.entmax(scores.double(), 1.0)
    assert error(entmax.entmax(scores, 1.0) / exact, torch.ones_like(exact)) <= 1e-6
    scores[1, 1:] -= 10
    target = torch.zeros(2, dtype=torch.int64, device=DEVICE)
    exact, _ = reference_loss.entmax_loss(scores.double(), target, 1.0, IGNORED, 0.0)
    loss, _ = entmax_loss.entmax_loss(scores, target, 1.0, IGNORED, 0.0)
    assert error(loss / exact, torch.ones_like(exact)) <= 1e-6


@pytest.mark.parametrize("columns", [1, 2, 3, 64, 65, 130, 1030])
def test_every_tile_shape(columns: int) -> None:
    scores = tensor(3, columns)
    assert error(entmax.entmax(scores, 1.5), reference.entmax(scores, 1.5)) <= ACCURACY


@pytest.mark.parametrize("alpha", [1.5, 2.0, 1.2, 1.02, 1.0, 0.6, 0.1, 1.8, 3.0])
def test_nothing_left_is_zero_and_nan_stays_in_its_row(kernel: str, alpha: float) -> None:
    scores = tensor(5, 19)
    scores[0, 3], scores[1], scores[2, 0], scores[3, 1:] = NAN, -INF, INF, -INF
    p = entmax.entmax(scores, alpha)
    assert p[0].isnan().all()
    assert p[1].eq(0).all()
    assert p[2].isnan().all()
    assert p[3].tolist() == [1.0] + [0.0] * 18
    assert error(p[4], reference.entmax(scores[4], alpha)) <= ACCURACY


@pytest.mark.parametrize("dim", [-1, -2, 0])
@pytest.mark.parametrize("shape", [(3, 1, 7), (1, 5, 1), (3, 5, 7), (1, 1, 7)])
def test_masks_broadcast_along_any_dim(kernel: str, dim: int, shape: tuple[int, ...]) -> None:
    scores = tensor(3, 5, 7)
    mask = torch.rand(shape, device=DEVICE) > 0.4
    alpha = torch.tensor([1.5, 1.2, 2.0], device=DEVICE).view(3, 1, 1) if dim != 0 else 1.5
    p = entmax.entmax(scores, alpha, mask, dim)
    rows = scores.masked_fill(~mask, -INF).movedim(dim, -1)
    value = alpha if isinstance(alpha, float) else alpha.expand(3, rows.shape[1], 1)
    assert error(p.movedim(dim, -1), reference.entmax(rows, value)) <= ACCURACY


def test_softmax_takes_a_mask(kernel: str) -> None:
    scores, mask = tensor(3, 9, 2), torch.rand(1, 9, 2, device=DEVICE) > 0.4
    rows = scores.masked_fill(~mask, -INF).movedim(1, -1)
    p = entmax.entmax(scores, 1.0, mask, 1).movedim(1, -1)
    assert error(p, reference.entmax(rows, 1.0)) <= ACCURACY


def test_strides_are_followed() -> None:
    roomy = torch.full((4, 6, 22), NAN, device=DEVICE)
    roomy[:, ::2, ::2] = tensor(4, 3, 11)
    scores = roomy[:, ::2, ::2].transpose(0, 1)
    p = entmax.entmax(scores, 1.5)
    assert p.shape == scores.shape
    assert error(p, reference.entmax(scores, 1.5)) <= ACCURACY


def test_strides_that_cannot_be_merged_are_copied() -> None:
    scores = tensor(2, 2, 2, 2, 2, 3).permute(4, 3, 2, 1, 0, 5)
    grad = tensor(2, 2, 2, 2, 2, 3)
    p = entmax.entmax(scores, 1.5)
    assert error(p, reference.entmax(scores, 1.5)) <= ACCURACY
    expected = reference.entmax_backward(grad.double(), p.double(), 1.5, -1)
    slope = entmax.entmax_backward(grad, p, 1.5)
    assert error(slope, expected) <= 1e-6
    assert slope.stride() == p.stride() == scores.stride()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_rounds_once(dtype: torch.dtype) -> None:
    scores = tensor(2, 30).to(dtype)
    expected = reference.entmax(scores.double(), 1.5)
    # The interpreter cuts bfloat16 off where a GPU rounds it.
    ulp = torch.finfo(dtype).eps * (0.5 if DEVICE == "cuda" else 1.0)
    assert error(entmax.entmax(scores, 1.5), expected) <= ulp


@pytest.mark.parametrize("alpha", [*ALPHAS[:7], "rows"])
def test_backward(kernel: str, alpha: float | str) -> None:
    scores, grad = tensor(4, 21), tensor(4, 21)
    value = per_row(4) if isinstance(alpha, str) else alpha
    p = entmax.entmax(scores, value)
    expected = reference.entmax_backward(grad.double(), p.double(), value)
    size = expected.abs().max().item()
    assert error(entmax.entmax_backward(grad, p, value), expected) <= 1e-6 * max(size, 1)
    values = torch.full((4, 1), value).to(DEVICE) if isinstance(value, float) else value
    by_scores, by_alpha = entmax.entmax_backward_alpha(grad, p, values)
    _, expected_alpha = reference.entmax_backward_alpha(grad.double(), p.double(), values.double())
    assert error(by_scores, expected) <= 1e-6 * max(size, 1)
    assert error(by_alpha.squeeze(-1), expected_alpha) <= 2e-6


def test_backward_of_nothing_is_zero_and_nan_stays_in_its_row(kernel: str) -> None:
    p = entmax.entmax(tensor(3, 9), 1.5)
    p[0], p[1, 2] = 0.0, NAN
    grad = torch.full_like(p, 0.5)
    out = entmax.entmax_backward(grad, p, 1.5)
    assert out[0].eq(0).all()
    assert out[1].isnan().any()
    assert not out[2].isnan().any()


@pytest.mark.parametrize("bad", [NAN, -1.0])
def test_an_alpha_that_is_none_gives_nan_in_its_row(kernel: str, bad: float) -> None:
    """A person who learns alpha should see that it is lost; a GPU does not look at values."""
    scores, grad = tensor(3, 21), torch.ones(3, device=DEVICE)
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
    assert error(p[[0, 2]], exact) <= ACCURACY


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
