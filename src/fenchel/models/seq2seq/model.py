"""The whole model: what training, search and the report ask of it."""

from __future__ import annotations

from typing import NamedTuple, final

import torch
from torch import Tensor, nn

from fenchel.data.encoded import Batch
from fenchel.data.vocabulary import BOS, PAD
from fenchel.errors import rule
from fenchel.kernels.rows import at_least_float32
from fenchel.losses.functional import entmax_loss
from fenchel.losses.linear import linear_entmax_loss
from fenchel.maps.entmax import entmax
from fenchel.models.seq2seq.config import Seq2SeqConfig
from fenchel.models.seq2seq.decoder import Decoder
from fenchel.models.seq2seq.encoder import Encoder
from fenchel.models.seq2seq.statistics import Statistics
from fenchel.models.seq2seq.stepper import Seq2SeqStepper

LARGE_VOCABULARY = 4096  # from here on the scores of all positions are not held at once
INITIAL_RANGE = 0.1


def check_symbols(name: str, symbols: Tensor, batch: int | None = None) -> None:
    """Refuse what is no padded batch of sequences: numbers of symbols, (B, length)."""
    whole = not (symbols.dtype.is_floating_point or symbols.dtype.is_complex)
    if not whole or symbols.ndim != 2 or symbols.numel() == 0:
        expected, got = "integers (B, length), not empty", f"{symbols.dtype} {tuple(symbols.shape)}"
        raise rule(f"{name} is a padded batch of symbols", expected=expected, got=got)
    if batch is not None and symbols.shape[0] != batch:
        expected, got = f"{batch} rows", symbols.shape[0]
        raise rule(f"every source has its {name}", expected=expected, got=got)


class Attended(NamedTuple):
    """What a model looked at and considered while it was told a target.

    `attention` (B, T, S) and `probabilities` (B, T, V), both with exact zeros; `valid` (B, T).
    """

    attention: Tensor
    probabilities: Tensor
    valid: Tensor

    @property
    def attention_support(self) -> Tensor:
        """The number of source positions attended, (B, T)."""
        return (self.attention > 0).sum(-1)

    @property
    def output_support(self) -> Tensor:
        """The number of tokens considered, (B, T)."""
        return (self.probabilities > 0).sum(-1)


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
        before = torch.nn.functional.pad(target[:, :-1], (1, 0), value=BOS)
        return self.decoder(before, self.decoder.start(encoded.hidden, encoded.cell), memory)

    def loss(self, batch: Batch, *, describe: bool = True) -> tuple[Tensor, Statistics]:
        """The loss summed over the target's tokens, and the sums that describe the batch.

        Nothing here waits for a GPU. `describe=False` counts the tokens only and leaves all other
        sums at 0.
        """
        hidden, weights = self.hidden(batch.source, batch.source_lengths, batch.target)
        alpha, target = self.config.output_alpha, batch.target.flatten()
        rows, scores = hidden.flatten(0, 1), None
        if self.config.target_size >= LARGE_VOCABULARY and self.training:
            weight, bias = self.output.weight, self.output.bias
            options = {"bias": bias, "ignore_index": PAD, "reduction": "sum"}
            total = linear_entmax_loss(rows, weight, target, alpha, **options)
        else:
            scores = at_least_float32(self.output(rows))
            total = entmax_loss(scores, target, alpha, ignore_index=PAD, reduction="sum")
        with torch.no_grad():
            valid = batch.target != PAD
            if not describe:
                zero = torch.zeros_like(total)
                return total, Statistics(total.detach(), valid.sum(), *[zero] * 5)
            scores = self.output(rows) if scores is None else scores
            return total, self._describe(total, batch.target, valid, scores, weights)

    @torch.no_grad()
    def attend(self, source: Tensor, source_lengths: Tensor, target: Tensor) -> Attended:
        """Attention weights and output probabilities while the target is given."""
        scores, weights = self(source, source_lengths, target)
        return Attended(weights, entmax(scores, self.config.output_alpha), target != PAD)

    def stepper(self, source: Tensor, source_lengths: Tensor) -> Seq2SeqStepper:
        """These sources as `fenchel.search` wants them."""
        check_symbols("source", source)
        return Seq2SeqStepper(self, source, source_lengths)

    def _describe(
        self, total: Tensor, target: Tensor, valid: Tensor, scores: Tensor, weights: Tensor
    ) -> Statistics:
        right = scores.argmax(-1).view_as(target) == target
        considered = (entmax(scores, self.config.output_alpha) > 0).sum(-1).view_as(target)
        attended = (weights > 0).sum(-1)
        return Statistics(
            loss=total.detach(),
            tokens=valid.sum(),
            correct=(right & valid).sum(),
            output_support=(considered * valid).sum(),
            attention_support=(attended * valid).sum(),
            sequences=torch.full_like(total, target.shape[0]),
            exact=(right | ~valid).all(1).sum(),
        )

    def _initialise(self) -> None:
        for parameter in self.parameters():
            if parameter.ndim > 0:  # a learned α starts where its layer says
                nn.init.uniform_(parameter, -INITIAL_RANGE, INITIAL_RANGE)
        for embedding in (self.encoder.embedding, self.decoder.embedding):
            with torch.no_grad():
                embedding.weight[PAD].zero_()
