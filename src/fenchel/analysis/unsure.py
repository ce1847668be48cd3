"""The sentences of which a head is least sure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, final

import torch
from torch import Tensor

from fenchel.analysis.attention import Attention
from fenchel.analysis.examples import rows_to_json, strings_of
from fenchel.analysis.placement import Observed, PlacedBatch
from fenchel.mechanisms.sparse import to_csr

SHORTEST = 5  # queries; almost every head is unsure of sentences of two or three tokens


class UnsureSentence(NamedTuple):
    """A sentence of which a head is unsure.

    Attributes:
        number: The number of the sentence in the data.
        uncertainty: The mean of the measure over the queries of the sentence.
        density: The mean share of keys with a weight that is not zero.
        queries: The tokens that attend, if they are known.
        keys: The tokens that are attended, if they are known.
        weights: The weights of the head, queries × keys, as a `torch.sparse_csr` tensor.
    """

    number: int
    uncertainty: float
    density: float
    queries: Sequence[str] | None
    keys: Sequence[str] | None
    weights: Tensor

    def to_json(self) -> dict[str, Any]:
        """The sentence as a JSON object."""
        return {
            "sentence": self.number,
            "uncertainty": self.uncertainty,
            "density": self.density,
            "query_tokens": self.queries and list(self.queries),
            "key_tokens": self.keys and list(self.keys),
            **rows_to_json(self.weights),
        }


@final
class UnsureSentences:
    """The sentences with the highest mean uncertainty, a fixed number of them for each head."""

    def __init__(self, heads: int, count: int) -> None:
        self.count = count
        self.by_head: list[list[UnsureSentence]] = [[] for _ in range(heads)]
        """For each head its sentences, the most uncertain one first."""

    def add(
        self,
        observed: Observed,
        uncertainty: Tensor,
        density: Tensor,
        attention: Attention,
        batch: PlacedBatch,
    ) -> None:
        """Add the sentences of a batch; `uncertainty` and `density` are (B, heads).

        The values of the candidates are read from the device at once for all heads, as are the weights
        of the sentences that are kept.
        """
        size = min(self.count, len(uncertainty))
        if not size:
            return
        long_enough = observed.queries.sum(1, keepdim=True) >= SHORTEST
        scores = torch.where(long_enough & uncertainty.isfinite(), uncertainty, -math.inf)
        top, rows = scores.topk(size, dim=0)
        found = torch.stack([top, density.gather(0, rows), rows.to(top.dtype)], 2)
        accepted = [
            (head, int(row), score, share)
            for head, candidates in enumerate(found.transpose(0, 1).tolist())
            for bound, (score, share, row) in zip(self._bounds(head), candidates, strict=False)
            if score > bound
        ]
        if not accepted:
            return
        heads, places = [each[0] for each in accepted], [each[1] for each in accepted]
        chosen = (
            observed.weights[places, heads].cpu(),
            observed.queries[places].cpu(),
            observed.keys[places].cpu(),
        )
        queries, keys = batch.sides(attention.kind)
        for (head, row, score, share), matrix, valid_queries, valid_keys in zip(
            accepted, *chosen, strict=True
        ):
            sentence = row * len(batch.numbers) // len(uncertainty)
            entry = UnsureSentence(
                batch.numbers[sentence],
                score,
                share,
                strings_of(queries, sentence),
                strings_of(keys, sentence),
                to_csr(matrix[valid_queries][:, valid_keys]),
            )
            self.by_head[head].append(entry)
        for head in set(heads):
            self.by_head[head].sort(key=lambda each: -each.uncertainty)
            del self.by_head[head][self.count :]

    def _bounds(self, head: int) -> list[float]:
        """What the best candidate must exceed, the second best, and so on.

        The best one takes the place of the worst sentence that is kept.
        """
        kept = [each.uncertainty for each in reversed(self.by_head[head])]
        return [-math.inf] * (self.count - len(kept)) + kept
