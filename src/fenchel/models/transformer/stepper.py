"""The models as search sees them: one step for the hypotheses of a batch, with cached keys and values."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, final

import torch
from torch import Tensor
from torch.nn import functional as F

from fenchel.data.vocabulary import BOS
from fenchel.maps.entmax import entmax
from fenchel.mechanisms.masks import causal, check_lengths
from fenchel.models.transformer.layer import Projected

if TYPE_CHECKING:
    from fenchel.models.transformer.language_model import LanguageModel
    from fenchel.models.transformer.layer import TransformerStack
    from fenchel.models.transformer.model import Transformer

Cache = list[Projected]  # per layer, the keys and values (B, K, heads, length, head size)


@final
class TransformerStepper:
    """Next-token probabilities of K hypotheses for each of B sentences, exact zeros included.

    The encoder has run once. The keys and values of its states are held here and never copied for the
    hypotheses. The state that search reorders has the keys and values of the hypotheses themselves,
    to which every step adds one position.

    Attributes:
        batch_size, device: of the sentences.
        attention: the weights (B, K, S) of the last step, in the last layer, averaged over the heads.
    """

    attention: Tensor | None

    def __init__(self, model: Transformer, source: Tensor) -> None:
        self.model, self.attention = model, None
        self.batch_size, self.device = source.shape[0], source.device
        with torch.no_grad():
            states, padding = model.encode(source)
            self._visible = ~padding[:, None, None]
            self._memory = [
                Projected(*layer.multihead_attn.project_keys(states, states))
                for layer in model.decoder.layers
            ]

    def start(self, width: int) -> Cache:
        """The state of `width` hypotheses per sentence before the first step: empty caches."""
        return empty_cache(self.model.decoder, self._memory[0].keys, (self.batch_size, width))

    @torch.no_grad()
    def __call__(self, tokens: Tensor, state: Cache) -> tuple[Tensor, Cache]:
        """From the last tokens (B, K): probabilities (B, K, V) and the state after them."""
        past = flat(state)
        x = self.model.target_embedding(tokens.reshape(-1, 1), past[0].keys.shape[2])
        hidden, following, weights = self.model.decoder.step(
            x, past, self._memory, memory_visible=self._visible
        )
        assert weights is not None
        self.attention = weights.mean(1)
        scores = self.model.output(hidden).view(*tokens.shape, -1)
        probabilities = entmax(scores, self.model.config.output_alpha)
        return probabilities, unflat(following, tokens.shape)

    def select(self, rows: Tensor) -> TransformerStepper:
        """The same model for some of the sentences, `rows` (int64)."""
        chosen = copy(self)
        chosen.batch_size, chosen.attention = rows.shape[0], None
        chosen._visible = self._visible[rows]
        chosen._memory = [Projected(*(part[rows] for part in kept)) for kept in self._memory]
        return chosen


@final
class LanguageModelStepper:
    """Next-token probabilities of K continuations of each of B texts, exact zeros included.

    A search starts with the token BOS, which stands for the last token of each text here. The state is
    a cache of keys and values, which starts with those of BOS and the tokens before the last.

    Attributes:
        batch_size, device: of the texts.
        attention: the weights (B, K, length) of the last step over the cached positions and its own, in
            the last layer, averaged over the heads. Columns are aligned at the end of the texts.
    """

    attention: Tensor | None

    def __init__(self, model: LanguageModel, tokens: Tensor, lengths: Tensor) -> None:
        self.model, self.attention = model, None
        self.batch_size, self.device = tokens.shape[0], tokens.device
        lengths = lengths.to(tokens.device)
        check_lengths(lengths, tokens.shape[:1], tokens.shape[1], tokens)
        texts = F.pad(tokens, (1, 0), value=BOS)
        self._last = texts.gather(1, lengths.unsqueeze(1))
        self._length = tokens.shape[1]  # of the cached texts, padding at their beginnings included
        self._padding = self._length - lengths
        places = torch.arange(self._length, device=self.device) - self._padding.unsqueeze(1)
        self._visible = places >= 0
        cached = texts.gather(1, places.clamp(min=0))
        with torch.no_grad():
            x = model.embedding(cached, padding=self._padding)
            past = flat(empty_cache(model.decoder, x, (self.batch_size, 1)))
            visible = causal(self._length, self._length, device=self.device)
            visible = visible & self._visible[:, None, None]
            self._cache = past
            if self._length > 0:
                _, self._cache, _ = model.decoder.step(x, past, None, visible=visible)

    def start(self, width: int) -> Cache:
        """The state of `width` continuations per text: the cache of the texts."""
        return [
            Projected(
                *(part.unsqueeze(1).expand(-1, width, -1, -1, -1).contiguous() for part in kept)
            )
            for kept in self._cache
        ]

    @torch.no_grad()
    def __call__(self, tokens: Tensor, state: Cache) -> tuple[Tensor, Cache]:
        """From the last tokens (B, K): probabilities (B, K, V) and the state after them."""
        past, width = flat(state), tokens.shape[1]
        length = past[0].keys.shape[2]
        if length == self._length:
            tokens = self._last.expand(-1, width)
        visible = F.pad(self._visible, (0, length + 1 - self._length), value=True)
        x = self.model.embedding(
            tokens.reshape(-1, 1), length, self._padding.repeat_interleave(width)
        )
        hidden, following, weights = self.model.decoder.step(
            x, past, None, visible=visible.repeat_interleave(width, 0)[:, None, None]
        )
        assert weights is not None
        self.attention = weights.mean(1).view(*tokens.shape, -1)
        scores = self.model.output(hidden).view(*tokens.shape, -1)
        probabilities = entmax(scores, self.model.config.output_alpha)
        return probabilities, unflat(following, tokens.shape)

    def select(self, rows: Tensor) -> LanguageModelStepper:
        """The same model for some of the texts, `rows` (int64)."""
        chosen = copy(self)
        chosen.batch_size, chosen.attention = rows.shape[0], None
        chosen._last, chosen._padding = self._last[rows], self._padding[rows]
        chosen._visible = self._visible[rows]
        chosen._cache = [Projected(*(part[rows] for part in kept)) for kept in self._cache]
        return chosen


def empty_cache(decoder: TransformerStack, like: Tensor, shape: tuple[int, int]) -> Cache:
    """The cache of all layers for (B, K) hypotheses without a token."""
    attention = decoder.layers[0].self_attn
    sizes = (*shape, attention.num_heads, 0, attention.head_dim)
    return [Projected(like.new_empty(sizes), like.new_empty(sizes)) for _ in decoder.layers]


def flat(cache: Cache) -> Cache:
    """(B, K, …) → (B · K, …)."""
    return [Projected(*(part.flatten(0, 1) for part in of_layer)) for of_layer in cache]


def unflat(cache: Cache, shape: torch.Size) -> Cache:
    """(B · K, …) → (B, K, …)."""
    return [Projected(*(part.unflatten(0, shape) for part in of_layer)) for of_layer in cache]
