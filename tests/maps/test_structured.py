"""The structured maps: against a conic solver, by their groups, and where their algorithms are tried."""

from __future__ import annotations

import math
from collections.abc import Callable

import mpmath
import numpy as np
import pytest
import torch
from torch import Tensor
from torch.func import jacrev

import fenchel
from fenchel.operators.maps import FUSEDMAX, OSCARMAX
from tests import conic
from tests.accuracy import assert_within
from tests.catalogue import MAPS, Map
from tests.implementations import on_every, running_on, widest

SOLVED_WITHIN = 1e-6
GROUPED = {"fusedmax": FUSEDMAX, "oscarmax": OSCARMAX}


def problems(number: int, smallest: float, largest: float):
    """(scores, parameter): 2 to 40 entries of scale 0.3 to 5, the parameter spread by its logarithm."""
    draw = np.random.default_rng(0)
    for size in np.linspace(2, 40, number).round().astype(int):
        scale = math.exp(draw.uniform(math.log(0.3), math.log(5)))
        parameter = math.exp(draw.uniform(math.log(smallest), math.log(largest)))
        yield scale * draw.standard_normal(size), parameter


@pytest.mark.parametrize("name", ["fusedmax", "oscarmax"])
def test_the_map_solves_its_problem_as_a_conic_solver_does(name):
    for x, strength in problems(40, 0.002, 3):
        solution = torch.from_numpy(getattr(conic, name)(x, strength))
        for implementation in ("reference", "cpu"):
            with running_on(implementation):
                p = getattr(fenchel, name)(torch.from_numpy(x), strength)
            assert_within(p, solution, SOLVED_WITHIN)


def test_pnormmax_solves_its_problem_as_a_conic_solver_does():
    solved = 0
    for x, above_one in problems(40, 0.05, 1):
        try:
            solution = torch.from_numpy(conic.pnormmax(x, 1 + above_one))
        except ArithmeticError:  # power cones are hard for it; enough of them must succeed
            continue
        solved += 1
        for implementation in ("reference", "cpu"):
            with running_on(implementation):
                p = fenchel.pnormmax(torch.from_numpy(x), 1 + above_one)
            assert_within(p, solution, SOLVED_WITHIN)
    assert solved >= 30


def pnormmax_digits(x: np.ndarray, s: float) -> list[float]:
    """p = u^c/Σu^c with u = x − τ, τ halved to 50 digits so that x − τ is the gradient of ½‖p‖_s²."""
    with mpmath.workdps(50):
        xs, power = [mpmath.mpf(float(v)) for v in x], mpmath.mpf(s)

        def probabilities(tau: mpmath.mpf) -> list[mpmath.mpf]:
            w = [(v - tau) ** (1 / (power - 1)) if v > tau else mpmath.mpf(0) for v in xs]
            return [v / sum(w) for v in w]

        def excess(tau: mpmath.mpf) -> mpmath.mpf:
            p = probabilities(tau)
            norm = sum(v**power for v in p) ** (1 / power)
            return (max(xs) - tau) - norm ** (2 - power) * max(p) ** (power - 1)

        low, high = max(xs) - 1, max(xs)
        for _ in range(180):
            middle = (low + high) / 2
            low, high = (middle, high) if excess(middle) > 0 else (low, middle)
        return [float(v) for v in probabilities(low)]


@on_every
@pytest.mark.parametrize("s", [1.01, 1.2, 1.5, 1.9, 2.0, 3.0])
def test_pnormmax_is_within_its_promise_of_50_digits(s, implementation):
    for x, _ in problems(6, 1, 2):
        exact = torch.tensor(pnormmax_digits(x.astype(np.float32), s), dtype=torch.float64)
        scores = torch.tensor(x, dtype=torch.float32)
        with running_on(implementation):
            assert_within(fenchel.pnormmax(scores, s), exact, 1e-6)
            if widest() == torch.float64:
                assert_within(fenchel.pnormmax(scores.double(), s), exact, 1e-10)


@on_every
def test_pnormmax_at_two_is_sparsemax(implementation):
    x = 2 * torch.randn(5, 40)
    with running_on(implementation):
        assert_within(fenchel.pnormmax(x, 2.0), fenchel.sparsemax(x), 1e-6)
        assert_within(fenchel.pnormmax(x, torch.tensor(2.0)), fenchel.sparsemax(x), 1e-6)


@on_every
@pytest.mark.parametrize("name", GROUPED)
@pytest.mark.parametrize("strength", [0.002, 0.1, 0.7])
def test_a_group_is_equal_to_the_last_bit_in_float32(name, strength, implementation):
    x = torch.cat([scale * torch.randn(8, 60) for scale in (0.05, 0.3, 1.0)])
    with running_on(implementation):
        p, groups = GROUPED[name](x, strength, -1, None)
    ids = (groups != 0).cumsum(-1) if name == "fusedmax" else groups.long()
    for row, group in zip(p, ids, strict=True):
        for number in group[row > 0].unique():
            members = row[(group == number) & (row > 0)]
            assert (members == members[0]).all()
    assert strength < 0.1 or ((p[:, 1:] == p[:, :-1]) & (p[:, 1:] > 0)).any()


