"""Scaled dot-product attention with α-entmax in place of softmax: dense and exact."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from fenchel.autocast import without_autocast
from fenchel.checks import check_tensor
from fenchel.kernels.rows import at_least_float32
from fenchel.maps.entmax import entmax
from fenchel.mechanisms.masks import causal, check_lengths, within
from fenchel.mechanisms.operands import (
    check_alpha,
    check_dropout,
    check_mask,
    check_operands,
    check_scale,
    check_window,
    either,
    named_as_in_torch,
)
from fenchel.mechanisms.sparse import to_csr


@named_as_in_torch
def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    alpha: float | Tensor = 1.5,
    mask: Tensor | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    window: int | None = None,
    lengths: Tensor | None = None,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
) -> Tensor:
    r"""Averages of the values, with weights that can be exactly zero.

    Each query solves, over the keys that it may see,

        argmax_{p ∈ Δ} ⟨p, x⟩ + H_α(p),   x = scale · K q + bias,

    and returns Vᵀp: `F.scaled_dot_product_attention` with α-entmax for softmax, which is α = 1. The
    call mirrors that function and takes its names (`query`, `key` and `value` too), except that
    options are keywords and that `is_causal` aligns bottom right and may be combined with a mask.
    The derivative is that of `fenchel.entmax`; cost and memory grow with queries × keys.

    Half precision computes in float32 and rounds the result once. A query that may see nothing
    returns zeros and passes no gradient. Keys and values that no query sees must still be numbers, as
    in PyTorch's attention: NaN times a weight of zero is NaN.

    Args:
        q: queries (…, heads, Lq, E).
        k: keys (…, heads, Lk, E).
        v: values (…, heads, Lk, Ev).
        alpha: a number above 0, a tensor with one value a head, (heads,), or one that broadcasts to
            (…, heads, Lq, 1). A tensor is differentiable.
        mask: broadcasts to (…, heads, Lq, Lk): boolean, True marks what may be attended; or real,
            added to the scores and differentiable.
        is_causal: query i sees the keys j ≤ i + Lk − Lq, so that the last query sees every key, as
            with a key–value cache.
        scale: the factor of the scores, 1/√E unless given.
        enable_gqa: keys and values have fewer heads, each shared by as many heads of queries.
        window: with `is_causal`, the number of keys to the left of its own that a query sees. Its
            own key does not count: `window=0` leaves that one alone.
        lengths: an integer tensor (batch,), the number of valid keys; the shape of the dimensions
            before `heads`. Keys from there on are not seen; it does not move the causal diagonal.
        attn_mask: PyTorch's name of `mask`, with the same meaning. Only one of them may be given.
        dropout_p: the probability with which each weight is set to zero, from 0 to below 1. Those
            kept are divided by 1 − dropout_p, so that the expectation is the attention without
            dropout. As in PyTorch's function it always applies: pass 0 outside of training.

    Reference: Correia, Niculae & Martins (2019), *Adaptively Sparse Transformers*.

    >>> import torch, fenchel
    >>> q, k = torch.tensor([[[1.0, 0.0]]]), torch.tensor([[[2.0, 0.0], [1.0, 0.0], [-2.0, 0.0]]])
    >>> v = torch.tensor([[[1.0], [10.0], [100.0]]])
    >>> fenchel.attention(q, k, v, alpha=1.5)
    tensor([[[3.3214]]])
    >>> fenchel.attention(q, k, v, alpha=1.5, lengths=torch.tensor(1))
    tensor([[[1.]]])
    """
    check_tensor(v, "v")
    check_dropout(dropout_p, "dropout_p")
    q, k, v = check_operands(q, k, v, enable_gqa=enable_gqa)
    weights = dense_weights(
        q,
        k,
        alpha=alpha,
        mask=either("mask", mask, "attn_mask", attn_mask),
        is_causal=is_causal,
        scale=scale,
        window=window,
        lengths=lengths,
    )
    if dropout_p > 0:
        weights = F.dropout(weights, dropout_p)
    return weighted_average(weights, v)


@named_as_in_torch
def attention_weights(
    q: Tensor,
    k: Tensor,
    *,
    alpha: float | Tensor = 1.5,
    mask: Tensor | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    window: int | None = None,
    lengths: Tensor | None = None,
    attn_mask: Tensor | None = None,
) -> Tensor:
    r"""The weights of `attention`, for a person to look at: which keys does a query read?

    The arguments are those of `attention` without the values and dropout. The result is a
    `torch.sparse_csr` tensor of shape (…, heads, Lq, Lk) without derivatives; row i of a matrix
    holds the p of query i. PyTorch requires all matrices of a batch to store equally many entries:
    a matrix with fewer than the fullest stores zeros for the rest.

    >>> import torch, fenchel
    >>> q, k = torch.tensor([[1.0, 0.0]]), torch.tensor([[2.0, 0.0], [1.0, 0.0], [-2.0, 0.0]])
    >>> weights = fenchel.attention_weights(q, k, alpha=1.5)
    >>> weights.col_indices(), weights.values()
    (tensor([0, 1]), tensor([0.7421, 0.2579]))
    """
    with torch.no_grad():
        q, k = check_operands(q, k, None, enable_gqa=enable_gqa)
        weights = dense_weights(
            q,
            k,
            alpha=alpha,
            mask=either("mask", mask, "attn_mask", attn_mask),
            is_causal=is_causal,
            scale=scale,
            window=window,
            lengths=lengths,
        )
        return to_csr(weights.to(q.dtype))


def dense_weights(
    q: Tensor,
    k: Tensor,
    *,
    alpha: float | Tensor,
    mask: Tensor | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    window: int | None = None,
    lengths: Tensor | None = None,
) -> Tensor:
    """p of every query, in at least float32, for operands that `check_operands` has passed."""
    check_window(window, is_causal=is_causal)
    factor = check_scale(scale, q.shape[-1])
    with without_autocast(q.device):
        scores = (at_least_float32(q) * factor) @ at_least_float32(k).mT
        visible = _visibility(scores, is_causal=is_causal, window=window, lengths=lengths)
        if mask is not None:
            check_mask(mask, scores)
            if mask.dtype != torch.bool:
                scores = scores + mask.to(scores.dtype)
            else:
                visible = mask if visible is None else visible & mask
        return entmax(scores, check_alpha(alpha, scores), mask=visible)


def weighted_average(weights: Tensor, v: Tensor) -> Tensor:
    """Vᵀp of every query, in the dtype of the values."""
    with without_autocast(v.device):
        return (weights @ at_least_float32(v)).to(v.dtype)


def _visibility(
    scores: Tensor, *, is_causal: bool, window: int | None, lengths: Tensor | None
) -> Tensor | None:
    queries, keys = scores.shape[-2:]
    visible = causal(queries, keys, window=window, device=scores.device) if is_causal else None
    if lengths is None:
        return visible
    check_lengths(lengths, tuple(scores.shape[:-3]), keys, scores)
    valid = within(lengths, keys).unsqueeze(-2).unsqueeze(-2)
    valid = valid if scores.ndim > 2 else valid.squeeze(0)
    return valid if visible is None else visible & valid
