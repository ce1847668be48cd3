"""Masks of attention as boolean tensors: True marks a key that may be attended."""

from __future__ import annotations

import torch
from torch import Tensor
from torch._C._functorch import is_functorch_wrapped_tensor

from fenchel.checks import check_dense, check_device
from fenchel.errors import FenchelError
from fenchel.kernels.reference.visibility import causal, within

__all__ = ["causal", "check_broadcast", "check_lengths", "readable", "within"]


def check_lengths(lengths: Tensor, batch: tuple[int, ...], keys: int, like: Tensor) -> None:
    """One length per batch entry. Values are checked on the CPU only, and not under tracing."""
    if not isinstance(lengths, Tensor) or not _is_integer(lengths):
        got = lengths.dtype if isinstance(lengths, Tensor) else type(lengths).__name__
        raise FenchelError(f"lengths must be an integer tensor, got {got}")
    check_dense(lengths, "lengths")
    if tuple(lengths.shape) != batch:
        raise FenchelError(
            f"lengths must have shape {batch}, one value per batch entry, got {tuple(lengths.shape)}"
        )
    check_device(lengths, like, "lengths")
    if readable(lengths) and not bool(((lengths >= 0) & (lengths <= keys)).all()):
        raise FenchelError(f"lengths must be between 0 and {keys}, got {lengths.tolist()}")


def check_broadcast(tensor: Tensor, shape: tuple[int, ...], name: str) -> None:
    """`tensor` must broadcast to `shape`."""
    sizes = zip(reversed(tensor.shape), reversed(shape), strict=False)
    if tensor.ndim > len(shape) or any(have not in (1, want) for have, want in sizes):
        raise FenchelError(
            f"{name} must have a shape that broadcasts to {shape}, got {tuple(tensor.shape)}"
        )


def _is_integer(tensor: Tensor) -> bool:
    kind = tensor.dtype
    return not (kind.is_floating_point or kind.is_complex or kind == torch.bool)


def readable(tensor: Tensor) -> bool:
    return (
        tensor.device.type == "cpu"
        and type(tensor) is Tensor
        and not torch.compiler.is_compiling()
        and not is_functorch_wrapped_tensor(tensor)
    )
