"""The encoder: embeddings and a bidirectional LSTM."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple, final

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fenchel.autocast import without_autocast
from fenchel.data.vocabulary import PAD
from fenchel.models.seq2seq.config import Seq2SeqConfig

SATURATED = 1e4  # input of a gate whose sigmoid is exactly 1, and 0 for −1e4; finite in float16


class EncoderOutput(NamedTuple):
    """The output of the encoder."""

    states: Tensor  # (B, S, H), zero at padding
    mask: Tensor  # (B, S), False at padding
    hidden: Tensor  # (layers, B, H), last hidden states of both directions
    cell: Tensor  # (layers, B, H), last cells of both directions


@final
class Encoder(nn.Module):
    """A bidirectional LSTM over sources that are padded at their ends.

    A recorded training step (`fenchel.training.graphs`) is replayed on sources of other lengths, so the
    lengths may not be read outside the device, and sequences cannot be packed. Instead, every layer has
    an additional input that is 1 at padding and 0 elsewhere. There it closes the input gate and opens
    the forget gate, and the cell does not change:

        c_t = 1 · c_{t−1} + 0 · g_t.

    So the last cell of the forward direction is that of the last symbol, and the backward direction,
    which starts with the padding, comes to the last symbol with a zero state, as with packed sequences.
    The weights of the additional input are constants.
    """

    padding_weight: Tensor  # (4 · H / 2, 1)

    def __init__(self, config: Seq2SeqConfig) -> None:
        super().__init__()
        self.dropout, self.layers = config.dropout, config.layers
        self.embedding = nn.Embedding(config.source_size, config.embedding_size, padding_idx=PAD)
        half = config.hidden_size // 2
        self.lstm = nn.LSTM(config.embedding_size, half, config.layers, bidirectional=True)
        gates = torch.tensor([-SATURATED, SATURATED, 0.0, 0.0])  # input, forget, candidate, output
        column = gates.repeat_interleave(half).unsqueeze(1)
        self.register_buffer("padding_weight", column, persistent=False)

    def forward(self, source: Tensor) -> EncoderOutput:
        """Encode symbols (B, S)."""
        mask = source != PAD
        padding = (~mask).mT.unsqueeze(-1)
        last = (mask.sum(1) - 1).clamp(min=0).view(1, -1, 1)
        states, hidden, cell = self.embedding(source.mT), [], []
        with _full_precision(source.device):
            for layer in range(self.layers):
                if layer > 0:
                    states = F.dropout(states, self.dropout, self.training)
                states, backward, cells = self._layer(layer, states, padding)
                forward = states[..., : self.lstm.hidden_size]
                forward = forward.gather(0, last.expand(1, *forward.shape[1:])).squeeze(0)
                hidden.append(torch.cat([forward, backward], -1))
                cell.append(cells)
        states = states.transpose(0, 1) * mask.unsqueeze(-1)
        return EncoderOutput(states, mask, torch.stack(hidden), torch.stack(cell))

    def _layer(self, layer: int, inputs: Tensor, padding: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """From inputs (S, B, ·): states (S, B, H), the backward direction's last state, both cells."""
        weights = []
        for of_input, *others in self.lstm.all_weights[2 * layer : 2 * layer + 2]:
            weights += [torch.cat([of_input, self.padding_weight], 1), *others]
        inputs = torch.cat([inputs, padding.to(inputs.dtype)], -1)
        zeros = inputs.new_zeros(2, inputs.shape[1], self.lstm.hidden_size)
        states, hidden, cell = torch.lstm(
            inputs,
            (zeros, zeros),
            weights,
            has_biases=True,
            num_layers=1,
            dropout=0.0,
            train=self.training,
            bidirectional=True,
            batch_first=False,
        )
        return states, hidden[1], cell.transpose(0, 1).flatten(1)


@contextmanager
def _full_precision(device: torch.device) -> Iterator[None]:
    """Run an LSTM without autocast, and with cuDNN only where gradients are computed.

    cuDNN rounds to TF32, which suits training; elsewhere results must not depend on the batch.
    """
    with ExitStack() as stack:
        stack.enter_context(without_autocast(device))
        if device.type == "cuda" and torch.is_grad_enabled():
            stack.enter_context(warnings.catch_warnings())
            warnings.filterwarnings("ignore", message="RNN module weights are not part")
        elif device.type == "cuda":
            stack.enter_context(torch.backends.cudnn.flags(enabled=False))
        yield
