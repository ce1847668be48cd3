"""Every map against 50 digits: values in float64 and float32, and the derivatives in α."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

import fenchel
from tests import oracle
from tests.accuracy import accuracy, assert_within
from tests.catalogue import ENTMAX_ALPHAS
from tests.implementations import on_every, parameters, running_on

SCALES = (0.01, 0.1, 1.0, 10.0, 100.0, 1e4)
OFFSETS = (0.0, *(10.0**-n for n in range(7, 0, -1)), 1.0)  # α − 1
SLOPE_PROMISE = 0.005


def exact(values: list) -> Tensor:
    return torch.tensor([float(value) for value in values], dtype=torch.float64)


def row(scale: float, columns: int = 9, seed: int = 0) -> Tensor:
    """Scores that float32 holds exactly, with a tie."""
    generator = torch.Generator("cpu").manual_seed(seed)
    x = torch.randn(columns, generator=generator, dtype=torch.float64, device="cpu")
    x = (scale * x).float()
    x[1] = x[3]
    return x.to(torch.get_default_device())


def digits(function, x: Tensor, parameter: float) -> Tensor:
    return exact(function(tuple(x.tolist()), parameter))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@on_every
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("alpha", ENTMAX_ALPHAS)
def test_entmax_is_within_its_promise_of_50_digits(alpha, scale, implementation, dtype):
    x = row(scale)
    with running_on(implementation):
        p = fenchel.entmax(x.to(dtype), alpha)
        with_tensor = fenchel.entmax(x.to(dtype), torch.tensor(alpha, dtype=torch.float64))
    expected = digits(oracle.entmax, x, alpha)
    assert_within(p, expected, accuracy(dtype))
    assert_within(with_tensor, expected, accuracy(dtype))
    assert abs(p.double().sum().item() - 1) <= accuracy(dtype)


@on_every
@pytest.mark.parametrize("columns", [130, 1030, 8200])
@pytest.mark.parametrize("alpha", [0.95, 1.02, 1.1, 1.3, 1.5, 1.75, 2.0, 3.0])
def test_one_score_above_many_equal_ones_is_within_the_promise(alpha, columns, implementation):
    """Equal terms of a sum round alike, and what they round off adds up."""
    farthest = min(20.0, 1 / abs(alpha - 1))
    x = torch.zeros(40, columns)
    x[:, 1:] = -torch.linspace(0.1, farthest, 40).unsqueeze(1)
    with running_on(implementation):
        p = fenchel.entmax(x, alpha)
    assert_within(p, fenchel.entmax(x.double(), alpha), accuracy(torch.float32))


@on_every
@pytest.mark.parametrize("alpha", [*ENTMAX_ALPHAS, 10.0])
def test_at_the_edge_of_the_support_entmax_is_still_exact(alpha, implementation):
    edge = -1 / (alpha - 1) if alpha > 1 else -40.0
    x = torch.tensor([0.0, 0.0, edge, edge / 2, edge * (1 - 1e-9)], dtype=torch.float64)
    with running_on(implementation):
        assert_within(fenchel.entmax(x, alpha), digits(oracle.entmax, x, alpha), 1e-10)


@on_every
@pytest.mark.parametrize("size", [10.0**-n for n in range(2, 9)])
@pytest.mark.parametrize("alpha", [2.1, 2.5, 3.0, 4.0, 10.0])
def test_above_alpha_two_a_tiny_probability_is_still_exact(alpha, size, implementation):
    """There p rises so steeply with x that one unit in the last place of x moves p by far more."""
    eps = alpha - 1
    x = torch.tensor([0.0, (size**eps - (1 - size) ** eps) / eps], dtype=torch.float64)
    expected = digits(oracle.entmax, x, alpha)
    assert math.isclose(expected.sum().item(), 1, rel_tol=1e-15)
    with running_on(implementation):
        assert_within(fenchel.entmax(x, alpha), expected, 1e-10)


def distance_from_optimal(p: Tensor, x: Tensor, alpha: float) -> float:
    """The largest error of p in the conditions of the optimum, which hold of one p only.

    They are Σp = 1 and p_i^ε − p_b^ε = ε (x_i − x_b), b being the least entry of the support.
    """
    with oracle.mpmath.workdps(oracle.DIGITS):
        eps = oracle.mpf(alpha) - 1
        given, scores = [[oracle.mpf(v) for v in row.tolist()] for row in (p, x)]
        least, bottom = min((v, score) for v, score in zip(given, scores, strict=True) if v > 0)
        powers = (eps * (score - bottom) + least**eps for score in scores)
        optimal = [power ** (1 / eps) if power > 0 else oracle.mpf(0) for power in powers]
        errors = [abs(v - best) for v, best in zip(given, optimal, strict=True)]
        return float(max(*errors, abs(sum(given) - 1)))


@pytest.mark.parametrize("implementation", parameters("reference", "cpu"))
@pytest.mark.parametrize("largest", [None, 1e-3], ids=["alone", "beside_a_larger_one"])
@pytest.mark.parametrize("scale", [1e-310, 1e-40, 1e-20, 1e-15, 1e-10])
@pytest.mark.parametrize("alpha", [2.5, 4.0, 10.0, 20.0, 100.0])
def test_above_alpha_two_thousands_of_tiny_scores_are_told_apart(
    alpha, scale, largest, implementation
):
    x = scale * torch.randn(2000, dtype=torch.float64)
    if largest is not None:
        x[7] = largest
    with running_on(implementation):
        p = fenchel.entmax(x, alpha)
    assert distance_from_optimal(p, x, alpha) <= 1e-14


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("alpha", [1.05, 1.5, 2.0, 3.0, 6.0])
def test_normmax_is_within_its_promise_of_50_digits(alpha, scale, dtype):
    x = row(scale)
    expected = digits(oracle.normmax, x, alpha)
    assert_within(fenchel.normmax(x.to(dtype), alpha), expected, accuracy(dtype))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("k", [0, 0.5, 1, 2, 3.25, 9])
def test_budget_is_within_its_promise_of_50_digits(k, scale, dtype):
    x = row(scale)
    expected = digits(oracle.budget, x, k)
    assert_within(fenchel.budget(x.to(dtype), k), expected, accuracy(dtype))


def test_the_oracle_solves_the_problem_that_defines_normmax():
    """No point of the simplex nearby is better: the oracle's own formula is not taken on trust."""
    x = tuple(row(0.3, columns=4).tolist())
    best = exact(oracle.normmax(x, 3.0))
    scores = torch.tensor(x, dtype=torch.float64)

    def objective(p: Tensor) -> Tensor:
        return (p * scores).sum(-1) - p.norm(3.0, dim=-1)

    others = torch.softmax(best.clamp(min=1e-6).log() + 0.3 * torch.randn(2000, 4).double(), -1)
    assert (objective(others) <= objective(best)).all()


