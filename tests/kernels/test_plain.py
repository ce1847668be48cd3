"""A call takes the short way to its kernel exactly where PyTorch has nothing else to do."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd import forward_ad
from torch.fx.experimental.proxy_tensor import make_fx
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import fenchel
from fenchel.kernels.plain import plain
from tests.catalogue import MAPS, Map

KINDS = (Tensor, float, Tensor, int)
X = torch.randn(3, 5, generator=torch.Generator().manual_seed(0))


class Seeing(TorchDispatchMode):
    """Notes the operators of the library that PyTorch dispatches."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.namespace == "fenchel":
            self.seen.append(func._schema.name)
        return func(*args, **(kwargs or {}))


class Own(Tensor):
    pass


def is_plain(x: Any, alpha: Any = 1.5, mask: Any = None, dim: Any = -1) -> bool:
    return plain((x, alpha, mask, dim), KINDS)


@pytest.mark.parametrize("where", [nullcontext, torch.no_grad, torch.inference_mode])
def test_tensors_that_are_nothing_but_their_memory_are_plain(
    where: Callable[[], AbstractContextManager[Any]],
) -> None:
    with where():
        assert is_plain(X)
        assert is_plain(torch.randn(3, 5))
        assert is_plain(nn.Parameter(X))
        assert is_plain(X.clone().requires_grad_(), X[:, :1], X > 0)
        assert is_plain(X.half().T)


@pytest.mark.parametrize(
    "arguments",
    [
        (X.as_subclass(Own),),
        (torch._neg_view(X),),
        (X.to_sparse(),),
        (X.to("meta"),),
        (FakeTensorMode().from_tensor(X),),
        (X, 2),
        (X, True),
        (X, 1.5, torch._neg_view(X)),
        (X, 1.5, None, -1.0),
    ],
)
def test_other_arguments_are_not(arguments: tuple[Any, ...]) -> None:
    assert not is_plain(*arguments)


@pytest.mark.parametrize(
    "where",
    [
        lambda: torch.autocast("cpu", dtype=torch.bfloat16),
        lambda: torch.device("cpu"),
        lambda: torch.autograd.profiler.profile(),
        TorchFunctionMode,
        Seeing,
        forward_ad.dual_level,
    ],
)
def test_where_somebody_looks_or_changes_dtypes_nothing_is_plain(
    where: Callable[[], AbstractContextManager[Any]],
) -> None:
    with where():
        assert not is_plain(X)
    assert is_plain(X)


@pytest.mark.parametrize(
    "transform",
    [
        torch.vmap,
        torch.func.grad,
        lambda f: lambda x: torch.func.jvp(f, (x,), (x,)),
        make_fx,
        lambda f: make_fx(f, pre_dispatch=True),
        lambda f: lambda x: torch.jit.trace(f, (x,), check_trace=False),
        lambda f: torch.compile(f, backend="eager", fullgraph=True),
    ],
)
def test_where_a_function_is_transformed_nothing_is_plain(transform: Callable[..., Any]) -> None:
    seen = []

    def function(x: Tensor) -> Tensor:
        seen.append(is_plain(x))
        return x.sum()

    result = transform(function)(X)
    if callable(result):
        result(X)
    assert seen
    assert not any(seen)


@pytest.mark.parametrize("each", MAPS, ids=str)
def test_the_short_way_leads_to_the_same_values(each: Map) -> None:
    def values_and_gradients() -> tuple[Tensor, Tensor]:
        x = X.clone().requires_grad_()
        p = each(x)
        (grad,) = torch.autograd.grad(p.square().sum(), x)
        return p.detach(), grad

    direct = values_and_gradients()
    with Seeing() as mode:
        dispatched = values_and_gradients()
    assert len(mode.seen) == 2
    for short, long in zip(direct, dispatched, strict=True):
        assert torch.equal(short, long)


def test_the_short_way_of_a_loss_and_all_its_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []
    dispatch = OpOverload.__call__

    def noted(self: OpOverload, *args: Any, **named: Any) -> Any:
        if self.namespace == "fenchel":
            called.append(self._schema.name)
        return dispatch(self, *args, **named)

    def loss_and_gradients() -> tuple[Tensor, ...]:
        x, alpha = X.clone().requires_grad_(), torch.tensor(1.3, requires_grad=True)
        loss = fenchel.entmax_loss(x, torch.tensor([0, 4, 2]), alpha)
        return loss.detach(), *torch.autograd.grad(loss, (x, alpha))

    monkeypatch.setattr(OpOverload, "__call__", noted)
    direct = loss_and_gradients()
    assert called == []
    with Seeing() as mode:
        dispatched = loss_and_gradients()
    names = ("entmax_loss", "entmax_loss_backward", "entmax_loss_alpha")
    assert mode.seen == [f"fenchel::{name}" for name in names]
    for short, long in zip(direct, dispatched, strict=True):
        assert torch.equal(short, long)


def test_what_is_recorded_has_the_name_of_the_operator() -> None:
    profile: Any = torch.autograd.profiler.profile()
    with profile:
        fenchel.sparsemax(X)
    assert "fenchel::entmax" in [event.key for event in profile.key_averages()]


def test_a_view_that_negates_is_negated() -> None:
    assert torch.equal(fenchel.sparsemax(torch._neg_view(X)), fenchel.sparsemax(-X))


def test_below_autograd_nothing_is_differentiated() -> None:
    x = X.clone().requires_grad_()
    with torch._C._AutoDispatchBelowAutograd():
        assert not fenchel.sparsemax(x).requires_grad
    assert fenchel.sparsemax(x).requires_grad
