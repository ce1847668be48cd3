"""Values that are known: special parameters, two classes, margins, limits of the family."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import fenchel
from tests.accuracy import accuracy, assert_within
from tests.catalogue import ENTMAX_ALPHAS, MAPS, Map, entmax_at, on_every_implementation
from tests.implementations import on_every, running_on, widest
from tests.strategies import GRID, grid_scores, scores

WIDE = (torch.float64, torch.float32)
ALL_DTYPES = (*WIDE, torch.bfloat16, torch.float16)


@on_every
@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("alpha", [1, 1.0, torch.tensor(1), torch.tensor(1.0)])
@given(data=st.data())
def test_entmax_at_one_and_softmax_are_torch_softmax(alpha, dtype, implementation, data):
    x = data.draw(scores(dtype, infinite=False))
    expected = torch.softmax(x.double(), -1)
    with running_on(implementation):
        assert_within(fenchel.entmax(x, alpha), expected, accuracy(dtype))
        assert_within(fenchel.softmax(x), expected, accuracy(dtype))


@on_every
@pytest.mark.parametrize("alpha", [0.5, 1.0, 1.3, 1.5, 2.0, 3.0])
def test_a_row_with_infinity_is_not_a_number(alpha, implementation):
    x = torch.tensor([[0.0, math.inf, 1.0], [0.0, 0.5, 1.0]])
    with running_on(implementation):
        assert fenchel.entmax(x, alpha).isnan().tolist() == [[True] * 3, [False] * 3]


@on_every
@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("alpha", [2, 2.0, torch.tensor(2), torch.tensor(2.0)])
@given(data=st.data())
def test_entmax_at_two_and_budget_of_one_are_sparsemax(alpha, dtype, implementation, data):
    x = data.draw(scores(dtype))
    with fenchel.implementation("reference"):
        expected = fenchel.sparsemax(x.double())
    with running_on(implementation):
        assert_within(fenchel.budget(x, k=1), expected, accuracy(dtype))
        assert_within(fenchel.entmax(x, alpha), expected, accuracy(dtype))
        assert_within(fenchel.sparsemax(x), expected, accuracy(dtype))


@on_every
@pytest.mark.parametrize("dtype", WIDE)
@given(data=st.data())
def test_sparsemax_is_the_projection_onto_the_simplex_by_sorting(dtype, implementation, data):
    x = data.draw(grid_scores(dtype))
    ordered = x.double().sort(-1, descending=True).values
    ranks = torch.arange(1, x.shape[-1] + 1)
    cumulative = ordered.cumsum(-1) - 1
    size = (ordered * ranks > cumulative).sum(-1, keepdim=True)
    tau = cumulative.gather(-1, size - 1) / size
    with running_on(implementation):
        assert_within(fenchel.sparsemax(x), (x - tau).clamp(min=0), accuracy(dtype))


@on_every
@pytest.mark.parametrize("dtype", WIDE)
@given(data=st.data())
def test_entmax_at_one_and_a_half_is_a_square(dtype, implementation, data):
    x = data.draw(grid_scores(dtype))
    with running_on(implementation):
        p = fenchel.entmax(x, 1.5).double()
    tau = (x / 2 - p.sqrt()).masked_fill(p == 0, -math.inf).amax(-1, keepdim=True)
    assert_within((x / 2 - tau).clamp(min=0).square(), p, accuracy(dtype))


@pytest.mark.parametrize("dtype", WIDE)
def test_sparsemax_of_two_classes_is_the_hard_sigmoid(dtype, implementation):
    t = torch.linspace(-3, 3, 97, dtype=dtype)
    with running_on(implementation):
        p = fenchel.sparsemax(torch.stack([t, torch.zeros_like(t)], -1))[:, 0]
    assert_within(p, ((t.double() + 1) / 2).clamp(0, 1), accuracy(dtype))


@pytest.mark.parametrize("dtype", WIDE)
def test_softmax_of_two_classes_is_the_sigmoid(dtype, implementation):
    t = torch.linspace(-9, 9, 97, dtype=dtype)
    with running_on(implementation):
        p = fenchel.softmax(torch.stack([t, torch.zeros_like(t)], -1))[:, 0]
    assert_within(p, torch.sigmoid(t.double()), accuracy(dtype))


WITH_MARGIN = [each for each in (*MAPS, entmax_at(3.0)) if each.margin is not None]


@pytest.mark.parametrize("dtype", ALL_DTYPES)
@pytest.mark.parametrize(("each", "implementation"), on_every_implementation(WITH_MARGIN))
def test_a_lead_of_the_margin_is_exactly_one_hot(each: Map, implementation, dtype):
    lead = torch.tensor(math.ceil(each.margin / GRID) * GRID, dtype=dtype)
    if lead.item() < each.margin:
        lead *= 1 + torch.finfo(dtype).eps
    x = torch.stack([-lead, 0 * lead, -2 * lead, -math.inf * lead, -4 * lead])
    assert lead.item() >= each.margin
    with running_on(implementation):
        assert each(x).tolist() == [0.0, 1.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize(("each", "implementation"), on_every_implementation(WITH_MARGIN))
def test_a_lead_below_the_margin_is_not_one_hot(each: Map, implementation):
    x = torch.tensor([0.0, -0.9 * each.margin], dtype=torch.float64)
    with running_on(implementation):
        assert (each(x) > 0).all()


@pytest.mark.parametrize("alpha", [0.5, 1 - 1e-6, 1.0])
def test_up_to_alpha_one_nothing_is_zero(alpha, implementation):
    with running_on(implementation):
        p = fenchel.entmax(torch.linspace(-300, 300, 50, dtype=torch.float64), alpha)
    assert (p > 0).all()


@on_every
@given(data=st.data())
def test_sparsity_grows_with_alpha(implementation, data):
    x = data.draw(grid_scores(torch.float64))
    with running_on(implementation):
        sizes = [(fenchel.entmax(x, a) > 0).sum(-1) for a in ENTMAX_ALPHAS if a >= 1.2]
    for larger, smaller in pairwise(sizes):
        assert (larger >= smaller).all()


@pytest.mark.parametrize("k", [1, 2, 3, 2.5])
def test_budget_takes_the_k_largest_of_a_well_separated_row(k):
    p = fenchel.budget(torch.tensor([5.0, 1.0, 9.0, 3.0, 7.0]), k)
    taken = torch.tensor([0.0, 0.0, 1.0, 0.0, 0.0])
    if k > 1:
        taken[4] = 1.0
    if k > 2:
        taken[0] = min(k - 2, 1.0)
    torch.testing.assert_close(p, taken)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16])
def test_a_budget_of_nothing_is_zero_as_a_tensor_too(dtype):
    x = torch.randn(3, 5, dtype=dtype)
    for k in (0, torch.tensor(0.0, dtype=dtype), torch.zeros(3, 1, dtype=dtype)):
        assert not fenchel.budget(x, k).any()


def test_normmax_grows_flatter_not_denser_with_alpha():
    x = torch.tensor([0.0, 0.3, 0.6, 0.9], dtype=torch.float64)
    flat = fenchel.normmax(x, 50.0)
    on_support = flat[flat > 0]
    assert on_support.max() / on_support.min() < 1.1
    assert fenchel.normmax(x, 1.02).max() > 0.999


@pytest.mark.parametrize("parameter", ["alpha", "k"])
def test_a_parameter_for_every_row_is_the_row_at_that_parameter(parameter, implementation):
    x = 2 * torch.randn(2, 3, 4, 7, dtype=widest())
    each = fenchel.entmax if parameter == "alpha" else fenchel.budget
    values = torch.tensor([1.0, 1.3, 2.0, 3.0], dtype=torch.float64)
    with running_on(implementation):
        together = each(x, values[:, None])
        for row, value in enumerate(values.tolist()):
            assert_within(together[:, :, row], each(x[:, :, row], value), accuracy(x.dtype))


@pytest.mark.parametrize("shape", [(), (1,), (3, 1), (2, 1, 1), (2, 3, 1), (1, 3, 1)])
def test_alpha_broadcasts_as_any_tensor_does(shape, implementation):
    x = torch.randn(2, 3, 7, dtype=widest())
    alpha = 1.1 + torch.rand(shape, dtype=torch.float64)
    with running_on(implementation):
        expected = fenchel.entmax(x, alpha.expand(2, 3, 1).contiguous())
        assert torch.equal(fenchel.entmax(x, alpha), expected)


def test_alpha_has_size_one_along_dim_wherever_dim_is(implementation):
    x = torch.randn(2, 7, 3, dtype=widest())
    alpha = torch.tensor([1.2, 1.5, 2.0], dtype=torch.float64)
    with running_on(implementation):
        p = fenchel.entmax(x, alpha, dim=1)
        for column, value in enumerate(alpha.tolist()):
            assert_within(p[..., column], fenchel.entmax(x[..., column], value), accuracy(x.dtype))
