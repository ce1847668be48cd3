"""Everything PyTorch does to a function can be done to continuous attention, compiled or not."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.func import grad, hessian, jacfwd, jacrev, jvp, vmap

from fenchel.continuous import GaussianBasis, entmax, ridge_values

LINE = GaussianBasis.grid(4, 0.2, dtype=torch.float64)
PLANE = GaussianBasis.grid((2, 2), 0.2, dtype=torch.float64)


@pytest.fixture(autouse=True)
def _fresh_compiler():
    torch.compiler.reset()


def on_the_line(alpha: float):
    return lambda loc: entmax(loc, 0.02 + loc**2, LINE, alpha)


def in_the_plane(loc: Tensor) -> Tensor:
    variance = torch.eye(2, dtype=loc.dtype) + 0.3 * loc.unsqueeze(-1) * loc.unsqueeze(-2)
    return entmax(loc, 0.02 * variance, PLANE, 2.0)


CASES = {
    "line 1": (on_the_line(1.0), (3,)),
    "line 1.5": (on_the_line(1.5), (3,)),
    "line 2": (on_the_line(2.0), (3,)),
    "plane 2": (in_the_plane, (3, 2)),
}
TRANSFORMS = {
    "forward": lambda f: f,
    "vmap": vmap,
    "grad": lambda f: grad(lambda x: f(x).square().sum()),
    "jvp": lambda f: lambda x: jvp(f, (x,), (x,))[1],
    "per-sample gradient": lambda f: vmap(grad(lambda x: f(x).square().sum())),
}
COMPILED = [
    *(("plane 2", transform) for transform in TRANSFORMS),
    *(("line 2", transform) for transform in ("forward", "per-sample gradient")),
    ("line 1.5", "per-sample gradient"),
    ("line 1", "grad"),
]


@pytest.mark.parametrize(("case", "transform"), COMPILED)
def test_a_compiled_transform_is_the_transform(case, transform):
    function, shape = CASES[case]
    x = 0.5 + 0.2 * torch.randn(shape, dtype=torch.float64)
    transformed = TRANSFORMS[transform](function)
    compiled = torch.compile(transformed, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x), transformed(x), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("dynamic", [None, True])
def test_one_compiled_function_serves_one_alpha_after_another(dynamic):
    compiled = torch.compile(entmax, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    x = torch.tensor([0.2, 0.6], dtype=torch.float64)
    for alpha in (1.25, 1.5, 1.75, 2.0):
        torch.testing.assert_close(compiled(x, x, LINE, alpha), entmax(x, x, LINE, alpha))


@pytest.mark.parametrize("case", CASES)
def test_vmap_is_a_loop_and_modes_agree(case):
    function, shape = CASES[case]
    x = 0.5 + 0.2 * torch.randn(shape, dtype=torch.float64)
    torch.testing.assert_close(vmap(function)(x), torch.stack([function(part) for part in x]))
    torch.testing.assert_close(jacrev(function)(x), jacfwd(function)(x), rtol=1e-6, atol=1e-8)

    def total(y: Tensor) -> Tensor:
        return function(y).square().sum()

    torch.testing.assert_close(jacrev(jacrev(total))(x), hessian(total)(x), rtol=1e-6, atol=1e-7)
    torch.testing.assert_close(jacfwd(jacfwd(total))(x), hessian(total)(x), rtol=1e-6, atol=1e-7)


def test_a_compiled_training_step_is_the_step():
    values = torch.randn(2, 7, 3, dtype=torch.float64)

    def step(loc: Tensor, variance: Tensor, values: Tensor) -> Tensor:
        coefficients = ridge_values(values, None, LINE, 0.1)
        context = entmax(loc, variance.exp(), LINE, 2.0).unsqueeze(1) @ coefficients
        return context.square().sum()

    inputs = [torch.tensor([0.3, 0.7]).double(), torch.tensor([-2.0, -4.0]).double(), values]
    leaves = [x.requires_grad_() for x in inputs]
    expected = torch.autograd.grad(step(*leaves), leaves)
    compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
    actual = torch.autograd.grad(compiled(*leaves), leaves)
    for a, b in zip(actual, expected, strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.slow
def test_a_step_through_inductor_is_the_step():
    x = torch.rand(3, 2).double().requires_grad_()
    (expected,) = torch.autograd.grad(in_the_plane(x).square().sum(), x)
    compiled = torch.compile(lambda x: in_the_plane(x).square().sum(), fullgraph=True)
    torch.testing.assert_close(torch.autograd.grad(compiled(x), x)[0], expected)


@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0])
def test_autocast_and_half_precision_compute_in_full(alpha):
    loc, variance = torch.rand(4).bfloat16(), 0.01 + torch.rand(4).bfloat16()
    basis = GaussianBasis.grid(4, 0.2)
    exact = entmax(loc.float(), variance.float(), basis, alpha)
    half = entmax(loc, variance, basis, alpha)
    assert half.dtype == torch.bfloat16
    assert torch.equal(half, exact.bfloat16())
    with torch.autocast("cpu", torch.bfloat16):
        cast = entmax(loc, variance, basis, alpha)
    assert cast.dtype == torch.float32
    assert torch.equal(cast, exact)


def test_autocast_does_not_reach_the_plane():
    loc, variance = torch.rand(4, 2), (0.03 * torch.eye(2)).expand(4, 2, 2)
    basis = GaussianBasis.grid((3, 3), 0.1)
    for alpha in (1.0, 2.0):
        with torch.autocast("cpu", torch.bfloat16):
            cast = entmax(loc, variance, basis, alpha)
        assert torch.equal(cast, entmax(loc, variance, basis, alpha))


def test_meta_tensors_know_their_shape():
    loc = torch.empty(3, 2, device="meta")
    basis = GaussianBasis(torch.empty(5, 2, device="meta"), torch.empty(5, 2, 2, device="meta"))
    assert entmax(loc, torch.empty(3, 2, 2, device="meta"), basis).shape == (3, 5)
