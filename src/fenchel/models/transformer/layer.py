"""One layer of a Transformer: self-attention, attention to an encoder, a feed-forward network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, final

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fenchel.mechanisms.multihead import MultiheadAttention
from fenchel.models.dropout import dropout
from fenchel.models.transformer.config import LayersConfig


class Projected(NamedTuple):
    """Keys and values of the heads, (N, heads, length, head size)."""

    keys: Tensor
    values: Tensor


@final
class TransformerLayer(nn.Module):
    """A layer of the encoder or, with `context_alpha`, of a decoder.

    Its parameters are named as those of `torch.nn.TransformerEncoderLayer` and
    `torch.nn.TransformerDecoderLayer`. Boolean masks are in PyTorch's convention for layers: True
    marks what is not attended.

    >>> import torch
    >>> layer = TransformerLayer(LayersConfig(hidden_size=8, heads=2), alpha=1.5)
    >>> layer(torch.randn(3, 5, 8))[0].shape
    torch.Size([3, 5, 8])
    """

    def __init__(
        self,
        config: LayersConfig,
        alpha: float | str,
        context_alpha: float | str | None = None,
    ) -> None:
        super().__init__()
        size = config.hidden_size
        self.dropout, self.norm_first = config.dropout, config.norm == "pre"
        options: dict[str, Any] = {
            "dropout": config.dropout,
            "batch_first": True,
            "alpha_start": config.alpha_start,
            "tie_alpha": config.tie_alpha,
        }
        self.self_attn = MultiheadAttention(size, config.heads, alpha=alpha, **options)
        self.norm1, self.norm2 = nn.LayerNorm(size), nn.LayerNorm(size)
        self.multihead_attn: MultiheadAttention | None = None
        self.norm3: nn.LayerNorm | None = None
        if context_alpha is not None:
            self.multihead_attn = MultiheadAttention(
                size, config.heads, alpha=context_alpha, **options
            )
            self.norm3 = nn.LayerNorm(size)
        self.linear1 = nn.Linear(size, config.feedforward_size)
        self.linear2 = nn.Linear(config.feedforward_size, size)

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        *,
        padding: Tensor | None = None,
        is_causal: bool = False,
        memory_padding: Tensor | None = None,
        need_weights: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """The new hidden states and, with `need_weights`, the weights of the layer's last attention.

        Args:
            x: hidden states (B, L, H).
            memory: what the encoder returned, (B, S, H).
            padding: (B, L), True at positions that are not attended.
            is_causal: whether a position attends only to itself and to those before.
            memory_padding: (B, S), True at positions of the memory that are not attended.
            need_weights: whether to return weights, (B, heads, L, L), or (B, heads, L, S) with memory.
        """
        h = self._before(x, self.norm1)
        attended, weights = self.self_attn(
            h,
            h,
            h,
            key_padding_mask=padding,
            is_causal=is_causal,
            need_weights=need_weights and memory is None,
            average_attn_weights=False,
        )
        x = self._after(x, attended, self.norm1)
        if self.multihead_attn is not None:
            h = self._before(x, self.norm2)
            attended, weights = self.multihead_attn(
                h,
                memory,
                memory,
                key_padding_mask=memory_padding,
                need_weights=need_weights,
                average_attn_weights=False,
            )
            x = self._after(x, attended, self.norm2)
        return self._feed_forward(x), weights

    def step(
        self,
        x: Tensor,
        past: Projected,
        memory: Projected | None = None,
        *,
        visible: Tensor | None = None,
        memory_visible: Tensor | None = None,
    ) -> tuple[Tensor, Projected, Tensor | None]:
        """The hidden states of new positions, the keys and values with theirs, and the weights.

        Masks are in the convention of `fenchel.attention`: True marks what is attended.

        Args:
            x: new positions (N, L, H).
            past: of the positions before, N rows.
            memory: of what the encoder returned, B rows; each is for N / B rows of `x` with L = 1.
            visible: broadcasts to (N, heads, L, length of the past + L).
            memory_visible: broadcasts to (B, heads, N / B, S).
        """
        h = self._before(x, self.norm1)
        q, k, v = self.self_attn.project(h, h, h)
        own = Projected(torch.cat([past.keys, k], 2), torch.cat([past.values, v], 2))
        attended, weights = self.self_attn.attend(q, *own, visible, need_weights=memory is None)
        x = self._after(x, attended, self.norm1)
        if self.multihead_attn is not None and memory is not None:
            h = self._before(x, self.norm2).view(memory.keys.shape[0], -1, x.shape[2])
            q = self.multihead_attn.project_queries(h)
            attended, weights = self.multihead_attn.attend(
                q, *memory, memory_visible, need_weights=True
            )
            x = self._after(x, attended.view_as(x), self.norm2)
        return self._feed_forward(x), own, weights

    def _feed_forward(self, x: Tensor) -> Tensor:
        norm = self.norm2 if self.norm3 is None else self.norm3
        inner = F.relu(self.linear1(self._before(x, norm)))
        inner = dropout(inner, self.dropout, self.training)
        return self._after(x, self.linear2(inner), norm)

    def _before(self, x: Tensor, norm: nn.LayerNorm) -> Tensor:
        return norm(x) if self.norm_first else x

    def _after(self, x: Tensor, update: Tensor, norm: nn.LayerNorm) -> Tensor:
        x = x + dropout(update, self.dropout, self.training)
        return x if self.norm_first else norm(x)


@final
class TransformerStack(nn.Module):
    """Layers and a final normalization, as `torch.nn.TransformerEncoder` and `TransformerDecoder`."""

    layers: Any  # nn.ModuleList of TransformerLayer

    def __init__(
        self,
        config: LayersConfig,
        alpha: float | str,
        context_alpha: float | str | None = None,
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            TransformerLayer(config, alpha, context_alpha) for _ in range(config.layers)
        )
        self.norm = nn.LayerNorm(config.hidden_size)

    def forward(
        self, x: Tensor, memory: Tensor | None = None, *, need_weights: bool = False, **masks: Any
    ) -> tuple[Tensor, Tensor | None]:
        """The hidden states and, with `need_weights`, the weights of the last layer; see the layer."""
        weights, last = None, len(self.layers) - 1
        for number, layer in enumerate(self.layers):
            wanted = need_weights and number == last
            x, weights = layer(x, memory, need_weights=wanted, **masks)
        return self.norm(x), weights

    def step(
        self, x: Tensor, past: list[Projected], memory: list[Projected] | None, **masks: Any
    ) -> tuple[Tensor, list[Projected], Tensor | None]:
        """New positions through all layers: hidden states, keys and values, weights of the last layer."""
        following, weights = [], None
        for number, layer in enumerate(self.layers):
            of_memory = None if memory is None else memory[number]
            x, own, weights = layer.step(x, past[number], of_memory, **masks)
            following.append(own)
        return self.norm(x), following, weights


def learned_alphas(kinds: Mapping[str, Iterable[MultiheadAttention]]) -> dict[str, Tensor]:
    """The learned α of every head, (heads,) in float32, as "kind.layer"; a fixed α is left out."""
    return {
        f"{kind}.{number}": torch.as_tensor(attention.alpha).detach().float()
        for kind, attentions in kinds.items()
        for number, attention in enumerate(attentions)
        if attention.exponent.is_learned
    }
