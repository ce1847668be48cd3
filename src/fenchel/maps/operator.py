"""What every map shares: a map is one operator `name(scores, parameter, mask, dim)`.

From a name, this builds the operators (for a number and for a tensor parameter), their kernels over
rows, and the rule of derivatives; `kernels/reference/<name>.py` supplies the mathematics:

* `<name>(rows, parameter)`, the map along the last dimension;
* `<name>_backward(grad, p, parameter, dim)`, its (symmetric) Jacobian times a vector, from p alone;
* `<name>_derivative(p, parameter, dim)`, ∂p/∂parameter.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from fenchel import dispatch
from fenchel.checks import (
    canonical_dim,
    check_mask,
    check_parameter,
    check_scores,
    check_values,
    describe_bound,
)
from fenchel.kernels.operators import Overloads, define, forward_mode, keep_number, kept
from fenchel.kernels.rows import (
    align_batch,
    at_least_float32,
    from_rows,
    parameter_from_rows,
    parameter_to_rows,
    to_rows,
)


class MapOperator:
    """A map of the library as PyTorch operators; calling it validates and runs it."""

    def __init__(self, name: str, parameter: str, *, above: float) -> None:
        self.name, self.parameter, self.above = name, parameter, above
        reference = importlib.import_module(f"fenchel.kernels.reference.{name}")
        self.jacobian_product: Callable[..., Tensor] = getattr(reference, f"{name}_backward")
        self.derivative: Callable[..., Tensor] = getattr(reference, f"{name}_derivative")
        self._forward = Overloads(
            f"{name}(Tensor scores, Parameter {parameter}, Tensor? mask, int dim) -> Tensor",
            self._run,
            lambda scores, value, mask, dim: torch.empty_like(scores),
        )
        self._backward = Overloads(
            f"{name}_backward"
            f"(Tensor grad, Tensor probabilities, Parameter {parameter}, int dim) -> Tensor",
            self._run_backward,
            lambda grad, p, value, dim: torch.empty_like(p),
            vmap=_vmap_backward,
        )
        self._backward_parameter = define(
            f"{name}_backward_{parameter}"
            f"(Tensor grad, Tensor probabilities, Tensor {parameter}, int dim) -> (Tensor, Tensor)",
            self._run_backward_parameter,
            lambda grad, p, value, dim: (torch.empty_like(p), torch.empty_like(value)),
            vmap=_vmap_backward_parameter,
        )
        self._forward.differentiate(_rule(self))

    def __call__(
        self, scores: Tensor, parameter: float | Tensor, dim: int, mask: Tensor | None
    ) -> Tensor:
        check_scores(scores)
        dim = canonical_dim(dim, scores.ndim)
        mask = check_mask(mask, scores)
        parameter = check_parameter(parameter, scores, dim, name=self.parameter, above=self.above)
        return self.apply(scores, parameter, mask, dim)

    def apply(self, scores: Tensor, value: float | Tensor, mask: Tensor | None, dim: int) -> Tensor:
        """Run the operator on arguments that are already in canonical form."""
        return self._forward(scores, value, mask, dim)

    def kernel(
        self, scores: Tensor, value: float | Tensor, mask: Tensor | None, dim: int
    ) -> Tensor:
        """Run the kernel alone, without derivatives."""
        return self._forward.below_autograd(scores, value, mask, dim)

    def backward(self, grad: Tensor, p: Tensor, value: float | Tensor, dim: int) -> Tensor:
        return self._backward(grad, p, value, dim)

    def backward_parameter(
        self, grad: Tensor, p: Tensor, value: Tensor, dim: int
    ) -> tuple[Tensor, Tensor]:
        return self._backward_parameter(grad, p, value, dim)

    def _run(self, scores: Tensor, value: float | Tensor, mask: Tensor | None, dim: int) -> Tensor:
        if scores.numel() == 0:
            return torch.empty_like(scores)
        if isinstance(value, Tensor) and not value.is_cuda:  # looking would stop a GPU
            valid = (value > self.above) & (value < torch.inf)
            check_values(value, valid, name=self.parameter, expected=describe_bound(self.above))
        solve, strided = dispatch.kernel(self.name, self.name, scores)
        if strided:
            return solve(scores, value, mask, dim)
        rows = solve(to_rows(scores, dim, mask), parameter_to_rows(value, scores, dim))
        return from_rows(rows, scores, dim)

    def _run_backward(self, grad: Tensor, p: Tensor, value: float | Tensor, dim: int) -> Tensor:
        if p.numel() == 0:
            return torch.empty_like(p)
        pull_back, strided = dispatch.kernel(self.name, f"{self.name}_backward", p)
        if strided:
            return pull_back(grad, p, value, dim)
        rows = pull_back(to_rows(grad, dim), to_rows(p, dim), parameter_to_rows(value, p, dim))
        return from_rows(rows, p, dim)

    def _run_backward_parameter(
        self, grad: Tensor, p: Tensor, value: Tensor, dim: int
    ) -> tuple[Tensor, Tensor]:
        if p.numel() == 0:
            return torch.empty_like(p), torch.zeros_like(value)
        operator = f"{self.name}_backward_{self.parameter}"
        pull_back, strided = dispatch.kernel(self.name, operator, p)
        if strided:
            by_scores, by_value = pull_back(grad, p, value, dim)
            return by_scores, by_value.sum_to_size(value.shape).to(value.dtype)
        rows, by_value = pull_back(
            to_rows(grad, dim), to_rows(p, dim), parameter_to_rows(value, p, dim)
        )
        return from_rows(rows, p, dim), parameter_from_rows(by_value, p, value, dim)


def _vmap_backward(
    operator: Callable[..., Any], info: Any, in_dims: Any, *args: Any
) -> tuple[Any, int]:
    return operator(*align_batch(info.batch_size, in_dims, *args, expand=2)), 0


def _vmap_backward_parameter(
    operator: Callable[..., Any], info: Any, in_dims: Any, *args: Any
) -> tuple[Any, tuple[int, int]]:
    return operator(*align_batch(info.batch_size, in_dims, *args, expand=3)), (0, 0)


def _rule(operator: MapOperator) -> type[torch.autograd.Function]:
    class Rule(torch.autograd.Function):
        """Derivatives from the saved probabilities; a mask has already made its zeros there."""

        @staticmethod
        def forward(scores: Tensor, value: float | Tensor, mask: Tensor | None, dim: int) -> Tensor:
            return operator.kernel(scores, value, mask, dim)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
            scores, value, mask, ctx.dim = inputs
            rows = keep_number(ctx, value)
            ctx.save_for_backward(output, rows)
            ctx.save_for_forward(scores, rows, mask)

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None, None]:
            p, rows = ctx.saved_tensors
            value = kept(ctx, rows)
            by_value = None
            if torch.is_grad_enabled():  # this derivative will be differentiated: plain torch
                wide = at_least_float32(p)
                by_scores = operator.jacobian_product(grad, wide, value, ctx.dim).to(p.dtype)
                if ctx.needs_input_grad[1]:
                    slope = operator.derivative(wide, value, ctx.dim)
                    by_value = (grad * slope).sum_to_size(value.shape).to(value.dtype)
            elif ctx.needs_input_grad[1]:
                by_scores, by_value = operator.backward_parameter(grad, p, value, ctx.dim)
            else:
                by_scores = operator.backward(grad, p, value, ctx.dim)
            return by_scores, by_value, None, None

        @staticmethod
        @forward_mode
        def jvp(ctx: Any, saved: Any, by_scores: Any, by_value: Any, *_: Any) -> Tensor:
            scores, rows, mask = saved
            value = kept(ctx, rows)
            # Anew from the scores, not from the output: an outer level sees only inputs.
            p = at_least_float32(operator.apply(scores, value, mask, ctx.dim))
            tangent = torch.zeros_like(p)
            if by_scores is not None:
                tangent = operator.jacobian_product(by_scores, p, value, ctx.dim)
            if by_value is not None:
                tangent = tangent + by_value * operator.derivative(p, value, ctx.dim)
            return tangent.to(scores.dtype)

        @staticmethod
        def vmap(info: Any, in_dims: Any, *args: Any) -> tuple[Tensor, int]:
            return operator.apply(*align_batch(info.batch_size, in_dims, *args)), 0

    return Rule
