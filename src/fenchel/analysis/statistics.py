"""Statistics of the heads of one attention layer, summed over any number of sentences."""

from __future__ import annotations

import math
from typing import NamedTuple, final

import torch
from torch import Tensor

from fenchel.analysis import measures
from fenchel.analysis.attention import Attention, Kind
from fenchel.analysis.measures import Measured
from fenchel.analysis.placement import Observed, PlacedBatch
from fenchel.analysis.unsure import UnsureSentences
from fenchel.errors import FenchelError

OFFSETS = {"previous_token": -1, "current_token": 0, "next_token": 1}
DENSITY_BINS = 20


class MeanPerHead(NamedTuple):
    """The mean of a measure for each head, None if it was never defined, and the number of values."""

    values: list[float | None]
    counts: list[int]


@final
class LayerStatistics:
    """Sums over the sentences seen so far; their size does not depend on the number of sentences.

    Nothing is read from the device before `means`, but for the sentences that are kept.

    Args:
        first: The first call of the layer.
        unsure: The number of sentences kept per head.
    """

    def __init__(self, first: Attention, unsure: int) -> None:
        self.name, self.layer = first.name, first.layer
        self.kind: Kind = first.kind
        self.heads = first.weights.shape[1]
        self.alpha = first.alpha
        self.unsure = UnsureSentences(self.heads, unsure)
        self._device = first.weights.device
        self._exact = torch.float32 if self._device.type == "mps" else torch.float64
        self._sums: dict[str, Tensor] = {}  # (2, heads) by measure: total and count
        self._density_counts = torch.zeros(
            self.heads * DENSITY_BINS, dtype=torch.int64, device=self._device
        )

    def add(self, attention: Attention, batch: PlacedBatch) -> Observed:
        """Add the weights of a call; returns them without padding."""
        observed = batch.observe(attention)
        weights, visible = observed.weights, observed.visible
        density = measures.density(weights, visible)
        entropies = measures.entropy(weights)
        uncertainty = measures.uncertainty(entropies, visible)
        self._add("density", density)
        self._add("uncertainty", uncertainty)
        self._add("diversity", measures.diversity(weights, entropies, visible))
        sentence_density = _sentence_means(density)
        self._count_densities(sentence_density)
        if attention.kind != "context":
            for name, offset in OFFSETS.items():
                self._add(name, measures.weight_at(offset, weights, visible, attention.start))
            if attention.start == 0:
                self._add_roles(observed, attention, batch)
        self.unsure.add(observed, _sentence_means(uncertainty), sentence_density, attention, batch)
        return observed

    def means(self) -> dict[str, MeanPerHead]:
        """The mean of every measure."""
        means = {}
        for name, sums in self._sums.items():
            totals, counts = sums.tolist()
            if not all(map(math.isfinite, totals)):
                raise FenchelError(f"the attention weights of {self.name} must be finite, got nan")
            pairs = zip(totals, counts, strict=True)
            means[name] = MeanPerHead(
                [total / count if count else None for total, count in pairs], list(map(int, counts))
            )
        return means

    def density_counts(self) -> list[list[int]]:
        """For each head, the numbers of sentences by the density of its weights, in equal bins."""
        return self._density_counts.view(self.heads, DENSITY_BINS).tolist()

    def _add_roles(self, observed: Observed, attention: Attention, batch: PlacedBatch) -> None:
        """Add what depends on the tokens."""
        length = attention.weights.shape[2]
        weights = observed.weights[..., :length]
        placed = batch.queries(attention)
        if placed.words is not None and placed.word_count:
            scores, sizes = measures.merging(weights, placed.words, placed.word_count)
            self._add("subword_merging", Measured(scores, sizes > 0))
            self._add("split_word_merging", Measured(scores, sizes > 1))
            self._add("same_word", measures.weight_on_word(weights, placed.words))
        if placed.questions is not None and placed.interrogatives is not None:
            visible = observed.visible[..., :length]
            on_marks = measures.weight_on(placed.questions, weights, visible)
            asked = on_marks.defined & placed.interrogatives.unsqueeze(1)
            self._add("interrogation", Measured(on_marks.values, asked))

    def _add(self, name: str, measured: Measured) -> None:
        values, defined = torch.broadcast_tensors(measured.values, measured.defined)
        total = torch.where(defined, values, 0).sum((0, 2), dtype=self._exact)
        added = torch.stack([total, defined.sum((0, 2), dtype=self._exact)])
        before = self._sums.get(name)
        self._sums[name] = added if before is None else before + added

    def _count_densities(self, density: Tensor) -> None:
        """`density` is (B, heads), NaN for sentences without a query."""
        known = density.isfinite()
        bins = (density.nan_to_num() * DENSITY_BINS).long().clamp(max=DENSITY_BINS - 1)
        places = bins + DENSITY_BINS * torch.arange(self.heads, device=self._device)
        self._density_counts.scatter_add_(0, places.flatten(), known.flatten().long())


def _sentence_means(measured: Measured) -> Tensor:
    """The mean of a measure over the queries of each sentence, (B, heads); NaN if there are none."""
    values, defined = torch.broadcast_tensors(measured.values, measured.defined)
    return torch.where(defined, values, 0).sum(-1) / defined.sum(-1)
