"""Rows of few different scores, at any length and parameter: every solver ends, at the right answer.

Such rows are ordinary (zero padding, the output of a ReLU, one score above equal others) and hard: many
entries enter or leave the support at once, and rounding errors of equal entries add up. A solver that
does not end is stopped by the time limit on every test.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

import fenchel
from tests.accuracy import accuracy, assert_within
from tests.implementations import on_every, running_on

ENTRIES = 20_000  # in a batch of rows, about
MOST_ROWS = 48
BIGGEST_GRID = 64  # rows and columns of fusedmax2d


def lengths() -> st.SearchStrategy[int]:
    return st.one_of(
        st.integers(1, 40), st.integers(1, 8193), st.sampled_from([1, 25, 256, 8193, 100_000])
    )


def parameters(lowest: float, highest: float, *special: float) -> st.SearchStrategy[float]:
    return st.one_of(st.sampled_from(special), st.floats(lowest, highest))


def strengths() -> st.SearchStrategy[float]:
    return parameters(0.0, 3.0, 0.0, 0.01, 0.1, 1.0)


MAPS: dict[Callable[..., Tensor], st.SearchStrategy[tuple[float, ...]]] = {
    fenchel.softmax: st.just(()),
    fenchel.sparsemax: st.just(()),
    fenchel.entmax: st.tuples(parameters(0.3, 12.0, 1.0, 1.2, 1.5, 1.75, 2.0, 2.5, 4.0)),
    fenchel.normmax: st.tuples(parameters(1.05, 8.0, 1.5, 2.0, 3.0)),
    fenchel.pnormmax: st.tuples(parameters(1.05, 8.0, 1.5, 1.8, 2.0, 3.0)),
    fenchel.budget: st.tuples(parameters(0.1, 30.0, 1.0, 2.0, 2.5)),
    fenchel.fusedmax: st.tuples(strengths()),
    fenchel.fusedmax2d: st.tuples(strengths()),
    fenchel.oscarmax: st.tuples(strengths()),
}


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


KINDS = (_zeros, _one_larger, _two_levels, _ties, _after_relu)


@st.composite
def tied_rows(draw: st.DrawFn, dtype: torch.dtype, columns: int | None = None) -> Tensor:
    """A batch of rows of one kind; some columns may be -inf."""
    columns = draw(lengths()) if columns is None else columns
    rows = max(1, min(MOST_ROWS, ENTRIES // columns))
    torch.manual_seed(draw(st.integers(0, 2**31)))
    scale = draw(st.one_of(st.sampled_from([1.0, 2.0]), st.floats(1e-6, 20.0)))
    x = draw(st.sampled_from(KINDS))(rows, columns, scale).to(dtype)
    if draw(st.booleans()):
        x = x.masked_fill(torch.rand(rows, columns) < 0.2, -math.inf)
    return x


@on_every
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("function", MAPS, ids=lambda function: function.__name__)
@settings(max_examples=40)
@given(data=st.data())
def test_every_solver_ends(function, dtype: torch.dtype, implementation: str, data) -> None:
    arguments = data.draw(MAPS[function])
    on_grid = function is fenchel.fusedmax2d
    x = data.draw(tied_rows(dtype, data.draw(st.integers(1, BIGGEST_GRID)) if on_grid else None))
    total = 1.0
    if function is fenchel.budget:
        total = min(arguments[0], x.shape[-1])
        arguments = (total,)
    with running_on(implementation):
        p = function(x, *arguments)
    p, there = (p.flatten(), x.flatten()) if on_grid else (p, x)
    available = (there > -math.inf).sum(-1).double().clamp(max=total)
    assert bool((p >= 0).all())
    assert_within(p.double().sum(-1), available, accuracy(dtype, total))


@on_every
@pytest.mark.parametrize("p", [1.2, 1.5, 1.8])
@pytest.mark.parametrize("columns", [2, 25, 300, 5000])
def test_pnormmax_ends_for_every_lead(p: float, columns: int, implementation: str) -> None:
    x = torch.zeros(101, columns)
    x[:, 0] = torch.linspace(0, 1, 101)
    with running_on(implementation):
        q = fenchel.pnormmax(x, p)
    assert_within(q.double().sum(-1), torch.ones(101), accuracy(x.dtype))
