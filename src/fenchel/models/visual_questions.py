"""Answers to questions about images: a modular co-attention network with continuous attention."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple, final

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from fenchel.checks import check_count, check_known, check_number
from fenchel.continuous.basis import GaussianBasis
from fenchel.continuous.mixture import Mixture
from fenchel.data.grids import FEATURES
from fenchel.data.visual_questions import VisualQuestionBatch
from fenchel.data.vocabulary import PAD, SPECIAL
from fenchel.errors import FenchelError
from fenchel.losses.functional import entmax_loss
from fenchel.maps.entmax import entmax
from fenchel.mechanisms.masks import check_lengths, within
from fenchel.mechanisms.recurrent import Map
from fenchel.models.attention_maps import UNNORMALIZED, attention_map, learned_alpha
from fenchel.models.means import Mean, Means
from fenchel.models.transformer.config import LayersConfig
from fenchel.models.transformer.layer import TransformerStack
from fenchel.nn.continuous import ContinuousAttention2d
from fenchel.operators.layout import at_least_float32

ATTENTIONS = ("discrete", "moments", "combined")


@dataclass(frozen=True)
class VisualQuestionConfig:
    """Settings of a `VisualQuestionModel`. The paper's are six layers of size 512 with eight heads.

    >>> VisualQuestionConfig(vocabulary_size=900, answers=300, attention="moments").continuous_alpha
    2.0
    """

    vocabulary_size: int = field(default=len(SPECIAL), metadata={"derived": True})
    """Number of symbols in the vocabulary, padding included."""
    answers: int = field(default=2, metadata={"derived": True})
    """Number of answers."""
    rows: int = field(default=7, metadata={"derived": True})
    """Rows and columns of the grid of features."""
    embedding_size: int = 128
    """Size of the word embeddings."""
    hidden_size: int = 128
    """Size of the hidden states of words and cells, a multiple of the number of heads."""
    heads: int = 4
    """Number of heads of the attention among words, among cells, and from cells to words."""
    layers: int = 2
    """Number of layers for the words, and for the cells."""
    feedforward_size: int = 512
    """Hidden size of the feed-forward networks."""
    dropout: float = 0.1
    """Dropout probability everywhere."""
    attention: str = "discrete"
    """The last attention to the image: to cells, "discrete", or to an ellipse: "moments", whose density
    has the mean and the covariance of the discrete attention, or "combined", which adds both contexts."""
    attention_map: str = "entmax"
    """Map from scores to the weights of words, and to those of cells: "softmax", "sparsemax", "entmax",
    "normmax", "budget", "fusedmax", "oscarmax" or "pnormmax"."""
    attention_alpha: float | str = 1.5
    """α of "entmax" and "normmax": a number, or "learned"."""
    attention_strength: float | None = None
    """Strength of "fusedmax" and "oscarmax", p of "pnormmax", k of "budget"; None takes the map's
    default."""
    attention_bases: int = 100
    """Number of basis functions of continuous attention, a square number."""
    basis_width: float = 0.1
    """Standard deviation of the basis functions on the unit square; they are 1 / (√attention_bases − 1)
    apart."""
    continuous_alpha: float = 2.0
    """α of the density of continuous attention: 1 for a Gaussian, 2 for a truncated paraboloid, which is
    zero outside an ellipse."""
    ridge_penalty: float = 0.01
    """Penalty of the regression by which the cells become a function."""
    output_alpha: float = 1.0
    """α of the loss and of the predicted probabilities: 1 for cross-entropy and softmax, 2 for the
    sparsemax loss and sparsemax."""
    freeze_embeddings: bool = False
    """Whether the word embeddings are left as they are, usually pretrained ones."""

    def __post_init__(self) -> None:
        for name in ("vocabulary_size", "answers", "rows", "embedding_size", "attention_bases"):
            check_count(getattr(self, name), name)
        check_known("attention", self.attention, ATTENTIONS)
        attention_map(self.attention_map, self.attention_alpha, self.attention_strength)
        if math.isqrt(self.attention_bases) ** 2 != self.attention_bases:
            raise FenchelError(
                f"attention_bases must be a square number, got {self.attention_bases}"
            )
        if self.continuous_alpha not in (1, 2):
            raise FenchelError(f"continuous_alpha must be 1 or 2, got {self.continuous_alpha}")
        if self.attention != "discrete" and self.attention_map in UNNORMALIZED:
            raise FenchelError(
                f"attention {self.attention} requires weights that sum to one, which those of "
                f"{self.attention_map} do not"
            )
        for name in ("basis_width", "ridge_penalty", "output_alpha"):
            check_number(getattr(self, name), name=name, above=0)
        _ = self.transformer

    @property
    def transformer(self) -> LayersConfig:
        """The settings of the layers of words and of cells."""
        return LayersConfig(
            hidden_size=self.hidden_size,
            heads=self.heads,
            layers=self.layers,
            feedforward_size=self.feedforward_size,
            dropout=self.dropout,
            attention_map="softmax",
            norm="post",
        )


class AttendedImage(NamedTuple):
    """What a model attends to: weights of the words (B, S) and of the cells (B, rows²), and the density.

    The density is a `Mixture` of shape (B, 1, 1); None for discrete attention.
    """

    words: Tensor
    cells: Tensor
    density: Mixture | None


@final
class FlatAttention(nn.Module):
    """Weights of states from scores vᵀ relu(W k + b), which no query changes.

    The arguments are those of the attention that `fenchel.nn.ContinuousAttention2d` takes.
    """

    def __init__(self, size: int, map: Map) -> None:
        super().__init__()
        self.map = map
        self.score = nn.Sequential(nn.Linear(size, size), nn.ReLU(), nn.Linear(size, 1, bias=False))

    def forward(
        self, query: Tensor, keys: Tensor, lengths: Tensor | None = None, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """The context and the weights (B, T, L), the same for all T queries (B, T, …)."""
        if lengths is not None:
            mask = within(lengths, keys.shape[1]).unsqueeze(1)
        scores = self.score(keys).mT.expand(-1, query.shape[1], -1)
        weights = self.map(scores, dim=-1, mask=mask)
        return weights @ keys, weights


@final
class VisualQuestionModel(nn.Module):
    r"""A modular co-attention network (MCAN) whose last attention to the image is discrete or continuous.

    The words go through an LSTM and self-attention. The cells of the image, with learned embeddings of
    their places, go through self-attention and attention to the words. Words and cells are then each
    summed up by attention, and the scores of the answers are linear in the normalized sum of both.

    Continuous attention stretches the image over the unit square and has the mean and the covariance of
    the discrete attention; it has no parameters of its own.

    References: Yu et al. (2019), *Deep Modular Co-Attention Networks for Visual Question Answering*;
    Martins et al. (2020), *Sparse and Continuous Attention Mechanisms*, §4.

    >>> import torch
    >>> model = VisualQuestionModel(VisualQuestionConfig(vocabulary_size=50, answers=3, rows=2))
    >>> words, lengths = torch.tensor([[4, 7, 5], [6, 8, 0]]), torch.tensor([3, 2])
    >>> scores, attended = model(words, lengths, torch.randn(2, 4, 1280))
    >>> scores.shape, attended.words[1, 2].item(), attended.cells.shape
    (torch.Size([2, 3]), 0.0, torch.Size([2, 4]))
    """

    def __init__(self, config: VisualQuestionConfig) -> None:
        super().__init__()
        self.config = config
        size, layers = config.hidden_size, config.transformer
        self.embedding = nn.Embedding(config.vocabulary_size, config.embedding_size, PAD)
        self.embedding.weight.requires_grad_(not config.freeze_embeddings)
        self.lstm = nn.LSTM(config.embedding_size, size, batch_first=True)
        self.cells = nn.Linear(FEATURES, size)
        self.places = nn.Parameter(0.02 * torch.randn(config.rows**2, size))
        self.question_layers = TransformerStack(layers, alpha=1.0)
        self.image_layers = TransformerStack(layers, alpha=1.0, context_alpha=1.0)
        chosen = config.attention_map, config.attention_alpha, config.attention_strength
        self.map = attention_map(*chosen)
        self.question_attention = FlatAttention(size, self.map)
        self.image_attention = _image_attention(config, FlatAttention(size, self.map))
        self.question_fusion, self.image_fusion = (
            nn.Linear(size, 2 * size),
            nn.Linear(size, 2 * size),
        )
        self.norm = nn.LayerNorm(2 * size)
        self.output = nn.Linear(2 * size, config.answers)

    def forward(
        self, tokens: Tensor, lengths: Tensor, grids: Tensor
    ) -> tuple[Tensor, AttendedImage]:
        """Scores of the answers (B, C) and what is attended.

        Args:
            tokens: integers (B, S), padded with 0 at the end of each question.
            lengths: integers (B,), the number of words of each question.
            grids: features of the cells (B, rows², FEATURES).
        """
        check_lengths(lengths, tokens.shape[:1], tokens.shape[1], tokens)
        valid = within(lengths, tokens.shape[1])
        words, _ = self.lstm(self._dropped(self.embedding(tokens)))
        words, _ = self.question_layers(words, padding=~valid)
        cells = self._dropped(self.cells(grids) + self.places)
        cells, _ = self.image_layers(cells, words, memory_padding=~valid)
        question, word_weights = self.question_attention(words[:, :1], words, lengths)
        image, cell_weights, density = self._attend(cells)
        fused = self.norm(self.question_fusion(question.squeeze(1)) + self.image_fusion(image))
        attended = AttendedImage(word_weights.squeeze(1), cell_weights, density)
        return self.output(self._dropped(fused)), attended

    def _attend(self, cells: Tensor) -> tuple[Tensor, Tensor, Mixture | None]:
        """The context of the cells, their discrete weights, and the density."""
        if isinstance(self.image_attention, FlatAttention):
            context, weights = self.image_attention(cells[:, :1], cells)
            return context.squeeze(1), weights.squeeze(1), None
        shape = (self.config.rows, self.config.rows)
        context, density = self.image_attention(cells[:, 0], cells, positions=shape)
        source: Any = self.image_attention.parameters_of
        _, weights = source.attentions[0](cells[:, :1], cells)
        return context, weights.squeeze(1), density

    def _dropped(self, states: Tensor) -> Tensor:
        return F.dropout(states, self.config.dropout, self.training)

    @torch.no_grad()
    def load_embeddings(self, weight: Tensor) -> None:
        """Replace the word embeddings, one per row; that of padding stays zero."""
        self.embedding.weight.copy_(weight)
        self.embedding.weight[PAD] = 0

    def loss(self, batch: VisualQuestionBatch, *, describe: bool = True) -> Means:
        """Means over the questions: the loss, in which answers that the model does not know are left
        out, and with `describe` the accuracy and the number of cells with a weight above zero."""
        scores, attended = self(batch.tokens, batch.lengths, batch.grids)
        scores = at_least_float32(scores)
        total = entmax_loss(scores, batch.answers, self.config.output_alpha, reduction="sum")
        count = torch.full_like(total.detach(), len(batch.answers))
        means = {"loss": Mean(total, count)}
        if describe:
            means["accuracy"] = Mean((scores.argmax(-1) == batch.answers).sum(), count)
            means["attention_support"] = Mean((attended.cells > 0).sum(), count)
        return means

    def alphas(self) -> dict[str, Tensor]:
        """The α of the attention under the name "attention", if it is learned."""
        return learned_alpha(self.map)

    @torch.no_grad()
    def predict(self, batch: VisualQuestionBatch) -> tuple[Tensor, AttendedImage]:
        """Probabilities of the answers (B, C) and what is attended."""
        scores, attended = self(batch.tokens, batch.lengths, batch.grids)
        return entmax(at_least_float32(scores), self.config.output_alpha), attended


def _image_attention(
    config: VisualQuestionConfig, flat: FlatAttention
) -> FlatAttention | ContinuousAttention2d:
    if config.attention == "discrete":
        return flat
    side = math.isqrt(config.attention_bases)
    basis = GaussianBasis.grid((side, side), config.basis_width)
    layer = {"moments": ContinuousAttention2d.moments, "combined": ContinuousAttention2d.combined}
    options: Any = {"alpha": config.continuous_alpha, "penalty": config.ridge_penalty}
    return layer[config.attention](flat, basis, **options)
