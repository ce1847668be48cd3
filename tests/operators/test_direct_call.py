"""Calls skip PyTorch's dispatcher exactly if it has nothing to do but differentiate."""

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
from fenchel.operators.direct_call import can_skip_dispatcher
from tests.catalogue import MAPS, Map

TYPES = (Tensor, float, Tensor, int)
X = torch.randn(3, 5, generator=torch.Generator().manual_seed(0))


class RecordsDispatch(TorchDispatchMode):
    """Records the operators of the library that PyTorch dispatches."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.namespace == "fenchel":
            self.seen.append(func._schema.name)
        return func(*args, **(kwargs or {}))


class Own(Tensor):
    pass


def is_direct(x: Any, alpha: Any = 1.5, mask: Any = None, dim: Any = -1) -> bool:
    return can_skip_dispatcher((x, alpha, mask, dim), TYPES)


@pytest.mark.parametrize("where", [nullcontext, torch.no_grad, torch.inference_mode])
def test_ordinary_tensors_skip_the_dispatcher(
    where: Callable[[], AbstractContextManager[Any]],
) -> None:
    with where():
        assert is_direct(X)
        assert is_direct(torch.randn(3, 5))
        assert is_direct(nn.Parameter(X))
        assert is_direct(X.clone().requires_grad_(), X[:, :1], X > 0)
        assert is_direct(X.half().T)


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
def test_other_arguments_do_not(arguments: tuple[Any, ...]) -> None:
    assert not is_direct(*arguments)


@pytest.mark.parametrize(
    "where",
    [
        lambda: torch.autocast("cpu", dtype=torch.bfloat16),
        lambda: torch.device("cpu"),
        lambda: torch.autograd.profiler.profile(),
        TorchFunctionMode,
        RecordsDispatch,
        forward_ad.dual_level,
    ],
)
def test_where_somebody_looks_or_changes_dtypes_nothing_is_direct(
    where: Callable[[], AbstractContextManager[Any]],
) -> None:
    with where():
        assert not is_direct(X)
    assert is_direct(X)


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
def test_where_a_function_is_transformed_nothing_is_direct(transform: Callable[..., Any]) -> None:
    seen = []

    def function(x: Tensor) -> Tensor:
        seen.append(is_direct(x))
        return x.sum()

    result = transform(function)(X)
    if callable(result):
        result(X)
    assert seen
    assert not any(seen)


@pytest.mark.parametrize("each", MAPS, ids=str)
def test_direct_and_dispatched_calls_have_the_same_results(each: Map) -> None:
    def values_and_gradients() -> tuple[Tensor, Tensor]:
        x = X.clone().requires_grad_()
        p = each(x)
        (grad,) = torch.autograd.grad(p.square().sum(), x)
        return p.detach(), grad

    direct = values_and_gradients()
    with RecordsDispatch() as mode:
        dispatched = values_and_gradients()
    assert len(mode.seen) == 2
    for one, other in zip(direct, dispatched, strict=True):
        assert torch.equal(one, other)


def test_direct_and_dispatched_losses_have_the_same_gradients(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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
    with RecordsDispatch() as mode:
        dispatched = loss_and_gradients()
    names = ("entmax_loss", "entmax_loss_backward", "entmax_loss_alpha")
    assert mode.seen == [f"fenchel::{name}" for name in names]
    for one, other in zip(direct, dispatched, strict=True):
        assert torch.equal(one, other)


def test_the_profiler_shows_the_name_of_the_operator() -> None:
    profile: Any = torch.autograd.profiler.profile()
    with profile:
        fenchel.sparsemax(X)
    assert "fenchel::entmax" in [event.key for event in profile.key_averages()]


def test_a_negated_view_is_negated() -> None:
    assert torch.equal(fenchel.sparsemax(torch._neg_view(X)), fenchel.sparsemax(-X))


def test_no_gradient_is_recorded_below_autograd() -> None:
    x = X.clone().requires_grad_()
    with torch._C._AutoDispatchBelowAutograd():
        assert not fenchel.sparsemax(x).requires_grad
    assert fenchel.sparsemax(x).requires_grad
