"""The language model: a decoder that attends to the tokens before."""

from __future__ import annotations

from typing import Protocol, final

import torch
from torch import Tensor, nn

from fenchel.data.vocabulary import PAD
from fenchel.maps.entmax import entmax
from fenchel.models.means import Means
from fenchel.models.next_token import Attended, check_symbols, next_token_means, tokens_before
from fenchel.models.transformer.config import LanguageModelConfig
from fenchel.models.transformer.embedding import PositionalEmbedding
from fenchel.models.transformer.initialization import draw_seed, initialize
from fenchel.models.transformer.layer import TransformerStack, learned_alphas
from fenchel.models.transformer.stepper import LanguageModelStepper


class TokenBatch(Protocol):
    """Texts padded with PAD at their ends."""

    @property
    def tokens(self) -> Tensor: ...  # (B, L)

    @property
    def lengths(self) -> Tensor: ...  # (B,), on the CPU


@final
class LanguageModel(nn.Module):
    r"""A decoder-only Transformer whose attention is α-entmax, with α a number or learned.

    Every token of a text is predicted from those before it, the first from BOS alone. With
    `output_alpha=1` the loss is the cross-entropy, and its exponential the perplexity.

    >>> import torch
    >>> config = LanguageModelConfig(
    ...     vocabulary_size=9, hidden_size=8, heads=2, layers=1, feedforward_size=16
    ... )
    >>> model = LanguageModel(config)
    >>> scores, weights = model(torch.tensor([[4, 5, 6, 2], [7, 2, 0, 0]]), torch.tensor([4, 2]))
    >>> scores.shape, weights.shape, list(model.alphas())
    (torch.Size([2, 4, 9]), torch.Size([2, 4, 4]), ['decoder.0'])
    """

    def __init__(self, config: LanguageModelConfig) -> None:
        super().__init__()
        self.config = config
        size, seed = config.hidden_size, draw_seed()
        self.embedding = PositionalEmbedding(
            config.vocabulary_size, size, config.max_positions, config.dropout
        )
        self.decoder = TransformerStack(config, config.alpha)
        self.output = nn.Linear(size, config.vocabulary_size)
        if config.share_embeddings:
            self.output.weight = self.embedding.tokens.weight
        initialize(self, seed)

    def forward(self, tokens: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Scores (B, L, V) of every token and the attention (B, L, L), given the tokens before.

        The attention is that of the last layer, averaged over its heads. Row t attends to BOS, which
        is in column 0, and to the first t tokens. Texts are padded at their ends with PAD, which says
        what `lengths` says.
        """
        hidden, weights = self.hidden(tokens, need_weights=True)
        assert weights is not None
        return self.output(hidden), weights.mean(1)

    def hidden(self, tokens: Tensor, *, need_weights: bool = False) -> tuple[Tensor, Tensor | None]:
        """What the output layer sees, (B, L, H), and with `need_weights` the attention of the heads of
        the last layer, (B, heads, L, L)."""
        check_symbols("tokens", tokens)
        return self.decoder(
            self.embedding(tokens_before(tokens)),
            is_causal=True,
            need_weights=need_weights,
        )

    def loss(self, batch: TokenBatch, *, describe: bool = True) -> Means:
        """The loss per token of a batch and, unless `describe` is false, what describes the batch.

        `fenchel.models.next_token.next_token_means` says what the means are. Labels are smoothed in
        training only.
        """
        hidden, weights = self.hidden(batch.tokens, need_weights=describe)
        return next_token_means(
            self.output,
            hidden,
            batch.tokens,
            self.config.output_alpha,
            weights,
            label_smoothing=self.config.label_smoothing if self.training else 0.0,
            in_chunks=self.training,
        )

    @torch.no_grad()
    def attend(self, tokens: Tensor, lengths: Tensor) -> Attended:
        """Attention weights and output probabilities while a text is given."""
        hidden, heads = self.hidden(tokens, need_weights=True)
        assert heads is not None
        probabilities = entmax(self.output(hidden), self.config.output_alpha)
        return Attended(heads.mean(1), probabilities, tokens != PAD, heads)

    def stepper(self, tokens: Tensor, lengths: Tensor) -> LanguageModelStepper:
        """A stepper over the continuations of texts (B, P), for `fenchel.search`.

        The texts may be empty, and are padded at their ends.
        """
        return LanguageModelStepper(self, tokens, lengths)

    def alphas(self) -> dict[str, Tensor]:
        """The learned α of every head, (heads,), by layer: "decoder.0" and so on; {} if α is fixed."""
        return learned_alphas({"decoder": (layer.self_attn for layer in self.decoder.layers)})
