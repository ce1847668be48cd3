"""The encoder: embeddings and a bidirectional LSTM."""

from __future__ import annotations

from typing import NamedTuple, final

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fenchel.data.vocabulary import PAD
from fenchel.models.seq2seq.bidirectional import BidirectionalSteps
from fenchel.models.seq2seq.config import Seq2SeqConfig


class Encoded(NamedTuple):
    """What the decoder sees of the sources: their states, which are valid, and where it starts."""

    states: Tensor  # (B, S, H)
    mask: Tensor  # (B, S), True at symbols
    hidden: Tensor  # (layers, B, H)
    cell: Tensor  # (layers, B, H)


@final
class Encoder(nn.Module):
    """Reads sources in both directions; both halves of a layer's last states start the decoder's.

    Sources are padded at their ends. Nothing depends on the padding, and nothing here has to know a
    length outside the device, so that a whole training step can be recorded and replayed.
    """

    def __init__(self, config: Seq2SeqConfig) -> None:
        super().__init__()
        self.dropout, self.layers = config.dropout, config.layers
        self.embedding = nn.Embedding(config.source_size, config.embedding_size, padding_idx=PAD)
        half = config.hidden_size // 2
        self.lstm = nn.LSTM(config.embedding_size, half, config.layers, bidirectional=True)

    def forward(self, source: Tensor) -> Encoded:
        """Encode (B, S) symbols."""
        mask = source != PAD
        lengths, places = mask.sum(1), torch.arange(source.shape[1], device=source.device)
        backwards = torch.where(mask, lengths.unsqueeze(1) - 1 - places, places).mT.unsqueeze(-1)
        last = (lengths - 1).clamp(min=0)
        states, hidden, cell = self.embedding(source.mT), [], []
        for layer in range(self.layers):
            if layer > 0:
                states = F.dropout(states, self.dropout, self.training)
            states, *ends = self._layer(layer, states, backwards, last)
            hidden.append(ends[0])
            cell.append(ends[1])
        states = states.transpose(0, 1) * mask.unsqueeze(-1)
        return Encoded(states, mask, torch.stack(hidden), torch.stack(cell))

    def _layer(
        self, layer: int, states: Tensor, backwards: Tensor, last: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """From (S, B, in): the states (S, B, H), and the last states and cells (B, H)."""
        batch = states.shape[1]
        gates = [
            F.linear(inputs, self._of(layer, "weight_ih", way), self._bias(layer, way))
            for inputs, way in ((states, ""), (_reverse(states, backwards), "_reverse"))
        ]
        matrices = [self._of(layer, "weight_hh", way).t() for way in ("", "_reverse")]
        outputs, cells = BidirectionalSteps.apply(
            torch.stack(gates, 1).flatten(1, 2), torch.stack(matrices).to(gates[0].dtype)
        )  # pyright: ignore[reportGeneralTypeIssues]
        where = last.repeat(2).view(1, -1, 1).expand(1, -1, outputs.shape[-1])
        ends = [
            part.gather(0, where).view(2, batch, -1).transpose(0, 1).flatten(1)
            for part in (outputs, cells)
        ]
        onwards, back = outputs.unflatten(1, (2, batch)).unbind(1)
        return torch.cat([onwards, _reverse(back, backwards)], -1), *ends

    def _of(self, layer: int, name: str, way: str) -> Tensor:
        return getattr(self.lstm, f"{name}_l{layer}{way}")

    def _bias(self, layer: int, way: str) -> Tensor:
        return self._of(layer, "bias_ih", way) + self._of(layer, "bias_hh", way)


def _reverse(states: Tensor, backwards: Tensor) -> Tensor:
    """Every sequence of (S, B, ·) from its end to its begin, its padding where it was."""
    return states.gather(0, backwards.expand_as(states))
