"""The integral of a Gaussian over a paraboloid on the unit disk, as an operator with derivatives.

`kernels/*/paraboloid` computes the value and its six slopes in one pass, so the backward pass takes six
products per Gaussian, and nothing of the size of the quadrature is saved. If the backward pass itself is
differentiated, the slopes are computed in plain PyTorch.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from fenchel.kernels.reference.paraboloid import paraboloid_moments
from fenchel.operators import dispatch
from fenchel.operators.derivatives import forward_mode
from fenchel.operators.registration import define, differentiate


def disk_expectation(linear: Tensor, offset: Tensor, angles: int) -> Tensor:
    """E[N(Gu; e, 1)] for u ~ (2/π)(1 − |u|²): `linear` G (…, 2, 2), `offset` e (…, 2)."""
    return _operator(linear, offset, angles)[0]


def _run(linear: Tensor, offset: Tensor, angles: int) -> tuple[Tensor, Tensor]:
    if offset.numel() == 0:
        return _fake(linear, offset, angles)
    integrate = dispatch.kernel("paraboloid", "paraboloid", offset, dispatch.as_it_is)
    return integrate(linear, offset, angles)


def _fake(linear: Tensor, offset: Tensor, angles: int) -> tuple[Tensor, Tensor]:
    return offset.new_empty(offset.shape[:-1]), offset.new_empty((*offset.shape[:-1], 6))


_operator = define(
    "paraboloid(Tensor linear, Tensor offset, int angles) -> (Tensor, Tensor)", _run, _fake
)


class _Rule(torch.autograd.Function):
    """Returns the value, and the slopes for the backward pass."""

    @staticmethod
    def forward(linear: Tensor, offset: Tensor, angles: int) -> tuple[Tensor, Tensor]:
        return _operator.below_autograd(linear, offset, angles)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        linear, offset, ctx.angles = inputs
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(linear, offset, output[1])
        ctx.save_for_forward(linear, offset)

    @staticmethod
    def backward(ctx: Any, grad: Tensor, _: Any) -> tuple[Tensor, Tensor, None]:
        linear, offset, slopes = ctx.saved_tensors
        if torch.is_grad_enabled():  # with create_graph: differentiable, in plain PyTorch
            slopes = paraboloid_moments(linear, offset, ctx.angles)[1]
        by_linear, by_offset = slopes[..., :4].reshape(linear.shape), slopes[..., 4:]
        return grad[..., None, None] * by_linear, grad[..., None] * by_offset, None

    @staticmethod
    @forward_mode
    def jvp(ctx: Any, saved: Any, by_linear: Any, by_offset: Any, *_: Any) -> tuple[Tensor, None]:
        linear, offset = saved
        # Computed again from the inputs: outer levels only see the inputs, not the output.
        slopes = paraboloid_moments(linear, offset, ctx.angles)[1]
        tangent = torch.zeros_like(slopes[..., 0])
        if by_linear is not None:
            tangent = tangent + (slopes[..., :4] * by_linear.flatten(-2)).sum(-1)
        if by_offset is not None:
            tangent = tangent + (slopes[..., 4:] * by_offset).sum(-1)
        return tangent, None

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> tuple[tuple[Tensor, Tensor], tuple[int, int]]:
        linear, offset = (
            tensor.expand(info.batch_size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)
            for tensor, dim in zip(args[:2], in_dims[:2], strict=True)
        )
        return _operator(linear, offset, args[2]), (0, 0)


differentiate(_operator, _Rule)
