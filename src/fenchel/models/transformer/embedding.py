"""Embeddings of tokens with sinusoidal positions."""

from __future__ import annotations

import math
from typing import final

import torch
from torch import Tensor, nn

from fenchel.data.vocabulary import PAD
from fenchel.errors import FenchelError
from fenchel.models.dropout import dropout


@final
class PositionalEmbedding(nn.Module):
    """√H · embedding + position, where dimensions 2i and 2i + 1 of position t are the sine and the
    cosine of t / 10000^(2i / H).

    >>> import torch
    >>> embedding = PositionalEmbedding(vocabulary_size=9, size=4, max_positions=100)
    >>> embedding(torch.tensor([[4, 5, 6], [7, 8, 0]])).shape
    torch.Size([2, 3, 4])
    """

    positions: Tensor

    def __init__(
        self, vocabulary_size: int, size: int, max_positions: int, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.dropout, self.factor = dropout, math.sqrt(size)
        self.tokens = nn.Embedding(vocabulary_size, size, padding_idx=PAD)
        self.register_buffer("positions", sinusoids(max_positions, size), persistent=False)

    def forward(self, tokens: Tensor, first: int = 0, padding: Tensor | None = None) -> Tensor:
        """Embed tokens (B, L), which are at the positions from `first` on.

        Args:
            tokens: integers (B, L).
            first: the position of the first token.
            padding: integers (B,), by how much less the positions of a row are, if there was padding
                at its beginning.
        """
        longest, end = self.positions.shape[0], first + tokens.shape[1]
        if end > longest:
            raise FenchelError(
                f"a sequence must not be longer than max_positions = {longest}, got {end} tokens"
            )
        positions = self.positions[first:end]
        if padding is not None:
            places = torch.arange(first, end, device=padding.device) - padding.unsqueeze(1)
            positions = self.positions[places.clamp(min=0)]
        embedded = self.tokens(tokens) * self.factor + positions
        return dropout(embedded, self.dropout, self.training)


def sinusoids(length: int, size: int) -> Tensor:
    """(length, size), the sines and cosines of every position in turn.

    >>> sinusoids(2, 4)
    tensor([[0.0000, 1.0000, 0.0000, 1.0000],
            [0.8415, 0.5403, 0.0100, 0.9999]])
    """
    rates = 10_000 ** (-torch.arange(0, size, 2, dtype=torch.float64) / size)
    angles = torch.arange(length, dtype=torch.float64).unsqueeze(1) * rates
    pairs = torch.stack([angles.sin(), angles.cos()], -1)
    return pairs.flatten(1).to(torch.get_default_dtype())
