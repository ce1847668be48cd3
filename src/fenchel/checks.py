"""Validation of arguments: each function states one rule and returns the argument in canonical form.

Only shapes, dtypes and Python numbers are looked at here, so that every check also holds while
tracing; the values of tensors are checked by the kernels that read them anyway.
"""

import math
from numbers import Integral, Real
from typing import Any

import torch
from torch import Tensor

from fenchel.errors import rule

BELOW_ZERO = -1e-300  # the bound of a parameter that may be 0


def check_scores(scores: Tensor, name: str = "scores") -> None:
    check_tensor(scores, name)
    if not scores.dtype.is_floating_point:
        raise rule(
            f"{name} must be real numbers",
            expected="a floating-point dtype",
            got=f"{scores.dtype} (convert with {name}.float())",
        )
    if scores.ndim == 0:
        raise rule(f"{name} must have a dimension to normalise", expected="ndim ≥ 1", got="ndim 0")


def check_tensor(value: Tensor, name: str) -> None:
    if not isinstance(value, Tensor):
        raise rule(f"{name} must be a tensor", expected="a torch.Tensor", got=type(value).__name__)
    check_dense(value, name)


def check_dense(tensor: Tensor, name: str) -> None:
    if tensor.layout != torch.strided:
        expected = f"layout torch.strided (convert with {name}.to_dense())"
        raise rule(f"{name} must be dense", expected=expected, got=tensor.layout)


def check_device(tensor: Tensor, like: Tensor, name: str, place: str = "the scores are") -> None:
    """Nothing is moved from one device to another for a person who may not have meant it."""
    if tensor.device != like.device:
        raise rule(f"{name} must be where {place}", expected=like.device, got=tensor.device)


def canonical_dim(dim: int, ndim: int) -> int:
    """`dim` as a negative number, which stays true when dimensions are added in front."""
    whole = type(dim) is int or (isinstance(dim, Integral) and not isinstance(dim, bool))
    if not whole or not -ndim <= dim < ndim:
        raise rule("dim must exist", expected=f"a dim in [{-ndim}, {ndim - 1}]", got=dim)
    return int(dim) if dim < 0 else int(dim) - ndim


def check_mask(mask: Tensor | None, scores: Tensor) -> Tensor | None:
    """`mask` with as many dimensions as `scores`; it may still be of size 1 where it broadcasts."""
    if mask is None:
        return None
    check_boolean(mask)
    return _broadcast_rank(mask, scores, tuple(scores.shape), "mask")


def check_boolean(mask: Tensor, marks: str = "what may be attended") -> None:
    if not isinstance(mask, Tensor) or mask.dtype != torch.bool:
        got = mask.dtype if isinstance(mask, Tensor) else type(mask).__name__
        raise rule(f"mask marks {marks}", expected="a boolean tensor", got=got)
    check_dense(mask, "mask")


def check_parameter(
    value: float | Tensor, scores: Tensor, dim: int, *, name: str, above: float
) -> float | Tensor:
    """A number above `above`, or a floating tensor that broadcasts to one value a row of `scores`."""
    if type(value) is not float and isinstance(value, Tensor):
        if value.dtype == torch.bool or value.dtype.is_complex:
            raise rule(f"{name} must be real", expected="a real dtype", got=value.dtype)
        check_dense(value, name)
        if not value.dtype.is_floating_point:
            value = value.to(scores.dtype)
        rows = list(scores.shape)
        rows[dim] = 1
        return _broadcast_rank(value, scores, tuple(rows), name)
    return check_number(value, name=name, above=above, or_tensor=True)


def check_number(value: float, *, name: str, above: float, or_tensor: bool = False) -> float:
    """A finite number above `above`; `or_tensor` says that the caller takes tensors as well."""
    if type(value) is not float and (isinstance(value, bool) or not isinstance(value, Real)):
        kind = "number or a tensor" if or_tensor else "number"
        raise rule(f"{name} must be a {kind}", expected=f"a real {kind}", got=repr(value))
    number = float(value)
    if not above < number < math.inf:
        bound = describe_bound(above)
        raise rule(f"{name} must be {bound}", expected=f"a number {bound}", got=value)
    return number


def check_count(value: int, statement: str, *, least: int = 1) -> int:
    """A whole number of at least `least`; `statement` says what it counts."""
    whole = isinstance(value, Integral | torch.SymInt) and not isinstance(value, bool)
    if not whole or value < least:
        expected = f"a whole number of at least {least}"
        raise rule(statement, expected=expected, got=repr(value))
    return value


def check_known(name: str, value: str, known: tuple[str, ...]) -> None:
    """Refuse a word that is not one of those known."""
    if value not in known:
        raise rule(f"{name} must be known", expected=f"one of {known}", got=repr(value))


def describe_bound(above: float) -> str:
    """ "above 1 and finite", and "at least 0 and finite" for the number just below it."""
    return ("at least 0" if above == BELOW_ZERO else f"above {above:g}") + " and finite"


def _is_above(value: Any, above: float) -> Any:
    return value >= 0 if above == BELOW_ZERO else value > above


def check_bound(values: Tensor, *, name: str, above: float) -> None:
    """Raise if a value is not above `above` or not finite. Two numbers tell, if all is well."""
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
        raise rule(f"{name} must be {expected}", expected=expected, got=offending)


def _broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    sizes = zip(reversed(shape), reversed(to), strict=False)
    return len(shape) <= len(to) and all(have in (1, want) for have, want in sizes)


def _broadcast_rank(value: Tensor, scores: Tensor, shape: tuple[int, ...], name: str) -> Tensor:
    # Sizes that do not meet are not compared: that would bind what is dynamic in an export.
    same = value.ndim == len(shape) and value.shape == shape
    if not same and not _broadcasts(tuple(value.shape), shape):
        raise rule(
            f"{name} must broadcast to the scores",
            expected=f"a shape that broadcasts to {shape}",
            got=tuple(value.shape),
        )
    if value.ndim == 0 and value.device != scores.device and not value.is_meta:
        value = value.to(scores.device)
    check_device(value, scores, name)
    missing = len(shape) - value.ndim
    return value.reshape((1,) * missing + tuple(value.shape)) if missing else value
