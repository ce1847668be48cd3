"""Rows: the form in which kernels see tensors, whatever `dim`, strides and dtype the caller has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

HALF = (torch.float16, torch.bfloat16)


def to_rows(tensor: Tensor, dim: int, mask: Tensor | None = None) -> Tensor:
    """`tensor` as a contiguous matrix whose rows run along `dim`; half precision becomes float32."""
    if tensor.dtype in HALF:
        tensor = tensor.float()
    if mask is not None:
        tensor = tensor.masked_fill(~mask, float("-inf"))
    if dim != -1:
        tensor = tensor.movedim(dim, -1)
    if tensor.ndim != 2:
        tensor = tensor.reshape(-1, tensor.shape[-1])
    return tensor.contiguous()


def from_rows(rows: Tensor, like: Tensor, dim: int) -> Tensor:
    """The inverse of `to_rows`: shape, dtype and layout of `like`.

    The result is no view, which autograd would not let a person change in place.
    """
    if dim == -1 and like.is_contiguous():
        if rows.dtype != like.dtype:
            rows = rows.to(like.dtype)
        if rows.shape == like.shape:
            return rows
        return rows.new_empty(0).set_(rows.view(like.shape))  # pyright: ignore[reportArgumentType]
    return torch.empty_like(like).copy_(rows.view(like.movedim(dim, -1).shape).movedim(-1, dim))


def parameter_to_rows(value: float | Tensor, like: Tensor, dim: int) -> float | Tensor:
    """A number stays one; a tensor becomes float64 of shape (rows, 1)."""
    if not isinstance(value, Tensor):
        return value
    wide = torch.float32 if like.device.type == "mps" else torch.float64
    if value.numel() * like.shape[dim] != like.numel():  # else there is one a row, in their order
        shape = list(like.shape)
        shape[dim] = 1
        value = value.expand(shape).movedim(dim, -1)
    return value.to(wide).reshape(-1, 1).contiguous()


def parameter_from_rows(rows: Tensor, like: Tensor, value: Tensor, dim: int) -> Tensor:
    """Sum per-row gradients back to the shape and dtype of the parameter they belong to."""
    if rows.numel() == value.numel():
        return rows.view(value.shape).to(value.dtype)
    shape = list(like.shape)
    shape[dim] = 1
    moved = [size for position, size in enumerate(shape) if position != len(shape) + dim]
    return rows.view(*moved, 1).movedim(-1, dim).sum_to_size(value.shape).to(value.dtype)


def at_least_float32(tensor: Tensor) -> Tensor:
    return tensor.float() if tensor.dtype in HALF else tensor


def over_batch(
    operator: Callable[..., Any], info: Any, in_dims: tuple[int | None, ...], *args: Any
) -> tuple[Any, Any]:
    """The vmap rule of every operator: batch dimensions go to the front, where `dim` < 0 ignores them.

    A tensor without a batch dimension is expanded to the batch; what is not a tensor stays.
    """
    aligned = []
    for argument, batch_dim in zip(args, in_dims, strict=True):
        if isinstance(argument, Tensor):
            if batch_dim is None:
                argument = argument.expand(info.batch_size, *argument.shape)
            else:
                argument = argument.movedim(batch_dim, 0)
        aligned.append(argument)
    results = operator(*aligned)
    return results, (0,) * len(results) if isinstance(results, tuple) else 0
