"""Everything PyTorch can do to a function can be done to the maps and losses, compiled or not."""

from __future__ import annotations

import weakref
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vmap
from torch.utils.checkpoint import checkpoint

import fenchel
from tests.catalogue import MAPS, Map, on_every_implementation, tensor
from tests.implementations import DEFAULT, GPU, parameters, running_on, traceable, widest

FEW = [
    Map(fenchel.sparsemax),
    Map(fenchel.entmax, {"alpha": 1.3}),
    Map(fenchel.entmax, {"alpha": tensor(1.5)}),
    Map(fenchel.normmax, {"alpha": 2.0}),
    Map(fenchel.budget, {"k": 2}, total=2.0),
    Map(fenchel.fusedmax, {"strength": 0.05}, in_order=True),
    Map(fenchel.oscarmax, {"strength": tensor(0.03)}),
]


@pytest.fixture(autouse=True)
def _fresh_compiler():
    torch.compiler.reset()


def scores(*shape: int) -> Tensor:
    return 0.5 * torch.randn(*shape, dtype=widest())


def _spread(p: Tensor) -> Tensor:
    return p.square().sum(-1) / 2 + p.pow(4).sum(-1)


SAVERS = {
    **{str(each): each for each in FEW},
    "attention": lambda x: fenchel.attention(x, x, x, is_causal=True),
    "entmax_loss": lambda x: fenchel.entmax_loss(x, torch.arange(5)),
    "linear_entmax_loss": lambda x: fenchel.linear_entmax_loss(x, x, torch.arange(5)),
    "Norm.max": fenchel.Norm().max,
    "Custom.map": fenchel.Custom(_spread).map,
    "Custom.max": fenchel.Custom(_spread).max,
}