@on_every
@pytest.mark.parametrize("name", GROUPED)
def test_without_strength_the_map_is_sparsemax_and_so_is_its_jacobian(name, implementation):
    x = torch.tensor([[1.0, 1.0, 0.5, 0.5, -1.0], [0.3, 0.2, 0.3, 0.2, 0.3]], dtype=widest())
    function = getattr(fenchel, name)
    with running_on(implementation):
        assert_within(function(x, 0.0), fenchel.sparsemax(x), 1e-6)
        for row in x:  # ties included: equal scores do not move together
            actual = jacrev(lambda v: function(v, 0.0))(row)
            assert_within(actual, jacrev(fenchel.sparsemax)(row), 1e-6)


@on_every
@pytest.mark.parametrize("name", GROUPED)
def test_in_half_precision_the_derivative_knows_groups_that_look_equal(name, implementation):
    """Eight bits of p do not tell these neighbours apart, their groups do."""
    x = (1e-4 * torch.randn(4, 12)).bfloat16()
    strength = 1e-6
    weigh = torch.randn(4, 12).bfloat16()
    leaf, wide = x.clone().requires_grad_(), x.to(widest()).requires_grad_()
    with running_on(implementation):
        p = getattr(fenchel, name)(leaf, strength)
        (slope,) = torch.autograd.grad(p, leaf, weigh)
        exact = getattr(fenchel, name)(wide, strength)
        (expected,) = torch.autograd.grad(exact, wide, weigh.to(widest()))
    assert (p[:, 1:] == p[:, :-1]).sum() > 20
    assert (exact[:, 1:] != exact[:, :-1]).sum() > 30
    torch.testing.assert_close(slope.to(widest()), expected, rtol=2**-8, atol=2**-9)


@on_every
@pytest.mark.parametrize("each", [each for each in MAPS if each.total == 1], ids=str)
def test_two_forwards_before_one_backward_are_independent(each: Map, implementation):
    if implementation not in each.implementations:
        pytest.skip("there is no Numba kernel for this map")
    first, second = (torch.randn(3, 7, dtype=widest()).requires_grad_() for _ in range(2))
    weigh = torch.randn(3, 7, dtype=widest())
    with running_on(implementation):
        alone = [torch.autograd.grad(each(x), x, weigh)[0] for x in (first, second)]
        together = [each(first), each(second)]
        for p, x, expected in zip(together, (first, second), alone, strict=True):
            assert torch.equal(torch.autograd.grad(p, x, weigh)[0], expected)


PATTERNS: dict[str, Callable[[int], Tensor]] = {
    "spread": lambda n: torch.randn(n, dtype=torch.float64),
    "close": lambda n: 0.05 * torch.randn(n, dtype=torch.float64),
    "closer": lambda n: 1e-3 * torch.randn(n, dtype=torch.float64),
    "a ramp": lambda n: torch.linspace(0, 0.5, n, dtype=torch.float64),
    "a noisy ramp": lambda n: (
        torch.linspace(0, 0.5, n, dtype=torch.float64) + 0.01 * torch.randn(n, dtype=torch.float64)
    ),
    "two values": lambda n: torch.randint(0, 2, (n,)).double() / 4,
    "one outlier": lambda n: 1e-4 * torch.randn(n, dtype=torch.float64) - 0.9 * torch.eye(n)[3],
    "heavy tails": lambda n: -(torch.rand(n, dtype=torch.float64).log() ** 3),
    "removed": lambda n: torch.where(
        torch.rand(n) < 0.5, -math.inf, 0.1 * torch.randn(n, dtype=torch.float64)
    ),
    "far below": lambda n: torch.where(
        torch.rand(n) < 0.9, -1e30, 0.1 * torch.randn(n, dtype=torch.float64)
    ),
}


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("name", GROUPED)
def test_the_numba_kernels_find_the_groups_of_the_reference(name, pattern):
    strengths = (1e-6, 1e-3, 0.03, 0.5, 3.0)
    for columns in (49, 64, 200, 700):
        rows = torch.stack([PATTERNS[pattern](columns) for _ in strengths])
        strength = torch.tensor(strengths, dtype=torch.float64)[:, None]
        results = []
        for implementation in ("reference", "cpu"):
            with running_on(implementation):
                leaf, weigh = rows.clone().requires_grad_(), strength.clone().requires_grad_()
                p, _ = GROUPED[name](leaf, weigh, -1, None)
                direction = torch.linspace(-1, 1, columns, dtype=torch.float64).cos().expand_as(p)
                slopes = torch.autograd.grad(p, (leaf, weigh), direction * leaf.detach().tanh())
                results.append((p.detach(), *slopes))
        assert_within(results[1][0], results[0][0], 1e-10)
        if pattern not in ("two values", "a ramp"):  # there groups touch: derivatives are a choice
            torch.testing.assert_close(results[1][1:], results[0][1:], rtol=1e-8, atol=1e-8)


