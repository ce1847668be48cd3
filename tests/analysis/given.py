"""A model whose attention weights are given, so that measures of them can be computed by hand."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class GivenAttention(nn.MultiheadAttention):
    """An attention layer with the weights `given`, (B, heads, L, S), whatever its inputs are."""

    def __init__(self, heads: int, alpha: float | Tensor | None = None) -> None:
        super().__init__(heads, heads, batch_first=True)
        self.alpha = alpha
        self.given = torch.empty(0)

    def forward(self, query, key, value, key_padding_mask=None, need_weights=True, attn_mask=None,
                average_attn_weights=True, is_causal=False):  # fmt: skip
        if not need_weights:
            return query, None
        return query, self.given.mean(1) if average_attn_weights else self.given


class Given(nn.Module):
    """One layer of self-attention; called with its weights and masks."""

    def __init__(self, heads: int, alpha: float | Tensor | None = None, name: str = "attn") -> None:
        super().__init__()
        self.name = name
        self.add_module(name, GivenAttention(heads, alpha))

    def forward(self, weights: Tensor, padding: Tensor | None = None, mask: Tensor | None = None):
        layer = getattr(self, self.name)
        layer.given = weights
        x = torch.zeros(*weights.shape[::2], layer.embed_dim)
        return layer(x, x, x, key_padding_mask=padding, attn_mask=mask, need_weights=False)[0]


class GivenPair(nn.Module):
    """The three kinds of attention of an encoder–decoder; called with the weights of each."""

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.encoder = nn.ModuleDict({"self_attn": GivenAttention(heads)})
        self.decoder = nn.ModuleDict(
            {"self_attn": GivenAttention(heads), "multihead_attn": GivenAttention(heads)}
        )

    def forward(
        self, encoder: Tensor, decoder: Tensor, context: Tensor, padding: Tensor | None = None
    ):
        size = encoder.shape[1]
        source = torch.zeros(*encoder.shape[::2], size)
        target = torch.zeros(*decoder.shape[::2], size)
        self.encoder["self_attn"].given = encoder
        self.decoder["self_attn"].given = decoder
        self.decoder["multihead_attn"].given = context
        self.encoder["self_attn"](source, source, source, key_padding_mask=padding)
        length = target.shape[1]
        future = torch.ones(length, length, dtype=torch.bool).triu(1)
        self.decoder["self_attn"](target, target, target, attn_mask=future)
        return self.decoder["multihead_attn"](target, source, source, key_padding_mask=padding)


def random_weights(*shape: int) -> Tensor:
    """Sparse weights, some of whose entries are exactly zero."""
    weights = torch.rand(*shape) * (torch.rand(*shape) < 0.5)
    weights[..., 0] += 0.1
    return weights / weights.sum(-1, keepdim=True)
