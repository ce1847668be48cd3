"""Global attention of the decoder."""

from __future__ import annotations

from typing import NamedTuple, final

import torch
from torch import Tensor, nn

from fenchel.mechanisms.recurrent import AdditiveAttention, GeneralAttention
from fenchel.models.seq2seq.config import Seq2SeqConfig
from fenchel.models.seq2seq.continuous import Continuous
from fenchel.models.seq2seq.interval import Positions
from fenchel.nn.maps import Entmax, Map, Softmax, Sparsemax
from fenchel.nn.structured import Fusedmax, Oscarmax, Pnormmax


class Memory(NamedTuple):
    """The projected states of the encoder, computed once for all steps."""

    keys: Tensor  # (B, S, ·)
    values: Tensor  # (B, S, H); for continuous attention (B, S + N, H), followed by coefficients
    mask: Tensor  # (B, 1, S), False at padding
    positions: Positions | None  # for continuous attention

    def select(self, rows: Tensor) -> Memory:
        """The memory of the sentences `rows`."""
        positions = None if self.positions is None else self.positions.select(rows)
        return Memory(self.keys[rows], self.values[rows], self.mask[rows], positions)


@final
class DotScore(nn.Module):
    """Scores qᵀ k."""

    def project_keys(self, keys: Tensor) -> Tensor:
        return keys

    def scores(self, query: Tensor, projected_keys: Tensor) -> Tensor:
        return query @ projected_keys.mT


@final
class GlobalAttention(nn.Module):
    """h̃ = tanh(W c + U q), with the context c = Σ pᵢ sᵢ of the states s, and p = map(score(q, s)).

    With `attention_bias`, a bias is added inside tanh.

    Since W c = Σ pᵢ (W sᵢ), W is applied to the states once and not to the context of every step. The
    continuous context is linear in the values W sᵢ as well.

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
        # The weights sum to one, so a bias of the values is one of the context.
        self.of_context = nn.Linear(size, size, bias=config.attention_bias)
        self.of_query = nn.Linear(size, size, bias=False)
        self.continuous: Continuous | None = None
        if config.attention_map == "combined":
            self.continuous = Continuous(config.attention_bases, config.density_alpha)

    @property
    def constant_alpha(self) -> float | None:
        """α if the scores are dot products and the map is entmax with a constant α, otherwise None."""
        if isinstance(self.score, AdditiveAttention):
            return None
        if isinstance(self.map, Softmax | Sparsemax):
            return 1.0 if isinstance(self.map, Softmax) else 2.0
        alpha = self.map.alpha if isinstance(self.map, Entmax) else None
        return alpha if isinstance(alpha, float) else None

    def remember(self, states: Tensor, mask: Tensor) -> Memory:
        """From the states of the encoder (B, S, H) and their mask (B, S)."""
        values, positions = self.of_context(states), None
        if self.continuous is not None:
            positions = self.continuous.positions(mask)
            values = torch.cat([values, self.continuous.fit(values, mask, positions)], 1)
        return Memory(self.score.project_keys(states), values, mask.unsqueeze(1), positions)

    def forward(self, query: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        """From queries (B, T, H): h̃ (B, T, H) and the weights (B, T, S)."""
        scores = self.score.scores(query, memory.keys)
        weights = self.map(scores, dim=-1, mask=memory.mask)
        coefficients = weights
        if self.continuous is not None and memory.positions is not None:
            coefficients = torch.cat([weights, self.continuous(weights, memory.positions)], -1)
        from_query = self.of_query(query)
        coefficients = coefficients.to(from_query.dtype)
        mixed = torch.baddbmm(from_query, coefficients, memory.values)
        return torch.tanh(mixed), weights


def _map(config: Seq2SeqConfig) -> Map:
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
