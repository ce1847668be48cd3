"""Ω*(x) = max_p ⟨p, x⟩ − Ω(p): the smoothed maximum whose gradient is the map."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from fenchel.checks import canonical_dim, check_mask, check_parameter, check_scores
from fenchel.kernels.operators import below_autograd, define, differentiate, forward_mode
from fenchel.kernels.rows import align_batch, at_least_float32
from fenchel.maps.operator import MapOperator

Omega = Callable[[Tensor, Any, int, bool], Tensor]


class ValueOperator:
    """The conjugate of a map's Ω. By the envelope theorem ∂Ω*/∂parameter = −∂Ω(p)/∂parameter."""

    def __init__(self, map_operator: MapOperator, omega: Omega, omega_derivative: Omega) -> None:
        self.map, self.omega, self.omega_derivative = map_operator, omega, omega_derivative
        self._forward = {}
        rule = _rule(self)
        for is_tensor, overload, kind in ((False, "", "float"), (True, ".tensor", "Tensor")):
            self._forward[is_tensor] = define(
                f"{map_operator.name}_value{overload}"
                f"(Tensor scores, {kind} {map_operator.parameter}, Tensor? mask, int dim) -> Tensor",
                self._run,
                lambda scores, value, mask, dim: torch.empty_like(scores.sum(dim)),
            )
            differentiate(self._forward[is_tensor], rule)

    def __call__(
        self, scores: Tensor, parameter: float | Tensor, dim: int, mask: Tensor | None
    ) -> Tensor:
        check_scores(scores)
        dim = canonical_dim(dim, scores.ndim)
        mask = check_mask(mask, scores)
        name, above = self.map.parameter, self.map.above
        parameter = check_parameter(parameter, scores, dim, name=name, above=above)
        return self.apply(scores, parameter, mask, dim)

    def apply(self, scores: Tensor, value: float | Tensor, mask: Tensor | None, dim: int) -> Tensor:
        return self._forward[isinstance(value, Tensor)](scores, value, mask, dim)

    def kernel(self, scores: Tensor, value: Any, mask: Tensor | None, dim: int) -> Tensor:
        return below_autograd(self._forward[isinstance(value, Tensor)], scores, value, mask, dim)

    def _run(self, scores: Tensor, value: Any, mask: Tensor | None, dim: int) -> Tensor:
        if scores.numel() == 0:
            return torch.full_like(scores.sum(dim), float("-inf"))
        wide = at_least_float32(scores)
        if mask is not None:
            wide = wide.masked_fill(~mask, float("-inf"))
        p = self.map.kernel(wide, value, None, dim)
        peak = wide.amax(dim, keepdim=True)
        inner = torch.where(p == 0, 0.0, p * (wide - peak)).sum(dim, keepdim=True)
        result = peak + inner - self.omega(p, value, dim, True)
        return torch.where(peak.isneginf(), peak, result).squeeze(dim).to(scores.dtype)


def _rule(operator: ValueOperator) -> type[torch.autograd.Function]:
    class Rule(torch.autograd.Function):
        @staticmethod
        def forward(scores: Tensor, value: Any, mask: Tensor | None, dim: int) -> Tensor:
            return operator.kernel(scores, value, mask, dim)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
            scores, value, mask, ctx.dim = inputs
            ctx.number, rows = (None, value) if isinstance(value, Tensor) else (value, None)
            ctx.save_for_backward(scores, rows, mask)
            ctx.save_for_forward(scores, rows, mask)

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None, None]:
            scores, rows, mask = ctx.saved_tensors
            value: Any = ctx.number if rows is None else rows
            grad = grad.unsqueeze(ctx.dim)
            p = operator.map.apply(scores, value, mask, ctx.dim)
            by_value = None
            if ctx.needs_input_grad[1]:
                slope = -operator.omega_derivative(at_least_float32(p), value, ctx.dim, True)
                by_value = (grad * slope).sum_to_size(value.shape).to(value.dtype)
            return grad * p, by_value, None, None

        @staticmethod
        @forward_mode
        def jvp(ctx: Any, saved: Any, by_scores: Any, by_value: Any, *_: Any) -> Tensor:
            scores, rows, mask = saved
            value = ctx.number if rows is None else rows
            p = operator.map.apply(scores, value, mask, ctx.dim)
            tangent = torch.zeros_like(p.sum(ctx.dim))
            if by_scores is not None:
                tangent = torch.where(p == 0, 0.0, p * by_scores).sum(ctx.dim)
            if by_value is not None:
                slope = operator.omega_derivative(at_least_float32(p), value, ctx.dim, True)
                tangent = tangent - (by_value * slope).squeeze(ctx.dim)
            return tangent.to(scores.dtype)

        @staticmethod
        def vmap(info: Any, in_dims: Any, *args: Any) -> tuple[Tensor, int]:
            return operator.apply(*align_batch(info.batch_size, in_dims, *args)), 0

    return Rule