@on_every
@pytest.mark.parametrize("scale", [0.01, 1.0])
@pytest.mark.parametrize("alpha", [1.0, 1.01, 1.2, 1.5, 1.75, 2.0, 2.5])
def test_a_vocabulary_sums_to_one_in_float32(alpha, scale, implementation):
    x = scale * torch.randn(2, 128_000)
    with fenchel.implementation("reference"):
        expected = fenchel.entmax(x.double(), alpha)
    with running_on(implementation):
        p = fenchel.entmax(x, alpha)
    assert_within(p.double().sum(-1), torch.ones(2), 1e-6)
    assert_within(p, expected, 1e-6)


@pytest.mark.parametrize("differentiate_again", [False, True], ids=["kernel", "rule"])
@on_every
@pytest.mark.parametrize("scale", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("offset", OFFSETS)
def test_the_slope_in_alpha_is_within_half_a_percent_in_float32(
    offset, scale, implementation, differentiate_again
):
    alpha = torch.tensor(1 + offset, requires_grad=True)
    x, directions = row(scale), torch.randn(4, 9)
    slope = digits_slope(oracle.entmax, x, alpha.item())
    for direction in directions:
        with running_on(implementation):
            gained = (fenchel.entmax(x, alpha) * direction).sum()
            (actual,) = torch.autograd.grad(gained, alpha, create_graph=differentiate_again)
        expected = (direction.double() * slope).sum().item()
        assert math.isclose(actual.item(), expected, rel_tol=SLOPE_PROMISE)


@on_every
@pytest.mark.parametrize("alpha", [0.5, 1 - 1e-6, 1.0, 1 + 1e-6, 1.01, 1.5, 2.0, 2.5])
def test_the_slope_in_alpha_is_exact_in_float64(alpha, implementation):
    parameter = torch.tensor(alpha, dtype=torch.float64, requires_grad=True)
    x = row(1.0).double()
    with running_on(implementation):
        p = fenchel.entmax(x, parameter)
        slopes = [torch.autograd.grad(v, parameter, retain_graph=True)[0] for v in p]
    assert_within(torch.stack(slopes), digits_slope(oracle.entmax, x, alpha), 1e-10)


@pytest.mark.parametrize(
    ("name", "parameter"), [("normmax", 1.5), ("normmax", 2.0), ("normmax", 5.0), ("budget", 2.5)]
)
def test_the_slope_in_the_parameter_of_the_other_maps_is_exact(name, parameter):
    value = torch.tensor(parameter, dtype=torch.float64, requires_grad=True)
    x = row(0.4).double()
    p = getattr(fenchel, name)(x, value)
    slopes = [torch.autograd.grad(v, value, retain_graph=True)[0] for v in p]
    assert_within(torch.stack(slopes), digits_slope(getattr(oracle, name), x, parameter), 1e-10)


def digits_slope(function, x: Tensor, parameter: float) -> Tensor:
    return exact(oracle.slope_in_parameter(function, tuple(x.tolist()), parameter))
