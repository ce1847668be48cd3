"""The pieces of the oracle, against 50 digits and against nasty functions."""

from __future__ import annotations

import math

import mpmath
import pytest
import torch
from torch import Tensor

from fenchel.kernels.reference.deformed import (
    phi1,
    phi1_derivative,
    phi2,
    tsallis,
    tsallis_derivative,
)
from fenchel.kernels.reference.entmax import entmax_normalizer
from fenchel.kernels.reference.newton import solve_decreasing
from fenchel.kernels.reference.normmax import norm, norm_derivative
from tests import oracle

POINTS = [
    sign * size
    for size in (0.0, 1e-300, 1e-12, 1e-6, 1e-3, 0.1, 0.5, 0.999, 1.0, 1.001, 2.0, 10.0, 100.0)
    for sign in (1, -1)
]
P = (0.5, 0.25, 0.125, 0.125, 0.0)


@pytest.mark.parametrize(
    ("function", "definition", "at_zero"),
    [
        (phi1, lambda z: mpmath.expm1(z) / z, 1.0),
        (phi2, lambda z: (mpmath.expm1(z) - z) / z**2, 0.5),
        (phi1_derivative, lambda z: (z * mpmath.exp(z) - mpmath.expm1(z)) / z**2, 0.5),
    ],
)
@pytest.mark.parametrize("z", POINTS)
def test_entire_functions_are_exact_everywhere(function, definition, at_zero, z):
    with mpmath.workdps(400):
        expected = float(definition(mpmath.mpf(z))) if abs(z) > 1e-200 else at_zero
    point = torch.tensor(z, dtype=torch.float64)
    size = (phi1(point) + phi2(point)).item() if function is phi1_derivative else expected
    assert math.isclose(function(point).item(), expected, rel_tol=0, abs_tol=1e-14 * size)


@pytest.mark.parametrize("alpha", [0.5, 1 - 1e-9, 1.0, 1 + 1e-9, 1.01, 1.5, 2.0, 4.0])
def test_tsallis_and_its_slope_in_alpha(alpha):
    p = torch.tensor(P, dtype=torch.float64)
    assert math.isclose(tsallis(p, alpha).item(), float(oracle.tsallis(P, alpha)), rel_tol=1e-13)
    with mpmath.workdps(oracle.DIGITS):
        above = oracle.tsallis(P, mpmath.mpf(alpha) + oracle.STEP)
        below = oracle.tsallis(P, mpmath.mpf(alpha) - oracle.STEP)
        slope = float((above - below) / (2 * oracle.STEP))
    assert math.isclose(tsallis_derivative(p, alpha).item(), slope, rel_tol=1e-12)


@pytest.mark.parametrize("alpha", [1.01, 1.5, 2.0, 4.0, 1000.0])
def test_the_norm_and_its_slope_in_alpha(alpha):
    p = torch.tensor(P, dtype=torch.float64)

    def exact(power: mpmath.mpf) -> mpmath.mpf:
        return sum(mpmath.mpf(v) ** power for v in P if v > 0) ** (1 / power)

    with mpmath.workdps(oracle.DIGITS):
        expected = float(exact(mpmath.mpf(alpha)))
        step = oracle.STEP
        slope = float((exact(alpha + step) - exact(alpha - step)) / (2 * step))
    assert math.isclose(norm(p, alpha).item(), expected, rel_tol=1e-14)
    assert math.isclose(norm_derivative(p, alpha).item(), slope, rel_tol=1e-9, abs_tol=1e-15)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 1.5, 2.0, 4.0])
def test_the_normalizer_makes_the_row_sum_to_one(alpha):
    x = 3 * torch.randn(4, 7, dtype=torch.float64)
    normalizer = entmax_normalizer(x, alpha)[:, None]
    base = (1 + (alpha - 1) * (x - normalizer)).clamp(min=0)
    p = torch.exp(x - normalizer) if alpha == 1 else base ** (1 / (alpha - 1))
    torch.testing.assert_close(p.sum(-1), torch.ones(4).double(), rtol=1e-10, atol=0)


def solved(value, slope, low: float, high: float) -> float:
    def evaluate(point: Tensor) -> tuple[Tensor, Tensor]:
        return value(point), slope(point)

    start, end = (torch.tensor([v], dtype=torch.float64) for v in (low, high))
    return solve_decreasing(evaluate, start, end).item()


def test_the_root_finder_ends_where_newton_alone_would_not():
    root = solved(lambda t: -t.atan(), lambda t: -1 / (1 + t * t), -9, 4)
    assert math.isclose(root, 0, abs_tol=1e-15)
    steep = solved(lambda t: 1e-8 - t**9, lambda t: -9 * t**8, 0, 4)
    assert math.isclose(steep, 1e-8 ** (1 / 9), rel_tol=1e-7)
    flat = solved(lambda t: (0.3 - t).sign(), lambda t: torch.zeros_like(t), 0, 1)
    assert math.isclose(flat, 0.3, rel_tol=1e-15)


def test_a_row_that_is_nan_ends_at_once_and_leaves_the_others_alone():
    goal = torch.tensor([[1.0], [math.nan], [3.0]], dtype=torch.float64)
    low = torch.zeros_like(goal)
    root = solve_decreasing(lambda t: (goal - t, -torch.ones_like(t)), low, low + 10)
    assert root[0] == 1
    assert root[2] == 3
