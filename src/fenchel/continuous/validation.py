"""Rules about locations and variances; an error names the batch item that breaks one.

Shapes and dtypes are always looked at; values where that is free: on the CPU, outside of tracing.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution

from fenchel.checks import check_dense, check_device
from fenchel.continuous.triangles import is_definite
from fenchel.errors import rule
from fenchel.mechanisms.masks import readable


def validates(validate_args: bool | None) -> bool:
    """Whether a density looks at the values of its parameters; torch has a switch for all of them."""
    return Distribution._validate_args if validate_args is None else validate_args


def check_real(value: Any, name: str) -> None:
    if not isinstance(value, Tensor) or not value.dtype.is_floating_point:
        got = value.dtype if isinstance(value, Tensor) else type(value).__name__
        raise rule(f"{name} must be a real tensor", expected="a floating-point dtype", got=got)
    check_dense(value, name)


def check_parameter(value: Any, name: str) -> float | Tensor:
    """A parameter of a density: a number, or a real tensor."""
    if isinstance(value, Tensor):
        check_real(value, name)
        return value
    return _number(value, f"{name} must be a number or a tensor", "or a floating-point tensor")


def check_points(value: Any, name: str, like: Tensor) -> Tensor:
    """Where a density is asked for: a tensor, or one number."""
    if not isinstance(value, Tensor):
        number = _number(value, f"{name} must be a tensor", "or a torch.Tensor")
        return torch.as_tensor(number, dtype=like.dtype, device=like.device)
    if value.dtype == torch.bool or value.dtype.is_complex:
        raise rule(f"{name} must be real", expected="a real dtype", got=value.dtype)
    check_dense(value, name)
    if value.ndim:
        check_device(value, like, name, "the density is")
    return value


def check_together(first: Tensor, other: Tensor, names: str) -> None:
    """Two tensors have shapes that broadcast."""
    shapes = tuple(first.shape), tuple(other.shape)
    sizes = zip(*(reversed(shape) for shape in shapes), strict=False)
    if any(have != want and 1 not in (have, want) for have, want in sizes):
        got = "{} and {}".format(*shapes)
        raise rule(f"{names} must match", expected="shapes that broadcast", got=got)


def check_same_shape(loc: Tensor, other: Tensor, name: str) -> None:
    """`other` has one value for each location."""
    if loc.shape != other.shape:
        raise rule(
            f"{name} must have one value a location",
            expected=f"shape {tuple(loc.shape)}",
            got=tuple(other.shape),
        )


def check_matrices(loc: Tensor, matrix: Tensor, name: str) -> None:
    """`matrix` has a D × D matrix for each location of D coordinates."""
    if loc.ndim == 0 or matrix.shape != (*loc.shape, loc.shape[-1]):
        raise rule(
            f"{name} must have one square matrix a location",
            expected=f"shape {(*loc.shape, *loc.shape[-1:])} for locations {tuple(loc.shape)}",
            got=tuple(matrix.shape),
        )


def check_finite(values: Tensor, name: str) -> None:
    """Every number is finite."""
    if readable(values):
        _blame(values, values.isfinite(), f"{name} must be finite", "finite numbers")


def check_positive(values: Tensor, name: str) -> None:
    """Every number is positive and finite."""
    if readable(values):
        fine = (values > 0) & values.isfinite()
        _blame(values, fine, f"{name} must be positive", "finite numbers above 0")


def check_definite(matrix: Tensor, name: str) -> None:
    """Every matrix is finite, symmetric (up to rounding) and positive definite."""
    if not readable(matrix):
        return
    check_finite(matrix, name)
    exact = matrix.double()
    size = exact.abs().amax((-2, -1))
    gap = (exact - exact.mT).abs().amax((-2, -1))
    close = gap <= 100 * torch.finfo(matrix.dtype).eps * size
    _blame(matrix, close, f"{name} must be symmetric", "a matrix equal to its transpose")
    expected = "a matrix with positive eigenvalues"
    _blame(matrix, is_definite(exact), f"{name} must be positive definite", expected)


def check_items(fine: Tensor, statement: str, expected: str, got: str) -> None:
    """Raise for the first batch item at which `fine` is false."""
    if readable(fine) and not bool(fine.all()):
        raise rule(statement, expected=expected, got=f"{got} {_first(fine)}".rstrip())


def check_nonempty(full: Tensor) -> None:
    """Every batch item has something in it."""
    check_items(full, "a sequence must not be empty", "at least one valid value", "none")


def _number(value: Any, statement: str, otherwise: str) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise rule(statement, expected=f"a real number {otherwise}", got=type(value).__name__)
    return float(value)


def _blame(values: Tensor, fine: Tensor, statement: str, expected: str) -> None:
    if not bool(fine.all()):
        item = tuple(torch.nonzero(~fine)[0].tolist())
        raise rule(
            statement, expected=expected, got=f"{values[item].tolist()} {_first(fine)}".rstrip()
        )


def _first(fine: Tensor) -> str:
    """ "at batch item 3", or "(3, 1)" where the batch has several dimensions."""
    item = torch.nonzero(~fine)[0].tolist()
    if not item:
        return ""
    return f"at batch item {item[0] if len(item) == 1 else tuple(item)}"
