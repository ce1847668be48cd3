"""Sentences whose attention is kept, as sparse matrices."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple, final

from torch import Tensor

from fenchel.analysis.attention import Attention, Kind
from fenchel.analysis.placement import Observed, PlacedBatch
from fenchel.data.sentences import Tokens
from fenchel.mechanisms.sparse import to_csr

SparseRow = dict[int, float]


class Head(NamedTuple):
    """A head of a model; layers and heads are counted from 0 on."""

    kind: Kind
    layer: int
    head: int


@final
@dataclass(frozen=True)
class ExampleSentence:
    """A sentence with the attention of all heads.

    Attributes:
        number: The number of the sentence in the data.
        source: Its tokens, if they are known.
        target: The tokens of the decoder, if they are known.
        weights: For each head its weights, queries × keys, as a `torch.sparse_csr` tensor.
    """

    number: int
    source: Sequence[str] | None
    target: Sequence[str] | None
    weights: dict[Head, Tensor] = field(default_factory=dict)

    def rows(self, kind: Kind, layer: int, head: int) -> list[SparseRow]:
        """The weights of a head that are not zero: for each query, weights by the number of the key."""
        return sparse_rows(self.weights[Head(kind, layer, head)])

    def to_json(self) -> dict[str, Any]:
        """The sentence as a JSON object."""
        return {
            "sentence": self.number,
            "source": self.source and list(self.source),
            "target": self.target and list(self.target),
            "heads": [{**head._asdict(), **rows_to_json(w)} for head, w in self.weights.items()],
        }


@final
class ExampleSentences:
    """Keeps the attention of some sentences.

    Args:
        wanted: The numbers of the sentences, or how many of the first ones.
    """

    def __init__(self, wanted: int | Collection[int]) -> None:
        self._wanted = range(wanted) if isinstance(wanted, int) else frozenset(wanted)
        self._kept: dict[int, ExampleSentence] = {}

    def add(self, attention: Attention, observed: Observed, batch: PlacedBatch) -> None:
        """Keep the weights of those sentences of the batch that are wanted."""
        if len(observed.weights) != len(batch.numbers):
            return
        rows = [row for row, number in enumerate(batch.numbers) if number in self._wanted]
        if not rows:
            return
        parts = observed.weights, observed.queries, observed.keys
        chosen = [part[rows].cpu() for part in parts]
        for row, matrices, valid_queries, valid_keys in zip(rows, *chosen, strict=True):
            source, target = batch.sentences.source, batch.sentences.target
            sentence = ExampleSentence(
                batch.numbers[row], strings_of(source, row), strings_of(target, row)
            )
            kept = self._kept.setdefault(sentence.number, sentence)
            for head, matrix in enumerate(matrices):
                key = Head(attention.kind, attention.layer, head)
                kept.weights[key] = to_csr(matrix[valid_queries][:, valid_keys])

    def sentences(self) -> list[ExampleSentence]:
        """The sentences in the order of the data."""
        return [self._kept[number] for number in sorted(self._kept)]


def strings_of(tokens: Any, row: int) -> Sequence[str] | None:
    """The tokens of a sentence of a batch, if they are known."""
    strings = tokens.strings if isinstance(tokens, Tokens) else None
    return strings[row] if strings is not None and row < len(strings) else None


def sparse_rows(matrix: Tensor) -> list[SparseRow]:
    """The entries of a `torch.sparse_csr` matrix, one dictionary from column to value per row.

    >>> import torch
    >>> sparse_rows(to_csr(torch.tensor([[0.75, 0.0, 0.25], [0.0, 1.0, 0.0]])))
    [{0: 0.75, 2: 0.25}, {1: 1.0}]
    """
    starts, columns = matrix.crow_indices().tolist(), matrix.col_indices().tolist()
    values = matrix.values().tolist()
    return [
        dict(zip(columns[start:end], values[start:end], strict=True))
        for start, end in pairwise(starts)
    ]


def rows_to_json(matrix: Tensor) -> dict[str, Any]:
    """The entries of a matrix as lists of keys and weights, one per query, with four digits.

    >>> import torch
    >>> rows_to_json(to_csr(torch.tensor([[0.75, 0.0, 0.25], [0.0, 1.0, 0.0]])))
    {'keys': [[0, 2], [1]], 'weights': [[0.75, 0.25], [1.0]]}
    """
    rows = sparse_rows(matrix)
    weights = [[float(f"{weight:.4g}") for weight in row.values()] for row in rows]
    return {"keys": [list(row) for row in rows], "weights": weights}
