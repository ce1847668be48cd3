"""Validation of attention's arguments, which are returned in canonical form.

Only shapes, dtypes and Python numbers are read, so the checks also work under tracing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from numbers import Real
from typing import Any, TypeVar, cast

import torch
from torch import Tensor

from fenchel.autocast import autocast_dtype
from fenchel.checks import check_count, check_dense, check_device, check_number, check_tensor
from fenchel.errors import FenchelError
from fenchel.mechanisms.masks import check_broadcast

F = TypeVar("F", bound=Callable[..., Any])


def check_operands(q: Tensor, k: Tensor, v: Tensor | None, *, enable_gqa: bool) -> list[Tensor]:
    """Queries, keys and perhaps values, in the dtype of autocast if it is enabled."""
    named = {"q": q, "k": k} if v is None else {"q": q, "k": k, "v": v}
    for name, tensor in named.items():
        _check_operand(name, tensor, like=q)
    tensors = _autocast(list(named.values()))
    for name, tensor in zip(named, tensors, strict=True):
        if tensor.dtype != tensors[0].dtype:
            raise FenchelError(f"{name} must have the dtype of q ({q.dtype}), got {tensor.dtype}")
    if k.shape[-1] != q.shape[-1]:
        raise FenchelError(f"k must have the size of q (E = {q.shape[-1]}), got {k.shape[-1]}")
    if v is not None and v.shape[-2] != k.shape[-2]:
        raise FenchelError(f"v must have the length of k ({k.shape[-2]}), got {v.shape[-2]}")
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
    """The value of an argument that has two names and may be given under one of them."""
    if value is not None and other is not None:
        raise FenchelError(f"{name} and {other_name} cannot be combined")
    return other if value is None else value


def check_mask(mask: Tensor | None, shape: tuple[int, ...], like: Tensor) -> Tensor | None:
    """A boolean or real mask on the device of `like` that broadcasts to the shape of the scores.

    The result has as many dimensions as the scores, of size 1 where it broadcasts.
    """
    if mask is None:
        return None
    check_tensor(mask, "mask")
    if mask.dtype != torch.bool and not mask.dtype.is_floating_point:
        raise FenchelError(f"mask must be a boolean or a floating-point tensor, got {mask.dtype}")
    check_broadcast(mask, shape, "mask")
    check_device(mask, like, "mask")
    return _with_dimensions(mask, len(shape))


def check_alpha(alpha: float | Tensor, shape: tuple[int, ...], like: Tensor) -> float | Tensor:
    """A number, or a tensor that broadcasts to (…, heads, queries, 1); (heads,) is one α per head.

    A tensor gets as many dimensions as the scores.
    """
    if not isinstance(alpha, Tensor):
        return check_number(alpha, name="alpha", above=0, or_tensor=True)
    check_dense(alpha, "alpha")
    if alpha.dtype == torch.bool or alpha.dtype.is_complex:
        raise FenchelError(f"alpha must be real, got {alpha.dtype}")
    alpha = alpha if alpha.dtype.is_floating_point else alpha.to(torch.float32)
    if alpha.ndim == 1:
        heads = shape[-3] if len(shape) > 2 else 1
        if alpha.shape[0] not in (1, heads):
            raise FenchelError(
                f"alpha must have shape ({heads},), one value per head, got {tuple(alpha.shape)}"
            )
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
    # Dynamo does not trace `isfinite` of a dynamic number, but it traces comparisons.
    if not (_is_real(scale) and -math.inf < scale < math.inf):
        raise FenchelError(f"scale must be a finite number, got {scale!r}")
    return float(scale)


def check_dropout(probability: float, name: str) -> None:
    if not (_is_real(probability) and 0 <= probability < 1):
        raise FenchelError(f"{name} must be a number in [0, 1), got {probability!r}")


def check_window(window: int | None, *, is_causal: bool) -> None:
    if window is None:
        return
    check_count(window, "window", least=0)
    if not is_causal:
        raise FenchelError("is_causal must be True if window is given, got False")


def _is_real(number: object) -> bool:
    return isinstance(number, Real) and not isinstance(number, bool)


def _check_operand(name: str, tensor: Tensor, *, like: Tensor) -> None:
    check_tensor(tensor, name)
    if not tensor.dtype.is_floating_point:
        raise FenchelError(f"{name} must have a floating-point dtype, got {tensor.dtype}")
    if like.ndim < 2:
        raise FenchelError(f"q must have shape (…, length, size), got {tuple(like.shape)}")
    if tensor.ndim != like.ndim:
        raise FenchelError(
            f"{name} must have as many dimensions as q ({like.ndim}), got {tuple(tensor.shape)}"
        )
    check_device(tensor, like, name)


def _check_batch(shapes: dict[str, tuple[int, ...]]) -> None:
    """Batch and head dimensions must be equal, or 1 where an operand broadcasts."""
    if shapes["q"] == shapes["k"] == shapes.get("v", shapes["k"]):
        return
    for sizes in zip(*shapes.values(), strict=True):
        several = [size for size in sizes if size != 1]
        if any(size != several[0] for size in several):
            got = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
            raise FenchelError(
                f"batch and head dimensions must be equal or 1, got {got}"
                " (pass enable_gqa=True if keys and values have fewer heads)"
            )


def _shared_heads(shape: tuple[int, ...], q: tuple[int, ...]) -> tuple[int, ...]:
    """Batch and heads of keys or values once their heads are repeated to match those of q."""
    if not q or shape[-1] == 0 or q[-1] % shape[-1]:
        raise FenchelError(
            "the number of query heads must be divisible by the number of key and value heads,"
            f" got batch and heads {q} and {shape}"
        )
    return (*shape[:-1], q[-1])


def _autocast(tensors: list[Tensor]) -> list[Tensor]:
    """Under autocast, operands take its dtype, as those of PyTorch's attention do."""
    dtype = autocast_dtype(tensors[0].device)
    if dtype is None:
        return tensors
    return [x if x.dtype == torch.float64 else x.to(dtype) for x in tensors]
