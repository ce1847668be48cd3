"""The whole model: what training, search and the report ask of it."""

from __future__ import annotations

from typing import Protocol, final

import torch
from torch import Tensor, nn

from fenchel.data.vocabulary import PAD
from fenchel.maps.entmax import entmax
from fenchel.models.attention_maps import learned_alpha
from fenchel.models.means import Means
from fenchel.models.next_token import (
    Attended,
    check_symbols,
    next_token_means,
    tokens_before,
)
from fenchel.models.seq2seq.config import Seq2SeqConfig
from fenchel.models.seq2seq.decoder import Decoder
from fenchel.models.seq2seq.encoder import Encoder
from fenchel.models.seq2seq.stepper import Seq2SeqStepper

INITIAL_RANGE = 0.1


class Batch(Protocol):
    """Sentences padded with PAD at their ends; every target ends with EOS."""

    @property
    def source(self) -> Tensor: ...  # (B, S)

    @property
    def source_lengths(self) -> Tensor: ...  # (B,), on the CPU

    @property
    def target(self) -> Tensor: ...  # (B, T)


@final
class Seq2Seq(nn.Module):
    r"""An LSTM encoder–decoder; attention by any map, output by α-entmax, trained by its loss.

    With scores x_t(y_{<t}) the model is p(y) = Π_t entmax_α(x_t)[y_t], which is exactly zero for all
    but a finite number of sequences when α > 1 and training went well. The loss is Σ_t L_α(x_t; y_t).

    Reference: Peters, Niculae & Martins (2019), *Sparse Sequence-to-Sequence Models*.

    >>> import torch
    >>> model = Seq2Seq(Seq2SeqConfig(source_size=9, target_size=7, embedding_size=4, hidden_size=6))
    >>> source, lengths = torch.tensor([[4, 5, 6], [7, 8, 0]]), torch.tensor([3, 2])
    >>> scores, weights = model(source, lengths, torch.tensor([[4, 5, 6, 2], [6, 2, 0, 0]]))
    >>> scores.shape, weights.shape
    (torch.Size([2, 4, 7]), torch.Size([2, 4, 3]))
    """

    def __init__(self, config: Seq2SeqConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder, self.decoder = Encoder(config), Decoder(config)
        self.output = nn.Linear(config.hidden_size, config.target_size)
        self._initialise()
        if config.share_embeddings:
            self.decoder.embedding.weight = self.output.weight

    def forward(
        self, source: Tensor, source_lengths: Tensor, target: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Scores (B, T, V) of every next token and the attention (B, T, S), given the tokens before.

        Sources are padded at their ends with PAD, which says what `source_lengths` says; it is an
        argument so that every model is called with a batch in the same way.
        """
        hidden, weights = self.hidden(source, source_lengths, target)
        return self.output(hidden), weights

    def hidden(
        self, source: Tensor, source_lengths: Tensor, target: Tensor
    ) -> tuple[Tensor, Tensor]:
        """What the output layer sees, (B, T, H), and the attention (B, T, S)."""
        check_symbols("source", source)
        check_symbols("target", target, batch=source.shape[0])
        encoded = self.encoder(source)
        memory = self.decoder.attention.remember(encoded.states, encoded.mask)
        start = self.decoder.start(encoded.hidden, encoded.cell)
        return self.decoder(tokens_before(target), start, memory)

    def loss(self, batch: Batch, *, describe: bool = True) -> Means:
        """The loss per token of a batch and, unless `describe` is false, what describes the batch.

        `fenchel.models.next_token.next_token_means` says what the means are.
        """
        hidden, weights = self.hidden(batch.source, batch.source_lengths, batch.target)
        return next_token_means(
            self.output,
            hidden,
            batch.target,
            self.config.output_alpha,
            weights if describe else None,
            in_chunks=self.training,
        )

    @torch.no_grad()
    def attend(self, source: Tensor, source_lengths: Tensor, target: Tensor) -> Attended:
        """Attention weights and output probabilities while the target is given."""
        scores, weights = self(source, source_lengths, target)
        return Attended(weights, entmax(scores, self.config.output_alpha), target != PAD)

    def alphas(self) -> dict[str, Tensor]:
        """The α of the attention under the name "attention", if it is learned."""
        return learned_alpha(self.decoder.attention.map)

    def stepper(self, source: Tensor, source_lengths: Tensor) -> Seq2SeqStepper:
        """A stepper over these sources, for `fenchel.search`."""
        check_symbols("source", source)
        return Seq2SeqStepper(self, source, source_lengths)

    def _initialise(self) -> None:
        for parameter in self.parameters():
            if parameter.ndim > 0:  # a learned α starts where its layer says
                nn.init.uniform_(parameter, -INITIAL_RANGE, INITIAL_RANGE)
        for embedding in (self.encoder.embedding, self.decoder.embedding):
            with torch.no_grad():
                embedding.weight[PAD].zero_()
