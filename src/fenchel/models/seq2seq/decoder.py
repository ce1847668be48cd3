"""The decoder: a stacked LSTM with attention and input feeding."""

from __future__ import annotations

from typing import Any, NamedTuple, final

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fenchel.autocast import autocast_dtype, without_autocast
from fenchel.data.vocabulary import PAD
from fenchel.models.seq2seq.attention import GlobalAttention, Memory
from fenchel.models.seq2seq.config import Seq2SeqConfig
from fenchel.models.seq2seq.recurrence import Known, Recurrence


class State(NamedTuple):
    """The state between two steps, for N rows: the sentences, or all hypotheses of all sentences."""

    hidden: tuple[Tensor, ...]  # per layer (N, H)
    cell: tuple[Tensor, ...]  # per layer (N, H)
    fed: Tensor | None  # (N, H), the attention output; None without input feeding


@final
class Decoder(nn.Module):
    """h̃_t = attention(LSTM([y_{t−1}; h̃_{t−1}])), where y are embeddings.

    All steps of a target run in one of three ways:

    - Without input feeding, the LSTM runs over all steps at once, and so does attention.
    - `Recurrence` has a backward pass of its own, for attention with dot products and constant α.
    - Otherwise autograd records every step.

    `benchmarks/decoding.py` measures the first two against the third; its results are in
    `benchmarks/results`, under "decoder".
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

    def start(self, hidden: Tensor, cell: Tensor) -> State:
        """The state before the first step, from the encoder's (layers, B, H)."""
        fed = torch.zeros_like(hidden[-1]) if self.input_feeding else None
        return State(tuple(hidden.unbind()), tuple(cell.unbind()), fed)

    def forward(self, tokens: Tensor, state: State, memory: Memory) -> tuple[Tensor, Tensor]:
        """From the tokens (B, T) before each step: h̃ (B, T, H) and attention weights (B, T, S)."""
        if not self.input_feeding:
            return self._at_once(tokens, state, memory)
        if self._has_own_derivative(memory):
            return self._recurrence(tokens, state, memory)
        return self._step_by_step(tokens, state, memory)

    def step(self, tokens: Tensor, state: State, memory: Memory) -> tuple[Tensor, Tensor, State]:
        """One step of K hypotheses per sentence: h̃ (B, K, H), weights (B, K, S), the next state.

        Args:
            tokens: (B, K).
            state: Of B · K rows.
            memory: Of the B sentences.
        """
        return self._step(self.embedding(tokens.flatten()), state, memory)

    def _at_once(self, tokens: Tensor, state: State, memory: Memory) -> tuple[Tensor, Tensor]:
        start = torch.stack(state.hidden), torch.stack(state.cell)
        with without_autocast(tokens.device):
            outputs, _ = self.lstm(self.embedding(tokens), start)
        attended, weights = self.attention(outputs, memory)
        return F.dropout(attended, self.dropout, self.training), weights

    def _step_by_step(self, tokens: Tensor, state: State, memory: Memory) -> tuple[Tensor, Tensor]:
        seen, weights = [], []
        for embedded in self.embedding(tokens.mT).unbind():
            attended, weight, state = self._step(embedded, state, memory)
            seen.append(attended)
            weights.append(weight)
        return torch.cat(seen, 1), torch.cat(weights, 1)

    def _step(self, embedded: Tensor, state: State, memory: Memory) -> tuple[Tensor, Tensor, State]:
        inputs = embedded if state.fed is None else torch.cat([embedded, state.fed], 1)
        hidden, cell = [], []
        for layer, weights in enumerate(self.lstm.all_weights):
            if layer > 0:
                inputs = F.dropout(inputs, self.dropout, self.training)
            before = state.hidden[layer], state.cell[layer]
            inputs, following = torch.lstm_cell(inputs, before, *weights)
            hidden.append(inputs)
            cell.append(following)
        query = inputs.view(memory.keys.shape[0], -1, inputs.shape[1])
        attended, attention = self.attention(query, memory)
        attended = F.dropout(attended, self.dropout, self.training)
        fed = attended.flatten(0, 1) if self.input_feeding else None
        return attended, attention, State(tuple(hidden), tuple(cell), fed)

    def _has_own_derivative(self, memory: Memory) -> bool:
        """Whether `Recurrence` supports the attention, for these keys."""
        device, continuous = memory.keys.device, self.attention.continuous
        if autocast_dtype(device) is not None or self.attention.constant_alpha is None:
            return False
        return continuous is None or continuous.has_closed_form(device)

    def _recurrence(self, tokens: Tensor, state: State, memory: Memory) -> tuple[Tensor, Tensor]:
        gates = self._known_gates(tokens.mT)
        kept = None
        if self.training and self.dropout > 0:
            kept = gates.new_empty(self.layers, *gates.shape[:2], gates.shape[2] // 4)
            kept.bernoulli_(1 - self.dropout).div_(1 - self.dropout)
        known = Known(
            self.attention.constant_alpha or 1.0,
            memory.positions,
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
        outputs: Any = Recurrence.apply(self.layers, *known, *self._matrices(), *biases)
        return outputs

    def _known_gates(self, tokens: Tensor) -> Tensor:
        """The contribution of the embeddings, and the bias, to the gates of the first layer."""
        of_embedding = getattr(self.lstm, "weight_ih_l0")[:, : self.embedding_size]  # noqa: B009
        return F.linear(self.embedding(tokens), of_embedding, self._bias(0))

    def _matrices(self) -> list[Tensor]:
        """Per layer, the matrix (in, 4H) of the input that a step computes and of the hidden state."""
        matrices = []
        for layer, (of_input, of_state, *_) in enumerate(self.lstm.all_weights):
            of_input = of_input[:, self.embedding_size :] if layer == 0 else of_input
            matrices.append(torch.cat([of_input, of_state], 1).t())
        return matrices

    def _bias(self, layer: int) -> Tensor:
        _, _, of_input, of_state = self.lstm.all_weights[layer]
        return of_input + of_state
