"""The decoder: a stacked LSTM whose attention feeds the next step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, final

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fenchel.autocast import autocast_dtype
from fenchel.data.vocabulary import PAD
from fenchel.models.seq2seq.attention import GlobalAttention, Memory
from fenchel.models.seq2seq.cell import lstm_cell
from fenchel.models.seq2seq.config import Seq2SeqConfig
from fenchel.models.seq2seq.recurrence import Known, Recurrence


class State(NamedTuple):
    """What a step passes to the next; N rows are the sentences, or all their hypotheses."""

    hidden: tuple[Tensor, ...]  # one (N, H) a layer
    cell: tuple[Tensor, ...]
    fed: Tensor | None  # (N, H), what attention saw; None without input feeding


@final
class Decoder(nn.Module):
    """h̃_t = attention(LSTM(h̃_{t−1}, y_{t−1})).

    The steps follow one another, so everything is done for all of them at once that does not wait for
    the step before: the embeddings' part of the gates, the projected keys and values. What is left of
    a step is one matrix product a layer, and the attention. Without input feeding the LSTM runs over
    all steps by itself, and attention sees all of them together.
    """

    def __init__(self, config: Seq2SeqConfig) -> None:
        super().__init__()
        size = config.hidden_size
        self.input_feeding, self.embedding_size = config.input_feeding, config.embedding_size
        self.dropout, self.layers = config.dropout, config.layers
        self.embedding = nn.Embedding(config.target_size, config.embedding_size, padding_idx=PAD)
        self.lstm = nn.LSTM(
            config.embedding_size + (size if config.input_feeding else 0),
            size,
            config.layers,
            batch_first=True,
            dropout=config.dropout if config.layers > 1 else 0.0,
        )
        self.attention = GlobalAttention(config)
        self._compiled: Callable[..., tuple[Tensor, Tensor]] | None = None

    def start(self, hidden: Tensor, cell: Tensor) -> State:
        """The state before the first step, from the encoder's (layers, B, H)."""
        fed = torch.zeros_like(hidden[-1]) if self.input_feeding else None
        return State(tuple(hidden.unbind()), tuple(cell.unbind()), fed)

    def forward(self, tokens: Tensor, state: State, memory: Memory) -> tuple[Tensor, Tensor]:
        """All steps, with the tokens (B, T) before each: h̃ (B, T, H) and weights (B, T, S)."""
        if not self.input_feeding:
            return self._at_once(tokens, state, memory)
        if self._compiled is None and self._has_own_derivative(memory):
            return self._recurrence(tokens, state, memory)
        steps = self._one_by_one if self._compiled is None else self._compiled
        return steps(self._inputs(tokens.mT), state, memory, self.matrices())

    def compile_steps(self, **options: Any) -> None:
        """Run the steps of training through `torch.compile`, once for every number of them."""
        self._compiled = torch.compile(self._one_by_one, **options)

    def _one_by_one(
        self,
        inputs: list[tuple[Tensor, ...]],
        state: State,
        memory: Memory,
        matrices: list[Tensor],
    ) -> tuple[Tensor, Tensor]:
        """All steps, for any attention: autograd follows every one."""
        seen, weights = [], []
        for given in zip(*inputs, strict=True):
            attended, weight, state = self._step(given, state, memory, matrices)
            seen.append(attended)
            weights.append(weight)
        return torch.cat(seen, 1), torch.cat(weights, 1)

    def step(
        self, tokens: Tensor, state: State, memory: Memory, matrices: list[Tensor]
    ) -> tuple[Tensor, Tensor, State]:
        """One step of K hypotheses a sentence: h̃ (B, K, H), weights (B, K, S), the next state.

        Args:
            tokens: (B, K).
            state: of B · K rows.
            memory: of the B sentences.
            matrices: `matrices()`, the same for all steps.
        """
        given = [each[0] for each in self._inputs(tokens.reshape(1, -1))]
        return self._step(given, state, memory, matrices)

    def _has_own_derivative(self, memory: Memory) -> bool:
        """Whether `Recurrence` applies: scores that are products, a constant α, full precision; and
        closed forms, where attention is continuous."""
        continuous = self.attention.continuous
        if continuous is not None and not continuous.is_closed(memory.keys):
            return False
        plain = autocast_dtype(memory.keys.device) is None
        return plain and self.attention.constant_alpha is not None

    def _recurrence(self, tokens: Tensor, state: State, memory: Memory) -> tuple[Tensor, Tensor]:
        gates = self._known_gates(tokens.mT)
        kept = None
        if self.training and self.dropout > 0:
            kept = gates.new_empty(self.layers, *gates.shape[:2], gates.shape[2] // 4)
            kept.bernoulli_(1 - self.dropout).div_(1 - self.dropout)
        known = Known(
            self.attention.constant_alpha or 1.0,
            memory.places,
            kept,
            memory.mask,
            gates,
            torch.stack(state.hidden),
            torch.stack(state.cell),
            memory.keys,
            memory.values,
            self.attention.of_query.weight,
        )
        biases = [self._bias(layer) for layer in range(1, self.layers)]
        outputs: Any = Recurrence.apply(self.layers, *known, *self.matrices(), *biases)
        return outputs

    def _at_once(self, tokens: Tensor, state: State, memory: Memory) -> tuple[Tensor, Tensor]:
        embedded = self.embedding(tokens)
        start = [torch.stack(part).to(embedded.dtype) for part in (state.hidden, state.cell)]
        with torch.autocast("cpu", enabled=False):  # where half precision wants special sizes
            outputs, _ = self.lstm(embedded, tuple(start))
        attended, weights = self.attention(outputs, memory)
        return F.dropout(attended, self.dropout, self.training), weights

    def _inputs(self, tokens: Tensor) -> list[tuple[Tensor, ...]]:
        """For each layer and each of T steps, the part (N, 4H) of the gates known beforehand.

        In the first layer that is the embeddings' part, in the others the bias.
        """
        gates = self._known_gates(tokens)
        others = [self._bias(layer).expand_as(gates) for layer in range(1, self.layers)]
        return [each.unbind(0) for each in (gates, *(bias.to(gates.dtype) for bias in others))]

    def _known_gates(self, tokens: Tensor) -> Tensor:
        """The embeddings' part of the first layer's gates, with its bias."""
        of_embedding = getattr(self.lstm, "weight_ih_l0")[:, : self.embedding_size]  # noqa: B009
        return F.linear(self.embedding(tokens), of_embedding, self._bias(0))

    def matrices(self) -> list[Tensor]:
        """For each layer, (in, 4H): the matrix of what enters it at a step and of its own state."""
        matrices = []
        for layer in range(self.layers):
            from_below = getattr(self.lstm, f"weight_ih_l{layer}")
            from_below = from_below[:, self.embedding_size :] if layer == 0 else from_below
            own = getattr(self.lstm, f"weight_hh_l{layer}")
            matrices.append(torch.cat([from_below, own], 1).t())
        return matrices

    def _bias(self, layer: int) -> Tensor:
        return getattr(self.lstm, f"bias_ih_l{layer}") + getattr(self.lstm, f"bias_hh_l{layer}")

    def _step(
        self,
        given: tuple[Tensor, ...] | list[Tensor],
        state: State,
        memory: Memory,
        matrices: list[Tensor],
    ) -> tuple[Tensor, Tensor, State]:
        below, hidden, cell = state.fed, [], []
        for layer in range(self.layers):
            if layer > 0:
                below = F.dropout(hidden[-1], self.dropout, self.training)
            own = state.hidden[layer]
            entering = own if below is None else torch.cat([below, own], 1)
            following = lstm_cell(given[layer], entering @ matrices[layer], state.cell[layer])
            hidden.append(following[0])
            cell.append(following[1])
        sentences = memory.keys.shape[0]
        query = hidden[-1].view(sentences, -1, hidden[-1].shape[-1])
        attended, weights = self.attention(query, memory)
        attended = F.dropout(attended, self.dropout, self.training)
        fed = attended.flatten(0, 1) if self.input_feeding else None
        return attended, weights, State(tuple(hidden), tuple(cell), fed)
