"""Scaled dot-product attention with α-entmax in place of softmax."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from fenchel.autocast import without_autocast
from fenchel.checks import check_tensor
from fenchel.kernels.reference.attention import Options, repeated
from fenchel.mechanisms.masks import check_lengths
from fenchel.mechanisms.operands import (
    check_alpha,
    check_dropout,
    check_mask,
    check_operands,
    check_scale,
    check_window,
    either,
    named_as_in_torch,
    scores_shape,
)
from fenchel.mechanisms.sparse import csr_of_lists, to_csr
from fenchel.operators.attention import FORWARD, dense_weights, listed_weights
from fenchel.operators.layout import at_least_float32


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
    return_weights: bool = False,
) -> Any:
    r"""Averages of the values, with weights that can be exactly zero.

    Each query solves, over the keys that it may see,

        argmax_{p ∈ Δ} ⟨p, x⟩ + H_α(p),   x = scale · K q + bias,

    and returns Vᵀp: `F.scaled_dot_product_attention` with α-entmax in place of softmax (α = 1). The
    arguments are those of that function, also under its names (`query`, `key` and `value`), except
    that options are keyword-only, and that `is_causal` aligns bottom right and can be combined with a
    mask. The derivative is that of `fenchel.entmax`. On a CPU, the cost is one product of queries and
    keys, plus a cost proportional to the number of weights above zero, and memory does not grow with
    queries × keys (docs/attention.md). On other devices, and with dropout, all weights are computed.

    Half precision is computed in float32 and rounded once. A query whose keys are all masked returns
    zeros and has no gradient. Masked keys and values must be finite, as in PyTorch's attention: NaN
    times a weight of zero is NaN.

    Args:
        q: queries (…, heads, Lq, E).
        k: keys (…, heads, Lk, E).
        v: values (…, heads, Lk, Ev).
        alpha: a number above 0, a tensor with one value per head, (heads,), or one that broadcasts to
            (…, heads, Lq, 1). Tensors are differentiable.
        mask: broadcasts to (…, heads, Lq, Lk): boolean, True marks what may be attended; or real,
            added to the scores and differentiable.
        is_causal: query i sees the keys j ≤ i + Lk − Lq, so that the last query sees every key, as
            with a key–value cache.
        scale: the factor of the scores, by default 1/√E.
        enable_gqa: keys and values have fewer heads, each shared by the same number of query heads.
        window: with `is_causal`, the number of keys to the left of its own that a query sees; with
            `window=0` it sees only its own key.
        lengths: integers (batch,), the number of valid keys per batch entry, in the shape of the
            dimensions before `heads`. Later keys are masked; the causal diagonal does not move.
        attn_mask: PyTorch's name for `mask`, with the same meaning. Only one of them may be given.
        dropout_p: the probability with which each weight is set to zero, from 0 to below 1. Those
            kept are divided by 1 − dropout_p, so that the expectation is the attention without
            dropout. As in PyTorch's function it always applies: pass 0 outside of training.
        return_weights: also return what `attention_weights` does: the weights above zero, without
            derivatives and before dropout.

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
    has_no_heads = isinstance(q, Tensor) and q.ndim == 2
    (q, k, v), options = prepare(
        q,
        k,
        v,
        alpha=alpha,
        mask=either("mask", mask, "attn_mask", attn_mask),
        is_causal=is_causal,
        scale=scale,
        enable_gqa=enable_gqa,
        window=window,
        lengths=lengths,
    )
    if q.device.type == "cpu" and dropout_p == 0:
        output = FORWARD(q, k, v, *options)
    else:
        output, _ = dense_attention(q, k, v, options, dropout_p)
    output = output.squeeze(0) if has_no_heads else output
    if not return_weights:
        return output
    with torch.no_grad():
        return output, _compressed_weights(q, k, options, has_no_heads)


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
    r"""The weights of `attention` as sparse matrices, for inspection.

    The arguments are those of `attention` without the values and dropout. The result is a
    `torch.sparse_csr` tensor of shape (…, heads, Lq, Lk) without derivatives; row i of a matrix
    holds the p of query i. PyTorch requires all matrices of a batch to store the same number of
    entries, so the sparser ones also store some zeros.

    >>> import torch, fenchel
    >>> q, k = torch.tensor([[1.0, 0.0]]), torch.tensor([[2.0, 0.0], [1.0, 0.0], [-2.0, 0.0]])
    >>> weights = fenchel.attention_weights(q, k, alpha=1.5)
    >>> weights.col_indices(), weights.values()
    (tensor([0, 1]), tensor([0.7421, 0.2579]))
    """
    with torch.no_grad():
        has_no_heads = isinstance(q, Tensor) and q.ndim == 2
        (q, k), options = prepare(
            q,
            k,
            None,
            alpha=alpha,
            mask=either("mask", mask, "attn_mask", attn_mask),
            is_causal=is_causal,
            scale=scale,
            enable_gqa=enable_gqa,
            window=window,
            lengths=lengths,
        )
        return _compressed_weights(q, k, options, has_no_heads)


def _compressed_weights(q: Tensor, k: Tensor, options: Options, has_no_heads: bool) -> Tensor:
    listed = listed_weights(q, k, options)
    if listed is not None:
        starts, keys, p = listed
        shape = scores_shape(q, k)
        return csr_of_lists(starts, keys, p.to(q.dtype), shape[1:] if has_no_heads else shape)
    with without_autocast(q.device):
        weights = dense_weights(q, k, options).to(q.dtype)
    return to_csr(weights.squeeze(0) if has_no_heads else weights)


def prepare(
    q: Tensor,
    k: Tensor,
    v: Tensor | None,
    *,
    alpha: float | Tensor,
    mask: Tensor | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    window: int | None = None,
    lengths: Tensor | None = None,
) -> tuple[list[Tensor], Options]:
    """The arguments of the operator, validated; operands without heads get a dimension for them."""
    tensors = check_operands(q, k, v, enable_gqa=enable_gqa)
    check_window(window, is_causal=is_causal)
    shape = scores_shape(*tensors[:2])
    mask, alpha = check_mask(mask, shape, q), check_alpha(alpha, shape, q)
    if lengths is not None:
        check_lengths(lengths, shape[:-3], shape[-1], q)
    if q.ndim == 2:
        tensors = [x.unsqueeze(0) for x in tensors]
        mask = None if mask is None else mask.unsqueeze(0)
        alpha = alpha.unsqueeze(0) if isinstance(alpha, Tensor) else alpha
    width = -1 if window is None else int(window)
    factor = check_scale(scale, q.shape[-1])
    return tensors, Options(alpha, mask, lengths, bool(is_causal), width, factor)


def dense_attention(
    q: Tensor, k: Tensor, v: Tensor, options: Options, dropout: float = 0.0
) -> tuple[Tensor, Tensor]:
    """The output and all weights, in at least float32, of arguments from `prepare`."""
    with without_autocast(q.device):
        weights = dense_weights(q, k, options)
        weights = F.dropout(weights, dropout) if dropout > 0 else weights
        return (weights @ repeated(at_least_float32(v), q)).to(v.dtype), weights
