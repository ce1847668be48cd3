"""Ω*(x) = max_p ⟨p, x⟩ − Ω(p): the smoothed maximum whose gradient is the map."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from fenchel.operators.derivatives import (
    forward_mode,
    save_parameter,
    saved_parameter,
    vmap_over_batch,
)
from fenchel.operators.layout import at_least_float32
from fenchel.operators.map_operator import MapOperator, parts
from fenchel.operators.registration import define, differentiate

Omega = Callable[..., Tensor]  # omega(p, (groups), parameter, dim, keepdim)


class ConjugateOperator:
    """The conjugate Ω* of a map's Ω. By the envelope theorem, ∂Ω*/∂parameter = −∂Ω(p)/∂parameter."""

    def __init__(
        self, map_operator: MapOperator[Any], omega: Omega, omega_derivative: Omega
    ) -> None:
        self.map, self.omega, self.omega_derivative = map_operator, omega, omega_derivative
        self._forward = define(
            f"{map_operator.name}_value"
            f"(Tensor scores, Parameter {map_operator.parameter}, Tensor? mask, int dim) -> Tensor",
            self._run,
            lambda scores, value, mask, dim: torch.empty_like(scores.sum(dim)),
        )
        differentiate(self._forward, _rule(self))

    def __call__(
        self, scores: Tensor, parameter: float | Tensor, dim: int, mask: Tensor | None
    ) -> Tensor:
        return self.apply(*self.map.check(scores, parameter, dim, mask))

    def apply(self, scores: Tensor, value: float | Tensor, mask: Tensor | None, dim: int) -> Tensor:
        return self._forward(scores, value, mask, dim)

    def below_autograd(self, scores: Tensor, value: Any, mask: Tensor | None, dim: int) -> Tensor:
        return self._forward.below_autograd(scores, value, mask, dim)

    def _run(self, scores: Tensor, value: Any, mask: Tensor | None, dim: int) -> Tensor:
        if scores.numel() == 0:
            return torch.full_like(scores.sum(dim), float("-inf"))
        wide = at_least_float32(scores)
        if mask is not None:
            wide = wide.masked_fill(~mask, float("-inf"))
        p, *groups = parts(self.map.below_autograd(wide, value, None, dim))
        peak = wide.amax(dim, keepdim=True)
        inner = torch.where(p == 0, 0.0, p * (wide - peak)).sum(dim, keepdim=True)
        result = peak + inner - self.omega(p, *groups, value, dim, True)
        return torch.where(peak.isneginf(), peak, result).squeeze(dim).to(scores.dtype)


def _rule(operator: ConjugateOperator) -> type[torch.autograd.Function]:
    class ConjugateRule(torch.autograd.Function):
        @staticmethod
        def forward(scores: Tensor, value: Any, mask: Tensor | None, dim: int) -> Tensor:
            return operator.below_autograd(scores, value, mask, dim)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
            scores, value, mask, ctx.dim = inputs
            tensor = save_parameter(ctx, value)
            ctx.save_for_backward(scores, tensor, mask)
            ctx.save_for_forward(scores, tensor, mask)

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None, None]:
            scores, tensor, mask = ctx.saved_tensors
            value = saved_parameter(ctx, tensor)
            grad = grad.unsqueeze(ctx.dim)
            p, *groups = parts(operator.map.apply(scores, value, mask, ctx.dim))
            by_value = None
            if ctx.needs_input_grad[1]:
                wide = at_least_float32(p)
                slope = -operator.omega_derivative(wide, *groups, value, ctx.dim, True)
                by_value = (grad * slope).sum_to_size(value.shape).to(value.dtype)
            return grad * p, by_value, None, None

        @staticmethod
        @forward_mode
        def jvp(ctx: Any, saved: Any, by_scores: Any, by_value: Any, *_: Any) -> Tensor:
            scores, tensor, mask = saved
            value = saved_parameter(ctx, tensor)
            p, *groups = parts(operator.map.apply(scores, value, mask, ctx.dim))
            tangent = torch.zeros_like(p.sum(ctx.dim))
            if by_scores is not None:
                tangent = torch.where(p == 0, 0.0, p * by_scores).sum(ctx.dim)
            if by_value is not None:
                wide = at_least_float32(p)
                slope = operator.omega_derivative(wide, *groups, value, ctx.dim, True)
                tangent = tangent - (by_value * slope).squeeze(ctx.dim)
            return tangent.to(scores.dtype)

        @staticmethod
        def vmap(info: Any, in_dims: Any, *args: Any) -> tuple[Any, Any]:
            return vmap_over_batch(operator.apply, info, in_dims, *args)

    return ConjugateRule
