"""Cross-validation of the settings of a linear model and of its rule from proportions to label sets.

Every fold follows a path of decreasing regularization, on which each solution is the start of the next.
The scores of all held-out examples are put together, so that F1 counts them once: averages of the F1 of
folds are biased where a label is rare (Forman & Scholz 2010, *Apples-to-Apples in Cross-Validation
Studies*).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.utils.parallel import Parallel, delayed

from fenchel.linear.lbfgs import Array, Solution
from fenchel.linear.links import Link
from fenchel.linear.objective import Problem


class Candidate(NamedTuple):
    """Settings to choose among: the number of a link, and C."""

    link: int
    C: float


Minimize = Callable[[Problem, Link, float, Array], Solution]


class FoldPath(NamedTuple):
    """The scores of the held-out examples of a fold by candidate, and how many fits stopped early."""

    scores: list[Array]
    stopped: int


def fold_path(
    problem: Problem,
    links: Sequence[Link],
    candidates: Sequence[Candidate],
    starts: Sequence[Array],
    minimize: Minimize,
    train: NDArray[np.intp],
    test: NDArray[np.intp],
) -> FoldPath:
    """Fit all candidates to a fold, in their order.

    `starts` has the parameters that the path of every link starts from.
    """
    held_out, scores, stopped = problem.features[test], [], 0
    part, latest = problem.part(train), list(starts)
    for number, C in candidates:
        solution = minimize(part, links[number], C, latest[number])
        latest[number] = solution.x
        stopped += bool(solution.reason)
        scores.append(linear_scores(held_out, solution.x, problem.fit_intercept))
    return FoldPath(scores, stopped)


def linear_scores(features: Any, parameters: Array, fit_intercept: bool) -> Array:
    """W x + b of every example."""
    count = features.shape[1]
    scores = np.asarray(features @ parameters[:count])
    return scores + parameters[count] if fit_intercept else scores


def fold_paths(
    folds: Sequence[tuple[Any, Any]], n_jobs: int | None, *arguments: Any
) -> tuple[list[Array], int]:
    """The held-out scores of all folds by candidate, and how many fits stopped early."""
    calls = (delayed(fold_path)(*arguments, *fold) for fold in folds)
    paths: Any = Parallel(n_jobs=n_jobs)(calls)
    scores = [np.concatenate(parts) for parts in zip(*(path.scores for path in paths), strict=True)]
    return scores, sum(path.stopped for path in paths)


class KnownPredictions(ClassifierMixin, BaseEstimator):
    """Predictions that have been made, in the form in which the scorers of scikit-learn take them."""

    def __init__(
        self, classes: Any = None, scores: Any = None, probabilities: Any = None, labels: Any = None
    ) -> None:
        self.classes, self.scores = classes, scores
        self.probabilities, self.labels = probabilities, labels

    @property
    def classes_(self) -> Any:
        return self.classes

    def decision_function(self, X: Any) -> Any:
        return self.scores

    def predict_proba(self, X: Any) -> Any:
        return self.probabilities

    def predict(self, X: Any) -> Any:
        return self.labels


def score(scorer: Any, predictions: KnownPredictions, y: Any, weights: Array) -> float:
    """The score of predictions. A label without examples and predictions is no reason to warn."""
    options = {} if (weights == 1.0).all() else {"sample_weight": weights}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        return float(scorer(predictions, predictions.scores, y, **options))
