"""α = 1: PyTorch's kernel for softmax attention, where it takes the options of a call."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from fenchel.kernels.reference.attention import Options

_aten = torch.ops.aten


class Normalizers(NamedTuple):
    """What the backward pass of PyTorch's kernel needs."""

    output: Tensor
    log_sums: Tensor


def is_softmax(q: Tensor, k: Tensor, v: Tensor, options: Options) -> bool:
    """PyTorch's kernel needs operands of one shape before the length, and aligns top left."""
    is_plain = options.mask is None and options.lengths is None and options.window < 0
    is_square = not options.is_causal or q.shape[-2] == k.shape[-2]
    has_one_shape = q.shape[:2] == k.shape[:2] == v.shape[:2] and q.shape[-1] == v.shape[-1]
    is_one = not isinstance(options.alpha, Tensor) and options.alpha == 1.0
    fits = q.ndim == 4 and q.dtype in (torch.float32, torch.float64)
    return is_one and is_plain and is_square and has_one_shape and fits


def softmax_attention(q: Tensor, k: Tensor, v: Tensor, options: Options) -> Normalizers:
    forward = _aten._scaled_dot_product_flash_attention_for_cpu
    return Normalizers(*forward(q, k, v, 0.0, options.is_causal, scale=options.scale))


def softmax_attention_backward(
    grad: Tensor, q: Tensor, k: Tensor, v: Tensor, options: Options, saved: Normalizers
) -> tuple[Tensor, Tensor, Tensor]:
    backward = _aten._scaled_dot_product_flash_attention_for_cpu_backward
    output, log_sums = saved
    is_causal, scale = options.is_causal, options.scale
    return backward(grad, q, k, v, output, log_sums, 0.0, is_causal, scale=scale)
