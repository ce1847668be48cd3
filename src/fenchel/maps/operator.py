"""What every map shares: a map is one operator `name(scores, parameter, mask, dim)`.

From a name, this builds the operators (for a number and for a tensor parameter), their kernels over
rows, and the rule of derivatives (`rule.py`); `kernels/reference/<name>.py` supplies the mathematics:

* `<name>(rows, parameter)`, the map along the last dimension;
* `<name>_backward(grad, p, parameter, dim)`, its (symmetric) Jacobian times a vector, from p alone;
* `<name>_derivative(p, parameter, dim)`, ∂p/∂parameter.

A map may find groups of entries that move together (`grouped.py`). Then it gives p and the groups, and
its derivatives take the groups where those of other maps take the parameter.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from fenchel import dispatch
from fenchel.checks import (
    canonical_dim,
    check_bound,
    check_mask,
    check_parameter,
    check_scores,
)
from fenchel.kernels.operators import Overloads
from fenchel.kernels.rows import (
    from_rows,
    over_batch,
    parameter_from_rows,
    parameter_to_rows,
    to_rows,
)
from fenchel.maps.rule import rule_of

Parameter = float | Tensor
Solution = TypeVar("Solution", Tensor, tuple[Tensor, Tensor])  # p, or p and the groups


class MapOperator(Generic[Solution]):
    """A map of the library as PyTorch operators; calling it validates and runs it.

    `groups` is the dtype of the groups, if there are any; the last argument of the operators is
    `layout`: the dimension `dim`, or the `width` of grids that come as rows.
    """

    def __init__(
        self,
        name: str,
        parameter: str,
        *,
        above: float,
        groups: torch.dtype | None = None,
        layout: str = "dim",
    ) -> None:
        self.name, self.parameter, self.above = name, parameter, above
        self.groups, self.layout = groups, layout
        reference = importlib.import_module(f"fenchel.kernels.reference.{name}")
        self.jacobian_product: Callable[..., Tensor] = getattr(reference, f"{name}_backward")
        self.derivative: Callable[..., Tensor] = getattr(reference, f"{name}_derivative")
        plain = groups is None
        self._forward = Overloads(
            f"{name}(Tensor scores, Parameter {parameter}, Tensor? mask, int {layout})"
            f" -> {'Tensor' if plain else '(Tensor, Tensor)'}",
            self._run,
            lambda scores, value, mask, dim: self._empty(scores),
        )
        self._backward = Overloads(
            f"{name}_backward(Tensor grad, Tensor probabilities,"
            f" {f'Parameter {parameter}' if plain else 'Tensor groups'}, int {layout}) -> Tensor",
            self._run_backward,
            lambda grad, p, given, dim: torch.empty_like(p),
            vmap=over_batch,
        )
        self._backward_parameter = Overloads(
            f"{name}_backward_{parameter}(Tensor grad, Tensor probabilities,"
            f"{'' if plain else ' Tensor groups,'} Tensor {parameter}, int {layout})"
            " -> (Tensor, Tensor)",
            self._run_backward_parameter,
            lambda grad, p, *rest: (torch.empty_like(p), _contiguous(torch.empty_like, rest[-2])),
            vmap=over_batch,
        )
        self._forward.differentiate(rule_of(self))

    def __call__(
        self, scores: Tensor, parameter: Parameter, dim: int, mask: Tensor | None
    ) -> Solution:
        return self._forward(*self.canonical(scores, parameter, dim, mask))

    def canonical(
        self, scores: Tensor, parameter: Parameter, dim: int, mask: Tensor | None
    ) -> tuple[Tensor, Parameter, Tensor | None, int]:
        """The arguments of the operator, looked at."""
        check_scores(scores)
        dim = canonical_dim(dim, scores.ndim)
        mask = check_mask(mask, scores)
        parameter = check_parameter(parameter, scores, dim, name=self.parameter, above=self.above)
        return scores, parameter, mask, dim

    def apply(self, scores: Tensor, value: Parameter, mask: Tensor | None, dim: int) -> Solution:
        """Run the operator on arguments that are already in canonical form."""
        return self._forward(scores, value, mask, dim)

    def kernel(self, scores: Tensor, value: Parameter, mask: Tensor | None, dim: int) -> Solution:
        """Run the kernel alone, without derivatives."""
        return self._forward.below_autograd(scores, value, mask, dim)

    def backward(self, grad: Tensor, p: Tensor, given: Parameter, dim: int) -> Tensor:
        """The gradient in the scores, given the groups or else the parameter."""
        return self._backward(grad, p, given, dim)

    def backward_parameter(self, grad: Tensor, p: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
        """The gradients in the scores and in the parameter: `rest` is groups, if any, value, dim."""
        return self._backward_parameter(grad, p, *rest)

    def _empty(self, scores: Tensor) -> Any:
        p = torch.empty_like(scores)
        return p if self.groups is None else (p, torch.empty_like(scores, dtype=self.groups))

    def _run(self, scores: Tensor, value: Parameter, mask: Tensor | None, dim: int) -> Any:
        if scores.numel() == 0:
            return self._empty(scores)
        if isinstance(value, Tensor) and not value.is_cuda:  # looking would stop a GPU
            check_bound(value, name=self.parameter, above=self.above)
        solve, strided = dispatch.kernel(self.name, self.name, scores)
        if strided:
            return solve(scores, value, mask, dim)
        dim, width = self._along(dim)
        solution = solve(to_rows(scores, dim, mask), parameter_to_rows(value, scores, dim), *width)
        if self.groups is None:
            return from_rows(solution, scores, dim)
        like = torch.empty_like(scores, dtype=self.groups)
        return from_rows(solution[0], scores, dim), from_rows(solution[1], like, dim)

    def _run_backward(self, grad: Tensor, p: Tensor, given: Parameter, dim: int) -> Tensor:
        if p.numel() == 0:
            return torch.empty_like(p)
        pull_back, strided = dispatch.kernel(self.name, f"{self.name}_backward", p)
        if strided:
            return pull_back(grad, p, given, dim)
        dim, width = self._along(dim)
        return from_rows(pull_back(*self._rows(grad, p, given, dim), *width), p, dim)

    def _run_backward_parameter(
        self, grad: Tensor, p: Tensor, given: Tensor, *rest: Any
    ) -> tuple[Tensor, Tensor]:
        value, dim = rest if self.groups is not None else (given, *rest)
        if p.numel() == 0:
            return torch.empty_like(p), _contiguous(torch.zeros_like, value)
        operator = f"{self.name}_backward_{self.parameter}"
        pull_back, strided = dispatch.kernel(self.name, operator, p)
        if strided:
            by_scores, by_value = pull_back(grad, p, given, dim)
            return by_scores, by_value.sum_to_size(value.shape).to(value.dtype)
        dim, width = self._along(dim)
        rows, by_value = pull_back(*self._rows(grad, p, given, dim), *width)
        return from_rows(rows, p, dim), parameter_from_rows(by_value, p, value, dim)

    def _along(self, layout: int) -> tuple[int, tuple[int, ...]]:
        """The dimension of the rows, and what their kernels need to know beside them."""
        return (layout, ()) if self.layout == "dim" else (-1, (layout,))

    def _rows(self, grad: Tensor, p: Tensor, given: Any, dim: int) -> tuple[Tensor, Tensor, Any]:
        grouped = self.groups is not None
        rows = to_rows(given, dim) if grouped else parameter_to_rows(given, p, dim)
        return to_rows(grad, dim), to_rows(p, dim), rows


def _contiguous(make: Callable[..., Tensor], like: Tensor) -> Tensor:
    """The gradient in a parameter is summed up in the order of its dimensions."""
    return make(like, memory_format=torch.contiguous_format)
