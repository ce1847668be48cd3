"""Examples with labels as matrices: columns of numbers, or the TF–IDF weights of words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any, Self, final

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from fenchel.data.multilabel_example import MultilabelExample, Numbers
from fenchel.errors import FenchelError
from fenchel.extras import require
from fenchel.models.labels import LabelBatch, LinearLabels
from fenchel.settings import from_json

SHOWN = 3  # columns that an error names


@final
@dataclass(frozen=True)
class NumberFeatures:
    """Columns of numbers.

    Attributes:
        columns: Their names.
        is_dense: Whether the rows are dense.
        mean: What is subtracted from each column; empty if nothing is.
        scale: What each column is then divided by.
    """

    columns: list[str]
    is_dense: bool
    mean: list[float]
    scale: list[float]

    @classmethod
    def fit(cls, rows: Sequence[Numbers], *, standardize: bool) -> NumberFeatures:
        """The columns of training examples; dense ones may be scaled to mean 0 and variance 1."""
        columns = list(dict.fromkeys(chain.from_iterable(row.columns for row in rows)))
        is_dense = not any(row.is_sparse for row in rows)
        bare = cls(columns, is_dense, [], [])
        if not (standardize and is_dense):
            return bare
        matrix = bare.encode(rows)
        mean, scale = matrix.mean(0), matrix.std(0)
        scale[scale == 0] = 1.0
        return cls(columns, True, mean.tolist(), scale.tolist())

    def encode(self, rows: Sequence[Numbers]) -> Any:
        """The matrix of some examples: dense, or CSR."""
        places = {name: place for place, name in enumerate(self.columns)}
        if not self.is_dense:
            parts = [
                [
                    (places[n], v)
                    for n, v in zip(row.columns, row.values, strict=True)
                    if n in places
                ]
                for row in rows
            ]
            indices, values = (
                zip(*chain.from_iterable(parts), strict=True) if any(parts) else ((), ())
            )
            starts = np.cumsum([0, *map(len, parts)])
            shape = len(rows), len(places)
            return sparse.csr_array(
                (np.array(values, dtype=np.float64), indices, starts), shape=shape
            )
        matrix = np.zeros((len(rows), len(places)))
        order: dict[tuple[str, ...], tuple[list[int], list[int]]] = {}
        for target, row in zip(matrix, rows, strict=True):
            if row.columns not in order:
                self._check_columns(row)
                known = [at for at, name in enumerate(row.columns) if name in places]
                order[row.columns] = known, [places[row.columns[at]] for at in known]
            known, columns = order[row.columns]
            target[columns] = row.values[known]
        return (matrix - self.mean) / self.scale if self.mean else matrix

    def _check_columns(self, row: Numbers) -> None:
        """A dense row must have all columns."""
        missing = [name for name in self.columns if name not in row.columns]
        if missing and not row.is_sparse:
            shown = ", ".join(map(repr, missing[:SHOWN])) + (", …" if missing[SHOWN:] else "")
            rule = "examples must have the columns of the training examples"
            raise FenchelError(f"{rule}: {shown} missing")

    @property
    def names(self) -> Sequence[str]:
        """What each feature is."""
        return self.columns


@final
@dataclass(frozen=True)
class WordFeatures:
    """The TF–IDF weights of words: (1 + log count) · idf, rows of length 1."""

    vocabulary: list[str]
    idf: list[float]
    lowercase: bool

    @classmethod
    def fit(
        cls, texts: Sequence[str], *, max_size: int, min_count: int, lowercase: bool
    ) -> WordFeatures:
        """The words of training texts, at most `max_size` that are in at least `min_count` texts."""
        vectorizer = cls._vectorizer(lowercase, max_features=max_size, min_df=min_count)
        try:
            vectorizer.fit(texts)
        except ValueError as error:
            got = f"min_count={min_count}"
            raise FenchelError(
                f"texts must have words that occur in several texts, got none: {got}"
            ) from error
        return cls(vectorizer.get_feature_names_out().tolist(), vectorizer.idf_.tolist(), lowercase)

    @staticmethod
    def _vectorizer(lowercase: bool, **options: Any) -> Any:
        text = require("sklearn.feature_extraction.text", extra="train")
        return text.TfidfVectorizer(lowercase=lowercase, sublinear_tf=True, **options)

    def encode(self, texts: Sequence[str]) -> Any:
        """The matrix of some texts, CSR."""
        vectorizer = self._vectorizer(self.lowercase, vocabulary=self.vocabulary)
        vectorizer.idf_ = np.array(self.idf)
        return sparse.csr_array(vectorizer.transform(texts))

    @property
    def names(self) -> Sequence[str]:
        """What each feature is."""
        return self.vocabulary


@final
@dataclass(frozen=True)
class LabelProcessor:
    """Makes matrices of examples, and numbers the labels.

    >>> rows = [("wheat prices", ("grain",)), ("oil prices", ("oil",))]
    >>> examples = [MultilabelExample(text, labels) for text, labels in rows]
    >>> processor = LabelProcessor.fit(examples, max_size=10, min_count=1)
    >>> processor.labels, processor.features.names
    (['grain', 'oil'], ['oil', 'prices', 'wheat'])
    """

    labels: list[str]
    features: NumberFeatures | WordFeatures

    @classmethod
    def fit(
        cls,
        examples: Sequence[MultilabelExample],
        *,
        standardize: bool = True,
        max_size: int = 20_000,
        min_count: int = 2,
        lowercase: bool = True,
    ) -> LabelProcessor:
        """The processor of a training set.

        Args:
            examples: Examples with labels.
            standardize: Whether dense columns of numbers get mean 0 and variance 1.
            max_size: Maximum number of known words, the most frequent first.
            min_count: Words that are in fewer texts than this are unknown.
            lowercase: Whether texts are converted to lower case.
        """
        labels = sorted(set(chain.from_iterable(example.labels or () for example in examples)))
        if len(labels) < 2:
            got = ", ".join(labels) or "none"
            raise FenchelError(f"training examples must have at least two labels, got {got}")
        parts = [example.features for example in examples]
        texts = [part for part in parts if isinstance(part, str)]
        numbers = [part for part in parts if not isinstance(part, str)]
        if texts and numbers:
            got = f"{len(texts)} and {len(numbers)}"
            raise FenchelError(f"all examples must be texts, or all must be numbers, got {got}")
        if numbers:
            return cls(labels, NumberFeatures.fit(numbers, standardize=standardize))
        sizes = {"max_size": max_size, "min_count": min_count}
        return cls(labels, WordFeatures.fit(texts, **sizes, lowercase=lowercase))

    @property
    def takes_texts(self) -> bool:
        """Whether examples are texts, not numbers."""
        return isinstance(self.features, WordFeatures)

    def encode(self, examples: Sequence[MultilabelExample]) -> EncodedLabels:
        """Examples as matrices; labels that did not occur in training are left out."""
        parts: Any = [example.features for example in examples]
        if any(isinstance(part, str) != self.takes_texts for part in parts):
            kinds = ("texts", "numbers") if self.takes_texts else ("numbers", "texts")
            raise FenchelError(f"examples must be {kinds[0]}, as in training, got {kinds[1]}")
        places = {label: place for place, label in enumerate(self.labels)}
        targets = np.zeros((len(examples), len(places)))
        for row, example in zip(targets, examples, strict=True):
            row[[places[label] for label in example.labels or () if label in places]] = 1.0
        return EncodedLabels(self.features.encode(parts), targets)

    def state(self) -> dict[str, Any]:
        """The processor as JSON."""
        kind = "words" if self.takes_texts else "numbers"
        return {"labels": self.labels, kind: asdict(self.features)}

    @classmethod
    def from_state(cls, state: Any, where: str) -> LabelProcessor:
        """The processor with this `state`; `where` names its file in errors."""
        stored = from_json(_StoredProcessor, state, where)
        features = stored.numbers or stored.words
        if features is None:
            raise FenchelError(f"{where} must have the key 'numbers' or 'words'")
        sizes = (
            (len(features.idf), len(features.names))
            if isinstance(features, WordFeatures)
            else (len(features.mean), len(features.scale))
        )
        if sizes[0] != sizes[1]:
            raise FenchelError(f"{where} must have as many weights as features, got {sizes}")
        return cls(stored.labels, features)


@final
class EncodedLabels:
    """Examples as matrices: features, dense or CSR, and targets, 0 or 1 for every label."""

    def __init__(self, features: Any, targets: NDArray[np.float64]) -> None:
        self.features, self.targets = features, targets

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def lengths(self) -> Tensor:
        """All examples are equally long, (N, 1)."""
        return torch.ones(len(self), 1, dtype=torch.int64)

    def batch(self, index: Tensor) -> LabelBatch:
        """The examples at `index` (B,)."""
        rows = self.features[index.numpy()]
        dense = rows.toarray() if sparse.issparse(rows) else rows
        return LabelBatch(torch.from_numpy(dense), torch.from_numpy(self.targets[index.numpy()]))

    def to(self, device: torch.device | str) -> Self:
        """The same examples: linear models stay on the CPU."""
        return self

    def tensors(self) -> tuple[Tensor, ...]:
        """The numbers of both matrices."""
        parts = [self.features]
        if sparse.issparse(self.features):
            parts = [self.features.data, self.features.indices, self.features.indptr]
        return tuple(
            torch.from_numpy(np.ascontiguousarray(part)) for part in (*parts, self.targets)
        )

    def scores(self, model: LinearLabels) -> Tensor:
        """The scores of a model, (N, K)."""
        weight, bias = model.output.weight.detach().numpy(), model.output.bias.detach()
        return torch.from_numpy(np.asarray(self.features @ weight.T)) + bias


@dataclass(frozen=True)
class _StoredProcessor:
    labels: list[str]
    numbers: NumberFeatures | None = None
    words: WordFeatures | None = None
