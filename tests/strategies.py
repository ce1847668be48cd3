"""What scores may look like: ties, −inf, huge, tiny, one column, empty batches, any strides."""

from __future__ import annotations

import math

import torch
from hypothesis import strategies as st
from torch import Tensor

BATCHES = [(), (1,), (3,), (2, 2), (2, 0)]
TIES = [0.0, 0.5, 1.0, -1.0]
GRID = 2.0**-10  # multiples of this, up to 2^12, may be added exactly in float32


def _extremes(dtype: torch.dtype) -> list[float]:
    limit = torch.finfo(dtype)
    candidates = [1e4, -1e4, 1e30, -1e30, limit.min, limit.tiny, -limit.tiny, 1e-4]
    return [value for value in candidates if abs(value) <= limit.max]


def entries(dtype: torch.dtype, *, infinite: bool = True) -> st.SearchStrategy[float]:
    ordinary = st.floats(-6, 6, width=32)
    kinds = [ordinary, ordinary, st.sampled_from(TIES), st.sampled_from(_extremes(dtype))]
    if infinite:
        kinds.append(st.just(-math.inf))
    return st.one_of(kinds)


@st.composite
def tensors(
    draw: st.DrawFn,
    entry: st.SearchStrategy[float],
    dtype: torch.dtype,
    *,
    shortest: int = 1,
    longest: int = 9,
) -> Tensor:
    """A batch of rows along the last dimension."""
    shape = (*draw(st.sampled_from(BATCHES)), draw(st.integers(shortest, longest)))
    count = math.prod(shape)
    values = draw(st.lists(entry, min_size=count, max_size=count))
    return torch.tensor(values, dtype=torch.float64).to(dtype).reshape(shape)


def scores(dtype: torch.dtype, *, infinite: bool = True, shortest: int = 1):
    """Rows of anything; at least `shortest` columns."""
    return tensors(entries(dtype, infinite=infinite), dtype, shortest=shortest)


def grid_scores(dtype: torch.dtype, *, reach: int = 4096, shortest: int = 1):
    """Rows of small multiples of 2^-10, ties included, on which shifts by integers are exact."""
    return tensors(st.integers(-reach, reach).map(lambda n: n * GRID), dtype, shortest=shortest)


@st.composite
def layouts(draw: st.DrawFn, rows: Tensor) -> tuple[Tensor, int]:
    """The same numbers elsewhere in memory, with the rows along another dimension: (view, dim)."""
    dim = draw(st.integers(-rows.ndim, rows.ndim - 1))
    moved = rows.movedim(-1, dim)
    kind = draw(st.sampled_from(["view", "contiguous", "every second", "reversed strides"]))
    if kind == "contiguous":
        moved = moved.contiguous()
    elif kind == "every second":
        roomy = moved.new_full([2 * size for size in moved.shape], math.nan)
        roomy[tuple(slice(None, None, 2) for _ in moved.shape)] = moved
        moved = roomy[tuple(slice(None, None, 2) for _ in moved.shape)]
    elif kind == "reversed strides":
        order = tuple(reversed(range(moved.ndim)))
        moved = moved.permute(order).contiguous().permute(order)
    return moved, dim


def _zeros(rows: int, columns: int, scale: float) -> Tensor:
    return torch.zeros(rows, columns)


def _one_larger(rows: int, columns: int, scale: float) -> Tensor:
    x = torch.zeros(rows, columns)
    x[:, columns // 2] = scale * torch.rand(rows)
    return x


def _two_levels(rows: int, columns: int, scale: float) -> Tensor:
    return scale * (torch.rand(rows, columns) < torch.rand(rows, 1)) * torch.rand(rows, 1)


def _ties(rows: int, columns: int, scale: float) -> Tensor:
    levels = torch.randn(rows, 5)
    return scale * levels.gather(1, torch.randint(5, (rows, columns)))


def _after_relu(rows: int, columns: int, scale: float) -> Tensor:
    return scale * torch.randn(rows, columns).relu()


TIED_ROWS = (_zeros, _one_larger, _two_levels, _ties, _after_relu)
"""Functions of (rows, columns, scale) that draw rows of few different scores from torch's generator."""
