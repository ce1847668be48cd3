"""The kernels where every row has an alpha of its own: each is solved as if its alpha were a number.

Tiles hold several rows, or one. Rows are put in order by the kinds of their alphas, in blocks made
small, so that there are many, and a last one with rows that do not exist; or they are solved as they
come, and the interpreter meets tiles with several kinds of alpha.
"""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from fenchel.kernels.reference import entmax as reference
from tests.kernels.interpreted import DEVICE, MARKS, defining_kernels

with defining_kernels():
    from fenchel.kernels.triton import entmax
    from fenchel.kernels.triton.entmax import alpha_per_row, forward, row_order
    from fenchel.kernels.triton.launch import tile_shapes
    from fenchel.kernels.triton.launch.addressing import address
    from fenchel.kernels.triton.launch.parameters import HALLEY_MAX_EPS as HALLEY_MAX_EPS_CONSTANT
    from fenchel.kernels.triton.launch.tile_shapes import next_power_of_two

pytestmark = MARKS

ACCURACY = 2e-7
BORDERS = (1.0, 1.0625, 1.45, 1.5, 2.0)  # between kinds, and alphas with kernels of their own
ALPHAS = (0.6, 0.98, *BORDERS, 1.02, 1.3, 1.4500001, 1.8, 1.9999999, 2.0000002, 3.0)
SHAPES = {"some rows": (19, 23), "one row": (14, 40)}
ENTRIES = 4  # columns a thread
HALLEY_MAX_EPS = HALLEY_MAX_EPS_CONSTANT.value


