"""The encoder–decoder Transformer."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import torch
from torch import Tensor, nn

from fenchel.data.vocabulary import PAD
from fenchel.maps.entmax import entmax
from fenchel.models.means import Means
from fenchel.models.next_token import (
    Attended,
    check_symbols,
    next_token_means,
    tokens_before,
)
from fenchel.models.transformer.config import TransformerConfig
from fenchel.models.transformer.embedding import PositionalEmbedding
from fenchel.models.transformer.initialization import draw_seed, initialize
from fenchel.models.transformer.layer import TransformerStack, learned_alphas
from fenchel.models.transformer.stepper import TransformerStepper

if TYPE_CHECKING:
    from fenchel.models.seq2seq.model import Batch


@final
class Transformer(nn.Module):
    r"""An encoder–decoder whose attention is α-entmax, with α a number or learned by every head.

    With scores x_t(y_{<t}) the model is p(y) = Π_t entmax_α(x_t)[y_t], where α is `output_alpha`; the
    loss is Σ_t L_α(x_t; y_t). The parameters of `encoder` and `decoder` are named as those of
    `torch.nn.Transformer`, and with softmax attention the same weights give the same outputs.

    Two models that are created with the same seed and differ only in their attention start with the
    same weights.

    Reference: Correia, Niculae & Martins (2019), *Adaptively Sparse Transformers*.

    >>> import torch
    >>> config = TransformerConfig(
    ...     source_size=9, target_size=7, hidden_size=8, heads=2, layers=1, feedforward_size=16
    ... )
    >>> model = Transformer(config)
    >>> source, lengths = torch.tensor([[4, 5, 6], [7, 8, 0]]), torch.tensor([3, 2])
    >>> scores, weights = model(source, lengths, torch.tensor([[4, 5, 6, 2], [6, 2, 0, 0]]))
    >>> scores.shape, weights.shape, list(model.alphas())
    (torch.Size([2, 4, 7]), torch.Size([2, 4, 3]), ['encoder.0', 'context.0', 'decoder.0'])
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        sizes = config.hidden_size, config.max_positions, config.dropout
        seed = draw_seed()
        self.source_embedding = PositionalEmbedding(config.source_size, *sizes)
        self.target_embedding = PositionalEmbedding(config.target_size, *sizes)
        self.encoder = TransformerStack(config, config.alpha_of("encoder"))
        self.decoder = TransformerStack(
            config, config.alpha_of("decoder"), config.alpha_of("context")
        )
        self.output = nn.Linear(config.hidden_size, config.target_size)
        if config.share_embeddings != "none":
            self.output.weight = self.target_embedding.tokens.weight
        if config.share_embeddings == "joint":
            self.source_embedding.tokens.weight = self.target_embedding.tokens.weight
        initialize(self, seed)

    def forward(
        self, source: Tensor, source_lengths: Tensor, target: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Scores (B, T, V) of every next token and the attention (B, T, S), given the tokens before.

        The attention is that of the last layer of the decoder to the source, averaged over its heads.
        Sources are padded at their ends with PAD, which says what `source_lengths` says; it is an
        argument so that every model is called with a batch in the same way.
        """
        hidden, weights = self.hidden(source, source_lengths, target, need_weights=True)
        assert weights is not None
        return self.output(hidden), weights.mean(1)

    def hidden(
        self,
        source: Tensor,
        source_lengths: Tensor,
        target: Tensor,
        *,
        need_weights: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """What the output layer sees, (B, T, H), and with `need_weights` the attention of the heads of
        the last layer to the source, (B, heads, T, S)."""
        check_symbols("target", target, batch=source.shape[0])
        memory, padding = self.encode(source)
        return self.decoder(
            self.target_embedding(tokens_before(target)),
            memory,
            is_causal=True,
            memory_padding=padding,
            need_weights=need_weights,
        )

    def encode(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """The states of the encoder (B, S, H), and where the source is padding, (B, S)."""
        check_symbols("source", source)
        padding = source == PAD
        states, _ = self.encoder(self.source_embedding(source), padding=padding)
        return states, padding

    def loss(self, batch: Batch, *, describe: bool = True) -> Means:
        """The loss per token of a batch and, unless `describe` is false, what describes the batch.

        `fenchel.models.next_token.next_token_means` says what the means are. Labels are smoothed in
        training only.
        """
        hidden, weights = self.hidden(
            batch.source, batch.source_lengths, batch.target, need_weights=describe
        )
        return next_token_means(
            self.output,
            hidden,
            batch.target,
            self.config.output_alpha,
            weights,
            label_smoothing=self.config.label_smoothing if self.training else 0.0,
            in_chunks=self.training,
        )

    @torch.no_grad()
    def attend(self, source: Tensor, source_lengths: Tensor, target: Tensor) -> Attended:
        """Attention weights and output probabilities while the target is given."""
        hidden, heads = self.hidden(source, source_lengths, target, need_weights=True)
        assert heads is not None
        probabilities = entmax(self.output(hidden), self.config.output_alpha)
        return Attended(heads.mean(1), probabilities, target != PAD, heads)

    def stepper(self, source: Tensor, source_lengths: Tensor) -> TransformerStepper:
        """A stepper over these sources, for `fenchel.search`."""
        return TransformerStepper(self, source)

    def alphas(self) -> dict[str, Tensor]:
        """The learned α of every head, (heads,), by kind of attention and layer.

        The names are "encoder.0" (self-attention of the encoder's first layer), "context.0" (attention
        of the decoder's first layer to the encoder) and "decoder.0" (self-attention of the decoder).
        Attention with a fixed α is left out.
        """
        return learned_alphas(
            {
                "encoder": (layer.self_attn for layer in self.encoder.layers),
                "context": (layer.multihead_attn for layer in self.decoder.layers),
                "decoder": (layer.self_attn for layer in self.decoder.layers),
            }
        )