def _saved_on_the_cpu(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    with torch.autograd.graph.save_on_cpu():
        return function(x)


HOOKS = {
    "checkpointed": lambda f, x: checkpoint(f, x, use_reentrant=False),
    "saved on the CPU": _saved_on_the_cpu,
}


@pytest.mark.parametrize("hook", HOOKS)
@pytest.mark.parametrize("name", SAVERS)
def test_what_becomes_of_saved_tensors_changes_no_gradient(name, hook):
    x, function = scores(5, 5).requires_grad_(), SAVERS[name]
    plain, hooked = (
        torch.autograd.grad(result.square().sum(), x)
        for result in (function(x), HOOKS[hook](function, x))
    )
    assert torch.equal(*plain, *hooked)


@pytest.mark.parametrize(("each", "implementation"), on_every_implementation())
def test_vmap_over_any_dimension_is_a_loop(each: Map, implementation):
    x = scores(3, 4, 5)
    with running_on(implementation):
        for batch in range(3):
            for dim in (0, 1, -1):
                loop = [each(part, dim=dim) for part in x.unbind(batch)]
                together = vmap(lambda part, dim=dim: each(part, dim=dim), in_dims=batch)(x)
                torch.testing.assert_close(together, torch.stack(loop))


@pytest.mark.parametrize("in_dims", [(0, None, None), (None, 0, None), (None, None, 0), (1, 0, 2)])
@pytest.mark.parametrize("function", [fenchel.entmax, fenchel.normmax, fenchel.budget])
def test_vmap_over_every_argument_is_a_loop(function, in_dims, implementation):
    batched = (
        scores(4, 3, 6),
        1.1 + torch.rand(3, 4, 1, dtype=widest()),
        torch.rand(4, 6, 3) < 0.8,
    )
    alone = (scores(4, 6), 1.1 + torch.rand(4, 1, dtype=widest()), torch.rand(4, 6) < 0.8)
    places = (1, 0, 2)
    arguments = tuple(
        alone[i] if dim is None else batched[i].movedim(places[i], dim)
        for i, dim in enumerate(in_dims)
    )

    def call(x: Tensor, value: Tensor, mask: Tensor) -> Tensor:
        return function(x, value, mask=mask)

    def sensitivity(x: Tensor, value: Tensor, mask: Tensor) -> Tensor:
        return grad(lambda v: call(x, v, mask).square().sum())(value)

    with running_on(implementation):
        for mapped in (call, sensitivity):
            together = vmap(mapped, in_dims=in_dims)(*arguments)
            for i in range(3):
                part = [
                    a if dim is None else a.select(dim, i)
                    for a, dim in zip(arguments, in_dims, strict=True)
                ]
                torch.testing.assert_close(together[i], mapped(*part))


def test_nested_vmap_is_a_nested_loop(implementation):
    x, alpha = scores(2, 3, 5), torch.tensor([1.0, 1.5, 2.0], dtype=widest())
    with running_on(implementation):
        inner = vmap(fenchel.entmax, in_dims=(0, 0))
        together = vmap(inner, in_dims=(0, None))(x, alpha)
        torch.testing.assert_close(together, fenchel.entmax(x, alpha[:, None]))


def test_gradients_of_every_sample_of_a_model(implementation):
    model = nn.Linear(4, 6, dtype=widest())
    weights = dict(model.named_parameters())
    inputs, targets = scores(5, 4), torch.arange(5)

    def loss(parameters: dict, x: Tensor, target: Tensor) -> Tensor:
        return fenchel.entmax_loss(functional_call(model, parameters, x), target, alpha=1.5)

    with running_on(implementation):
        together = vmap(grad(loss), in_dims=(None, 0, 0))(weights, inputs, targets)
        for i in range(5):
            alone = grad(loss)(weights, inputs[i], targets[i])
            torch.testing.assert_close(together["weight"][i], alone["weight"])


TRANSFORMS = {
    "forward": lambda f: f,
    "vmap": vmap,
    "grad": lambda f: grad(lambda x: f(x).square().sum()),
    "jvp": lambda f: lambda x: jvp(f, (x,), (x,)),
    "jacrev": jacrev,
    "jacfwd": jacfwd,
    "hessian": lambda f: hessian(lambda x: f(x).square().sum()),
    "reverse over reverse": lambda f: jacrev(jacrev(lambda x: f(x).square().sum())),
    "per-sample gradient": lambda f: vmap(grad(lambda x: f(x).square().sum())),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize(("each", "implementation"), on_every_implementation(FEW))
def test_a_compiled_transform_is_the_transform(each: Map, implementation, transform):
    transformed = TRANSFORMS[transform](lambda x: each(x))
    x = scores(2, 5)
    with traceable(implementation), running_on(implementation):
        expected = transformed(x)
        actual = torch.compile(transformed, fullgraph=True, backend="aot_eager")(x)
    torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize("dynamic", [False, True])
def test_a_compiled_training_step_is_the_step(implementation, dynamic):
    torch.manual_seed(3)
    model = nn.Linear(4, 6, dtype=widest())
    alpha = nn.Parameter(torch.tensor(1.4, dtype=widest()))

    def step(x: Tensor, target: Tensor) -> Tensor:
        hidden = model(x)
        attended = fenchel.entmax(hidden, alpha, mask=hidden > -2)
        return fenchel.entmax_loss(hidden + attended, target, alpha) + attended.square().sum()

    compiled = torch.compile(step, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    parameters = (*model.parameters(), alpha)
    with running_on(implementation):
        for rows in (3, 5):
            x, target = scores(rows, 4), torch.arange(rows)
            expected = torch.autograd.grad(step(x, target), parameters)
            actual = torch.autograd.grad(compiled(x, target), parameters)
            torch.testing.assert_close(actual, expected)


@pytest.mark.filterwarnings("ignore:TensorFloat32")  # advice for matrices larger than these
@pytest.mark.slow
@pytest.mark.parametrize("implementation", parameters(DEFAULT, GPU))
def test_a_training_step_through_inductor_is_the_step(implementation):
    model, alpha = nn.Linear(4, 6), nn.Parameter(torch.tensor(1.4))

    def step(x: Tensor, target: Tensor) -> Tensor:
        hidden = model(x)
        attended = fenchel.sparsemax(hidden) + fenchel.entmax(hidden, alpha)
        return fenchel.entmax_loss(hidden + attended, target)

    x, target = torch.randn(5, 4), torch.arange(5)
    parameters = (*model.parameters(), alpha)
    expected = torch.autograd.grad(step(x, target), parameters)
    compiled = torch.compile(step, fullgraph=True)
    torch.testing.assert_close(torch.autograd.grad(compiled(x, target), parameters), expected)


class Attention(nn.Module):
    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        p = fenchel.entmax(x, 1.5, mask=mask) + fenchel.sparsemax(x, dim=1)
        return p + fenchel.normmax(x) + fenchel.budget(x, k=2) + fenchel.Shannon().max(x)[..., None]


@pytest.mark.parametrize("implementation", parameters(DEFAULT, GPU))
@pytest.mark.parametrize("dynamic", [False, True])
def test_an_exported_program_is_the_program(dynamic, implementation):
    inputs = (torch.randn(3, 4, 5), torch.rand(3, 4, 5) < 0.8)
    batch = torch.export.Dim("batch")
    shapes = ({0: batch}, {0: batch}) if dynamic else None
    program = torch.export.export(Attention(), inputs, dynamic_shapes=shapes, strict=True)
    torch.testing.assert_close(program.module()(*inputs), Attention()(*inputs))
    if dynamic:
        others = (torch.randn(7, 4, 5), torch.rand(7, 4, 5) < 0.8)
        torch.testing.assert_close(program.module()(*others), Attention()(*others))


@pytest.mark.parametrize("implementation", parameters(DEFAULT, GPU))
@pytest.mark.parametrize("each", MAPS, ids=str)
def test_autocast_computes_in_float32_and_meta_tensors_know_their_shape(each: Map, implementation):
    x = torch.randn(3, 6).bfloat16()
    with torch.autocast(x.device.type, torch.bfloat16):
        p = each(x)
    assert p.dtype == torch.float32
    torch.testing.assert_close(p, each(x.float()))
    assert each(torch.empty(3, 6, dtype=torch.float16, device="meta")).shape == (3, 6)


OMEGAS = [fenchel.Tsallis(1.3), fenchel.Norm(), fenchel.PNorm(), fenchel.Fused(), fenchel.Oscar()]
AUTOCAST = [fenchel.oscarmax_composition, *(f for o in OMEGAS for f in (o.value, o.max, o.map))]
LOSSES = [fenchel.entmax_loss, *(omega.loss for omega in OMEGAS)]


@pytest.mark.parametrize("implementation", parameters(DEFAULT, GPU))
@pytest.mark.parametrize("function", AUTOCAST)
def test_autocast_covers_the_regularizers(function, implementation):
    x = torch.rand(3, 6).bfloat16()
    with torch.autocast(x.device.type, torch.bfloat16):
        result = function(x)
    assert result.dtype == torch.float32
    torch.testing.assert_close(result, function(x.float()))


@pytest.mark.parametrize("implementation", parameters(DEFAULT, GPU))
@pytest.mark.parametrize("loss", LOSSES)
def test_autocast_covers_the_losses(loss, implementation):
    x, target = torch.randn(3, 6).bfloat16(), torch.tensor([0, 1, 2])
    with torch.autocast(x.device.type, torch.bfloat16):
        result = loss(x, target)
    assert result.dtype == torch.float32
    torch.testing.assert_close(result, loss(x.float(), target))


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 3, 4)])
@pytest.mark.parametrize(("each", "implementation"), on_every_implementation(FEW))
def test_probabilities_may_be_changed_in_place_as_those_of_softmax(
    each: Map, implementation, shape
):
    x = scores(*shape).requires_grad_()
    with running_on(implementation):
        for dim in range(-len(shape), 0):
            if shape[dim] >= each.total:
                p = each(x, dim=dim)
                p[0] = 0
                assert p[0].count_nonzero() == 0
                with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                    p.sum().backward()


