"""Masks of attention as boolean tensors: True marks a key that may be attended."""

from __future__ import annotations

import torch
from torch import Tensor


def causal(
    queries: int, keys: int, *, window: int | None = None, device: torch.device | None = None
) -> Tensor:
    """(queries, keys): a causal mask, aligned bottom right: the last query sees every key.

    With `window`, a query sees its own key and at most `window` keys to the left of it.

    >>> causal(2, 4).int()
    tensor([[1, 1, 1, 0],
            [1, 1, 1, 1]], dtype=torch.int32)
    >>> causal(2, 4, window=1).int()
    tensor([[0, 1, 1, 0],
            [0, 0, 1, 1]], dtype=torch.int32)
    """
    key = torch.arange(keys, device=device)
    own = torch.arange(queries, device=device).unsqueeze(-1) + (keys - queries)
    visible = key <= own
    return visible if window is None else visible & (key >= own - window)


def within(lengths: Tensor, keys: int) -> Tensor:
    """(…, keys): the first `lengths` of the keys.

    >>> within(torch.tensor([1, 3]), 3).int()
    tensor([[1, 0, 0],
            [1, 1, 1]], dtype=torch.int32)
    """
    return torch.arange(keys, device=lengths.device) < lengths.unsqueeze(-1)
