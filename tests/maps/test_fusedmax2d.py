"""fusedmax2d: the solution of its problem to rounding, and everything PyTorch does to a map."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.func import jacfwd, jacrev, vmap

import fenchel
from fenchel.kernels.reference import fusedmax2d as reference
from fenchel.operators.maps import FUSEDMAX2D
from tests import conic
from tests.accuracy import assert_within
from tests.implementations import drawn, on_every, running_on, traceable, widest


def images(*shape: int, scale: float = 1.0) -> Tensor:
    return scale * drawn(*shape, dtype=widest())


def test_the_map_solves_its_problem_as_a_conic_solver_does():
    draw = np.random.default_rng(0)
    for _ in range(20):
        height, width = draw.integers(1, 7, 2)
        scale, strength = math.exp(draw.uniform(-1.2, 1.6)), math.exp(draw.uniform(-6, 1))
        x = scale * draw.standard_normal((height, width + 1))
        solution = torch.from_numpy(conic.fusedmax2d(x, strength))
        for implementation in ("reference", "cpu"):
            with running_on(implementation):
                p = fenchel.fusedmax2d(torch.from_numpy(x), strength)
            assert_within(p, solution, 1e-8)


@on_every
def test_one_row_and_one_column_are_fusedmax(implementation):
    x, mask = images(4, 9), torch.rand(4, 9) < 0.7
    with running_on(implementation):
        for masked in (None, mask):
            expected = fenchel.fusedmax(x, 0.2, mask=masked)
            row = fenchel.fusedmax2d(
                x[:, None], 0.2, mask=None if masked is None else mask[:, None]
            )
            assert_within(row[:, 0], expected, 1e-6)
            column = fenchel.fusedmax2d(
                x[..., None], 0.2, mask=None if masked is None else mask[..., None]
            )
            assert_within(column[..., 0], expected, 1e-6)


@on_every
def test_rows_and_columns_that_are_masked_are_not_there(implementation):
    x = images(2, 6, 7)
    mask = torch.ones(6, 7, dtype=torch.bool)
    mask[2], mask[:, 4] = False, False
    kept_rows, kept_columns = [0, 1, 3, 4, 5], [0, 1, 2, 3, 5, 6]
    with running_on(implementation):
        p = fenchel.fusedmax2d(x, 0.15, mask=mask)
        expected = fenchel.fusedmax2d(x[:, kept_rows][..., kept_columns], 0.15)
        removed = fenchel.fusedmax2d(x.masked_fill(~mask, -math.inf), 0.15)
    assert_within(p[:, kept_rows][..., kept_columns], expected, 1e-6)
    assert torch.equal(p, removed)
    assert (p[:, ~mask] == 0).all()


@on_every
def test_the_result_does_not_depend_on_the_rest_of_the_batch(implementation):
    x = torch.stack([images(5, 6, scale=scale) for scale in (0.01, 0.3, 3.0)])
    x = torch.cat((x, torch.full_like(x[:1], -math.inf), torch.full_like(x[:1], math.nan)))
    x = x.reshape(5, 5, 6)
    strength = torch.tensor([0.01, 0.1, 0.5, 0.1, 0.1], dtype=widest())[:, None, None]
    with running_on(implementation):
        p = fenchel.fusedmax2d(x, strength)
        for image, value, alone in zip(x[:3], strength, p[:3], strict=False):
            assert_within(fenchel.fusedmax2d(image, float(value)), alone, 1e-6)
    assert p[3].count_nonzero() == 0
    assert p[4].isnan().all()


@on_every
def test_regions_are_equal_to_the_last_bit_and_connected(implementation):
    x = images(3, 8, 8, scale=0.5).float()
    with running_on(implementation):
        p, groups = FUSEDMAX2D.apply(x.flatten(-2), 0.2, None, 8)
    for row, group in zip(p, groups, strict=True):
        numbers = group[row > 0].unique()
        assert numbers.tolist() == list(range(1, len(numbers) + 1))
        values = [row[group == number] for number in numbers]
        assert all((value == value[0]).all() for value in values)
        heights = torch.stack([value[0] for value in values])
        assert (heights.diff() >= 0).all()
    assert (p > 0).sum() > 2 * sum(len(group.unique()) for group in groups)


@on_every
def test_derivatives_in_every_mode(implementation):
    x = (0.3 * torch.randn(2, 3, 3, dtype=torch.float64)).requires_grad_()
    strength = torch.tensor([[[0.03]], [[0.1]]], dtype=torch.float64, requires_grad=True)
    mask = torch.ones(3, 3, dtype=torch.bool)
    mask[1, 1] = False
    with running_on(implementation):
        for masked in (None, mask):

            def each(scores: Tensor, value: Tensor, masked=masked) -> Tensor:
                return fenchel.fusedmax2d(scores, value, mask=masked)

            gradcheck(each, (x, strength), check_forward_ad=True, fast_mode=True)
        gradcheck(fenchel.fusedmax2d, (x, strength), check_batched_grad=True)
        gradgradcheck(fenchel.fusedmax2d, (x, strength), check_fwd_over_rev=True, fast_mode=True)
        image = x.detach()[0]
        assert torch.equal(jacrev(fenchel.fusedmax2d)(image), jacfwd(fenchel.fusedmax2d)(image))


@on_every
def test_vmap_and_compile_are_the_map(implementation):
    x, strength = images(3, 4, 5), torch.tensor([0.05, 0.1, 0.3], dtype=widest())
    torch.compiler.reset()
    with running_on(implementation):
        together = vmap(fenchel.fusedmax2d)(x, strength)
        expected = fenchel.fusedmax2d(x, strength[:, None, None])
        torch.testing.assert_close(together, expected)
        compiled = torch.compile(fenchel.fusedmax2d, fullgraph=True, backend="aot_eager")
    with traceable(implementation), running_on(implementation):
        torch.testing.assert_close(compiled(x, strength[:, None, None]), expected)


def test_an_image_that_does_not_converge_is_an_error(monkeypatch):
    monkeypatch.setattr(reference, "MAX_ROUNDS", 1)
    with pytest.raises(fenchel.FenchelError, match="2-D total variation must converge"):
        fenchel.fusedmax2d(images(6, 6), 0.3)


def test_broken_rules_are_named():
    with pytest.raises(fenchel.FenchelError, match="scores must have at least two dimensions"):
        fenchel.fusedmax2d(torch.randn(4))
    with pytest.raises(fenchel.FenchelError, match="strength must have size 1 along the last two"):
        fenchel.fusedmax2d(torch.randn(2, 3, 4), torch.ones(2, 1))
    with pytest.raises(fenchel.FenchelError, match="mask must have a shape that broadcasts"):
        fenchel.fusedmax2d(torch.randn(3, 4), mask=torch.ones(4, 3, dtype=torch.bool))
    assert fenchel.fusedmax2d(torch.empty(0, 3, 4)).shape == (0, 3, 4)
