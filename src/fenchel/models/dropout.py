"""Dropout of hidden states."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor
from torch._C._functorch import peek_interpreter_stack

VALUES = 2**16  # of a random number of 16 bits


def dropout(x: Tensor, probability: float, training: bool) -> Tensor:
    """`F.dropout`, which on a CPU takes a quarter of the time.

    PyTorch draws a number of its own for every entry there; four entries share one of 64 bits here. The
    probability is rounded to 16 bits, and what is kept is scaled such that the mean is exact.

    >>> import torch
    >>> dropout(torch.ones(4, 100), 0.5, training=True).unique()
    tensor([0., 2.])
    """
    kept = round((1 - probability) * VALUES)
    traced = torch.compiler.is_compiling() or peek_interpreter_stack() is not None
    if not training or x.device.type != "cpu" or traced or not 0 < kept < VALUES:
        return F.dropout(x, probability, training)
    draws = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(2**63), None)
    numbers = draws.view(torch.int16)[: x.numel()].view(x.shape)
    is_kept = numbers < kept - VALUES // 2
    return x * torch.mul(is_kept, VALUES / kept, out=torch.empty_like(x))
