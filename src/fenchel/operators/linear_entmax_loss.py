"""An output layer and its entmax loss as one operator that may compute gradients in the forward pass.

The operator returns Σ w L and the losses L of the rows. While the scores of a chunk exist, the gradients
of the sum are known up to one factor, so they are computed then (`ahead` says which) and only scaled in
the backward pass. For other gradients, such as those of single losses, the backward pass computes the
chunks again. Derivatives of higher order and in forward mode are plain PyTorch over all the scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch._C._functorch import peek_interpreter_stack

from fenchel.operators import dispatch
from fenchel.operators.derivatives import forward_mode, save_parameter, saved_parameter
from fenchel.operators.entmax_loss import loss_slopes
from fenchel.operators.linear_chunks import chunked_loss, empty_results
from fenchel.operators.loss_target import smooth_probabilities
from fenchel.operators.registration import define, differentiate

INPUTS = 11  # of the operator
DIFFERENTIABLE = (0, 1, 2, 4)  # hidden, weight, bias and α among them


def linear_losses(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    target: Tensor,
    alpha: float | Tensor,
    row_weight: Tensor,
    ignore_index: int,
    smoothing: float,
    chunk_rows: int,
    dtype: torch.dtype | None,
    summed: bool,
) -> tuple[Tensor, Tensor]:
    """Σ w L, and L per row of a matrix `hidden`, at least in float32; α is (1, 1) or (rows, 1).

    `summed`: the sum will be used and not the rows, so the gradients of the sum are computed ahead.
    """
    compute = summed and torch.is_grad_enabled()
    ahead = [
        compute and isinstance(x, Tensor) and x.requires_grad for x in (hidden, weight, bias, alpha)
    ]
    total, losses, *_ = _LINEAR(
        hidden, weight, bias, target, alpha, row_weight,
        ignore_index, smoothing, chunk_rows, dtype, ahead,
    )  # fmt: skip
    return total, losses


def _fake(hidden: Tensor, weight: Tensor, bias: Tensor | None, *rest: Any) -> tuple[Tensor, ...]:
    *_, dtype, ahead = rest
    return empty_results(hidden, weight, bias, dtype, ahead)


class _LinearLossRule(torch.autograd.Function):
    @staticmethod
    def forward(*args: Any) -> tuple[Tensor, ...]:
        return _LINEAR.below_autograd(*args)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        hidden, weight, bias, target, alpha, row_weight, *ctx.options, ctx.ahead = inputs
        ctx.spent = False
        saved = (hidden, weight, bias, target, save_parameter(ctx, alpha), row_weight)
        ctx.mark_non_differentiable(*output[2:])
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*saved, *output[2:])
        ctx.save_for_forward(*saved)

    @staticmethod
    def backward(ctx: Any, by_total: Any, by_losses: Any, *_: Any) -> tuple[Any, ...]:
        wanted = [ctx.needs_input_grad[i] for i in DIFFERENTIABLE]
        if (by_total is None and by_losses is None) or not any(wanted):
            return (None,) * INPUTS
        saved = ctx.saved_tensors  # once, because checkpointing computes them at every access
        (*inputs, row_weight), ahead = saved[:6], saved[6:]
        alpha = inputs[4] = saved_parameter(ctx, inputs[4])
        if torch.is_grad_enabled():  # with create_graph: differentiable, in plain PyTorch
            factor = _factor(by_total, by_losses, row_weight)
            gradients = _plain_gradients(inputs, factor, ctx.options)
        elif by_losses is None and not ctx.spent and _covers(ctx.ahead, wanted):
            ctx.spent = _is_plain(by_total)
            gradients = [_scaled(g, by_total, ctx.spent) for g in ahead]
        else:
            factor = _factor(by_total, by_losses, row_weight)
            gradients = _LINEAR(*inputs, factor, *ctx.options, wanted)[2:]
        *others, by_alpha = gradients
        if wanted[3]:
            by_alpha = by_alpha.unsqueeze(-1).sum_to_size(alpha.shape).to(alpha.dtype)
        results: list[Any] = [None] * INPUTS
        for place, gradient, needed in zip(
            DIFFERENTIABLE, (*others, by_alpha), wanted, strict=True
        ):
            results[place] = gradient if needed else None
        return tuple(results)

    @staticmethod
    @forward_mode
    def jvp(
        ctx: Any,
        saved: Any,
        by_hidden: Any,
        by_weight: Any,
        by_bias: Any,
        _: Any,
        by_alpha: Any,
        *__: Any,
    ) -> tuple[Any, ...]:
        hidden, weight, bias, target, rows, row_weight = saved
        inputs = (hidden, weight, bias, target, saved_parameter(ctx, rows))
        slope, slope_alpha = _plain_slopes(inputs, ctx.options)
        moved = torch.zeros_like(slope)
        if by_hidden is not None:
            moved = moved + F.linear(by_hidden.to(slope.dtype), weight.to(slope.dtype))
        if by_weight is not None:
            moved = moved + F.linear(hidden.to(slope.dtype), by_weight.to(slope.dtype))
        if by_bias is not None:
            moved = moved + by_bias
        tangent = (slope * moved).sum(-1)
        if by_alpha is not None:
            tangent = tangent + by_alpha.squeeze(-1) * slope_alpha
        return (row_weight * tangent).sum(), tangent, None, None, None, None

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        """A loop: every member of the batch has its own chunks."""
        outputs = [
            _LINEAR(*(_member(a, d, i) for a, d in zip(args, in_dims, strict=True)))
            for i in range(info.batch_size)
        ]
        return tuple(torch.stack(each) for each in zip(*outputs, strict=True)), (0,) * 6


def _member(argument: Any, dim: Any, index: int) -> Any:
    if isinstance(argument, Tensor) and dim is not None:
        return argument.select(dim, index)
    return argument


def _covers(ahead: Sequence[bool], wanted: Sequence[bool]) -> bool:
    return all(have or not want for have, want in zip(ahead, wanted, strict=True))


def _factor(by_total: Any, by_losses: Any, row_weight: Tensor) -> Any:
    """The gradient that reaches the loss of every row."""
    by_sum = 0 if by_total is None else by_total * row_weight
    return by_sum if by_losses is None else by_sum + by_losses


def _is_plain(tensor: Any) -> bool:
    """Whether operations on the tensor are neither traced nor transformed."""
    return type(tensor) is Tensor and peek_interpreter_stack() is None


def _scaled(gradient: Tensor, factor: Any, in_place: bool) -> Tensor:
    """`factor` times a gradient, rounded once: a factor without dimensions would be rounded first.

    In place it takes no memory, but a second backward pass must compute the gradient again.
    """
    if not in_place:
        return (gradient * factor.expand_as(gradient)).to(gradient.dtype)
    own = gradient.data
    scale = dispatch.extension("linear_entmax_loss", "scale", own)
    if scale is not None:
        return scale(own, factor)
    return torch.mul(own, factor.expand_as(own), out=own)


def _plain_slopes(inputs: Sequence[Any], options: Sequence[Any]) -> tuple[Tensor, Tensor | None]:
    """∂L/∂x and ∂L/∂α of all rows, in plain PyTorch."""
    hidden, weight, bias, target, alpha = inputs
    ignore_index, smoothing, _, dtype = options
    dtype = dtype or hidden.dtype
    constant = None if bias is None else bias.to(dtype)
    scores = F.linear(hidden.to(dtype), weight.to(dtype), constant)
    if target.dtype.is_floating_point:
        target = smooth_probabilities(target, smoothing)
    return loss_slopes(scores, target, alpha, ignore_index, smoothing)


def _plain_gradients(
    inputs: Sequence[Any], factor: Tensor, options: Sequence[Any]
) -> tuple[Any, ...]:
    """The gradients in hidden, weight, bias and (one per row) α, differentiable in all inputs."""
    hidden, weight, bias = inputs[:3]
    slope, slope_alpha = _plain_slopes(inputs, options)
    slope = factor.unsqueeze(-1) * slope
    by_hidden = (slope @ weight.to(slope.dtype)).to(hidden.dtype)
    by_weight = (slope.mT @ hidden.to(slope.dtype)).to(weight.dtype)
    by_bias = None if bias is None else slope.sum(0).to(bias.dtype)
    return by_hidden, by_weight, by_bias, None if slope_alpha is None else factor * slope_alpha


_LINEAR = define(
    "linear_entmax_loss(Tensor hidden, Tensor weight, Tensor? bias, Tensor target, Parameter alpha,"
    " Tensor row_weight, int ignore_index, float smoothing, int chunk_rows, ScalarType? dtype,"
    " bool[] ahead) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
    chunked_loss,
    _fake,
)
differentiate(_LINEAR, _LinearLossRule, autocast=False)