def test_the_gradient_in_the_strength_is_a_difference_quotient_of_a_long_row():
    for name, step in (("fusedmax", 1e-7), ("oscarmax", 1e-9)):
        x, weigh = 0.3 * torch.randn(1, 500).double(), torch.randn(1, 500).double()
        strength = torch.tensor([[0.01]], dtype=torch.float64, requires_grad=True)
        function = getattr(fenchel, name)
        (slope,) = torch.autograd.grad(function(x, strength), strength, weigh)
        with torch.no_grad():
            rise = function(x, strength + step) - function(x, strength - step)
        quotient = (rise * weigh).sum() / (2 * step)
        torch.testing.assert_close(slope.squeeze(), quotient, rtol=1e-5, atol=1e-5)


def test_the_composition_of_the_paper_is_far_from_oscarmax():
    """The erratum: P_Δ ∘ prox_OSCAR does not solve the problem. The solver sides with `oscarmax`."""
    x = 2 * torch.randn(300, 6, dtype=torch.float64)
    exact = fenchel.oscarmax(x, 0.3)
    composed = fenchel.oscarmax_composition(x, 0.3)
    apart = (composed - exact).abs().amax(-1)
    worst = int(apart.argmax())
    assert apart[worst] > 0.3
    solution = torch.from_numpy(conic.oscarmax(x[worst].numpy(), 0.3))
    assert_within(exact[worst], solution, SOLVED_WITHIN)
    assert_within(fenchel.oscarmax(x + 5, 0.3), exact, 1e-10)
    assert (fenchel.oscarmax_composition(x + 5, 0.3) - composed).abs().max() > 0.1


def test_the_composition_is_what_the_paper_says():
    """Eq. 6: the mean of |x| over a group of equal |z|, less λ times its mean number of smaller ones."""
    x = torch.tensor([1.0, -0.9, 0.2, 0.0], dtype=torch.float64)
    z = torch.tensor([0.7, -0.7, 0.1, 0.0], dtype=torch.float64)  # λ = 0.1: weights 0.3 0.2 0.1 0
    assert_within(fenchel.oscarmax_composition(x, 0.1), fenchel.sparsemax(z), 1e-12)
    leaf = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda v: fenchel.oscarmax_composition(v, 0.05), leaf)
    mask = torch.tensor([True, False, True, True, True])
    kept = fenchel.oscarmax_composition(leaf[:, mask], 0.05)
    assert_within(fenchel.oscarmax_composition(leaf, 0.05, mask=mask)[:, mask], kept, 1e-12)
    assert_within(
        fenchel.oscarmax_composition(leaf.mT, 0.05, dim=0).mT,
        fenchel.oscarmax_composition(leaf, 0.05),
        0,
    )


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_the_composition_rounds_once_in_half_precision(dtype):
    x = torch.cat((torch.randn(20, 6), torch.tensor([[6e4, -6e4, 0.0, 0.0, 0.0, 0.0]]))).to(dtype)
    expected = fenchel.oscarmax_composition(x.float(), 0.05).to(dtype)
    assert torch.equal(fenchel.oscarmax_composition(x, 0.05), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_the_composition_takes_masks_by_the_smallest_number(dtype):
    lowest = torch.finfo(dtype).min
    x = torch.tensor([lowest, lowest, -1.0, lowest], dtype=dtype, requires_grad=True)
    p = fenchel.oscarmax_composition(x)
    assert p.tolist() == [0.0, 0.0, 1.0, 0.0]
    p.square().sum().backward()
    assert x.grad.count_nonzero() == 0


def test_fused_groups_are_the_segments_that_one_sees():
    x = torch.tensor([[0.0, 0.9, 1.0, 0.7, -1.0, 0.8], [0.0] * 6])
    p = fenchel.fusedmax(x, 0.1)
    assert fenchel.fused_groups(p).tolist() == [[0, 1, 1, 2, 0, 3], [1] * 6]
    assert torch.equal(fenchel.fused_groups(p.mT, dim=0).mT, fenchel.fused_groups(p))
    mask = torch.tensor([True, True, False, True, True, True])
    masked = fenchel.fusedmax(torch.zeros(6), 0.1, mask=mask)
    assert fenchel.fused_groups(masked, mask=mask).tolist() == [1, 1, 0, 1, 1, 1]
    assert fenchel.fused_groups(masked).tolist() == [1, 1, 0, 2, 2, 2]
    assert fenchel.fused_groups(torch.empty(2, 0)).shape == (2, 0)


@pytest.mark.parametrize("name", [*GROUPED, "fusedmax2d"])
@pytest.mark.parametrize("strength", [-0.1, math.inf, math.nan])
def test_a_strength_is_a_number_from_zero_on(name, strength):
    x = torch.randn(3, 4)
    with pytest.raises(fenchel.FenchelError, match="strength must be at least 0"):
        getattr(fenchel, name)(x, strength)
    with pytest.raises(fenchel.FenchelError, match="strength must be at least 0"):
        getattr(fenchel, name)(x, torch.tensor(strength))
