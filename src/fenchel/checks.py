"""Validation of arguments: each function checks one rule and returns the argument in canonical form.

Most functions read only shapes, dtypes and Python numbers, so they also work under tracing. The
values of tensors are checked by the kernels, which read them anyway (`check_bound`, `check_values`).
"""

import math
from numbers import Integral, Real
from typing import Any

import torch
from torch import Tensor
from torch.fx import Proxy

from fenchel.errors import FenchelError

BELOW_ZERO = -1e-300  # the bound of a parameter that may be 0
INSTEAD_OF_SCRIPTS = "use torch.compile or torch.export"


class NotScriptable:
    """A base of modules for which `torch.jit.script` raises `FenchelError`."""

    def __prepare_scriptable__(self) -> None:
        """Called by `torch.jit.script`, also for the submodules of a module."""
        name = type(self).__name__
        raise FenchelError(f"torch.jit.script of {name} is not supported: {INSTEAD_OF_SCRIPTS}")


def check_scores(scores: Tensor, name: str = "scores") -> None:
    check_tensor(scores, name)
    if not scores.dtype.is_floating_point:
        raise FenchelError(
            f"{name} must have a floating-point dtype,"
            f" got {scores.dtype} (convert with {name}.float())"
        )
    if scores.ndim == 0:
        raise FenchelError(f"{name} must have at least one dimension, got a scalar")


def check_tensor(value: Tensor, name: str) -> None:
    if isinstance(value, Tensor) and value.layout == torch.strided:
        return
    check_not_proxy(value)
    if not isinstance(value, Tensor):
        raise FenchelError(f"{name} must be a torch.Tensor, got {type(value).__name__}")
    check_dense(value, name)


def check_not_proxy(value: Any) -> None:
    if isinstance(value, Proxy):
        raise FenchelError(f"torch.fx.symbolic_trace is not supported: {INSTEAD_OF_SCRIPTS}")


def check_dense(tensor: Tensor, name: str) -> None:
    if tensor.layout != torch.strided:
        raise FenchelError(
            f"{name} must be dense, got layout {tensor.layout} (convert with {name}.to_dense())"
        )


def check_device(tensor: Tensor, like: Tensor, name: str, owner: str = "the scores") -> None:
    """`tensor` must be on the device of `like`: nothing is copied between devices silently."""
    if tensor.device != like.device:
        raise FenchelError(
            f"{name} must be on the device of {owner} ({like.device}), got {tensor.device}"
        )


def canonical_dim(dim: int, ndim: int) -> int:
    """`dim` as a negative number, which remains valid when dimensions are added in front."""
    whole = type(dim) is int or (isinstance(dim, Integral) and not isinstance(dim, bool))
    if not whole or not -ndim <= dim < ndim:
        raise FenchelError(f"dim must be an integer in [{-ndim}, {ndim - 1}], got {dim}")
    return int(dim) if dim < 0 else int(dim) - ndim


def check_mask(mask: Tensor | None, scores: Tensor) -> Tensor | None:
    """`mask` with as many dimensions as `scores`, of size 1 where it broadcasts."""
    if mask is None:
        return None
    check_boolean(mask)
    return _broadcast_rank(mask, scores, tuple(scores.shape), "mask")


def check_boolean(mask: Tensor) -> None:
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        got = mask.dtype if isinstance(mask, Tensor) else type(mask).__name__
        raise FenchelError(f"mask must be a boolean tensor, got {got}")
    check_dense(mask, "mask")


def check_parameter(
    value: float | Tensor, scores: Tensor, dim: int, *, name: str, above: float
) -> float | Tensor:
    """A number above `above`, or a tensor that broadcasts to one value per row of `scores`."""
    if type(value) is float and above < value < math.inf:
        return value
    if isinstance(value, Tensor):
        if value.dtype == torch.bool or value.dtype.is_complex:
            raise FenchelError(f"{name} must be real, got {value.dtype}")
        check_dense(value, name)
        if not value.dtype.is_floating_point:
            value = value.to(scores.dtype)
        rows = list(scores.shape)
        rows[dim] = 1
        return _broadcast_rank(value, scores, tuple(rows), name)
    return check_number(value, name=name, above=above, or_tensor=True)


def check_number(value: float, *, name: str, above: float, or_tensor: bool = False) -> float:
    """A finite number above `above`. `or_tensor`: the message mentions that a tensor is accepted."""
    if type(value) is not float and (isinstance(value, bool) or not isinstance(value, Real)):
        kind = "number or a tensor" if or_tensor else "number"
        raise FenchelError(f"{name} must be a {kind}, got {value!r}")
    number = float(value)
    if not above < number < math.inf:
        raise FenchelError(f"{name} must be {describe_bound(above)}, got {value}")
    return number


def check_count(value: int, name: str, *, least: int = 1) -> int:
    """A whole number of at least `least`."""
    whole = isinstance(value, Integral | torch.SymInt) and not isinstance(value, bool)
    if not whole or value < least:
        raise FenchelError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return value


def check_known(name: str, value: str, known: tuple[str, ...]) -> None:
    """`value` must be in the list `known`."""
    if value not in known:
        raise FenchelError(f"{name} must be one of {', '.join(known)}, got {value!r}")


def describe_bound(above: float) -> str:
    """ "above 1 and finite", or "at least 0 and finite" if the bound is BELOW_ZERO."""
    return ("at least 0" if above == BELOW_ZERO else f"above {above:g}") + " and finite"


def _is_above(value: Any, above: float) -> Any:
    return value >= 0 if above == BELOW_ZERO else value > above


def check_bound(values: Tensor, *, name: str, above: float) -> None:
    """Raise if a value is not above `above` or not finite. Valid tensors need one `aminmax`."""
    if values.numel() == 0:
        return
    least, largest = (end.item() for end in values.aminmax())  # NaN if there is one
    if not (_is_above(least, above) and largest < math.inf):
        holds = _is_above(values, above) & (values < math.inf)
        check_values(values, holds, name=name, expected=describe_bound(above))


def check_values(values: Tensor, holds: Tensor, *, name: str, expected: str) -> None:
    """Raise if `holds` is false somewhere, naming the first offending value."""
    if not bool(holds.all()):
        offending = values.detach()[~holds].flatten()[0].item()
        raise FenchelError(f"{name} must be {expected}, got {offending}")


def _broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    sizes = zip(reversed(shape), reversed(to), strict=False)
    return len(shape) <= len(to) and all(have in (1, want) for have, want in sizes)


def _broadcast_rank(value: Tensor, scores: Tensor, shape: tuple[int, ...], name: str) -> Tensor:
    # Equal shapes return early: comparing sizes one by one would specialise the dynamic dimensions
    # of an export.
    same = value.ndim == len(shape) and value.shape == shape
    if not same and not _broadcasts(tuple(value.shape), shape):
        raise FenchelError(
            f"{name} must have a shape that broadcasts to {shape}, got {tuple(value.shape)}"
        )
    if value.ndim == 0 and value.device != scores.device and not value.is_meta:
        value = value.to(scores.device)
    check_device(value, scores, name)
    missing = len(shape) - value.ndim
    return value.reshape((1,) * missing + tuple(value.shape)) if missing else value
