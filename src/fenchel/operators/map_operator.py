"""A map as PyTorch operators, with derivatives.

A map is one operator `name(scores, parameter, mask, dim)`. From a name, `MapOperator` builds it, its
backward operators and its derivative rule. `kernels/reference/<name>.py` has the mathematics:

* `<name>(rows, parameter)`, the map along the last dimension;
* `<name>_backward(grad, p, parameter, dim)`, the product of its (symmetric) Jacobian and a vector;
* `<name>_derivative(p, parameter, dim)`, ∂p/∂parameter;
* `<name>_backward_<parameter>(grad, p, parameter)`, the gradients in the scores and in the parameter.

The entries of some maps move in groups. Then the operator returns p and the groups that its algorithm
found, integers whose meaning `kernels/reference/<name>.py` explains, and its derivatives take the groups
in place of the parameter. (Groups guessed from equal probabilities would be wrong if two groups have
equal values, which is frequent in half precision.) These derivatives depend on the groups alone, so
second derivatives are zero almost everywhere. Maps of grids take them as rows, and the `width` of the
grid in place of `dim`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from fenchel.checks import (
    canonical_dim,
    check_bound,
    check_mask,
    check_parameter,
    check_scores,
)
from fenchel.operators import dispatch
from fenchel.operators.derivatives import (
    forward_mode,
    save_parameter,
    saved_parameter,
    vmap_over_batch,
)
from fenchel.operators.layout import (
    at_least_float32,
    from_rows,
    parameter_from_rows,
    parameter_to_rows,
    to_rows,
)
from fenchel.operators.registration import define, differentiate

Parameter = float | Tensor
Solution = TypeVar("Solution", Tensor, tuple[Tensor, Tensor])  # p, or p and the groups


class MapOperator(Generic[Solution]):
    """A map of the library. Calling it checks the arguments and runs the operator.

    Args:
        name: The name of the map and of its modules in `kernels`.
        parameter: The name of its parameter.
        above: The lower bound of the parameter, as in `check_number`.
        groups: The dtype of the groups, if it has groups.
        layout: The last argument of the operator: "dim", or "width" for grids that come as rows.
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
        grouped = groups is not None
        self._forward = define(
            f"{name}(Tensor scores, Parameter {parameter}, Tensor? mask, int {layout})"
            f" -> {'(Tensor, Tensor)' if grouped else 'Tensor'}",
            self._run,
            lambda scores, value, mask, dim: self._empty(scores),
        )
        self._backward = define(
            f"{name}_backward(Tensor grad, Tensor probabilities,"
            f" {'Tensor groups' if grouped else f'Parameter {parameter}'}, int {layout}) -> Tensor",
            self._run_backward,
            lambda grad, p, given, dim: torch.empty_like(p),
            vmap=vmap_over_batch,
        )
        self._backward_parameter = define(
            f"{name}_backward_{parameter}(Tensor grad, Tensor probabilities,"
            f"{' Tensor groups,' if grouped else ''} Tensor {parameter}, int {layout})"
            " -> (Tensor, Tensor)",
            self._run_backward_parameter,
            lambda grad, p, *rest: (torch.empty_like(p), _contiguous(torch.empty_like, rest[-2])),
            vmap=vmap_over_batch,
        )
        differentiate(self._forward, _rule(self))

    def __call__(
        self, scores: Tensor, parameter: Parameter, dim: int, mask: Tensor | None
    ) -> Solution:
        return self._forward(*self.check(scores, parameter, dim, mask))

    def check(
        self, scores: Tensor, parameter: Parameter, dim: int, mask: Tensor | None
    ) -> tuple[Tensor, Parameter, Tensor | None, int]:
        """The arguments of the operator: validated, with a negative `dim` and full rank."""
        check_scores(scores)
        dim = canonical_dim(dim, scores.ndim)
        if mask is not None:
            mask = check_mask(mask, scores)
        parameter = check_parameter(parameter, scores, dim, name=self.parameter, above=self.above)
        return scores, parameter, mask, dim

    def apply(self, scores: Tensor, value: Parameter, mask: Tensor | None, dim: int) -> Solution:
        """Run the operator on arguments that `check` has returned."""
        return self._forward(scores, value, mask, dim)

    def below_autograd(
        self, scores: Tensor, value: Parameter, mask: Tensor | None, dim: int
    ) -> Solution:
        """Run it without derivatives."""
        return self._forward.below_autograd(scores, value, mask, dim)

    def backward(self, grad: Tensor, p: Tensor, given: Parameter, dim: int) -> Tensor:
        """The gradient in the scores. `given` is the groups, or the parameter if there are none."""
        return self._backward(grad, p, given, dim)

    def backward_parameter(self, grad: Tensor, p: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
        """The gradients in the scores and in the parameter. `rest` is (groups), parameter, dim."""
        return self._backward_parameter(grad, p, *rest)

    def _empty(self, scores: Tensor) -> Any:
        p = torch.empty_like(scores)
        return p if self.groups is None else (p, torch.empty_like(scores, dtype=self.groups))

    def _run(self, scores: Tensor, value: Parameter, mask: Tensor | None, dim: int) -> Any:
        if scores.numel() == 0:
            return self._empty(scores)
        if isinstance(value, Tensor) and not value.is_cuda:  # reading values would stop a GPU
            check_bound(value, name=self.parameter, above=self.above)
        solve = dispatch.kernel(self.name, self.name, scores, self._adapt)
        return solve(scores, value, mask, dim)

    def _run_backward(self, grad: Tensor, p: Tensor, given: Parameter, dim: int) -> Tensor:
        if p.numel() == 0:
            return torch.empty_like(p)
        product = dispatch.kernel(self.name, f"{self.name}_backward", p, self._adapt_backward)
        return product(grad, p, given, dim)

    def _run_backward_parameter(self, grad: Tensor, p: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
        value = rest[-2]
        if p.numel() == 0:
            return torch.empty_like(p), _contiguous(torch.zeros_like, value)
        name = f"{self.name}_backward_{self.parameter}"
        gradients = dispatch.kernel(self.name, name, p, self._adapt_backward_parameter)
        by_scores, by_value = gradients(grad, p, *rest)
        return by_scores, by_value.sum_to_size(value.shape).to(value.dtype)

    def _adapt(self, solve: dispatch.Function, takes_rows: bool) -> dispatch.Function:
        if not takes_rows:
            return solve
        has_dim, groups = self.layout == "dim", self.groups

        def run(scores: Tensor, value: Parameter, mask: Tensor | None, layout: int) -> Any:
            dim, width = (layout, ()) if has_dim else (-1, (layout,))
            if isinstance(value, Tensor):
                value = parameter_to_rows(value, scores, dim)
            solution = solve(to_rows(scores, dim, mask), value, *width)
            if groups is None:
                return from_rows(solution, scores, dim)
            like = torch.empty_like(scores, dtype=groups)
            return from_rows(solution[0], scores, dim), from_rows(solution[1], like, dim)

        return run

    def _adapt_backward(self, product: dispatch.Function, takes_rows: bool) -> dispatch.Function:
        if not takes_rows:
            return product

        def run(grad: Tensor, p: Tensor, given: Any, layout: int) -> Tensor:
            dim, rows = self._rows(grad, p, given, layout)
            return from_rows(product(*rows), p, dim)

        return run

    def _adapt_backward_parameter(
        self, gradients: dispatch.Function, takes_rows: bool
    ) -> dispatch.Function:
        grouped = self.groups is not None

        def run(grad: Tensor, p: Tensor, given: Tensor, *rest: Any) -> tuple[Tensor, Tensor]:
            value, layout = rest if grouped else (given, *rest)
            dim, rows = self._rows(grad, p, given, layout)
            by_scores, by_value = gradients(*rows)
            return from_rows(by_scores, p, dim), parameter_from_rows(by_value, p, value, dim)

        def run_strided(
            grad: Tensor, p: Tensor, given: Tensor, *rest: Any
        ) -> tuple[Tensor, Tensor]:
            return gradients(grad, p, given, rest[-1])

        return run if takes_rows else run_strided

    def _rows(
        self, grad: Tensor, p: Tensor, given: Any, layout: int
    ) -> tuple[int, tuple[Any, ...]]:
        """The dimension of the rows, and the arguments of a backward function that takes rows."""
        dim, width = (layout, ()) if self.layout == "dim" else (-1, (layout,))
        grouped = self.groups is not None
        given = to_rows(given, dim) if grouped else parameter_to_rows(given, p, dim)
        return dim, (to_rows(grad, dim), to_rows(p, dim), given, *width)


def parts(solution: Tensor | tuple[Tensor, Tensor]) -> tuple[Tensor, ...]:
    """The result of a map as a tuple: the probabilities, and the groups if it has them."""
    return solution if isinstance(solution, tuple) else (solution,)


def _contiguous(make: Callable[..., Tensor], like: Tensor) -> Tensor:
    """The gradient in a parameter is summed in the order of its dimensions."""
    return make(like, memory_format=torch.contiguous_format)


def _rule(operator: MapOperator[Any]) -> type[torch.autograd.Function]:
    class MapRule(torch.autograd.Function):
        """The scores are not saved: where the mask is False, the probabilities are zero anyway."""

        @staticmethod
        def forward(scores: Tensor, value: Parameter, mask: Tensor | None, dim: int) -> Any:
            return operator.below_autograd(scores, value, mask, dim)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            scores, value, mask, ctx.dim = inputs
            tensor = save_parameter(ctx, value)
            p, *groups = parts(output)
            if groups:
                ctx.mark_non_differentiable(*groups)
                ctx.set_materialize_grads(False)  # otherwise zeros are made for the groups
            ctx.save_for_backward(p, tensor, *groups)
            ctx.save_for_forward(scores, tensor, mask)

        @staticmethod
        def backward(
            ctx: Any, grad: Tensor | None, *_: Any
        ) -> tuple[Tensor | None, Tensor | None, None, None]:
            if grad is None:
                return None, None, None, None
            p, tensor, *groups = ctx.saved_tensors
            value = saved_parameter(ctx, tensor)
            given = groups[0] if groups else value
            by_value = None
            if torch.is_grad_enabled():  # with create_graph: differentiable, in plain PyTorch
                wide = at_least_float32(p)
                by_scores = operator.jacobian_product(grad, wide, given, ctx.dim).to(p.dtype)
                if ctx.needs_input_grad[1]:
                    slope = operator.derivative(wide, given, ctx.dim)
                    by_value = (grad * slope).sum_to_size(value.shape).to(value.dtype)
            elif ctx.needs_input_grad[1]:
                by_scores, by_value = operator.backward_parameter(grad, p, *groups, value, ctx.dim)
            else:
                by_scores = operator.backward(grad, p, given, ctx.dim)
            return by_scores, by_value, None, None

        @staticmethod
        @forward_mode
        def jvp(ctx: Any, saved: Any, by_scores: Any, by_value: Any, *_: Any) -> Any:
            scores, tensor, mask = saved
            value = saved_parameter(ctx, tensor)
            # Solved again from the scores: outer levels only see the inputs, not the output.
            p, *groups = parts(operator.apply(scores, value, mask, ctx.dim))
            p, given = at_least_float32(p), groups[0] if groups else value
            tangent = torch.zeros_like(p)
            if by_scores is not None:
                tangent = operator.jacobian_product(by_scores, p, given, ctx.dim)
            if by_value is not None:
                tangent = tangent + by_value * operator.derivative(p, given, ctx.dim)
            tangent = tangent.to(scores.dtype)
            return (tangent, None) if groups else tangent

        @staticmethod
        def vmap(info: Any, in_dims: Any, *args: Any) -> tuple[Any, Any]:
            return vmap_over_batch(operator.apply, info, in_dims, *args)

    return MapRule
