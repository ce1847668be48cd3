"""The loss of an output layer in chunks is the loss of the output layer, and never holds its scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.func import grad, jacfwd, vmap

import fenchel
from fenchel.losses import chunks
from tests.allocations import Allocations
from tests.catalogue import tensor
from tests.implementations import GPU, on_every, parameters, running_on, widest

ROWS, WIDTH, CLASSES = 11, 4, 7
REDUCTIONS = ["mean", "sum", "none"]
TOLERANCE = {torch.float64: 1e-12, torch.float32: 2e-6, torch.bfloat16: 2.0**-6}


def layer(dtype: torch.dtype, rows: int = ROWS) -> dict[str, Tensor]:
    """Inputs, weight and bias of an output layer, and α."""
    shapes = {"hidden": (rows, WIDTH), "weight": (CLASSES, WIDTH), "bias": (CLASSES,)}
    made = {name: torch.randn(shape, dtype=dtype) for name, shape in shapes.items()}
    made["alpha"] = torch.tensor(1.4, dtype=dtype)
    return {name: value.requires_grad_() for name, value in made.items()}


def some_target(kind: str, dtype: torch.dtype, rows: int = ROWS) -> Tensor:
    if kind == "probabilities":
        return torch.softmax(2 * torch.randn(rows, CLASSES, dtype=torch.float32), -1).to(dtype)
    target = torch.arange(rows) % CLASSES
    target[1::5] = -100
    return target


def unfused(hidden: Tensor, weight: Tensor, target: Tensor, alpha: Any, **options: Any) -> Tensor:
    scores = F.linear(hidden, weight, options.pop("bias", None))
    options.pop("chunk_rows", None)
    options["weight"] = options.pop("class_weight", None)
    return fenchel.entmax_loss(scores, target, alpha, **options)


def assert_same(target: Tensor, inputs: dict[str, Tensor], **options: Any) -> None:
    """The fused and the unfused loss and all their gradients, by the error of the unfused pair."""
    given = {name: x for name, x in inputs.items() if name != "alpha" or x.requires_grad}
    dtype = inputs["hidden"].dtype
    results = []
    for function in (fenchel.linear_entmax_loss, unfused):
        loss = function(target=target, **inputs, **options)
        weigh = torch.linspace(1, 2, loss.numel(), dtype=loss.dtype).reshape(loss.shape)
        results.append([loss, *torch.autograd.grad((loss * weigh).sum(), list(given.values()))])
    for name, ours, theirs in zip(("loss", *given), *results, strict=True):
        assert ours.dtype == theirs.dtype
        size = theirs.abs().max().item()
        error = (ours - theirs).abs().max().item()
        assert error <= TOLERANCE[dtype] * max(size, 1e-3), f"{name}: {error:.2g} of {size:.2g}"


@on_every
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind", ["indices", "probabilities"])
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_the_loss_and_its_gradients_are_those_of_the_plain_layer(
    implementation, dtype, kind, reduction
):
    inputs, target = layer(dtype), some_target(kind, dtype)
    with running_on(implementation):
        for options in ({}, {"label_smoothing": 0.1}, {"class_weight": torch.rand(CLASSES) + 0.5}):
            assert_same(target, inputs, reduction=reduction, chunk_rows=4, **options)


@on_every
@pytest.mark.parametrize("chunk_rows", [1, 4, ROWS - 1, ROWS, 100, None])
def test_chunks_of_any_size_give_the_same(implementation, chunk_rows):
    inputs = layer(widest())
    with running_on(implementation):
        assert_same(some_target("indices", widest()), inputs, chunk_rows=chunk_rows)


@on_every
def test_a_chunk_may_take_its_losses_in_parts(implementation, monkeypatch):
    monkeypatch.setattr(chunks, "LOSS_ROWS", 2)
    inputs = layer(widest())
    with running_on(implementation):
        assert_same(some_target("indices", widest()), inputs, chunk_rows=5)


@on_every
@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0, 3.0, "rows"])
def test_every_alpha(implementation, alpha):
    inputs = layer(widest())
    value = torch.linspace(0.8, 2.5, ROWS, dtype=widest()).unsqueeze(-1)
    inputs["alpha"] = value.requires_grad_() if alpha == "rows" else tensor(alpha)
    with running_on(implementation):
        assert_same(some_target("indices", widest()), inputs, chunk_rows=3)
        if alpha != "rows":
            inputs["alpha"] = alpha
            del inputs["bias"]
            names = [inputs[name] for name in ("hidden", "weight")]
            target = some_target("indices", widest())
            pair = [
                torch.autograd.grad(function(target=target, **inputs), names)
                for function in (fenchel.linear_entmax_loss, unfused)
            ]
            torch.testing.assert_close(*pair)


def test_inputs_may_have_any_number_of_dimensions():
    inputs = layer(torch.float64, 12)
    flat = fenchel.linear_entmax_loss(target=torch.arange(12) % 7, reduction="none", **inputs)
    inputs["hidden"] = inputs["hidden"].reshape(3, 2, 2, WIDTH)
    target = (torch.arange(12) % 7).reshape(3, 2, 2)
    deep = fenchel.linear_entmax_loss(target=target, reduction="none", **inputs)
    torch.testing.assert_close(deep, flat.reshape(3, 2, 2))
    alpha = torch.linspace(1.1, 2.0, 3, dtype=torch.float64).reshape(3, 1, 1, 1)
    inputs["alpha"] = alpha
    deep = fenchel.linear_entmax_loss(target=target, reduction="none", **inputs)
    scores = F.linear(inputs["hidden"], inputs["weight"], inputs["bias"]).movedim(-1, 1)
    expected = fenchel.entmax_loss(scores, target, alpha, reduction="none")
    torch.testing.assert_close(deep, expected)
    row = fenchel.linear_entmax_loss(inputs["hidden"][0, 0, 0], inputs["weight"], target[0, 0, 0])
    assert row.shape == ()
    pixels = some_target("probabilities", torch.float64, 12).reshape(3, 2, 2, CLASSES)
    soft = fenchel.linear_entmax_loss(target=pixels, reduction="none", **inputs)
    assert soft.shape == (3, 2, 2)


class Inside(Allocations):
    """An operator is opaque, what its kernel does is not."""

    def call(self, function: Any, args: Any, kwargs: Any) -> Any:
        if function.overloadpacket is torch.ops.fenchel.linear_entmax_loss:
            with self:
                return chunks.chunked_loss(*args)
        return super().call(function, args, kwargs)


@pytest.mark.parametrize("implementation", parameters("cpu", GPU))
@pytest.mark.parametrize("reduction", ["mean", "none"])
@pytest.mark.parametrize("kind", ["indices", "probabilities"])
def test_no_more_than_a_chunk_of_the_scores_ever_exists(implementation, reduction, kind):
    rows, width, classes, chunk = 24, 2, 512, 4
    hidden = torch.randn(rows, width, requires_grad=True)
    weight = torch.randn(classes, width, requires_grad=True)
    alpha = torch.tensor(1.4, requires_grad=True)
    target = torch.arange(rows)
    if kind == "probabilities":
        target = F.one_hot(target, classes).float()
    options = {"reduction": reduction, "label_smoothing": 0.1}
    with running_on(implementation), Inside() as made:
        loss = fenchel.linear_entmax_loss(
            hidden, weight, target, alpha, chunk_rows=chunk, **options
        )
        loss.sum().backward()
    assert max(made.elements) == chunk * classes
    with Inside() as made:
        unfused(hidden, weight, target, alpha, **options)
    assert max(made.elements) == rows * classes, "the plain layer holds all its scores"


def test_there_are_sixteen_chunks_unless_they_would_be_small():
    assert 15 * chunks.default_rows(10**6) < 10**6 <= 16 * chunks.default_rows(10**6)
    assert chunks.default_rows(1000) == 256
    assert all(chunks.default_rows(count) % 128 == 0 for count in (1, 5000, 8192, 99999))


@on_every
def test_gradients_are_only_computed_for_what_needs_them(implementation):
    inputs, target = layer(widest()), some_target("indices", widest())
    with running_on(implementation):
        for name in inputs:
            alone = {key: x.detach() for key, x in inputs.items()}
            alone[name].requires_grad_()
            both = [
                torch.autograd.grad(function(target=target, **alone), alone[name])[0]
                for function in (fenchel.linear_entmax_loss, unfused)
            ]
            torch.testing.assert_close(*both)


def test_gradients_are_computed_ahead_only_where_a_sum_needs_them():
    inputs, target = layer(torch.float32, 2), some_target("indices", torch.float32, 2)
    made = {}
    for case in ("sum", "none", "no grad"):
        reduction = "none" if case == "none" else "sum"
        with torch.set_grad_enabled(case != "no grad"), Inside() as inside:
            fenchel.linear_entmax_loss(target=target, reduction=reduction, **inputs)
        made[case] = inputs["weight"].numel() in inside.elements
    assert made == {"sum": True, "none": False, "no grad": False}


def test_the_gradient_of_the_weight_is_scaled_in_the_memory_that_holds_it():
    inputs, target = layer(torch.float32, 2), some_target("indices", torch.float32, 2)
    loss = 3 * fenchel.linear_entmax_loss(target=target, **inputs)
    with Inside() as made:
        loss.backward()
    assert max(made.elements) < inputs["weight"].numel()


@on_every
def test_a_second_backward_pass_is_the_first(implementation):
    inputs, target = layer(widest()), some_target("indices", widest())
    with running_on(implementation):
        loss = 3 * fenchel.linear_entmax_loss(target=target, chunk_rows=4, **inputs)
        first, second, third = (
            torch.autograd.grad(loss, list(inputs.values()), retain_graph=True) for _ in range(3)
        )
    torch.testing.assert_close(second, first)
    torch.testing.assert_close(third, first)


@on_every
@pytest.mark.parametrize("reduction", ["mean", "none"])
@pytest.mark.parametrize("kind", ["indices", "probabilities"])
def test_derivatives_of_first_and_second_order(implementation, kind, reduction):
    inputs = {k: 0.5 * v.detach() for k, v in layer(torch.float64, 3).items()}
    inputs["alpha"] += 0.7
    target = some_target(kind, torch.float64, 3)

    def loss(*values: Tensor) -> Tensor:
        given = dict(zip(inputs, values, strict=True))
        return fenchel.linear_entmax_loss(
            target=target, reduction=reduction, label_smoothing=0.1, chunk_rows=2, **given
        )

    values = tuple(value.requires_grad_() for value in inputs.values())
    with running_on(implementation):
        # a second backward pass adds up anew, in another order
        options = {"nondet_tol": 1e-12, "fast_mode": True}
        gradcheck(loss, values, check_forward_ad=True, check_batched_grad=True, **options)
        gradgradcheck(loss, values, check_fwd_over_rev=True, **options)


@on_every
@pytest.mark.parametrize("transform", [lambda loss: loss, grad], ids=["loss", "gradient"])
def test_vmap_is_a_loop(implementation, transform):
    weight = torch.randn(CLASSES, WIDTH, dtype=widest())
    hidden, target = torch.randn(3, 2, WIDTH, dtype=widest()), torch.arange(6).reshape(3, 2)

    def losses(function: Callable) -> Tensor:
        mapped = transform(lambda w, x, t: function(x, w, t, 1.5, reduction="sum"))
        return vmap(mapped, in_dims=(None, 0, 0))(weight, hidden, target)

    with running_on(implementation):
        torch.testing.assert_close(losses(fenchel.linear_entmax_loss), losses(unfused))


@on_every
def test_forward_mode_is_that_of_the_plain_layer(implementation):
    weight = torch.randn(CLASSES, WIDTH, dtype=widest())
    hidden, target = torch.randn(2, WIDTH, dtype=widest()), torch.arange(2)
    with running_on(implementation):
        ours, theirs = (
            jacfwd(lambda w, x, f=f: f(x, w, target, 1.5), argnums=(0, 1))(weight, hidden)
            for f in (fenchel.linear_entmax_loss, unfused)
        )
    torch.testing.assert_close(ours, theirs)


@on_every
@pytest.mark.parametrize(
    ("reduction", "dynamic"), [("mean", False), ("mean", True), ("none", False)]
)
def test_a_compiled_step_is_the_step(implementation, reduction, dynamic):
    torch.compiler.reset()
    inputs = layer(widest())

    def step(target: Tensor) -> Tensor:
        given = {**inputs, "hidden": 2 * inputs["hidden"][: target.shape[0]]}
        return fenchel.linear_entmax_loss(
            target=target, reduction=reduction, chunk_rows=4, **given
        ).sum()

    compiled = torch.compile(step, fullgraph=True, backend="aot_eager", dynamic=dynamic)
    with running_on(implementation):
        for rows in (ROWS, 5):
            target = some_target("indices", widest(), rows)
            expected = torch.autograd.grad(step(target), list(inputs.values()))
            actual = torch.autograd.grad(compiled(target), list(inputs.values()))
            torch.testing.assert_close(actual, expected)


@pytest.mark.slow
def test_a_step_through_inductor_is_the_step():
    torch.compiler.reset()
    inputs, target = layer(torch.float32), some_target("indices", torch.float32)

    def step() -> Tensor:
        return fenchel.linear_entmax_loss(target=target, **inputs).square()

    expected = torch.autograd.grad(step(), list(inputs.values()))
    compiled = torch.compile(step, fullgraph=True)
    torch.testing.assert_close(torch.autograd.grad(compiled(), list(inputs.values())), expected)


@on_every
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_autocast_multiplies_in_its_dtype_and_sums_in_float32(implementation, reduction):
    inputs, target = layer(torch.float32), some_target("indices", torch.float32)
    kind = torch.get_default_device().type
    rounded = {key: x.detach().bfloat16().float().requires_grad_() for key, x in inputs.items()}
    rounded["alpha"] = inputs["alpha"].detach().clone().requires_grad_()
    with running_on(implementation):
        with torch.autocast(kind, torch.bfloat16):
            loss = fenchel.linear_entmax_loss(
                target=target, reduction=reduction, chunk_rows=4, **inputs
            )
        assert loss.dtype == torch.float32
        exact = unfused(target=target, reduction=reduction, **rounded)
        gradients = torch.autograd.grad(loss.sum(), list(inputs.values()))
        expected = torch.autograd.grad(exact.sum(), list(rounded.values()))
    torch.testing.assert_close(loss, exact, rtol=0.02, atol=0.02)
    for gradient, truth in zip(gradients, expected, strict=True):
        assert gradient.dtype == torch.float32
        torch.testing.assert_close(gradient, truth, rtol=0.03, atol=0.03 * truth.abs().max().item())


@on_every
def test_half_precision_weights_get_a_gradient_rounded_once_a_chunk(implementation):
    rows, classes, chunk = 320, 20, 16
    hidden = torch.randn(rows, 8, dtype=torch.bfloat16, requires_grad=True)
    weight = torch.randn(classes, 8, dtype=torch.bfloat16, requires_grad=True)
    target = torch.arange(rows) % classes
    exact = [x.detach().float().requires_grad_() for x in (hidden, weight)]
    with running_on(implementation):
        loss = fenchel.linear_entmax_loss(hidden, weight, target, 1.5, chunk_rows=chunk)
        truth = fenchel.linear_entmax_loss(*exact, target, 1.5)
        _, gradient = torch.autograd.grad(loss, (hidden, weight))
        _, expected = torch.autograd.grad(truth, exact)
    size = expected.abs().max().item()
    # scores and p − q are rounded too, and 20 sums of the size of the result
    allowed = 2.0**-8 * size * (2 + (rows / chunk) ** 0.5)
    assert (gradient.float() - expected).abs().max().item() <= allowed


def test_rows_that_are_all_ignored_are_as_in_the_plain_layer():
    inputs = layer(torch.float64)
    target = torch.full((ROWS,), -100)
    assert fenchel.linear_entmax_loss(target=target, **inputs).isnan()
    assert fenchel.linear_entmax_loss(target=target, reduction="sum", **inputs) == 0


def test_an_empty_batch_costs_nothing():
    inputs = layer(torch.float32, 0)
    total = fenchel.linear_entmax_loss(
        target=torch.empty(0, dtype=torch.long), reduction="sum", **inputs
    )
    total.backward()
    assert total == 0
    assert inputs["weight"].grad.count_nonzero() == 0
    assert inputs["hidden"].grad.shape == (0, WIDTH)


def test_explain_names_the_kernel():
    inputs, target = layer(torch.float32), some_target("indices", torch.float32)
    choices = fenchel.explain(fenchel.linear_entmax_loss, target=target, chunk_rows=6, **inputs)
    assert [choice.operator for choice in choices] == ["entmax_loss_in_place"] * 2


def test_the_module_is_the_function():
    inputs, target = layer(torch.float32), some_target("indices", torch.float32)
    inputs.pop("alpha")
    module = fenchel.nn.LinearEntmaxLoss("learned", torch.rand(CLASSES), -7, "sum", 0.1, 4)
    options = {"ignore_index": -7, "reduction": "sum", "label_smoothing": 0.1, "chunk_rows": 4}
    target[target == -100] = -7
    arguments = (inputs["hidden"], inputs["weight"], target)
    expected = fenchel.linear_entmax_loss(
        *arguments, module.alpha, bias=inputs["bias"], class_weight=module.weight, **options
    )
    loss = module(*arguments, inputs["bias"])
    assert torch.equal(loss, expected)
    loss.backward()
    (exponent,) = module.parameters()
    assert exponent.grad != 0
    assert "chunk_rows=4" in repr(module)


BAD = {
    "hidden and weight make a layer": {"weight": torch.zeros(7, 5)},
    "hidden must be real": {"hidden": torch.zeros(11, 4, dtype=torch.long)},
    "bias has one value a class": {"bias": torch.zeros(3)},
    "weight has the dtype of hidden": {"weight": torch.zeros(7, 4, dtype=torch.float64)},
    "a target of class indices must match": {"target": torch.zeros(3, dtype=torch.long)},
    "a target of probabilities must match": {"target": torch.zeros(11, 6)},
    "target must be in \\[0, 6\\]": {"target": torch.full((11,), 7)},
    "alpha must be above 0": {"alpha": 0.0},
    "alpha must broadcast": {"alpha": torch.ones(3, 1)},
    "reduction must be known": {"reduction": "average"},
    "label_smoothing is a share": {"label_smoothing": 2.0},
    "chunk_rows counts rows": {"chunk_rows": 0},
    "weight has one value a class": {"class_weight": torch.ones(3)},
    "class_weight is a constant": {"class_weight": torch.ones(7, requires_grad=True)},
}


@pytest.mark.parametrize("message", BAD)
def test_a_broken_rule_is_named(message):
    good = {name: value.detach() for name, value in layer(torch.float32).items()}
    arguments = {**good, "target": some_target("indices", torch.float32), **BAD[message]}
    with pytest.raises(fenchel.FenchelError, match=message):
        fenchel.linear_entmax_loss(**arguments)
