"""Tensors of any shape, strides and dtype as rows, and rows back to tensors."""

from __future__ import annotations

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

    The result is not a view, because autograd does not allow views to be modified in place.
    """
    if dim == -1 and like.is_contiguous():
        if rows.dtype != like.dtype:
            rows = rows.to(like.dtype)
        if rows.shape == like.shape:
            return rows
        return rows.new_empty(0).set_(rows.view(like.shape))  # pyright: ignore[reportArgumentType]
    return torch.empty_like(like).copy_(rows.view(like.movedim(dim, -1).shape).movedim(-1, dim))


def parameter_to_rows(value: float | Tensor, like: Tensor, dim: int) -> float | Tensor:
    """A number stays a number; a tensor becomes float64 of shape (rows, 1)."""
    if not isinstance(value, Tensor):
        return value
    wide = torch.float32 if like.device.type == "mps" else torch.float64
    if (
        value.numel() * like.shape[dim] != like.numel()
    ):  # otherwise it has one value per row already
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
