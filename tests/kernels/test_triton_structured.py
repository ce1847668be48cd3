"""The Triton kernels of the structured maps against the float64 reference: on the GPU, or interpreted.

The interpreter runs one Python operation an element, so shapes are small; blocks, and the limits from
which other kernels take over, are shrunk to reach every branch all the same.
"""

from __future__ import annotations

import math
from types import ModuleType

import pytest
import torch
from torch import Tensor

from fenchel.kernels.reference import fusedmax as reference_fusedmax
from fenchel.kernels.reference import oscarmax as reference_oscarmax
from tests.kernels.interpreted import DEVICE, MARKS, defining_kernels

with defining_kernels():
    from fenchel.kernels.triton import fusedmax, oscarmax
    from fenchel.kernels.triton.shared import group_backward

pytestmark = MARKS

ACCURACY = 2e-7
INF, NAN = math.inf, math.nan
KERNELS: dict[str, ModuleType] = {"fusedmax": fusedmax, "oscarmax": oscarmax}
REFERENCES: dict[str, ModuleType] = {"fusedmax": reference_fusedmax, "oscarmax": reference_oscarmax}
ROWS = "rows"  # one strength a row, zero among them
on_both = pytest.mark.parametrize("name", KERNELS)


@pytest.fixture(params=["short", "long"])
def length(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Whether rows fit in one block, or are treated as long ones are."""
    if request.param == "long":
        for module in (fusedmax, oscarmax, group_backward):
            monkeypatch.setattr(module, "walk_shape", lambda columns: (8, 1))
        monkeypatch.setattr(oscarmax, "MAX_SORT_COLUMNS", 4)
        monkeypatch.setattr(group_backward, "MAX_PROGRAMS", 2)
    return request.param


def _scores(*shape: int, scale: float = 1.0) -> Tensor:
    """Scores with ties, what is not there, and what is far below."""
    x = (torch.randn(shape, dtype=torch.float64) * scale).float()
    x[..., 0, 2:5] = x[..., 0, 7:8]
    x[..., 1, 3:9] = -INF
    x[..., 1, 10] = -1e30
    return x.to(DEVICE)


def _strength(value: float | str, count: int) -> float | Tensor:
    if isinstance(value, float):
        return value
    return torch.linspace(0, 0.3, count, dtype=torch.float64, device=DEVICE).unsqueeze(-1)


def _error(actual: Tensor, expected: Tensor) -> float:
    return (actual.double() - expected.double()).abs().max().item()


def _solve(name: str, *args: object) -> tuple[Tensor, Tensor]:
    return getattr(KERNELS[name], name)(*args)


def _expect(name: str, rows: Tensor, strength: float | Tensor) -> tuple[Tensor, Tensor]:
    return getattr(REFERENCES[name], name)(rows.double(), strength)


@on_both
@pytest.mark.parametrize(
    ("strength", "scale"),
    [(0.0, 1.0), (0.02, 1.0), (0.02, 0.1), (0.4, 0.1), (8.0, 30.0), (ROWS, 0.3)],
)
def test_probabilities_and_groups(length: str, name: str, strength: float | str, scale: float):
    scores, value = _scores(3, 21, scale=scale), _strength(strength, 3)
    p, groups = _solve(name, scores, value)
    expected, expected_groups = _expect(name, scores, value)
    assert _error(p, expected) <= ACCURACY
    assert torch.equal(groups, expected_groups)
    assert _error(p.double().sum(-1), torch.ones(3, device=DEVICE)) <= 1e-6


@on_both
@pytest.mark.parametrize("columns", [1, 2, 3, 65])
def test_every_width(name: str, columns: int) -> None:
    scores = (torch.randn(2, columns) * 0.5).to(DEVICE)
    p, groups = _solve(name, scores, 0.01)
    expected, expected_groups = _expect(name, scores, 0.01)
    assert _error(p, expected) <= ACCURACY
    assert torch.equal(groups, expected_groups)


def _patterns(columns: int) -> Tensor:
    """Rows on which the algorithms take different ways."""
    noise, ramp = torch.randn(6, columns), torch.linspace(0, 0.5, columns)
    far_below = torch.where(torch.rand(columns) < 0.9, -1e30, 0.1 * noise[3])
    outlier = 1e-4 * noise[4]
    outlier[3] -= 0.9
    heavy = -(torch.rand(columns).log() ** 3)
    rows = (1e-3 * noise[0], ramp + 0.01 * noise[1], ramp, far_below, outlier, heavy)
    return torch.stack(rows).to(DEVICE)


@on_both
@pytest.mark.parametrize("columns", [700, 5000, 100_000] if DEVICE == "cuda" else [24])
@pytest.mark.parametrize("strength", [1e-5, 1e-3, 0.1])
def test_rows_of_every_kind(name: str, columns: int, strength: float) -> None:
    scores = _patterns(columns)
    p, _ = _solve(name, scores, strength)
    assert _error(p, _expect(name, scores, strength)[0]) <= ACCURACY
    assert _error(p.double().sum(-1), torch.ones(len(scores), device=DEVICE)) <= 1e-6


def test_large_supports_of_few_and_of_many_groups() -> None:
    scores = 1e-3 * torch.randn(3, 100)
    scores[1] *= 0.03
    scores[1, :4] += 0.01
    scores[2, :50] = 2e-4
    strength = torch.tensor([[1e-6], [1e-5], [2e-6]], dtype=torch.float64, device=DEVICE)
    p, groups = _solve("oscarmax", scores.to(DEVICE), strength)
    expected, expected_groups = _expect("oscarmax", scores.to(DEVICE), strength)
    assert p.gt(0).all()
    assert [len(row.unique()) for row in groups] == [99, 5, 50]
    assert _error(p, expected) <= ACCURACY
    assert torch.equal(groups, expected_groups)


@pytest.mark.parametrize("patience", [0, 1, 2])
def test_rows_that_the_direct_method_gives_up(
    patience: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit, value in {
        "SHORT_ROW_COLUMNS": 0,
        "MAX_VISITS_PER_ENTRY": patience,
        "MAX_WORKSPACE_NUMBERS": 2000,
    }.items():
        monkeypatch.setattr(fusedmax, limit, value)
    scores = _scores(5, 30, scale=0.3)
    scores[2] = torch.linspace(0, 0.3, 30)
    strength = torch.tensor([[0.02], [0.3], [0.1], [1e-4], [5.0]], device=DEVICE)
    p, groups = _solve("fusedmax", scores, strength)
    expected, expected_groups = _expect("fusedmax", scores, strength.double())
    assert _error(p, expected) <= ACCURACY
    assert torch.equal(groups, expected_groups)


@on_both
def test_nothing_left_is_zero_and_nan_stays_in_its_row(length: str, name: str) -> None:
    scores = (torch.randn(5, 19)).to(DEVICE)
    scores[0, 3], scores[1], scores[2, 0], scores[3, 1:] = NAN, -INF, INF, -INF
    p, groups = _solve(name, scores, 0.1)
    assert p[0].isnan().all()
    assert p[1].eq(0).all()
    assert p[2].isnan().all()
    assert p[3].tolist() == [1.0] + [0.0] * 18
    assert _error(p[4], _expect(name, scores[4:], 0.1)[0]) <= ACCURACY
    grad = torch.ones_like(p).cumsum(-1)
    slope = getattr(KERNELS[name], f"{name}_backward")(grad, p, groups)
    assert slope[0].isnan().any()
    assert slope[1].eq(0).all()
    assert slope[3:].isfinite().all()


@on_both
def test_rows_may_lie_across_memory(length: str, name: str) -> None:
    scores = (0.4 * torch.randn(9, 3)).to(DEVICE)
    for rows, dim in ((scores, 0), (scores.T, -1)):
        p, groups = _solve(name, rows, 0.05, None, dim)
        expected, expected_groups = _expect(name, scores.T, 0.05)
        assert _error(p.movedim(dim, -1), expected) <= ACCURACY
        assert torch.equal(groups.movedim(dim, -1), expected_groups)


@on_both
@pytest.mark.parametrize("dim", [-1, 0])
def test_masks_and_strengths_broadcast_along_any_dim(length: str, name: str, dim: int) -> None:
    scores = (0.4 * torch.randn(6, 3, 5)).to(DEVICE).transpose(1, 2)
    mask = torch.rand(6, 1, 3, device=DEVICE) > 0.3
    strength = torch.tensor([0.01, 0.1, 0.0, 0.3, 0.02], device=DEVICE).view(5, 1)
    p, groups = _solve(name, scores, strength, mask, dim)
    rows = scores.masked_fill(~mask, -INF).movedim(dim, -1)
    shape = list(scores.shape)
    shape[dim] = 1
    value = strength.double().expand(shape).movedim(dim, -1)
    expected, expected_groups = _expect(name, rows, value)
    assert p.stride() == torch.empty_like(scores).stride()
    assert _error(p.movedim(dim, -1), expected) <= ACCURACY
    assert torch.equal(groups.movedim(dim, -1), expected_groups)


@on_both
def test_strides_that_cannot_be_merged_are_copied(name: str) -> None:
    scores = torch.randn(2, 2, 2, 2, 2, 3).to(DEVICE).permute(4, 3, 2, 1, 0, 5)
    grad = torch.randn(2, 2, 2, 2, 2, 3).to(DEVICE)
    p, groups = _solve(name, scores, 0.1)
    assert _error(p, _expect(name, scores, 0.1)[0]) <= ACCURACY
    slope = getattr(KERNELS[name], f"{name}_backward")(grad, p, groups)
    expected = getattr(REFERENCES[name], f"{name}_backward")(grad.double(), p.double(), groups)
    assert _error(slope, expected) <= 1e-6
    assert slope.stride() == p.stride() == scores.stride()


@on_both
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_rounds_once(name: str, dtype: torch.dtype) -> None:
    scores = torch.randn(2, 30).to(DEVICE, dtype)
    expected, expected_groups = _expect(name, scores, 0.05)
    p, groups = _solve(name, scores, 0.05)
    # The interpreter cuts bfloat16 off where a GPU rounds it.
    ulp = torch.finfo(dtype).eps * (0.5 if DEVICE == "cuda" else 1.0)
    assert _error(p, expected) <= ulp
    assert torch.equal(groups, expected_groups)


@on_both
@pytest.mark.parametrize("strength", [0.0, 0.02, 0.4])
def test_backward(length: str, name: str, strength: float) -> None:
    scores, grad = _scores(3, 21, scale=0.2), torch.randn(3, 21).to(DEVICE)
    p, groups = _solve(name, scores, strength)
    kernel, reference = KERNELS[name], REFERENCES[name]
    pull_back = getattr(reference, f"{name}_backward_strength")
    expected, expected_strength = pull_back(grad.double(), p.double(), groups)
    assert _error(getattr(kernel, f"{name}_backward")(grad, p, groups), expected) <= 1e-6
    by_scores, by_strength = getattr(kernel, f"{name}_backward_strength")(grad, p, groups)
    assert _error(by_scores, expected) <= 1e-6
    assert by_strength.shape == (3, 1)
    assert _error(by_strength.squeeze(-1), expected_strength) <= 1e-6


@on_both
def test_a_gradient_without_size_is_zero(name: str) -> None:
    p, groups = _solve(name, _scores(2, 12), 0.1)
    slope = getattr(KERNELS[name], f"{name}_backward")(torch.zeros_like(p), p, groups)
    assert slope.eq(0).all()


@on_both
def test_a_strength_of_nan_gives_nan(name: str) -> None:
    """On a GPU strengths are not looked at."""
    strength = torch.tensor([[NAN], [0.1]], device=DEVICE)
    p, _ = _solve(name, _scores(2, 12), strength)
    assert p.isnan().all(-1).tolist() == [True, False]


@on_both
def test_empty_tensors(name: str) -> None:
    empty = torch.empty(0, 5, device=DEVICE)
    p, groups = _solve(name, empty, 0.1)
    assert p.shape == groups.shape == (0, 5)
    assert getattr(KERNELS[name], f"{name}_backward")(empty, empty, groups).shape == (0, 5)


def test_lists_of_slow_rows_fit_in_their_memory() -> None:
    for count, columns in ((10_000, 1000), (5, 1000), (64, 100_000), (3, 10_000_000)):
        rows = fusedmax.Rows(count, columns, 1, count, 1)
        programs, lanes = fusedmax._knots_shape(rows)
        assert 1 <= programs * lanes <= max(1, fusedmax.MAX_WORKSPACE_NUMBERS // (6 * columns + 4))
        assert lanes & (lanes - 1) == 0