@pytest.fixture(params=list(SHAPES))
def shape(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    rows, columns = SHAPES[request.param]
    width = next_power_of_two(columns)
    height = 4 if request.param == "some rows" else 1
    tile = tile_shapes.Tile(width // 16, height, 16, 1, ENTRIES)
    monkeypatch.setattr(forward, "forward_tile", lambda *_: tile)
    return rows, columns


@pytest.fixture
def in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are put in order, however few they are, from several blocks that are added up in parts."""
    monkeypatch.setattr(alpha_per_row, "MIN_SORTED_TILES", 1)
    monkeypatch.setattr(alpha_per_row, "MIN_SORTED_ROWS", 1)
    monkeypatch.setattr(row_order, "COUNTED_ROWS", 8)
    monkeypatch.setattr(row_order, "MAX_COUNTS_AT_ONCE", 2)


def _alphas(rows: int) -> Tensor:
    """Every alpha of the list, over and over, in an order that mixes small and large ones."""
    several = torch.tensor(ALPHAS, dtype=torch.float64).repeat(rows // len(ALPHAS) + 1)[:rows]
    return several[torch.randperm(rows)].unsqueeze(-1).float().to(DEVICE)


def _scores(rows: int, columns: int, scale: float) -> Tensor:
    scores = torch.randn(rows, columns, dtype=torch.float64) * scale
    scores[0] = scores[0].round()
    scores[1] = 0
    scores[2, ::2] = -math.inf
    return scores.float().to(DEVICE)


def _error(actual: Tensor, expected: Tensor) -> float:
    return (actual.double() - expected.double()).abs().max().item()


@pytest.mark.parametrize("scale", [1.0, 4.0])
def test_every_row_has_its_own_alpha(shape: tuple[int, int], scale: float) -> None:
    scores, alphas = _scores(*shape, scale), _alphas(shape[0])
    p = entmax.entmax(scores, alphas)
    assert _error(p, reference.entmax(scores.double(), alphas)) <= ACCURACY


def test_neighbours_may_share_an_alpha(shape: tuple[int, int]) -> None:
    """As the queries of a head do; a tile holds rows of two heads here and there."""
    heads = torch.tensor([1.2, 1.7, 2.5], device=DEVICE).view(3, 1, 1)
    scores = _scores(15, shape[1], 1.0).view(3, 5, shape[1])
    p = entmax.entmax(scores, heads)
    assert _error(p, reference.entmax(scores.double(), heads)) <= ACCURACY


@pytest.mark.usefixtures("in_order")
@pytest.mark.parametrize("wide", [0, 2**31])
def test_rows_may_be_put_in_order_first(
    shape: tuple[int, int], wide: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where columns lie far apart, and offsets may need 64 bits."""
    monkeypatch.setattr(alpha_per_row, "MIN_INT64_OFFSET", wide)
    scores, alphas = _scores(*shape, 1.0), _alphas(shape[0])
    scores[3], scores[4, 1], alphas[7] = -math.inf, math.nan, math.nan
    p = entmax.entmax(scores.T.contiguous(), alphas.T, dim=0).T
    others = [row for row in range(shape[0]) if row not in (4, 7)]
    assert p[4].isnan().all()
    assert p[7].isnan().all()
    assert _error(p[others], reference.entmax(scores.double(), alphas)[others]) <= ACCURACY


@pytest.mark.usefixtures("in_order")
@pytest.mark.parametrize("height", [1, 4])
def test_an_order_holds_every_row_in_tiles_of_one_kind(height: int) -> None:
    """The last row of a kind comes again in the rest of its tile."""
    alphas = _alphas(45)
    rows, _, (steps,) = address(-1, alphas)
    tiles, starts, order = row_order.sort_by_kind(alphas, rows, steps, height, wide=False)
    second, third, end = (number * height for number in starts.tolist()[:3])
    assert end <= tiles * height
    eps = alphas[:, 0] - 1
    kinds = eps <= HALLEY_MAX_EPS, (eps > HALLEY_MAX_EPS) & (eps <= 1), eps > 1
    for kind, places in zip(
        kinds, (order[:second], order[second:third], order[third:end]), strict=True
    ):
        numbers = places.unique()
        assert numbers.tolist() == kind.nonzero()[:, 0].tolist()
        assert len(places) - len(numbers) < height
        assert (places[len(numbers) :] == places[len(numbers) - 1]).all()


def test_nothing_left_is_zero_and_nan_stays_in_its_row(shape: tuple[int, int]) -> None:
    scores, alphas = _scores(*shape, 1.0), _alphas(shape[0])
    scores[3], scores[4, 1], scores[5, 2] = -math.inf, math.nan, math.inf
    alphas[0], alphas[6] = 0.1, math.nan
    mask = torch.ones(1, shape[1], dtype=torch.bool, device=DEVICE)
    mask[:, 7:11] = False
    p = entmax.entmax(scores, alphas, mask)
    left = scores.masked_fill(~mask, -math.inf).double()
    others = [row for row in range(shape[0]) if row not in (4, 5, 6)]
    assert p[4:7].isnan().all()
    assert not p[3].any()
    assert not p[0, 7:11].any()
    assert _error(p[others], reference.entmax(left, alphas)[others]) <= ACCURACY


def test_gradients_on_both_sides_of_two(shape: tuple[int, int]) -> None:
    """Rows with alpha > 2 are added in float64, beside others that are not."""
    rows, columns = shape
    alphas = torch.linspace(1.2, 3.0, rows, device=DEVICE)[torch.randperm(rows)].unsqueeze(-1)
    p = entmax.entmax(_scores(rows, columns, 1.0), alphas)
    grad = _scores(rows, columns, 1.0).nan_to_num(neginf=0.0)
    by_scores, by_alpha = entmax.entmax_backward_alpha(grad, p, alphas)
    wide = grad.double(), p.double(), alphas.double()
    expected, expected_alpha = reference.entmax_backward_alpha(*wide)
    assert _error(by_scores, expected) <= 2e-6
    assert _error(by_alpha.squeeze(-1), expected_alpha) <= 2e-6
    assert _error(entmax.entmax_backward(grad, p, alphas), expected) <= 2e-6
