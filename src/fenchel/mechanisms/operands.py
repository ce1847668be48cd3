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
from fenchel.checks import check_dense, check_device, check_tensor
from fenchel.errors import rule
from fenchel.mechanisms.masks import check_broadcast

F = TypeVar("F", bound=Callable[..., Any])


def check_operands(q: Tensor, k: Tensor, v: Tensor | None, *, enable_gqa: bool) -> list[Tensor]:
    """Queries, keys and perhaps values, with as many heads of keys and values as of queries."""
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
    if enable_gqa:
        tensors = [tensors[0], *(_repeat_heads(tensor, q) for tensor in tensors[1:])]
    _check_batch(dict(zip(named, tensors, strict=True)))
    return tensors


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


def check_mask(mask: Tensor, scores: Tensor) -> None:
    """Boolean or real, on the device of the scores, broadcasting to them."""
    check_tensor(mask, "mask")
    if mask.dtype != torch.bool and not mask.dtype.is_floating_point:
        raise rule(
            "mask marks what may be attended, or is added to the scores",
            expected="a boolean or a floating-point tensor",
            got=mask.dtype,
        )
    check_broadcast(mask, tuple(scores.shape), "mask")
    check_device(mask, scores, "mask")


def check_alpha(alpha: float | Tensor, scores: Tensor) -> float | Tensor:
    """A number, or a tensor that broadcasts to (…, heads, queries, 1); (heads,) is one α a head."""
    if not isinstance(alpha, Tensor):
        return alpha
    check_dense(alpha, "alpha")
    if alpha.ndim == 1:
        heads = scores.shape[-3] if scores.ndim > 2 else 1
        if alpha.shape[0] not in (1, heads):
            expected = f"shape ({heads},)"
            raise rule("alpha has one value a head", expected=expected, got=tuple(alpha.shape))
        alpha = alpha.reshape(-1, 1, 1) if scores.ndim > 2 else alpha
    check_broadcast(alpha, (*scores.shape[:-1], 1), "alpha")
    if alpha.ndim:
        check_device(alpha, scores, "alpha")
    return alpha


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


def _check_batch(named: dict[str, Tensor]) -> None:
    """Batch and heads are those of q, or repeat where one of the operands has size 1."""
    shapes = {name: tuple(tensor.shape[:-2]) for name, tensor in named.items()}
    for sizes in zip(*shapes.values(), strict=True):
        several = [size for size in sizes if size != 1]
        if any(size != several[0] for size in several):
            raise rule(
                "q, k and v must have one batch and as many heads",
                expected=f"{shapes['q']} before the last two dimensions"
                " (several heads of queries to one of keys: enable_gqa=True)",
                got=", ".join(f"{name} {shape}" for name, shape in shapes.items()),
            )


def _repeat_heads(tensor: Tensor, q: Tensor) -> Tensor:
    if q.ndim < 3 or tensor.shape[-3] == 0 or q.shape[-3] % tensor.shape[-3]:
        raise rule(
            "enable_gqa shares each head of keys and values among as many heads of queries",
            expected="query heads divisible by key and value heads",
            got=f"{tuple(q.shape[:-2])} and {tuple(tensor.shape[:-2])}",
        )
    return tensor.repeat_interleave(q.shape[-3] // tensor.shape[-3], dim=-3)


def _autocast(tensors: list[Tensor]) -> list[Tensor]:
    """Under autocast, operands take its dtype, as those of PyTorch's attention do."""
    dtype = autocast_dtype(tensors[0].device)
    if dtype is None:
        return tensors
    return [x if x.dtype == torch.float64 else x.to(dtype) for x in tensors]
