"""Checks of locations and variances; errors name the first batch item that is not valid.

Shapes and dtypes are always checked, values only on the CPU and not under tracing.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution

from fenchel.checks import check_dense, check_device, check_not_proxy
from fenchel.continuous.triangles import is_definite
from fenchel.errors import FenchelError
from fenchel.mechanisms.masks import readable


def validates(validate_args: bool | None) -> bool:
    """Whether a density checks the values of its parameters, by default torch's global setting."""
    return Distribution._validate_args if validate_args is None else validate_args


def check_real(value: Any, name: str) -> None:
    check_not_proxy(value)
    if not isinstance(value, Tensor) or not value.dtype.is_floating_point:
        got = value.dtype if isinstance(value, Tensor) else type(value).__name__
        raise FenchelError(f"{name} must be a floating-point tensor, got {got}")
    check_dense(value, name)


def check_density_parameter(value: Any, name: str) -> float | Tensor:
    """A parameter of a density: a number, or a real tensor."""
    if isinstance(value, Tensor):
        check_real(value, name)
        return value
    return _number(value, f"{name} must be a number or a floating-point tensor")


def check_points(value: Any, name: str, like: Tensor) -> Tensor:
    """The points at which a density is evaluated: a tensor or a number."""
    if not isinstance(value, Tensor):
        number = _number(value, f"{name} must be a number or a tensor")
        return torch.as_tensor(number, dtype=like.dtype, device=like.device)
    if value.dtype == torch.bool or value.dtype.is_complex:
        raise FenchelError(f"{name} must be real, got {value.dtype}")
    check_dense(value, name)
    if value.ndim:
        check_device(value, like, name, "the density")
    return value


def check_together(first: Tensor, other: Tensor, names: str) -> None:
    """The shapes of two tensors must broadcast."""
    shapes = tuple(first.shape), tuple(other.shape)
    sizes = zip(*(reversed(shape) for shape in shapes), strict=False)
    if any(have != want and 1 not in (have, want) for have, want in sizes):
        got = "{} and {}".format(*shapes)
        raise FenchelError(f"{names} must have shapes that broadcast, got {got}")


def check_same_shape(loc: Tensor, other: Tensor, name: str) -> None:
    """`other` must have one value per location."""
    if loc.shape != other.shape:
        raise FenchelError(
            f"{name} must have the shape of loc, {tuple(loc.shape)}, got {tuple(other.shape)}"
        )


def check_matrices(loc: Tensor, matrix: Tensor, name: str) -> None:
    """`matrix` must have one D × D matrix per location of D coordinates."""
    if loc.ndim == 0 or matrix.shape != (*loc.shape, loc.shape[-1]):
        wanted = (*loc.shape, *loc.shape[-1:])
        raise FenchelError(
            f"{name} must have shape {wanted} for loc of shape {tuple(loc.shape)},"
            f" got {tuple(matrix.shape)}"
        )


def check_finite(values: Tensor, name: str) -> None:
    """Every number must be finite."""
    if readable(values):
        _check_each(values, values.isfinite(), f"{name} must be finite")


def check_positive(values: Tensor, name: str) -> None:
    """Every number must be positive and finite."""
    if readable(values):
        fine = (values > 0) & values.isfinite()
        _check_each(values, fine, f"{name} must be positive and finite")


def check_definite(matrix: Tensor, name: str) -> None:
    """Every matrix must be finite, symmetric up to rounding, and positive definite."""
    if not readable(matrix):
        return
    check_finite(matrix, name)
    exact = matrix.double()
    size = exact.abs().amax((-2, -1))
    gap = (exact - exact.mT).abs().amax((-2, -1))
    close = gap <= 100 * torch.finfo(matrix.dtype).eps * size
    _check_each(matrix, close, f"{name} must be symmetric")
    _check_each(matrix, is_definite(exact), f"{name} must be positive definite")


def check_items(fine: Tensor, message: str) -> None:
    """Raise `message`, which ends with what came, for the first batch item where `fine` is false."""
    if readable(fine) and not bool(fine.all()):
        raise FenchelError(f"{message} {_first(fine)}".rstrip())


def check_nonempty(full: Tensor) -> None:
    """Every batch item must have a valid value."""
    check_items(full, "a sequence must have at least one valid value, got none")


def _number(value: Any, statement: str) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise FenchelError(f"{statement}, got {type(value).__name__}")
    return float(value)


def _check_each(values: Tensor, fine: Tensor, statement: str) -> None:
    """Raise with the first of the values where `fine` is false."""
    if not bool(fine.all()):
        item = tuple(torch.nonzero(~fine)[0].tolist())
        raise FenchelError(f"{statement}, got {values[item].tolist()} {_first(fine)}".rstrip())


def _first(fine: Tensor) -> str:
    """ "at batch item 3", or "(3, 1)" where the batch has several dimensions."""
    item = torch.nonzero(~fine)[0].tolist()
    if not item:
        return ""
    return f"at batch item {item[0] if len(item) == 1 else tuple(item)}"