def test_a_map_does_not_keep_the_scores_alive(implementation):
    weights = torch.randn(1000, requires_grad=True)
    with running_on(implementation):
        x = weights * 2
        alive = weakref.ref(x)
        p = fenchel.entmax(x, alpha=1.5)
        del x
        assert alive() is None
        p.square().sum().backward()
    assert weights.grad.isfinite().all()


def operator_calls():
    """One call of every overload of `torch.ops.fenchel`."""
    x, p = scores(3, 5).requires_grad_(), fenchel.softmax(scores(3, 5))
    mask, grad_p = torch.rand(3, 5) < 0.9, scores(3, 5)
    target, normalizer = torch.tensor([0, 2, -100]), torch.zeros(3, dtype=torch.float64)
    for name, value in (("entmax", 1.3), ("normmax", 1.6), ("budget", 1.5), ("pnormmax", 1.4)):
        parameter = torch.full((3, 1), value, dtype=widest())
        second = {"budget": "k", "pnormmax": "p"}.get(name, "alpha")
        for number in (value, parameter):
            overload = "tensor" if isinstance(number, Tensor) else "default"
            yield name, overload, (x, number, mask, -1)
            yield name + "_backward", overload, (grad_p, p, number, -1)
            if name != "budget":
                yield name + "_value", overload, (x, number, mask, -1)
        yield f"{name}_backward_{second}", "default", (grad_p, p, parameter, -1)
    yield from grouped_operator_calls(x, mask, grad_p)
    yield from attention_operator_calls()
    for alpha in (1.3, torch.full((3, 1), 1.3, dtype=widest())):
        overload = "tensor" if isinstance(alpha, Tensor) else "default"
        yield "entmax_loss", overload, (x, target, alpha, -100, 0.1)
        found = normalizer, torch.empty(3, 0), torch.empty(3, 0)
        backward = (scores(3), x.detach(), target, alpha, *found, -100, 0.1)
        yield "entmax_loss_backward", overload, backward
        hidden, weight = (scores(rows, 4).requires_grad_() for rows in (3, 5))
        rest = (torch.ones(3, dtype=widest()), -100, 0.1, 2, None, [True, True, False, False])
        yield "linear_entmax_loss", overload, (hidden, weight, scores(5), target, alpha, *rest)
    yield "entmax_loss_alpha", "default", (x.detach(), target, alpha, *found, -100, 0.1)
    yield "target_probabilities", "default", (target, 5, -100)


