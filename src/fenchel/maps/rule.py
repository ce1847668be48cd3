"""The derivatives of a map, from its probabilities and, where it has them, its groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from fenchel.kernels.operators import forward_mode, keep_number, kept
from fenchel.kernels.rows import at_least_float32, over_batch

if TYPE_CHECKING:
    from fenchel.maps.operator import MapOperator


def parts(solution: Tensor | tuple[Tensor, Tensor]) -> tuple[Tensor, ...]:
    """What a map gives, as a tuple: the probabilities, and the groups if it has them."""
    return solution if isinstance(solution, tuple) else (solution,)


def rule_of(operator: MapOperator[Any]) -> type[torch.autograd.Function]:
    class Rule(torch.autograd.Function):
        """The scores are not kept; a mask has already made its zeros in the probabilities."""

        @staticmethod
        def forward(scores: Tensor, value: float | Tensor, mask: Tensor | None, dim: int) -> Any:
            return operator.kernel(scores, value, mask, dim)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            scores, value, mask, ctx.dim = inputs
            rows = keep_number(ctx, value)
            p, *groups = parts(output)
            if groups:
                ctx.mark_non_differentiable(*groups)
                ctx.set_materialize_grads(False)  # or zeros are made for the groups
            ctx.save_for_backward(p, rows, *groups)
            ctx.save_for_forward(scores, rows, mask)

        @staticmethod
        def backward(
            ctx: Any, grad: Tensor | None, *_: Any
        ) -> tuple[Tensor | None, Tensor | None, None, None]:
            if grad is None:
                return None, None, None, None
            p, rows, *groups = ctx.saved_tensors
            value = kept(ctx, rows)
            given = groups[0] if groups else value
            by_value = None
            if torch.is_grad_enabled():  # this derivative will be differentiated: plain torch
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
            scores, rows, mask = saved
            value = kept(ctx, rows)
            # Anew from the scores, not from the output: an outer level sees only inputs.
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
            return over_batch(operator.apply, info, in_dims, *args)

    return Rule
