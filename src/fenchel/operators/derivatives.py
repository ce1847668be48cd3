"""What the derivative rules of all operators share.

A rule is an `autograd.Function` with `setup_context`, `vmap` and `jvp`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch._C._functorch import TransformType, peek_interpreter_stack
from torch.autograd import forward_ad


def save_parameter(ctx: Any, parameter: float | Tensor) -> Tensor | None:
    """Keep a number in the context; a tensor is returned, to be saved with the other tensors."""
    ctx.number, tensor = (None, parameter) if isinstance(parameter, Tensor) else (parameter, None)
    return tensor


def saved_parameter(ctx: Any, tensor: Tensor | None) -> Any:
    """The number, or the tensor that `save_parameter` returned."""
    return ctx.number if tensor is None else tensor


def vmap_over_batch(
    operator: Callable[..., Any], info: Any, in_dims: tuple[int | None, ...], *args: Any
) -> tuple[Any, Any]:
    """The vmap rule of an operator along a negative `dim`: the batch dimension goes to the front.

    Tensors without a batch dimension are expanded; other arguments are passed on.
    """
    batched = []
    for argument, batch_dim in zip(args, in_dims, strict=True):
        if isinstance(argument, Tensor):
            if batch_dim is None:
                argument = argument.expand(info.batch_size, *argument.shape)
            else:
                argument = argument.movedim(batch_dim, 0)
        batched.append(argument)
    results = operator(*batched)
    return results, (0,) * len(results) if isinstance(results, tuple) else 0


def forward_mode(jvp: Callable[..., Any]) -> Callable[..., Any]:
    """Make the `jvp` of a rule differentiable in forward mode again: `jvp(ctx, saved, *tangents)`.

    PyTorch disables forward mode at all levels while it runs a `jvp`, so `jacfwd(jacfwd(f))` would
    silently treat the saved tensors as constants. Under `torch.func.jvp`, this enables it again and
    removes the tangents of the rule's own level.
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
