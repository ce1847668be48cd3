"""Attention by its definition: all weights at once. Plain PyTorch, which can be differentiated.

With x = scale · q kᵀ + bias, p = entmax(x) and the output p v, and g the gradient that arrives:

    in v: pᵀ g      in x and in the bias: d = J (g vᵀ), J the Jacobian of entmax (N.19)
    in q: scale · d k      in k: scale · dᵀ q      in α: Σ (g vᵀ) ∘ ∂p/∂α (N.20)

Query heads that share a key and value head read the same keys and values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from fenchel.kernels.reference.entmax import entmax, entmax_backward, entmax_derivative
from fenchel.kernels.reference.visibility import causal, within

Map = Callable[[Tensor, "float | Tensor", "Tensor | None"], Tensor]  # scores, alpha, mask


class Options(NamedTuple):
    """Tensors have the dimensions of the queries, of size 1 where they broadcast.

    `alpha` is a number or a tensor (…, heads, queries, 1); `mask` is boolean, or added to the scores;
    `lengths` has the dimensions before the heads; `window` is -1 if there is none.
    """

    alpha: float | Tensor
    mask: Tensor | None
    lengths: Tensor | None
    is_causal: bool
    window: int
    scale: float

    @property
    def bias(self) -> bool:
        """Whether the mask is added to the scores."""
        return self.mask is not None and self.mask.is_floating_point()


class Gradients(NamedTuple):
    """The gradients in the operands; None for options that are not differentiated."""

    q: Tensor
    k: Tensor
    v: Tensor
    alpha: Tensor | None
    mask: Tensor | None


def attention(
    q: Tensor, k: Tensor, v: Tensor, options: Options, *, saves: bool = False
) -> tuple[Tensor, None]:
    """The averages of the values, computed in float64. Nothing is saved."""
    wide_q, wide_k, wide_v = _widened(q, k, v)
    p = weights(wide_q, wide_k, options, _entmax)
    return (p @ repeated(wide_v, q)).to(q.dtype), None


def attention_backward(
    grad: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    options: Options,
    saved: None = None,
    *,
    in_alpha: bool = False,
    in_mask: bool = False,
) -> Gradients:
    wide_q, wide_k, wide_v = _widened(q, k, v)
    p = weights(wide_q, wide_k, options, _entmax)
    grad = grad.to(p.dtype)
    found = gradients(grad, wide_q, wide_k, wide_v, p, options, in_alpha=in_alpha, in_mask=in_mask)
    return summed(found, q, k, v, options)


def weights(q: Tensor, k: Tensor, options: Options, entmax: Map) -> Tensor:
    """p of every query, in the dtype of the operands."""
    x = scores(q, k, options)
    visible = _visible(q, k, options)
    if options.mask is not None and not options.bias:
        visible = options.mask if visible is None else visible & options.mask
    return entmax(x, options.alpha, visible)


def scores(q: Tensor, k: Tensor, options: Options) -> Tensor:
    """The scores of all keys, seen or not, with the bias."""
    x = (q * options.scale) @ repeated(k, q).mT
    return x + options.mask.to(x.dtype) if options.bias and options.mask is not None else x


def gradients(
    grad: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    p: Tensor,
    options: Options,
    *,
    in_alpha: bool,
    in_mask: bool,
) -> Gradients:
    """The gradients before the sums over broadcast dimensions; `p` is `weights(q, k, …)`."""
    by_p = grad @ repeated(v, q).mT
    by_x = entmax_backward(by_p, p, options.alpha)
    alpha = torch.as_tensor(options.alpha)
    return Gradients(
        by_x @ repeated(k, q) * options.scale,
        by_x.mT @ (q * options.scale),
        p.mT @ grad,
        (by_p * entmax_derivative(p, alpha)).sum(-1, keepdim=True) if in_alpha else None,
        by_x if in_mask else None,
    )


def summed(found: Gradients, q: Tensor, k: Tensor, v: Tensor, options: Options) -> Gradients:
    """The gradients in the shapes and dtypes of the operands."""
    alpha, mask = options.alpha, options.mask
    return Gradients(
        found.q.sum_to_size(q.shape).to(q.dtype),
        _of_shared(found.k, k),
        _of_shared(found.v, v),
        None if found.alpha is None else _summed(found.alpha, alpha),
        None if found.mask is None else _summed(found.mask, mask),
    )


def repeated(keys: Tensor, q: Tensor) -> Tensor:
    """Keys or values with one head per query head, repeated where several share one."""
    heads = keys.shape[-3]
    shared = q.shape[-3] // heads if heads else 1
    return keys if heads <= 1 or shared <= 1 else keys.repeat_interleave(shared, -3)


def _of_shared(gradient: Tensor, keys: Tensor) -> Tensor:
    heads = keys.shape[-3]
    if heads > 1 and gradient.shape[-3] > heads:
        gradient = gradient.unflatten(-3, (heads, -1)).sum(-3)
    return gradient.sum_to_size(keys.shape).to(keys.dtype)


def _summed(gradient: Tensor, operand: object) -> Tensor | None:
    if not isinstance(operand, Tensor):
        return None
    return gradient.sum_to_size(operand.shape).to(operand.dtype)


def _widened(*tensors: Tensor) -> tuple[Tensor, ...]:
    return tuple(x.float() if x.device.type == "mps" else x.double() for x in tensors)


def _entmax(scores: Tensor, alpha: float | Tensor, visible: Tensor | None) -> Tensor:
    if scores.numel() == 0:
        return scores
    hidden = scores if visible is None else scores.masked_fill(~visible, float("-inf"))
    return entmax(hidden, alpha)


def _visible(q: Tensor, k: Tensor, options: Options) -> Tensor | None:
    queries, keys = q.shape[-2], k.shape[-2]
    window = None if options.window < 0 else options.window
    visible = None
    if options.is_causal:
        visible = causal(queries, keys, window=window, device=q.device)
    if options.lengths is not None:
        valid = within(options.lengths, keys).unsqueeze(-2).unsqueeze(-2)
        visible = valid if visible is None else visible & valid
    return visible
