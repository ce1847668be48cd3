"""Validation of attention's arguments: rules of shapes, dtypes and devices, and canonical forms.

Only shapes, dtypes and Python numbers are looked at, so that every rule also holds while tracing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from numbers import Integral, Real
from typing import Any, TypeVar, cast

import torch
from torch import Tensor

from fenchel.autocast import autocast_dtype
from fenchel.checks import check_dense, check_device, check_number, check_tensor
from fenchel.errors import rule
from fenchel.mechanisms.masks import check_broadcast

F = TypeVar("F", bound=Callable[..., Any])


def check_operands(q: Tensor, k: Tensor, v: Tensor | None, *, enable_gqa: bool) -> list[Tensor]:
    """Queries, keys and perhaps values, in the dtype that autocast wants."""
    named = {"q": q, "k": k} if v is None else {"q": q, "k": k, "v": v}
    for name, tensor in named.items():
        _check_operand(name, tensor, like=q)
    tensors = _autocast(list(named.values()))
    for name, tensor in zip(named, tensors, strict=True):
        if tensor.dtype != tensors[0].dtype:
            raise rule(f"{name} must have the dtype of q", expected=q.dtype, got=tensor.dtype)
    if k.shape[-1] != q.shape[-1]:
        raise rule("q and k must have one size", expected=f"E = {q.shape[-1]}", got=k.shape[-1])
    if v is not None and v.shape[-2] != k.shape[-2]:
        expected = f"{k.shape[-2]} values, one a key"
        raise rule("k and v must have one length", expected=expected, got=v.shape[-2])
    shapes = {name: tuple(tensor.shape[:-2]) for name, tensor in named.items()}
    if enable_gqa:
        for name in ("k", "v")[: len(named) - 1]:
            shapes[name] = _shared_heads(shapes[name], shapes["q"])
    _check_batch(shapes)
    return tensors


def scores_shape(q: Tensor, k: Tensor) -> tuple[int, ...]:
    """(…, heads, queries, keys) of operands that `check_operands` has passed."""
    batch = torch.broadcast_shapes(q.shape[:-3], k.shape[:-3])
    heads = [max(q.shape[-3], k.shape[-3])] if q.ndim > 2 else []
    return (*batch, *heads, q.shape[-2], k.shape[-2])


def named_as_in_torch(function: F) -> F:
    """Lets `query`, `key` and `value` be given for `q`, `k` and `v`."""

    @wraps(function)
    def call(*args: Any, **named: Any) -> Any:
        for ours, theirs in (("q", "query"), ("k", "key"), ("v", "value")):
            if theirs in named:
                named[ours] = either(ours, named.get(ours), theirs, named.pop(theirs))
        return function(*args, **named)

    return cast(F, call)


def either(name: str, value: Any, other_name: str, other: Any) -> Any:
    """The value of an argument with two names, of which one was given."""
    if value is not None and other is not None:
        statement = f"{name} and {other_name} cannot be combined"
        raise rule(statement, expected="one of them", got="both")
    return other if value is None else value


def check_mask(mask: Tensor | None, shape: tuple[int, ...], like: Tensor) -> Tensor | None:
    """Boolean or real, on the device of `like`, broadcasting to the shape of the scores.

    The result has as many dimensions as the scores, of size 1 where it repeats.
    """
    if mask is None:
        return None
    check_tensor(mask, "mask")
    if mask.dtype != torch.bool and not mask.dtype.is_floating_point:
        raise rule(
            "mask marks what may be attended, or is added to the scores",
            expected="a boolean or a floating-point tensor",
            got=mask.dtype,
        )
    check_broadcast(mask, shape, "mask")
    check_device(mask, like, "mask")
    return _with_dimensions(mask, len(shape))


def check_alpha(alpha: float | Tensor, shape: tuple[int, ...], like: Tensor) -> float | Tensor:
    """A number, or a tensor that broadcasts to (…, heads, queries, 1); (heads,) is one α a head.

    A tensor gets as many dimensions as the scores.
    """
    if not isinstance(alpha, Tensor):
        return check_number(alpha, name="alpha", above=0, or_tensor=True)
    check_dense(alpha, "alpha")
    if alpha.dtype == torch.bool or alpha.dtype.is_complex:
        raise rule("alpha must be real", expected="a floating-point dtype", got=alpha.dtype)
    alpha = alpha if alpha.dtype.is_floating_point else alpha.to(torch.float32)
    if alpha.ndim == 1:
        heads = shape[-3] if len(shape) > 2 else 1
        if alpha.shape[0] not in (1, heads):
            expected = f"shape ({heads},)"
            raise rule("alpha has one value a head", expected=expected, got=tuple(alpha.shape))
        alpha = alpha.reshape(-1, 1, 1) if len(shape) > 2 else alpha
    check_broadcast(alpha, (*shape[:-1], 1), "alpha")
    if alpha.ndim:
        check_device(alpha, like, "alpha")
    elif alpha.device != like.device:
        alpha = alpha.to(like.device)
    return _with_dimensions(alpha, len(shape))


def _with_dimensions(tensor: Tensor, count: int) -> Tensor:
    missing = count - tensor.ndim
    return tensor.reshape((1,) * missing + tuple(tensor.shape)) if missing else tensor


def check_scale(scale: float | None, size: int) -> float:
    """The factor of the scores, by default 1/√E."""
    if scale is None:
        return 1 / math.sqrt(max(size, 1))
    # Compared, because Dynamo does not trace isfinite of a number that changes.
    if not (_is_real(scale) and -math.inf < scale < math.inf):
        raise rule("scale multiplies the scores", expected="a finite number", got=repr(scale))
    return float(scale)


def check_dropout(probability: float, name: str) -> None:
    if not (_is_real(probability) and 0 <= probability < 1):
        statement = f"{name} must be at least 0 and below 1"
        raise rule(statement, expected="a probability in [0, 1)", got=repr(probability))


def check_window(window: int | None, *, is_causal: bool) -> None:
    if window is None:
        return
    if isinstance(window, bool) or not isinstance(window, Integral) or window < 0:
        raise rule("window counts keys", expected="an integer from 0 on", got=repr(window))
    if not is_causal:
        raise rule(
            "window needs causal attention", expected="is_causal=True", got="is_causal=False"
        )


def _is_real(number: object) -> bool:
    return isinstance(number, Real) and not isinstance(number, bool)


def _check_operand(name: str, tensor: Tensor, *, like: Tensor) -> None:
    check_tensor(tensor, name)
    if not tensor.dtype.is_floating_point:
        raise rule(f"{name} must be real", expected="a floating-point dtype", got=tensor.dtype)
    if tensor.ndim != like.ndim or tensor.ndim < 2:
        expected = "ndim ≥ 2" if like.ndim < 2 else f"ndim {like.ndim}, as q has"
        raise rule(
            f"{name} must have shape (…, heads, length, size)",
            expected=expected,
            got=f"shape {tuple(tensor.shape)}",
        )
    check_device(tensor, like, name)


def _check_batch(shapes: dict[str, tuple[int, ...]]) -> None:
    """Batch and heads are those of q, or repeat where one of the operands has size 1."""
    if shapes["q"] == shapes["k"] == shapes.get("v", shapes["k"]):
        return
    for sizes in zip(*shapes.values(), strict=True):
        several = [size for size in sizes if size != 1]
        if any(size != several[0] for size in several):
            raise rule(
                "q, k and v must have one batch and as many heads",
                expected=f"{shapes['q']} before the last two dimensions"
                " (several heads of queries to one of keys: enable_gqa=True)",
                got=", ".join(f"{name} {shape}" for name, shape in shapes.items()),
            )


def _shared_heads(shape: tuple[int, ...], q: tuple[int, ...]) -> tuple[int, ...]:
    """Batch and heads of keys or values, each head counted once for every head of queries it serves."""
    if not q or shape[-1] == 0 or q[-1] % shape[-1]:
        raise rule(
            "enable_gqa shares each head of keys and values among as many heads of queries",
            expected="query heads divisible by key and value heads",
            got=f"{q} and {shape}",
        )
    return (*shape[:-1], q[-1])


def _autocast(tensors: list[Tensor]) -> list[Tensor]:
    """Under autocast, operands take its dtype, as those of PyTorch's attention do."""
    dtype = autocast_dtype(tensors[0].device)
    if dtype is None:
        return tensors
    return [x if x.dtype == torch.float64 else x.to(dtype) for x in tensors]
