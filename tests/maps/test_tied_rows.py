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
from tests.strategies import TIED_ROWS

ENTRIES = 20_000  # in a batch of rows, about
MOST_ROWS = 48
MOST_IMAGE_ROWS = 12  # the reference solves an image in hundreds of alternating passes


def lengths() -> st.SearchStrategy[int]:
    return st.one_of(
        st.integers(1, 40), st.integers(1, 8193), st.sampled_from([1, 25, 256, 8193, 100_000])
    )


def parameters(
    lowest: float, highest: float, *special: float, above: float = 0.0
) -> st.SearchStrategy[float]:
    """Special values, or `above` + any number of any order of magnitude in a range."""
    powers = st.floats(math.log10(lowest), math.log10(highest))
    return st.one_of(st.sampled_from(special), powers.map(lambda power: above + 10**power))


def strengths(highest: float) -> st.SearchStrategy[float]:
    return parameters(1e-8, highest, 0.0, 0.01, 0.1, 1.0)


MAPS: dict[Callable[..., Tensor], st.SearchStrategy[tuple[float, ...]]] = {
    fenchel.softmax: st.just(()),
    fenchel.sparsemax: st.just(()),
    fenchel.entmax: st.tuples(parameters(0.01, 1e4, 1.0, 1.2, 1.5, 1.75, 2.0, 2.5, 4.0)),
    fenchel.normmax: st.tuples(parameters(1e-4, 1e4, 1.5, 2.0, 3.0, above=1.0)),
    fenchel.pnormmax: st.tuples(parameters(1e-4, 1e4, 1.5, 1.8, 2.0, 3.0, above=1.0)),
    fenchel.budget: st.tuples(parameters(1e-3, 1e5, 1.0, 2.0, 2.5)),
    fenchel.fusedmax: st.tuples(strengths(1e4)),
    fenchel.fusedmax2d: st.tuples(strengths(3.0)),
    fenchel.oscarmax: st.tuples(strengths(1e4)),
}


@st.composite
def tied_rows(draw: st.DrawFn, dtype: torch.dtype) -> Tensor:
    """A batch of rows of one kind; some columns may be -inf."""
    columns = draw(lengths())
    rows = max(1, min(MOST_ROWS, ENTRIES // columns))
    torch.manual_seed(draw(st.integers(0, 2**31)))
    scale = draw(st.one_of(st.sampled_from([1.0, 2.0]), st.floats(1e-6, 20.0)))
    x = draw(st.sampled_from(TIED_ROWS))(rows, columns, scale).to(dtype)
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
    x = data.draw(tied_rows(dtype))
    if on_grid:
        x = x[:MOST_IMAGE_ROWS]
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
