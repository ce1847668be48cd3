"""The model as search sees it: one step for the hypotheses of a batch."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, final

import torch
from torch import Tensor

from fenchel.maps.entmax import entmax
from fenchel.models.seq2seq.decoder import State

if TYPE_CHECKING:
    from fenchel.models.seq2seq.model import Seq2Seq

Tensors = tuple[Tensor, ...]


@final
class Seq2SeqStepper:
    """Next-token probabilities of K hypotheses for each of B sentences, exact zeros included.

    The encoder has run once; its states are held here and never copied for the hypotheses. The state
    that search reorders is a tuple of tensors (B, K, …): the layers' hidden states and cells
    (B, K, layers, H), and what attention saw (B, K, H).

    Attributes:
        batch_size, device: of the sentences.
        attention: the weights (B, K, S) of the last step.
    """

    attention: Tensor | None

    def __init__(self, model: Seq2Seq, source: Tensor, source_lengths: Tensor) -> None:
        self.model, self.attention = model, None
        self.batch_size, self.device = source.shape[0], source.device
        with torch.no_grad():
            encoded = model.encoder(source)
            self._memory = model.decoder.attention.remember(encoded.states, encoded.mask)
            self._hidden = encoded.hidden.movedim(0, 1)
            self._cell = encoded.cell.movedim(0, 1)

    def start(self, width: int) -> Tensors:
        """The state of `width` hypotheses per sentence before the first step."""
        first = [_repeated(part, width) for part in (self._hidden, self._cell)]
        if self.model.config.input_feeding:
            first.append(torch.zeros_like(first[0][:, :, -1]))
        return tuple(first)

    @torch.no_grad()
    def __call__(self, tokens: Tensor, state: Tensors) -> tuple[Tensor, Tensors]:
        """From the last tokens (B, K): probabilities (B, K, V) and the state after them."""
        hidden, cell, *fed = (part.flatten(0, 1) for part in state)
        rows = State(hidden.unbind(1), cell.unbind(1), fed[0] if fed else None)
        attended, self.attention, after = self.model.decoder.step(tokens, rows, self._memory)
        scores = self.model.output(attended)
        probabilities = entmax(scores, self.model.config.output_alpha)
        shape = tokens.shape
        following = [
            torch.stack(part, 1).unflatten(0, shape) for part in (after.hidden, after.cell)
        ]
        if after.fed is not None:
            following.append(after.fed.unflatten(0, shape))
        return probabilities, tuple(following)

    def select(self, rows: Tensor) -> Seq2SeqStepper:
        """The same model for some of the sentences, `rows` (int64)."""
        chosen = copy(self)
        chosen.batch_size, chosen.attention = rows.shape[0], None
        chosen._memory = self._memory.select(rows)
        chosen._hidden, chosen._cell = self._hidden[rows], self._cell[rows]
        return chosen


def _repeated(states: Tensor, width: int) -> Tensor:
    """(B, …) → (B, width, …)."""
    return states.unsqueeze(1).expand(-1, width, *states.shape[1:]).contiguous()
