"""Attention as PyTorch operators, with their derivatives.

    attention(q, k, v, alpha, mask, lengths, is_causal, window, scale) -> output
    attention_backward(grad, …, in_alpha, in_mask) -> gradients in q, k, v, alpha, mask

The operators have static shapes, so they can be traced: `attention_backward` finds the supports again. A
call that only records its gradient saves the supports of its forward pass, whose size depends on the
data. Second derivatives and forward mode are computed from all weights in plain PyTorch.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from fenchel.checks import check_bound
from fenchel.kernels.reference import attention as dense
from fenchel.kernels.reference.attention import Options
from fenchel.kernels.reference.entmax import entmax_backward, entmax_derivative
from fenchel.operators import dispatch
from fenchel.operators.derivatives import (
    forward_mode,
    save_parameter,
    saved_parameter,
    vmap_over_batch,
)
from fenchel.operators.layout import at_least_float32
from fenchel.operators.maps import ENTMAX
from fenchel.operators.registration import define, differentiate

_ARGUMENTS = (
    "Tensor q, Tensor k, Tensor v, Parameter alpha, Tensor? mask, Tensor? lengths,"
    " bool is_causal, int window, float scale"
)


def _output(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """An empty output."""
    batch = torch.broadcast_shapes(q.shape[:-3], k.shape[:-3], v.shape[:-3])
    heads = max(q.shape[-3], k.shape[-3], v.shape[-3]) if 0 not in q.shape[:-2] else q.shape[-3]
    return q.new_empty(*batch, heads, q.shape[-2], v.shape[-1])


def _run(q: Tensor, k: Tensor, v: Tensor, *options: Any) -> Tensor:
    return _attend(q, k, v, Options(*options), saves=False)[0]


def _attend(
    q: Tensor, k: Tensor, v: Tensor, options: Options, *, saves: bool
) -> tuple[Tensor, Any]:
    alpha = options.alpha
    if isinstance(alpha, Tensor):
        check_bound(alpha, name="alpha", above=0)
    if _output(q, k, v).numel() == 0 or k.shape[-2] == 0:
        return _output(q, k, v).zero_(), None
    function = dispatch.kernel("attention", "attention", q, dispatch.as_it_is)
    return function(q, k, v, options, saves=saves)


def _run_backward(
    grad: Tensor, q: Tensor, k: Tensor, v: Tensor, *arguments: Any
) -> tuple[Tensor, ...]:
    *options, in_alpha, in_mask = arguments
    return _pull_back(grad, q, k, v, Options(*options), None, in_alpha, in_mask)


def _pull_back(
    grad: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    options: Options,
    saved: Any,
    in_alpha: bool,
    in_mask: bool,
) -> tuple[Tensor, ...]:
    if grad.numel() == 0 or k.shape[-2] == 0:
        return tuple(x.zero_() for x in _gradients(q, k, v, options, in_alpha, in_mask))
    function = dispatch.kernel("attention", "attention_backward", q, dispatch.as_it_is)
    found = function(grad, q, k, v, options, saved, in_alpha=in_alpha, in_mask=in_mask)
    return tuple(q.new_empty(0) if each is None else each for each in found)


def _gradients(
    q: Tensor, k: Tensor, v: Tensor, options: Options, in_alpha: bool, in_mask: bool
) -> tuple[Tensor, ...]:
    """Empty gradients; those that are not required have no elements."""
    asked = (options.alpha if in_alpha else None), (options.mask if in_mask else None)
    others = [_contiguous(x) if isinstance(x, Tensor) else q.new_empty(0) for x in asked]
    return _contiguous(q), _contiguous(k), _contiguous(v), *others


def _contiguous(like: Tensor) -> Tensor:
    return torch.empty_like(like, memory_format=torch.contiguous_format)


def _over_batch_backward(operator: Any, info: Any, in_dims: Any, *args: Any) -> tuple[Any, Any]:
    """As `vmap_over_batch`; gradients that are not required have no batch dimension."""
    results, _ = vmap_over_batch(operator, info, in_dims, *args)
    return results, tuple(0 if each.numel() or each.ndim > 1 else None for each in results)


FORWARD = define(
    f"attention({_ARGUMENTS}) -> Tensor", _run, lambda q, k, v, *options: _output(q, k, v)
)
BACKWARD = define(
    f"attention_backward(Tensor grad, {_ARGUMENTS}, bool in_alpha, bool in_mask)"
    " -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
    _run_backward,
    lambda grad, q, k, v, *rest: _gradients(q, k, v, Options(*rest[:-2]), *rest[-2:]),
    vmap=_over_batch_backward,
)


def listed_weights(q: Tensor, k: Tensor, options: Options) -> tuple[Tensor, Tensor, Tensor] | None:
    """(starts of the rows, keys, p) of the weights above zero, row by row.

    None if the backend does not list them, or if a row has all keys, as for α ≤ 1.
    """
    find = dispatch.extension("attention", "attention_support", q)
    if find is None or 0 in (*q.shape[:-1], *k.shape[:-1]):
        return None
    if isinstance(options.alpha, Tensor):
        check_bound(options.alpha, name="alpha", above=0)
    support = find(q, k, options)
    return None if bool((support.counts < 0).any()) else (support.starts, support.places, support.p)


def dense_weights(q: Tensor, k: Tensor, options: Options) -> Tensor:
    """p of every query, in at least float32; differentiable."""
    return dense.weights(at_least_float32(q), at_least_float32(k), options, _entmax)


def _entmax(scores: Tensor, alpha: float | Tensor, visible: Tensor | None) -> Tensor:
    return ENTMAX(scores, alpha, -1, visible)


def _save(ctx: Any, inputs: tuple[Any, ...], *support: Tensor) -> None:
    q, k, v, alpha, mask, lengths, *ctx.rest = inputs
    ctx.save_for_backward(q, k, v, save_parameter(ctx, alpha), mask, lengths, *support)


def _saved(ctx: Any) -> tuple[Tensor, Tensor, Tensor, Options, tuple[Tensor, ...]]:
    q, k, v, rows, mask, lengths, *support = ctx.saved_tensors
    return q, k, v, Options(saved_parameter(ctx, rows), mask, lengths, *ctx.rest), tuple(support)


def _backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    q, k, v, options, support = _saved(ctx)
    saved = ctx.kind(*support) if support else None
    in_alpha, in_mask = ctx.needs_input_grad[3], ctx.needs_input_grad[4]
    if torch.is_grad_enabled():  # with create_graph: differentiable, in plain PyTorch
        g, wide_q, wide_k, wide_v = (at_least_float32(x) for x in (grad, q, k, v))
        p = dense.weights(wide_q, wide_k, options, _entmax)
        found = dense.gradients(
            g, wide_q, wide_k, wide_v, p, options, in_alpha=in_alpha, in_mask=in_mask
        )
        found = dense.summed(found, q, k, v, options)
    elif saved is not None:
        found = _pull_back(grad, q, k, v, options, saved, in_alpha, in_mask)
    else:
        found = BACKWARD(grad, q, k, v, *options, in_alpha, in_mask)
    by_q, by_k, by_v, by_alpha, by_mask = found
    by_options = (by_alpha if in_alpha else None, by_mask if in_mask else None)
    return by_q, by_k, by_v, *by_options, None, None, None, None


class _Rule(torch.autograd.Function):
    """Only the operands are saved."""

    @staticmethod
    def forward(*inputs: Any) -> Tensor:
        return FORWARD.below_autograd(*inputs)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _save(ctx, inputs)
        q, k, v, _, mask, lengths, *_ = inputs
        rows = save_parameter(ctx, inputs[3])
        ctx.save_for_forward(q, k, v, rows, mask, lengths)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return _backward(ctx, grad)

    @staticmethod
    @forward_mode
    def jvp(ctx: Any, saved: Any, *tangents: Any) -> Tensor:
        q, k, v, rows, mask, lengths = saved
        options = Options(saved_parameter(ctx, rows), mask, lengths, *ctx.rest)
        by_q, by_k, by_v, by_alpha, by_mask, *_ = tangents
        wide_q, wide_k, wide_v = (at_least_float32(x) for x in (q, k, v))
        p = dense.weights(wide_q, wide_k, options, _entmax)
        by_x = torch.zeros_like(p)
        plain = options._replace(mask=None)
        if by_q is not None:
            by_x = by_x + dense.scores(at_least_float32(by_q), wide_k, plain)
        if by_k is not None:
            by_x = by_x + dense.scores(wide_q, at_least_float32(by_k), plain)
        if by_mask is not None:
            by_x = by_x + by_mask.to(by_x.dtype)
        by_p = entmax_backward(by_x, p, options.alpha)
        if by_alpha is not None:
            by_p = by_p + by_alpha * entmax_derivative(p, torch.as_tensor(options.alpha))
        tangent = by_p @ dense.repeated(wide_v, q)
        if by_v is not None:
            tangent = tangent + p @ dense.repeated(at_least_float32(by_v), q)
        return tangent.to(q.dtype)

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> tuple[Any, Any]:
        return vmap_over_batch(FORWARD, info, in_dims, *args)


class _KeepingSupports(torch.autograd.Function):
    """For calls that only record their gradient: the supports are saved too."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        q, k, v, *options = inputs
        with torch._C._AutoDispatchBelowAutograd():
            output, support = _attend(q, k, v, Options(*options), saves=True)
        ctx.kind = type(support)
        _save(ctx, inputs, *(() if support is None else support))
        return output

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return _backward(ctx, grad)


differentiate(FORWARD, _Rule, autocast=False, direct=_KeepingSupports)
