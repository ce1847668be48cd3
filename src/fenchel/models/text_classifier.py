"""The base class of text classifiers: word embeddings, loss, metrics and predictions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from fenchel.checks import BELOW_ZERO, check_count, check_known, check_number
from fenchel.continuous.mixture import Mixture
from fenchel.data.texts import TextBatch
from fenchel.data.vocabulary import PAD, SPECIAL
from fenchel.errors import FenchelError
from fenchel.losses.functional import entmax_loss
from fenchel.maps.entmax import entmax
from fenchel.models.attention_maps import ATTENTION_MAPS, attention_map
from fenchel.models.dropout import dropout
from fenchel.models.means import Mean, Means
from fenchel.operators.layout import at_least_float32

EMBEDDING_RANGE = 0.1


class Attended(NamedTuple):
    """What a classifier attends to in each text of a batch.

    Attributes:
        weights: The weights of the words (B, S), zero at padding; those of discrete attention, or else
            the mass of the density on each word. None without attention.
        density: The density over [0, 1] of continuous attention, a `Mixture` of shape (B,).
    """

    weights: Tensor | None = None
    density: Mixture | None = None


@dataclass(frozen=True)
class TextClassifierConfig:
    """Settings that all classifiers of texts share."""

    maps: ClassVar[tuple[str, ...]] = ATTENTION_MAPS

    vocabulary_size: int = field(default=len(SPECIAL), metadata={"derived": True})
    """Number of symbols in the vocabulary, padding included."""
    classes: int = field(default=2, metadata={"derived": True})
    """Number of classes."""
    embedding_size: int = 128
    """Size of the word embeddings."""
    hidden_size: int = 128
    """Size of the hidden states."""
    dropout: float = 0.5
    """Dropout of the word embeddings and of the input of the output layer."""
    attention_map: str = "entmax"
    """Map from scores to attention weights: "softmax", "sparsemax", "logistic" (independent weights),
    "entmax", "normmax", "budget", "fusedmax", "oscarmax" or "pnormmax"."""
    attention_alpha: float | str = 1.5
    """α of "entmax" and "normmax": a number, or "learned"."""
    attention_strength: float | None = None
    """Strength of "fusedmax" and "oscarmax", p of "pnormmax", k of "budget"; None takes the map's
    default."""
    output_alpha: float = 1.0
    """α of the loss and of the predicted probabilities: 1 for cross-entropy and softmax, 2 for the
    sparsemax loss and sparsemax."""
    freeze_embeddings: bool = False
    """Whether the word embeddings are left as they are, usually pretrained ones."""

    def __post_init__(self) -> None:
        for name in ("vocabulary_size", "classes", "embedding_size", "hidden_size"):
            check_count(getattr(self, name), name)
        check_number(self.dropout, name="dropout", above=BELOW_ZERO)
        if self.dropout >= 1:
            raise FenchelError(f"dropout must be in [0, 1), got {self.dropout}")
        check_known("attention_map", self.attention_map, self.maps)
        if self.attention_map in ATTENTION_MAPS:
            attention_map(self.attention_map, self.attention_alpha, self.attention_strength)
        check_number(self.output_alpha, name="output_alpha", above=0)


class TextClassifier(nn.Module, ABC):
    """Word embeddings and α-entmax at the output; a subclass defines the layers between them."""

    def __init__(self, config: TextClassifierConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(
            config.vocabulary_size, config.embedding_size, padding_idx=PAD
        )
        initial = torch.empty_like(self.embedding.weight)
        self.load_embeddings(initial.uniform_(-EMBEDDING_RANGE, EMBEDDING_RANGE))
        self.embedding.weight.requires_grad_(not config.freeze_embeddings)

    @abstractmethod
    def forward(self, *inputs: Tensor) -> tuple[Tensor, Attended]:
        """Scores of the classes (B, C) and what is attended, from the inputs of a `TextBatch`.

        In training, what is attended may lack weights that the scores do not depend on.
        """

    @abstractmethod
    def alphas(self) -> dict[str, Tensor]:
        """The α of the attention under the name "attention", if it is learned."""

    def dropped(self, values: Tensor) -> Tensor:
        """Apply the dropout of the settings."""
        return dropout(values, self.config.dropout, self.training)

    @torch.no_grad()
    def load_embeddings(self, weight: Tensor) -> None:
        """Replace the word embeddings, one per row; that of padding stays zero."""
        if weight.shape != self.embedding.weight.shape:
            expected, got = tuple(self.embedding.weight.shape), tuple(weight.shape)
            raise FenchelError(f"embeddings must have shape {expected}, got {got}")
        self.embedding.weight.copy_(weight)
        self.embedding.weight[PAD] = 0

    def loss(self, batch: TextBatch, *, describe: bool = True) -> Means:
        """Means over the examples: the loss, and with `describe` those of `means`."""
        scores, attended = self(*batch.inputs)
        return self.means(scores, attended, batch, describe=describe)

    def means(
        self, scores: Tensor, attended: Attended, batch: TextBatch, *, describe: bool = True
    ) -> Means:
        """The loss, and with `describe` the accuracy and the number and the share of words with a weight
        above zero, of what `forward` has returned. Nothing here waits for a GPU."""
        scores = at_least_float32(scores)
        total = entmax_loss(scores, batch.labels, self.config.output_alpha, reduction="sum")
        count = torch.full_like(total.detach(), len(batch.labels))
        means = {"loss": Mean(total, count)}
        if describe:
            means["accuracy"] = Mean((scores.argmax(-1) == batch.labels).sum(), count)
            if attended.weights is not None:
                support = (attended.weights > 0).sum()
                means["attention_support"] = Mean(support, count)
                means["attention_share"] = Mean(support, batch.inputs[1].sum())
        return means

    @torch.no_grad()
    def predict(self, *inputs: Tensor) -> tuple[Tensor, Attended]:
        """Probabilities of the classes (B, C) and what is attended."""
        scores, attended = self(*inputs)
        return entmax(at_least_float32(scores), self.config.output_alpha), attended
