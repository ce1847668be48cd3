"""Derivatives of the maps: every mode, every order, every implementation."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap

import fenchel
from tests.accuracy import assert_as_accurate_as, assert_rounded_once, assert_within
from tests.catalogue import Map, entmax_at, on_every_implementation, tensor
from tests.implementations import (
    EVERYWHERE,
    GPU,
    drawn,
    on_every,
    parameters,
    placed,
    running_on,
    widest,
)

MAPS = [
    entmax_at(0.5),
    entmax_at(1.0),
    entmax_at(1.2),
    entmax_at(1.5),
    entmax_at(2.0),
    entmax_at(3.0),
    Map(fenchel.normmax, {"alpha": 1.5}),
    Map(fenchel.normmax, {"alpha": 3.0}),
    Map(fenchel.budget, {"k": 2.5}, total=2.5),
    Map(fenchel.pnormmax, {"p": 1.4}),
    Map(fenchel.fusedmax, {"strength": 0.05}),
    Map(fenchel.oscarmax, {"strength": 0.03}),
]
WITH_TENSORS = [
    (fenchel.entmax, (0.7, 1.0, 1.3, 2.0), EVERYWHERE),
    (fenchel.normmax, (1.3, 2.0, 2.5, 4.0), EVERYWHERE),
    (fenchel.budget, (0.5, 1.25, 2.5, 3.5), EVERYWHERE),
    (fenchel.pnormmax, (1.2, 1.5, 1.9, 2.0), EVERYWHERE),
    (fenchel.fusedmax, (0.01, 0.03, 0.1, 0.5), EVERYWHERE),
    (fenchel.oscarmax, (0.005, 0.01, 0.03, 0.1), EVERYWHERE),
]
FUNCTIONS = [
    placed(implementation, function, values, name=function.__name__)
    for function, values, implementations in WITH_TENSORS
    for implementation in implementations
]


def smooth_scores(*shape: int) -> Tensor:
    """Scores at which every map here has full support and is far from a kink."""
    return 0.1 * drawn(*shape)


def sparse_scores(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


@pytest.mark.parametrize("make", [smooth_scores, sparse_scores])
@pytest.mark.parametrize(("each", "implementation"), on_every_implementation(MAPS))
def test_first_derivatives_in_every_mode(each: Map, implementation, make):
    x = make(2, 5).requires_grad_()
    mask = torch.tensor([True, True, True, False, True])
    with running_on(implementation):
        for masked in (None, mask):
            gradcheck(
                lambda scores, masked=masked: each(scores, mask=masked),
                x,
                check_forward_ad=True,
                check_batched_grad=True,
                check_batched_forward_grad=True,
            )


@pytest.mark.parametrize(("each", "implementation"), on_every_implementation(MAPS))
def test_second_derivatives_in_every_mode(each: Map, implementation):
    x = smooth_scores(2, 5).requires_grad_()
    with running_on(implementation):
        gradgradcheck(each, x, check_fwd_over_rev=True, check_rev_over_rev=True)


@pytest.mark.parametrize(("function", "values", "implementation"), FUNCTIONS)
def test_derivatives_in_the_parameter_in_every_mode(function, values, implementation):
    x = smooth_scores(4, 5).requires_grad_()
    value = torch.tensor(values, dtype=torch.float64)[:, None].requires_grad_()
    with running_on(implementation):
        gradcheck(
            function,
            (x, value),
            check_forward_ad=True,
            check_batched_grad=True,
            check_batched_forward_grad=True,
        )
        gradgradcheck(function, (x, value), check_fwd_over_rev=True)


@pytest.mark.parametrize("shape", [(), (1,), (3, 1), (2, 1, 1), (2, 3, 1)])
@on_every
def test_the_gradient_in_alpha_is_summed_to_the_shape_of_alpha(shape, implementation):
    x, direction = torch.randn(2, 2, 3, 5, dtype=widest())
    alpha = (1.1 + torch.rand(shape, dtype=widest())).requires_grad_()
    wide = alpha.detach().expand(2, 3, 1).clone().requires_grad_()
    with running_on(implementation):
        (fenchel.entmax(x, alpha) * direction).sum().backward()
        (fenchel.entmax(x, wide) * direction).sum().backward()
    torch.testing.assert_close(alpha.grad, wide.grad.sum_to_size(shape))


@pytest.mark.parametrize("make", [smooth_scores, sparse_scores])
@pytest.mark.parametrize(("each", "implementation"), on_every_implementation(MAPS))
def test_the_jacobian_is_symmetric_and_the_same_in_both_modes(each: Map, implementation, make):
    x = make(6)
    with running_on(implementation):
        backward, forward = jacrev(each)(x), jacfwd(each)(x)
    torch.testing.assert_close(backward, forward, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(backward, backward.mT, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(backward.sum(0), torch.zeros(6, dtype=x.dtype), rtol=0, atol=1e-10)


@pytest.mark.parametrize(("each", "implementation"), on_every_implementation(MAPS))
def test_the_hessian_is_the_same_in_all_four_nestings(each: Map, implementation):
    x, direction = smooth_scores(5), torch.randn(5, dtype=torch.float64)

    def scalar(scores: Tensor) -> Tensor:
        return (each(scores) * direction).sum()

    with running_on(implementation):
        nestings = [
            outer(inner(scalar))(x) for outer in (jacrev, jacfwd) for inner in (jacrev, jacfwd)
        ]
        step = 1e-5 * torch.eye(5, dtype=torch.float64)
        rises = [jacrev(scalar)(x + move) - jacrev(scalar)(x - move) for move in step]
        assert torch.equal(hessian(scalar)(x), nestings[2])
    expected = torch.stack(rises) / 2e-5
    for nesting in nestings:
        torch.testing.assert_close(nesting, expected, rtol=1e-6, atol=1e-6)


@on_every
@pytest.mark.parametrize("alpha", [0.7, 1.0, 1.0 + 1e-7, 1.01, 1.5, 2.0])
def test_second_and_mixed_derivatives_in_alpha(alpha, implementation):
    x, direction = smooth_scores(5), drawn(5)

    def scalar(scores: Tensor, value: Tensor) -> Tensor:
        return (fenchel.entmax(scores, value) * direction).sum()

    value = tensor(alpha)
    with running_on(implementation):
        for inner in (jacrev, jacfwd):
            for outer in (jacrev, jacfwd):
                mixed = outer(inner(scalar, argnums=1), argnums=(0, 1))(x, value)
                move = tensor(1e-4)
                slope = jacrev(scalar, argnums=(0, 1))
                above, below = slope(x, value + move), slope(x, value - move)
                for actual, high, low in zip(mixed, above, below, strict=True):
                    torch.testing.assert_close(actual, (high - low) / 2e-4, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(("each", "implementation"), on_every_implementation(MAPS))
def test_jvp_and_vjp_are_adjoint(each: Map, implementation):
    x, move, weigh = (sparse_scores(3, 6) for _ in range(3))
    with running_on(implementation):
        p, moved = jvp(each, (x,), (move,))
        q, pull_back = vjp(each, x)
        (pulled,) = pull_back(weigh)
    assert torch.equal(p, q)
    torch.testing.assert_close((moved * weigh).sum(), (move * pulled).sum())


@pytest.mark.parametrize("implementation", parameters("cpu", GPU))
@pytest.mark.parametrize("columns", [1, 7, 64, 300, 5000])
@pytest.mark.parametrize("alpha", [0.5, 1.0, 1.01, 1.2, 1.5, 1.75, 2.0, 2.5])
def test_a_backward_kernel_is_as_accurate_as_the_reference_in_float32(
    alpha, columns, implementation
):
    x, weigh = torch.randn(3, columns), torch.randn(3, columns)

    def gradient(name: str, dtype: torch.dtype) -> Tensor:
        with fenchel.implementation("reference"):
            p = fenchel.entmax(x.double(), alpha).to(dtype)
        with running_on(name):
            return torch.ops.fenchel.entmax_backward(weigh.to(dtype), p, alpha, -1)

    # Both start from the same rounded p, so only the rounding of the backward itself is compared.
    with fenchel.implementation("reference"):
        p32 = fenchel.entmax(x.double(), alpha).float().double()
        exact = torch.ops.fenchel.entmax_backward(weigh.double(), p32, alpha, -1)
    oracle, actual = (gradient(name, torch.float32) for name in ("reference", implementation))
    assert_as_accurate_as(oracle, actual, exact)


@pytest.mark.parametrize("columns", [1, 7, 64, 300, 5000])
@pytest.mark.parametrize("alpha", [0.5, 1.0, 1.01, 1.2, 1.5, 1.75, 2.0, 2.5])
def test_the_cpu_backward_agrees_with_the_reference_in_float64(alpha, columns):
    x, weigh = sparse_scores(3, columns).requires_grad_(), sparse_scores(3, columns)
    gradients = []
    for implementation in ("reference", "cpu"):
        with running_on(implementation):
            gradients += torch.autograd.grad(fenchel.entmax(x, alpha), x, weigh)
    assert_within(gradients[1], gradients[0], 1e-10)


MODES = {
    "reverse": lambda f, x, v: vjp(f, x)[1](v)[0],
    "forward": lambda f, x, v: jvp(f, (x,), (v,))[1],
    "reverse over reverse": lambda f, x, v: vjp(lambda y: vjp(f, y)[1](v)[0], x)[1](v)[0],
    "forward over reverse": lambda f, x, v: jvp(lambda y: vjp(f, y)[1](v)[0], (x,), (v,))[1],
    "forward over forward": lambda f, x, v: jvp(lambda y: jvp(f, (y,), (v,))[1], (x,), (v,))[1],
    "every row at once": lambda f, x, v: vmap(grad(lambda y, w: (f(y) * w).sum()))(x, v),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("each", "implementation"), on_every_implementation(MAPS))
def test_every_derivative_in_float32_is_that_in_float64(each: Map, implementation, mode):
    x, direction = (smooth_scores(3, 6).float() for _ in range(2))
    with running_on(implementation):
        actual = MODES[mode](each, x, direction)
    with fenchel.implementation("reference"):
        expected = MODES[mode](each, x.double(), direction.double())
    torch.testing.assert_close(actual.double(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("function", "values", "implementation"), FUNCTIONS)
def test_every_derivative_in_the_parameter_in_float32_is_that_in_float64(
    function, values, implementation, mode
):
    value = torch.tensor(values)[:, None]
    x, direction = smooth_scores(4, 5).float(), torch.ones(4, 1)

    def change(scores: Tensor) -> Callable[[Tensor], Tensor]:
        weigh = torch.linspace(-1, 1, 5, dtype=scores.dtype)
        if mode == "every row at once":  # it takes rows apart, and the scores with them
            scores = scores[0]
        return lambda moved: (function(scores, moved) * weigh).sum(-1, keepdim=True)

    with running_on(implementation):
        actual = MODES[mode](change(x), value, direction)
    with fenchel.implementation("reference"):
        expected = MODES[mode](change(x.double()), value.double(), direction.double())
    torch.testing.assert_close(actual.double(), expected, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@on_every
@pytest.mark.parametrize("alpha", [1.0, 1.3, 1.5, 2.0])
def test_the_half_precision_backward_rounds_once(alpha, implementation, dtype):
    p = torch.softmax(torch.randn(4, 9), -1).to(dtype)
    weigh = torch.randn(4, 9).to(dtype)
    with fenchel.implementation("reference"):
        exact = torch.ops.fenchel.entmax_backward(weigh.double(), p.double(), alpha, -1)
    with running_on(implementation):
        actual = torch.ops.fenchel.entmax_backward(weigh, p, alpha, -1)
    assert actual.dtype == dtype
    assert_rounded_once(actual.abs(), exact.abs())
