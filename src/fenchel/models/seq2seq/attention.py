"""Global attention of the decoder: any score, any map."""

from __future__ import annotations

from typing import NamedTuple, final

import torch
from torch import Tensor, nn

from fenchel.mechanisms.recurrent import AdditiveAttention, GeneralAttention
from fenchel.models.seq2seq.config import Seq2SeqConfig
from fenchel.models.seq2seq.continuous import Continuous
from fenchel.models.seq2seq.interval import Places
from fenchel.nn.maps import Entmax, Map, Softmax, Sparsemax
from fenchel.nn.structured import Fusedmax, Oscarmax, Pnormmax


class Memory(NamedTuple):
    """What attention needs of the encoder's states, computed once for all steps."""

    keys: Tensor  # (B, S, ·), projected
    values: Tensor  # (B, S, H), already multiplied by the context's part of the output layer; for
    # continuous attention (B, S + N, H), below them the coefficients of the value function
    mask: Tensor  # (B, 1, S)
    places: Places | None  # for continuous attention

    def select(self, rows: Tensor) -> Memory:
        """That of some of the sentences."""
        places = None if self.places is None else self.places.select(rows)
        return Memory(self.keys[rows], self.values[rows], self.mask[rows], places)


@final
class DotScore(nn.Module):
    """Scores qᵀ k."""

    def project_keys(self, keys: Tensor) -> Tensor:
        return keys

    def scores(self, query: Tensor, projected_keys: Tensor) -> Tensor:
        return query @ projected_keys.mT


@final
class GlobalAttention(nn.Module):
    """h̃ = tanh(W c + U q), with c = Σ pᵢ kᵢ and p = map(score(q, k)).

    W c = Σ pᵢ (W kᵢ), so that W is applied to the states once, not to the context at every step. The
    continuous context is linear in the values as well.

    Reference: Luong, Pham & Manning (2015), *Effective Approaches to Attention-based Neural Machine
    Translation*.
    """

    def __init__(self, config: Seq2SeqConfig) -> None:
        super().__init__()
        size = config.hidden_size
        self.map = _map(config)
        self.score: DotScore | GeneralAttention | AdditiveAttention
        if config.attention == "general":
            self.score = GeneralAttention(size, size, self.map)
        elif config.attention == "additive":
            self.score = AdditiveAttention(size, size, size, self.map)
        else:
            self.score = DotScore()
        self.of_context = nn.Linear(size, size, bias=False)
        self.of_query = nn.Linear(size, size, bias=False)
        self.continuous: Continuous | None = None
        if config.attention_map == "combined":
            self.continuous = Continuous(config.attention_bases, config.density_alpha)

    @property
    def constant_alpha(self) -> float | None:
        """α, if the scores are products and the map is entmax with a constant; otherwise None."""
        if isinstance(self.score, AdditiveAttention):
            return None
        if isinstance(self.map, Softmax | Sparsemax):
            return 1.0 if isinstance(self.map, Softmax) else 2.0
        alpha = self.map.alpha if isinstance(self.map, Entmax) else None
        return alpha if isinstance(alpha, float) else None

    def remember(self, states: Tensor, mask: Tensor) -> Memory:
        """From the states (B, S, H) and what is valid of them (B, S)."""
        values, places = self.of_context(states), None
        if self.continuous is not None:
            places = self.continuous.places(mask)
            values = torch.cat([values, self.continuous.fit(values, mask, places)], 1)
        return Memory(self.score.project_keys(states), values, mask.unsqueeze(1), places)

    def forward(self, query: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        """From queries (B, T, H): the attentional hidden states (B, T, H), the weights (B, T, S)."""
        scores = self.score.scores(query, memory.keys)
        weights = self.map(scores, dim=-1, mask=memory.mask)
        mixing = weights
        if self.continuous is not None and memory.places is not None:
            mixing = torch.cat([weights, self.continuous(weights, memory.places)], -1)
        from_query = self.of_query(query)
        mixed = torch.baddbmm(from_query, mixing.to(from_query.dtype), memory.values)
        return torch.tanh(mixed), weights


def _map(config: Seq2SeqConfig) -> Map:
    """The module of the configuration's map."""
    strength = config.attention_strength
    given = () if strength is None else (strength,)
    structured = {"fusedmax": Fusedmax, "oscarmax": Oscarmax, "pnormmax": Pnormmax}
    if config.attention_map in structured:
        return structured[config.attention_map](*given)
    if config.attention_map == "softmax":
        return Softmax()
    if config.attention_map == "sparsemax":
        return Sparsemax()
    return Entmax(alpha=config.attention_alpha)
