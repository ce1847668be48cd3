"""Global attention of the decoder: any score, any map."""

from __future__ import annotations

from typing import NamedTuple, final

import torch
from torch import Tensor, nn

from fenchel.continuous.basis import GaussianBasis
from fenchel.continuous.values import ridge_values
from fenchel.mechanisms.recurrent import AdditiveAttention, GeneralAttention
from fenchel.models.seq2seq.config import BASIS_WIDTHS, Seq2SeqConfig
from fenchel.nn.continuous import ContinuousAttention1d
from fenchel.nn.maps import Entmax, Map, Softmax, Sparsemax
from fenchel.nn.structured import Fusedmax, Oscarmax, Pnormmax


class Memory(NamedTuple):
    """What attention needs of the encoder's states, computed once for all steps."""

    keys: Tensor  # (B, S, ·), projected
    values: Tensor  # (B, S, H), already multiplied by the context's part of the output layer
    mask: Tensor  # (B, 1, S)
    coefficients: Tensor | None  # of the value function, for continuous attention

    def select(self, rows: Tensor) -> Memory:
        """That of some of the sentences."""
        coefficients = None if self.coefficients is None else self.coefficients[rows]
        return Memory(self.keys[rows], self.values[rows], self.mask[rows], coefficients)


@final
class DotScore(nn.Module):
    """Scores qᵀ k."""

    def project_keys(self, keys: Tensor) -> Tensor:
        return keys

    def scores(self, query: Tensor, projected_keys: Tensor) -> Tensor:
        return query @ projected_keys.mT


@final
class GivenWeights(nn.Module):
    """An attention whose query is its weights: continuous attention then takes their moments."""

    def forward(self, query: Tensor, keys: Tensor, **_: Tensor | None) -> tuple[None, Tensor]:
        return None, query


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
        self.continuous = _continuous(config) if config.attention_map == "combined" else None
        self._bases = config.attention_bases
        self._kept: dict[tuple[int, torch.device], Tensor] = {}

    @property
    def constant_alpha(self) -> float | None:
        """α, if the scores are products and the map is entmax with a constant; otherwise None."""
        if isinstance(self.score, AdditiveAttention) or self.continuous is not None:
            return None
        if isinstance(self.map, Softmax | Sparsemax):
            return 1.0 if isinstance(self.map, Softmax) else 2.0
        alpha = self.map.alpha if isinstance(self.map, Entmax) else None
        return alpha if isinstance(alpha, float) else None

    def remember(self, states: Tensor, mask: Tensor) -> Memory:
        """From the states (B, S, H) and what is valid of them (B, S)."""
        values = self.of_context(states)
        coefficients = None
        if self.continuous is not None:
            regressors = self._regressors(states)[mask.sum(1).clamp(min=1) - 1]
            coefficients = regressors[..., : states.shape[1]].to(values.dtype) @ values
        return Memory(self.score.project_keys(states), values, mask.unsqueeze(1), coefficients)

    def _regressors(self, states: Tensor) -> Tensor:
        """The matrices (L, N, L) of which that at ℓ − 1 fits a function to ℓ values and no more.

        They depend on nothing but ℓ. Made once on the CPU, for all ℓ up to a power of two, they are
        looked up where the lengths are, and the host need not know these. None is ever dropped: a
        recorded step reads it again.
        """
        width = 1 << (states.shape[1] - 1).bit_length()
        key = width, states.device
        if key not in self._kept and self.continuous is not None:
            units = torch.eye(width, dtype=torch.float64, device="cpu").expand(width, -1, -1)
            lengths, basis = torch.arange(1, width + 1, device="cpu"), _basis(self._bases)
            fitted = ridge_values(units, None, basis, self.continuous.penalty, lengths=lengths)
            self._kept[key] = fitted.to(states.device)
        return self._kept[key]

    def forward(self, query: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        """From queries (B, T, H): the attentional hidden states (B, T, H), the weights (B, T, S)."""
        scores = self.score.scores(query, memory.keys)
        weights = self.map(scores, dim=-1, mask=memory.mask)
        from_query = self.of_query(query)
        if self.continuous is None:
            mixed = torch.baddbmm(from_query, weights.to(from_query.dtype), memory.values)
        else:
            context, _ = self.continuous(
                weights,
                memory.values,
                lengths=memory.mask.sum((1, 2)).clamp(min=1),  # of a row of padding, anything
                coefficients=memory.coefficients,
            )
            mixed = from_query + context
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


def _basis(count: int) -> GaussianBasis:
    """The functions of "combined", which are not learned."""
    return GaussianBasis.grid(count // len(BASIS_WIDTHS), BASIS_WIDTHS, device="cpu")


def _continuous(config: Seq2SeqConfig) -> ContinuousAttention1d:
    return ContinuousAttention1d.combined(
        GivenWeights(), _basis(config.attention_bases), alpha=float(config.attention_alpha)
    )
