"""How a kernel becomes an operator that PyTorch can trace, transform and differentiate.

An operator has three layers, each registered under the dispatch keys of `torch.library`:

* kernels and a fake kernel, which know nothing of derivatives;
* a rule (an `autograd.Function` with `setup_context`, `vmap` and `jvp`), registered both for the
  autograd engine and for the transforms of `torch.func`. Registering it there, rather than calling
  the Function from Python, is what lets `torch.compile` see one opaque operator and still keeps
  forward mode, which Dynamo refuses to trace in a Function;
* autocast, which runs the operator in float32 as PyTorch does for softmax.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import NoneType
from typing import Any

import torch
from torch import Tensor
from torch._C._functorch import TransformType, peek_interpreter_stack
from torch.autograd import forward_ad

from fenchel.kernels.plain import differentiated, plain

KINDS = {"Tensor": Tensor, "Tensor?": Tensor, "float": float, "int": int, "bool": bool}

_library = torch.library.Library("fenchel", "DEF")


def define(
    schema: str,
    kernel: Callable[..., Any],
    fake: Callable[..., Any],
    vmap: Callable[..., Any] | None = None,
) -> torch._ops.OpOverload:
    """Declare `fenchel::schema` with its kernel and the fake kernel that only knows shapes.

    `vmap` is for operators without a rule of derivatives, which has its own.
    """
    _library.define(schema, tags=(torch.Tag.pt2_compliant_tag,))
    signature = schema.split("(")[0]
    _library.impl(signature, kernel, "CompositeExplicitAutograd")
    torch.library.register_fake(f"fenchel::{signature}", fake, lib=_library)
    name, _, overload = signature.partition(".")
    operator = getattr(getattr(torch.ops.fenchel, name), overload or "default")
    if vmap is not None:
        torch.library.register_vmap(operator, partial(vmap, operator), lib=_library)
    return operator


class Overloads:
    """An operator whose parameter may be a number or a tensor: one overload for each.

    The schema writes the parameter's type as `Parameter` and calls choose by the argument; without
    such a parameter there is one overload. A call with which PyTorch has nothing to do but to
    differentiate does not take the way through its dispatcher.
    """

    def __init__(
        self,
        schema: str,
        kernel: Callable[..., Any],
        fake: Callable[..., Any],
        vmap: Callable[..., Any] | None = None,
    ) -> None:
        name, _, arguments = schema.partition("(")
        before, parameter, _ = arguments.partition("Parameter ")
        self._position = before.count(",") if parameter else 0
        number, tensor = (
            arguments.replace("Parameter ", f"{kind} ") for kind in ("float", "Tensor")
        )
        self._for_number = define(f"{name}({number}", kernel, fake, vmap)
        self._for_tensor = self._for_number
        if parameter:
            self._for_tensor = define(f"{name}.tensor({tensor}", kernel, fake, vmap)
        self._kernel, self._apply = kernel, None
        declared = number.split(")")[0].split(", ")
        self._kinds = tuple(KINDS.get(each.split()[0], NoneType) for each in declared)

    def __call__(self, *args: Any) -> Any:
        if not plain(args, self._kinds):
            return self._choose(args)(*args)
        if self._apply is not None and differentiated(args):
            return self._apply(*args)
        with torch._C._AutoDispatchBelowAutograd():
            return self._kernel(*args)

    def below_autograd(self, *args: Any) -> Any:
        """Call the kernels, not the rule."""
        with torch._C._AutoDispatchBelowAutograd():
            return (self._kernel if plain(args, self._kinds) else self._choose(args))(*args)

    def differentiate(self, rule: type[torch.autograd.Function], *, autocast: bool = True) -> None:
        self._apply = apply_of(directly(rule, self._kernel))
        for overload in {self._for_number, self._for_tensor}:
            differentiate(overload, rule, autocast=autocast)

    def _choose(self, args: tuple[Any, ...]) -> torch._ops.OpOverload:
        return self._for_tensor if isinstance(args[self._position], Tensor) else self._for_number


def keep_number(ctx: Any, parameter: float | Tensor) -> Tensor | None:
    """Keep a number on the context of a rule; a tensor is returned, to be saved with the others."""
    ctx.number, rows = (None, parameter) if isinstance(parameter, Tensor) else (parameter, None)
    return rows


def kept(ctx: Any, rows: Tensor | None) -> Any:
    """The parameter again, number or saved tensor."""
    return ctx.number if rows is None else rows


def differentiate(
    operator: torch._ops.OpOverload, rule: type[torch.autograd.Function], *, autocast: bool = True
) -> None:
    """Give `operator` its derivatives; `rule.forward` calls the kernel with `below_autograd`.

    With `autocast` it runs in float32 under autocast; otherwise it takes what it is given.
    """
    signature = operator._schema.name.removeprefix("fenchel::")
    if operator._overloadname != "default":
        signature = f"{signature}.{operator._overloadname}"
    apply = apply_of(rule)

    def with_autograd(*args: Any) -> Any:
        if differentiated(args) or forward_ad._current_level >= 0:
            return apply(*args)
        return below_autograd(operator, *args)

    _library.impl(signature, with_autograd, "Autograd")
    _library.impl(signature, rule.apply, "FuncTorchDynamicLayerFrontMode")
    for device in ("cpu", "cuda") if autocast else ():
        torch.library.register_autocast(operator, device, torch.float32, lib=_library)


def directly(
    rule: type[torch.autograd.Function], kernel: Callable[..., Any]
) -> type[torch.autograd.Function]:
    """The rule for gradients of a plain call: its forward is the kernel itself."""

    def forward(ctx: Any, *args: Any) -> Any:
        with torch._C._AutoDispatchBelowAutograd():
            output = kernel(*args)
        rule.setup_context(ctx, args, output)
        return output

    members = {"forward": staticmethod(forward), "backward": staticmethod(rule.backward)}
    return type(rule.__name__, (torch.autograd.Function,), members)


def apply_of(rule: type[torch.autograd.Function]) -> Callable[..., Any]:
    """`rule.apply`, without its inspection of signatures on behalf of torch.func."""
    return super(torch.autograd.Function, rule).apply  # pyright: ignore[reportAttributeAccessIssue]


def below_autograd(operator: torch._ops.OpOverload, *args: Any) -> Any:
    """Call the kernels of `operator`, not its rule."""
    with torch._C._AutoDispatchBelowAutograd():
        return operator(*args)


def forward_mode(jvp: Callable[..., Any]) -> Callable[..., Any]:
    """Make the `jvp` of a rule differentiable in forward mode again: `jvp(ctx, saved, *tangents)`.

    PyTorch turns forward mode off while it runs a `jvp`, for every level at once, so that
    `jacfwd(jacfwd(f))` would silently see constants. Under `torch.func.jvp` it is on here, and the
    tensors of the rule are stripped of the tangents of their own level instead.
    """

    def nested(ctx: Any, *tangents: Any) -> Any:
        top = peek_interpreter_stack()
        if top is None or top.key() != TransformType.Jvp:
            return jvp(ctx, ctx.saved_tensors, *tangents)
        with forward_ad._set_fwd_grad_enabled(True):
            return jvp(ctx, tuple(map(_primal, ctx.saved_tensors)), *map(_primal, tangents))

    return nested


def _primal(value: Any) -> Any:
    return forward_ad.unpack_dual(value, level=0).primal if isinstance(value, Tensor) else value
