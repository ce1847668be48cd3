"""What a query may see, as boolean tensors: True marks a key that may be attended."""

from __future__ import annotations

import torch
from torch import Tensor
from torch._C._functorch import is_functorch_wrapped_tensor

from fenchel.checks import check_dense, check_device
from fenchel.errors import rule
from fenchel.kernels.reference.visibility import causal, within

__all__ = ["causal", "check_broadcast", "check_lengths", "readable", "within"]


def check_lengths(lengths: Tensor, batch: tuple[int, ...], keys: int, like: Tensor) -> None:
    """One length a batch entry. Values are looked at where that is free: on the CPU, untraced."""
    if not isinstance(lengths, Tensor) or not _is_integer(lengths):
        got = lengths.dtype if isinstance(lengths, Tensor) else type(lengths).__name__
        raise rule("lengths count the valid keys", expected="an integer tensor", got=got)
    check_dense(lengths, "lengths")
    if tuple(lengths.shape) != batch:
        raise rule(
            "lengths must have one value a batch entry",
            expected=f"shape {batch}",
            got=tuple(lengths.shape),
        )
    check_device(lengths, like, "lengths")
    if readable(lengths) and not bool(((lengths >= 0) & (lengths <= keys)).all()):
        raise rule(
            "lengths must not exceed the keys",
            expected=f"values from 0 to {keys}",
            got=lengths.tolist(),
        )


def check_broadcast(tensor: Tensor, shape: tuple[int, ...], name: str) -> None:
    """`tensor` may have size 1, or no dimension at all, where it repeats."""
    sizes = zip(reversed(tensor.shape), reversed(shape), strict=False)
    if tensor.ndim > len(shape) or any(have not in (1, want) for have, want in sizes):
        raise rule(
            f"{name} must broadcast",
            expected=f"a shape that broadcasts to {shape}",
            got=tuple(tensor.shape),
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
