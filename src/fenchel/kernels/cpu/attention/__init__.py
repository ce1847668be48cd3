"""Attention on the CPU: exact, with one product of queries and keys and O(support) of everything else.

attention               the averages of the values
attention_backward      the gradients in q, k, v, alpha and a bias
attention_support       the weights, as compressed rows
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from fenchel.kernels.cpu.attention.backward import collect_kernel, key_kernel, query_kernel
from fenchel.kernels.cpu.attention.call import Call
from fenchel.kernels.cpu.attention.forward import forward_kernel
from fenchel.kernels.cpu.attention.softmax import (
    Normalizers,
    is_softmax,
    softmax_attention,
    softmax_attention_backward,
)
from fenchel.kernels.reference.attention import Options

__all__ = ["Support", "attention", "attention_backward", "attention_support"]


class Support(NamedTuple):
    """The weights that are not zero, row by row; rows computed densely have the count -1 and none.

    Of these, `offsets` has the normalizer minus the largest score, where there is one.
    """

    counts: Tensor
    starts: Tensor
    places: Tensor
    p: Tensor
    offsets: Tensor


def attention(
    q: Tensor, k: Tensor, v: Tensor, options: Options, *, saves: bool = False
) -> tuple[Tensor, Support | Normalizers | None]:
    """The output, and with `saves` what `attention_backward` needs."""
    if is_softmax(q, k, v, options):
        found = softmax_attention(q, k, v, options)
        return found.output, found if saves else None
    call = Call(q, k, v, options)
    rows = call.count * call.queries
    out = torch.empty(call.shape(call.heads, call.queries, call.size), dtype=call.dtype)
    if rows == 0:
        saves = False
    counts = torch.empty(rows if saves else 0, dtype=torch.int32)
    lists = torch.empty(call.units if saves else 0, dtype=torch.int64)
    offsets = torch.empty(rows if saves else 0, dtype=torch.float64)
    words = (out, counts, lists) if saves else (out, 0, 0)
    call.offsets = offsets if saves else 0
    call.launch(forward_kernel, call.units, *words, out.element_size())
    support = _collect(call, counts, lists, offsets) if saves else None
    return out.to(q.dtype), support


def attention_support(q: Tensor, k: Tensor, options: Options) -> Support:
    """The weights alone."""
    call = Call(q, k, k[..., :0], options, lists_all=True)
    counts = torch.empty(call.count * call.queries, dtype=torch.int32)
    lists = torch.empty(call.units, dtype=torch.int64)
    out = torch.empty(0, dtype=call.dtype)
    call.launch(forward_kernel, call.units, out, counts, lists, out.element_size())
    return _collect(call, counts, lists, torch.empty(0))


def _collect(call: Call, counts: Tensor, lists: Tensor, offsets: Tensor) -> Support:
    starts = torch.zeros(len(counts) + 1, dtype=torch.int64)
    torch.cumsum(counts.clamp(min=0), 0, out=starts[1:])
    total = int(starts[-1])
    places, p = torch.empty(total, dtype=torch.int32), torch.empty(total, dtype=call.dtype)
    call.launch(collect_kernel, call.units, counts, starts, places, p, lists)
    return Support(counts, starts, places, p, offsets)


def attention_backward(
    grad: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    options: Options,
    support: Support | Normalizers | None = None,
    *,
    in_alpha: bool = False,
    in_mask: bool = False,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None]:
    """The gradients in q, k, v, alpha and the mask; without a support it is computed again."""
    if support is None:
        _, support = attention(q, k, v, options, saves=True)
    if isinstance(support, Normalizers):
        return *softmax_attention_backward(grad, q, k, v, options, support), None, None
    mask = options.mask.contiguous() if in_mask and options.mask is not None else options.mask
    call = Call(q, k, v, options._replace(mask=mask))
    dtype, shared = call.dtype, call.heads // call.shared
    by_q = torch.zeros(call.shape(call.heads, call.queries, call.depth), dtype=dtype)
    by_k = torch.zeros(call.shape(shared, call.keys, call.depth), dtype=dtype)
    by_v = torch.zeros(call.shape(shared, call.keys, call.size), dtype=dtype)
    by_alpha = torch.zeros(call.shape(call.heads, call.queries, 1), dtype=torch.float64)
    by_mask = torch.zeros(mask.shape, dtype=dtype) if in_mask and mask is not None else None
    if support is not None:
        call.offsets = support.offsets
        grad = grad.to(dtype).contiguous()
        in_scores = torch.empty_like(support.p)
        together, slices = _shares(call, support, in_mask)
        words = (
            *(support.counts, support.starts, support.places, support.p, 0),
            *(grad, in_scores, by_q, by_k, by_v, by_alpha if in_alpha else 0),
            *(0 if by_mask is None else by_mask, call.shared, together, slices),
        )
        call.launch(query_kernel, call.units, *words)
        call.launch(key_kernel, call.count // together * slices, *words)
    return (
        by_q.sum_to_size(q.shape).to(q.dtype),
        by_k.sum_to_size(k.shape).to(k.dtype),
        by_v.sum_to_size(v.shape).to(v.dtype),
        _like(by_alpha, options.alpha) if in_alpha else None,
        _like(by_mask, mask),
    )


def _shares(call: Call, support: Support, in_mask: bool) -> tuple[int, int]:
    """How many heads a thread does together, and into how many slices their keys are cut.

    The gradient of a bias may be shared by all heads.
    """
    together = call.count if in_mask else call.shared
    if bool(support.counts.min() < 0):
        return together, 1
    units, threads = call.count // together, torch.get_num_threads()
    return together, 1 if units >= 2 * threads else -(-2 * threads // units)


def _like(gradient: Tensor | None, value: float | Tensor | None) -> Tensor | None:
    if gradient is None or not isinstance(value, Tensor):
        return None
    return gradient.sum_to_size(value.shape).to(value.dtype)
