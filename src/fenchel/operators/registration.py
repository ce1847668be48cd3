"""Registration of operators and their derivatives with PyTorch.

An operator is registered at several dispatch keys of `torch.library`:

* its kernel, and a fake kernel for shapes, both without derivatives;
* its derivative rule (an `autograd.Function` with `setup_context`, `vmap` and `jvp`), both for the
  autograd engine and for the transforms of `torch.func`. Because the rule is registered there instead of
  being called from Python, `torch.compile` sees one opaque operator, and forward mode works, which
  Dynamo refuses to trace in an `autograd.Function`;
* autocast, which runs it in float32, as PyTorch does with softmax.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import NoneType
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from fenchel.operators.direct_call import Operator, records_gradients

TYPES = {"Tensor": Tensor, "Tensor?": Tensor, "float": float, "int": int, "bool": bool}

_library = torch.library.Library("fenchel", "DEF")


def define(
    schema: str,
    kernel: Callable[..., Any],
    fake: Callable[..., Any],
    vmap: Callable[..., Any] | None = None,
) -> Operator:
    """Register `fenchel::schema` with its kernel and a fake kernel.

    A parameter whose type in the schema is `Parameter` may be a number or a tensor. `vmap` is only for
    operators without a derivative rule, which would bring its own.
    """
    name, _, arguments = schema.partition("(")
    before, parameter, _ = arguments.partition("Parameter ")
    with_number, with_tensor = (
        arguments.replace("Parameter ", f"{kind} ") for kind in ("float", "Tensor")
    )
    for_number = _define_overload(f"{name}({with_number}", kernel, fake, vmap)
    for_tensor = for_number
    if parameter:
        for_tensor = _define_overload(f"{name}.tensor({with_tensor}", kernel, fake, vmap)
    declared = with_number.split(")")[0].split(", ")
    types = tuple(TYPES.get(each.split()[0], NoneType) for each in declared)
    position = before.count(",") if parameter else 0
    return Operator(kernel, types, for_number, for_tensor, position)


def differentiate(
    operator: Operator,
    rule: type[torch.autograd.Function],
    *,
    autocast: bool = True,
    direct: type[torch.autograd.Function] | None = None,
) -> None:
    """Register the derivatives of an operator. `rule.forward` calls `operator.below_autograd`.

    With `autocast`, it runs in float32 under autocast. `direct` is another rule for direct calls, whose
    forward calls the kernel itself.
    """
    operator.apply = _apply_of(direct or _direct_rule(rule, operator.kernel))
    for overload in {operator.for_number, operator.for_tensor}:
        _differentiate_overload(overload, rule, autocast)


def _define_overload(
    schema: str,
    kernel: Callable[..., Any],
    fake: Callable[..., Any],
    vmap: Callable[..., Any] | None,
) -> torch._ops.OpOverload:
    _library.define(schema, tags=(torch.Tag.pt2_compliant_tag,))
    signature = schema.split("(")[0]
    _library.impl(signature, kernel, "CompositeExplicitAutograd")
    torch.library.register_fake(f"fenchel::{signature}", fake, lib=_library)
    name, _, overload_name = signature.partition(".")
    overload = getattr(getattr(torch.ops.fenchel, name), overload_name or "default")
    if vmap is not None:
        torch.library.register_vmap(overload, partial(vmap, overload), lib=_library)
    return overload


def _differentiate_overload(
    overload: torch._ops.OpOverload, rule: type[torch.autograd.Function], autocast: bool
) -> None:
    signature = overload._schema.name.removeprefix("fenchel::")
    if overload._overloadname != "default":
        signature = f"{signature}.{overload._overloadname}"
    apply = _apply_of(rule)

    def with_autograd(*args: Any) -> Any:
        wanted = torch._C._any_requires_grad(*args) and records_gradients()
        if wanted or forward_ad._current_level >= 0:
            return apply(*args)
        with torch._C._AutoDispatchBelowAutograd():
            return overload(*args)

    _library.impl(signature, with_autograd, "Autograd")
    _library.impl(signature, rule.apply, "FuncTorchDynamicLayerFrontMode")
    for device in ("cpu", "cuda") if autocast else ():
        torch.library.register_autocast(overload, device, torch.float32, lib=_library)


def _direct_rule(
    rule: type[torch.autograd.Function], kernel: Callable[..., Any]
) -> type[torch.autograd.Function]:
    """The rule for direct calls: its forward is the kernel itself."""

    def forward(ctx: Any, *args: Any) -> Any:
        with torch._C._AutoDispatchBelowAutograd():
            output = kernel(*args)
        rule.setup_context(ctx, args, output)
        return output

    members = {"forward": staticmethod(forward), "backward": staticmethod(rule.backward)}
    return type(rule.__name__, (torch.autograd.Function,), members)


def _apply_of(rule: type[torch.autograd.Function]) -> Callable[..., Any]:
    """`rule.apply` without its inspection of signatures, which only torch.func needs."""
    return super(torch.autograd.Function, rule).apply  # pyright: ignore[reportAttributeAccessIssue]