def grouped_operator_calls(x: Tensor, mask: Tensor, grad_p: Tensor):
    """The maps whose entries move in groups; the last one sees a row of five as a grid."""
    surfaces = scores(3, 2, 2).requires_grad_(), scores(3, 2).requires_grad_()
    yield "paraboloid", "default", (*surfaces, 8)
    for name, layout in (("fusedmax", -1), ("oscarmax", -1), ("fusedmax2d", 5)):
        strength = torch.full((3, 1), 0.1, dtype=widest())
        for number in (0.1, strength):
            overload = "tensor" if isinstance(number, Tensor) else "default"
            yield name, overload, (x, number, mask, layout)
            if name != "fusedmax2d":
                yield name + "_value", overload, (x, number, mask, layout)
        p, groups = getattr(torch.ops.fenchel, name)(x.detach(), 0.1, mask, layout)
        yield name + "_backward", "default", (grad_p, p, groups, layout)
        yield name + "_backward_strength", "default", (grad_p, p, groups, strength, layout)


def attention_operator_calls():
    heads = scores(3, 1, 2, 3, 4)
    bias, lengths = scores(1, 1, 3, 3), torch.tensor([2])
    for alpha in (1.3, torch.full((1, 2, 1, 1), 1.3, dtype=widest())):
        overload = "tensor" if isinstance(alpha, Tensor) else "default"
        options = alpha, bias, lengths, True, -1, 0.5
        operands = [each.clone().requires_grad_() for each in heads]
        yield "attention", overload, (*operands, *options)
        backward = (scores(1, 2, 3, 4), *heads, *options, isinstance(alpha, Tensor), True)
        yield "attention_backward", overload, backward


def test_every_operator_is_called_below():
    called = {(name, overload) for name, overload, _ in operator_calls()}
    defined = {
        (schema.name.removeprefix("fenchel::"), schema.overload_name or "default")
        for schema in torch._C._jit_get_all_schemas()
        if schema.name.startswith("fenchel::")
    }
    assert called == defined


@pytest.mark.parametrize("number", range(len(list(operator_calls()))))
def test_opcheck(number, implementation):
    name, overload, arguments = list(operator_calls())[number]
    operator = getattr(getattr(torch.ops.fenchel, name), overload)
    with running_on(implementation):
        torch.library.opcheck(operator, arguments)


LAYOUTS = {
    "entmax": ("alpha", 1.5),
    "normmax": ("alpha", 1.5),
    "budget": ("k", 2.0),
    "fusedmax": ("strength", 0.1),
    "oscarmax": ("strength", 0.1),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_compilers_are_told_how_results_lie_in_memory(name, implementation):
    """Inductor compares the strides of what it was told and of what it gets."""
    parameter, number = LAYOUTS[name]
    x = scores(2, 2, 2, 2, 3, 5).permute(3, 2, 1, 0, 4, 5)
    value = torch.full((2, 3, 1, 1, 1, 1), number, dtype=widest())[:, :2].transpose(0, 1)
    grad_p = torch.randn(x.shape, dtype=widest())
    with running_on(implementation):
        forward = getattr(torch.ops.fenchel, name).tensor
        solution = forward(x, value, None, -1)
        p, *groups = solution if isinstance(solution, tuple) else (solution,)
        backward = getattr(torch.ops.fenchel, f"{name}_backward")
        by_scores = backward.default if groups else backward.tensor
        by_value = getattr(torch.ops.fenchel, f"{name}_backward_{parameter}").default
        for operator, arguments in (
            (forward, (x, value, None, -1)),
            (by_scores, (grad_p, p, groups[0] if groups else value, -1)),
            (by_value, (grad_p, p, *groups, value, -1)),
        ):
            torch.library.opcheck(operator, arguments, test_utils="test_faketensor")
