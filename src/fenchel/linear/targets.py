"""Targets of a linear model: classes, label sets or label proportions, as a sparse matrix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from fenchel.errors import FenchelError

Kind = Literal["binary", "multiclass", "multilabel", "proportions"]
SUM_TOLERANCE = 1e-6  # of the proportions of a row


@dataclass(frozen=True)
class Targets:
    """What the model is trained on.

    Attributes:
        kind: "binary" and "multiclass" have one class per example, "multilabel" a set of labels,
            "proportions" probabilities.
        classes: The classes, or the numbers of the label columns.
        matrix: CSR, (examples, classes): 1 for the class or the labels of an example, or its
            proportions.
    """

    kind: Kind
    classes: NDArray[Any]
    matrix: Any

    @classmethod
    def of(cls, y: Any) -> Targets:
        """Read `y`: classes (examples,), or labels or proportions (examples, labels)."""
        if y.ndim == 2 and y.shape[1] == 1:
            y = np.asarray(column_or_1d(y.toarray() if sparse.issparse(y) else y, warn=True))
        kind = type_of_target(y, input_name="y")
        if kind in ("multilabel-indicator", "continuous-multioutput"):
            matrix = sparse.csr_array(y, dtype=np.float64)
            matrix.eliminate_zeros()
            name: Kind = "multilabel" if kind == "multilabel-indicator" else "proportions"
            if name == "multilabel":
                _check_entries(matrix, matrix.data != 1, "labels in y must be 0 or 1")
            else:
                _check_proportions(matrix)
            return cls(name, np.arange(y.shape[1]), matrix)
        check_classification_targets(y)
        if kind not in ("binary", "multiclass"):
            raise FenchelError(f"y must be classes, label sets or proportions, got {kind} targets")
        classes, number = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            got = f"1 class, {classes[0]!r}"
            raise FenchelError(f"y must have at least two classes, got {got}")
        rows = np.arange(len(number) + 1)
        ones = np.ones(len(number))
        matrix = sparse.csr_array((ones, number, rows), shape=(len(number), len(classes)))
        return cls("binary" if len(classes) == 2 else "multiclass", classes, matrix)

    @property
    def is_sets(self) -> bool:
        """Whether an example may have several labels."""
        return self.kind in ("multilabel", "proportions")

    @property
    def distributions(self) -> Any:
        """Rows that sum to 1: label sets are uniform over their labels, empty ones remain zero."""
        if self.kind != "multilabel":
            return self.matrix
        counts = np.maximum(self.matrix.sum(1), 1.0)
        return (self.matrix / counts[:, None]).tocsr()

    def truth(self, *, proportions: bool) -> NDArray[Any]:
        """The targets as scorers take them: classes, label sets or, if wanted, proportions."""
        if not self.is_sets:
            return self.classes[self.matrix.indices]
        if proportions and self.kind == "proportions":
            return self.matrix.toarray()
        return (self.matrix > 0).astype(np.int64).toarray()

    @property
    def unlabelled(self) -> NDArray[np.intp]:
        """The examples without any label."""
        return np.flatnonzero(np.diff(self.matrix.indptr) == 0)

    @property
    def unused(self) -> NDArray[np.intp]:
        """The labels without any example."""
        return np.flatnonzero(np.bincount(self.matrix.indices, minlength=len(self.classes)) == 0)

    def class_weights(
        self, class_weight: Mapping[Any, float] | str | None, weights: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """The weight of every example: the mean of the weights of its classes.

        Args:
            class_weight: Weights by class; "balanced" is inversely proportional to frequency.
            weights: The sample weights.
        """
        if class_weight is None:
            return np.ones(len(weights))
        shares = self.distributions
        if isinstance(class_weight, str):
            if class_weight != "balanced":
                got = f"{class_weight!r}"
                raise FenchelError(f"class_weight must be 'balanced', a dict or None, got {got}")
            mass = weights @ shares
            by_class = mass.sum() / (len(mass) * np.where(mass > 0, mass, np.inf))
        else:
            classes = self.classes.tolist()
            unknown = [each for each in class_weight if each not in classes]
            if unknown and any(each not in class_weight for each in classes):
                raise FenchelError(f"class_weight must name classes of y, got {unknown[0]!r}")
            by_class = np.array([class_weight.get(each, 1.0) for each in classes])
        return np.asarray(shares @ by_class + (np.diff(shares.indptr) == 0))


def _check_entries(matrix: Any, wrong: NDArray[np.bool_], message: str) -> None:
    rows, columns = matrix.nonzero()
    for place in np.flatnonzero(wrong)[:1]:
        where = f"row {rows[place]}, column {columns[place]}"
        raise FenchelError(f"{message}, got {matrix.data[place]:g} in {where}")


def _check_proportions(matrix: Any) -> None:
    _check_entries(matrix, matrix.data < 0, "proportions in y must not be negative")
    totals = matrix.sum(1)
    for row in np.flatnonzero(np.abs(totals - 1.0) > SUM_TOLERANCE)[:1]:
        raise FenchelError(
            f"proportions in y must sum to 1 in every row, got {totals[row]} in row {row}"
        )
