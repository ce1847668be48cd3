"""What maps share whose entries move in groups: an operator that gives probabilities and groups.

`name(scores, strength, mask, dim) -> (p, groups)`; maps of grids take them as rows and have the width
of the grid in place of `dim`. The groups are what the algorithm found, saved for
the derivatives: guessed from equal probabilities they would be wrong wherever two groups agree to
the last bit, which in half precision most neighbours do, and at strength 0, where equal scores do not
move together. `kernels/reference/<name>.py` supplies the mathematics, and says what the integers
of `groups` mean:

* `<name>(rows, strength)`, the map and the groups along the last dimension;
* `<name>_backward(grad, p, groups, dim)`, the (symmetric) Jacobian times a vector;
* `<name>_derivative(p, groups, dim)`, ∂p/∂strength.

Both derivatives depend on the groups alone, so a second derivative is zero almost everywhere.
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

BELOW_ZERO = -1e-300  # strength 0 is allowed: it is sparsemax


class GroupedMapOperator:
    """A map with groups as PyTorch operators; calling it validates and runs it."""

    parameter, above = "strength", BELOW_ZERO

    def __init__(self, name: str, groups: torch.dtype, layout: str = "dim") -> None:
        self.name, self.groups, self.layout = name, groups, layout
        reference = importlib.import_module(f"fenchel.kernels.reference.{name}")
        self.jacobian_product: Callable[..., Tensor] = getattr(reference, f"{name}_backward")
        self.derivative: Callable[..., Tensor] = getattr(reference, f"{name}_derivative")
        self._forward = Overloads(
            f"{name}(Tensor scores, Parameter strength, Tensor? mask, int {layout})"
            " -> (Tensor, Tensor)",
            self._run,
            lambda scores, value, mask, dim: self._empty(scores),
        )
        self._backward = define(
            f"{name}_backward(Tensor grad, Tensor p, Tensor groups, int {layout}) -> Tensor",
            self._run_backward,
            lambda grad, p, groups, dim: torch.empty_like(p),
            vmap=_vmap_backward,
        )
        self._backward_strength = define(
            f"{name}_backward_strength(Tensor grad, Tensor p, Tensor groups, Tensor strength,"
            f" int {layout}) -> (Tensor, Tensor)",
            self._run_backward_strength,
            lambda grad, p, groups, value, dim: (torch.empty_like(p), torch.empty_like(value)),
            vmap=_vmap_backward_strength,
        )
        self._forward.differentiate(_rule(self))

    def __call__(
        self, scores: Tensor, strength: float | Tensor, dim: int, mask: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        check_scores(scores)
        dim = canonical_dim(dim, scores.ndim)
        mask = check_mask(mask, scores)
        strength = check_parameter(strength, scores, dim, name=self.parameter, above=self.above)
        return self.apply(scores, strength, mask, dim)

    def apply(
        self, scores: Tensor, value: float | Tensor, mask: Tensor | None, dim: int
    ) -> tuple[Tensor, Tensor]:
        """Run the operator on arguments that are already in canonical form."""
        return self._forward(scores, value, mask, dim)

    def kernel(
        self, scores: Tensor, value: float | Tensor, mask: Tensor | None, dim: int
    ) -> tuple[Tensor, Tensor]:
        """Run the kernel alone, without derivatives."""
        return self._forward.below_autograd(scores, value, mask, dim)

    def backward(self, grad: Tensor, p: Tensor, groups: Tensor, dim: int) -> Tensor:
        return self._backward(grad, p, groups, dim)

    def backward_strength(
        self, grad: Tensor, p: Tensor, groups: Tensor, value: Tensor, dim: int
    ) -> tuple[Tensor, Tensor]:
        return self._backward_strength(grad, p, groups, value, dim)

    def _along(self, layout: int) -> tuple[int, tuple[int, ...]]:
        """The dimension of the rows, and what their kernels need to know beside them."""
        return (layout, ()) if self.layout == "dim" else (-1, (layout,))

    def _empty(self, scores: Tensor) -> tuple[Tensor, Tensor]:
        return torch.empty_like(scores), torch.empty_like(scores, dtype=self.groups)

    def _run(
        self, scores: Tensor, value: float | Tensor, mask: Tensor | None, dim: int
    ) -> tuple[Tensor, Tensor]:
        if scores.numel() == 0:
            return self._empty(scores)
        if isinstance(value, Tensor) and not value.is_cuda:  # looking would stop a GPU
            valid = (value >= 0) & (value < torch.inf)
            check_values(value, valid, name=self.parameter, expected=describe_bound(self.above))
        solve, strided = dispatch.kernel(self.name, self.name, scores)
        if strided:
            return solve(scores, value, mask, dim)
        dim, width = self._along(dim)
        rows, strengths = to_rows(scores, dim, mask), parameter_to_rows(value, scores, dim)
        p, groups = solve(rows, strengths, *width)
        like = torch.empty_like(scores, dtype=self.groups)
        return from_rows(p, scores, dim), from_rows(groups, like, dim)

    def _run_backward(self, grad: Tensor, p: Tensor, groups: Tensor, dim: int) -> Tensor:
        if p.numel() == 0:
            return torch.empty_like(p)
        pull_back, strided = dispatch.kernel(self.name, f"{self.name}_backward", p)
        if strided:
            return pull_back(grad, p, groups, dim)
        dim, width = self._along(dim)
        rows = pull_back(*(to_rows(tensor, dim) for tensor in (grad, p, groups)), *width)
        return from_rows(rows, p, dim)

    def _run_backward_strength(
        self, grad: Tensor, p: Tensor, groups: Tensor, value: Tensor, dim: int
    ) -> tuple[Tensor, Tensor]:
        if p.numel() == 0:
            return torch.empty_like(p), torch.zeros_like(value)
        pull_back, strided = dispatch.kernel(self.name, f"{self.name}_backward_strength", p)
        if strided:
            by_scores, by_value = pull_back(grad, p, groups, dim)
            return by_scores, by_value.sum_to_size(value.shape).to(value.dtype)
        dim, width = self._along(dim)
        rows, by_value = pull_back(*(to_rows(tensor, dim) for tensor in (grad, p, groups)), *width)
        return from_rows(rows, p, dim), parameter_from_rows(by_value, p, value, dim)


def _vmap_backward(
    operator: Callable[..., Any], info: Any, in_dims: Any, *args: Any
) -> tuple[Any, int]:
    return operator(*align_batch(info.batch_size, in_dims, *args, expand=3)), 0


def _vmap_backward_strength(
    operator: Callable[..., Any], info: Any, in_dims: Any, *args: Any
) -> tuple[Any, tuple[int, int]]:
    return operator(*align_batch(info.batch_size, in_dims, *args, expand=4)), (0, 0)


def _rule(operator: GroupedMapOperator) -> type[torch.autograd.Function]:
    class Rule(torch.autograd.Function):
        """Derivatives from the saved probabilities and groups."""

        @staticmethod
        def forward(
            scores: Tensor, value: float | Tensor, mask: Tensor | None, dim: int
        ) -> tuple[Tensor, Tensor]:
            return operator.kernel(scores, value, mask, dim)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
            scores, value, mask, ctx.dim = inputs
            p, groups = output
            rows = keep_number(ctx, value)
            ctx.mark_non_differentiable(groups)
            ctx.set_materialize_grads(False)  # or zeros are made for the groups
            ctx.save_for_backward(p, groups, rows)
            ctx.save_for_forward(scores, rows, mask)

        @staticmethod
        def backward(
            ctx: Any, grad: Tensor | None, _: Any
        ) -> tuple[Tensor | None, Tensor | None, None, None]:
            if grad is None:
                return None, None, None, None
            p, groups, rows = ctx.saved_tensors
            by_value = None
            if torch.is_grad_enabled():  # this derivative will be differentiated: plain torch
                wide = at_least_float32(p)
                by_scores = operator.jacobian_product(grad, wide, groups, ctx.dim).to(p.dtype)
                if ctx.needs_input_grad[1]:
                    slope = operator.derivative(wide, groups, ctx.dim)
                    by_value = (grad * slope).sum_to_size(rows.shape).to(rows.dtype)
            elif ctx.needs_input_grad[1]:
                by_scores, by_value = operator.backward_strength(grad, p, groups, rows, ctx.dim)
            else:
                by_scores = operator.backward(grad, p, groups, ctx.dim)
            return by_scores, by_value, None, None

        @staticmethod
        @forward_mode
        def jvp(
            ctx: Any, saved: Any, by_scores: Any, by_value: Any, *_: Any
        ) -> tuple[Tensor, None]:
            scores, rows, mask = saved
            # Anew from the scores, not from the output: an outer level sees only inputs.
            p, groups = operator.apply(scores, kept(ctx, rows), mask, ctx.dim)
            p = at_least_float32(p)
            tangent = torch.zeros_like(p)
            if by_scores is not None:
                tangent = operator.jacobian_product(by_scores, p, groups, ctx.dim)
            if by_value is not None:
                tangent = tangent + by_value * operator.derivative(p, groups, ctx.dim)
            return tangent.to(scores.dtype), None

        @staticmethod
        def vmap(
            info: Any, in_dims: Any, *args: Any
        ) -> tuple[tuple[Tensor, Tensor], tuple[int, int]]:
            return operator.apply(*align_batch(info.batch_size, in_dims, *args)), (0, 0)

    return Rule
