"""A smoothed class index costs what the smoothed probabilities cost, without making them."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

import fenchel
from tests.allocations import Allocations
from tests.implementations import GPU, parameters, running_on

SMOOTHING = 0.1
on_kernels = pytest.mark.parametrize("implementation", parameters("cpu", GPU))


def smoothed(target: Tensor, classes: int) -> Tensor:
    one_hot = torch.eye(classes, dtype=torch.float64)[target]
    return (1 - SMOOTHING) * one_hot + SMOOTHING / classes


@on_kernels
@pytest.mark.parametrize("offset", [0.0, 1e4])
@pytest.mark.parametrize("columns", [2, 33, 3000])
@pytest.mark.parametrize("alpha", [0.7, 1.0, 1.3, 1.5, 2.0, 3.0])
def test_loss_and_slopes_are_those_of_the_smoothed_probabilities(
    implementation, alpha, columns, offset
):
    x = (torch.randn(3, columns) + offset).requires_grad_()
    target = torch.tensor([0, columns - 1, columns // 2])
    value = torch.tensor(alpha, requires_grad=True)
    with running_on(implementation):
        loss = fenchel.entmax_loss(x, target, value, reduction="none", label_smoothing=SMOOTHING)
        number = fenchel.entmax_loss(x, target, alpha, reduction="none", label_smoothing=SMOOTHING)
        slopes = torch.autograd.grad(loss.sum(), (x, value))
    wide, exponent = x.detach().double().requires_grad_(), value.detach().double().requires_grad_()
    with fenchel.implementation("reference"):
        exact = fenchel.entmax_loss(wide, smoothed(target, columns), exponent, reduction="none")
        expected = torch.autograd.grad(exact.sum(), (wide, exponent))
    torch.testing.assert_close(loss.double(), exact, rtol=2e-6, atol=2e-6)
    torch.testing.assert_close(number, loss, rtol=2e-6, atol=2e-6)
    torch.testing.assert_close(slopes[0].double(), expected[0], rtol=0, atol=1e-6)
    torch.testing.assert_close(slopes[1].double(), expected[1], rtol=1e-4, atol=1e-5)


@on_kernels
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("alpha", [1.0, 1.5, 3.0])
def test_a_class_left_out_by_the_lowest_number_costs_its_mean(implementation, alpha, dtype):
    x = torch.randn(2, 40).to(dtype)
    x[:, 5:9] = torch.finfo(dtype).min
    target = torch.tensor([1, 6])
    with running_on(implementation):
        loss = fenchel.entmax_loss(
            x, target, alpha, reduction="none", label_smoothing=SMOOTHING
        ).double()
    with fenchel.implementation("reference"):
        exact = fenchel.entmax_loss(x.double(), smoothed(target, 40), alpha, reduction="none")
    torch.testing.assert_close(loss, exact, rtol=2 * torch.finfo(dtype).eps, atol=0)


@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0])
def test_a_perfect_fit_costs_nothing_and_never_less(alpha):
    q = smoothed(torch.arange(6), 6)
    logarithm = q.log() if alpha == 1 else (q ** (alpha - 1) - 1) / (alpha - 1)
    for x in (logarithm, logarithm.float()):
        loss = fenchel.entmax_loss(
            x, torch.arange(6), alpha, reduction="none", label_smoothing=SMOOTHING
        )
        assert (loss >= 0).all()
        assert (loss <= 8 * torch.finfo(x.dtype).eps).all()


@pytest.mark.parametrize("alpha", [1.0, 1.5])
def test_a_class_that_cannot_be_costs_infinitely_much_and_an_ignored_row_nothing(alpha):
    x = torch.randn(3, 5)
    x[:2, 3] = -math.inf
    loss = fenchel.entmax_loss(
        x, torch.tensor([3, 0, -100]), alpha, reduction="none", label_smoothing=SMOOTHING
    )
    assert loss.tolist() == [math.inf, math.inf, 0.0]


def test_smoothing_makes_no_matrix_but_the_gradient():
    x, target = torch.randn(6, 50, requires_grad=True), torch.arange(6)
    with Allocations() as forward:
        loss = fenchel.entmax_loss(x, target, label_smoothing=SMOOTHING)
    with Allocations() as backward:
        torch.autograd.grad(loss, x)
    assert max(forward.elements) == 6
    assert sum(elements >= x.numel() for elements in backward.elements) == 1
