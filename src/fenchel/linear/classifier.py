"""What the linear classifiers share: validation, fitting, cross-validation and prediction."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import get_scorer
from sklearn.model_selection import KFold, StratifiedKFold, check_cv
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from fenchel.checks import BELOW_ZERO, check_count, check_number
from fenchel.errors import FenchelError
from fenchel.linear.lbfgs import Array, Solution
from fenchel.linear.links import Link
from fenchel.linear.objective import Problem
from fenchel.linear.selection import (
    Candidate,
    KnownPredictions,
    fold_paths,
    linear_scores,
    score,
)
from fenchel.linear.targets import Targets

SHOWN = 5  # rows or columns that a warning names


@dataclass(eq=False, repr=False)  # for the constructor
class LinearClassifier(ClassifierMixin, BaseEstimator, ABC):
    """The base class of the linear classifiers.

    A subclass has the link, and one parameter with the rule that makes label sets: a number, several
    numbers to choose among by cross-validation, or "cv" for those of the paper.
    """

    rule_parameter: ClassVar[str]
    """The name of the parameter with the rule."""
    searches: ClassVar[bool] = False
    """Whether C is chosen by cross-validation, and not given."""
    unlabelled_counts: ClassVar[bool] = False
    """Whether an example without labels is a target, and not left out."""

    _: KW_ONLY
    tol: float = 1e-4
    fit_intercept: bool = True
    class_weight: Any = None
    cv: Any = 5
    scoring: Any = None
    warm_start: bool = False
    max_iter: int = 1000
    random_state: Any = None
    verbose: int = 0
    n_jobs: int | None = None

    # What subclasses define

    @abstractmethod
    def _links(self) -> list[Link]:
        """The links to choose among."""

    @abstractmethod
    def _strengths(self) -> list[float]:
        """The values of C to choose among."""

    @abstractmethod
    def _rule_grid(self, labels: int) -> list[float]:
        """The rules of the paper for this number of labels."""

    @abstractmethod
    def _sets(self, scores: Array, rule: float) -> NDArray[np.bool_]:
        """The label sets that a rule makes of scores."""

    def _report_choice(self, candidate: Candidate, scores: Array) -> None:
        """Set the attributes of a search; `scores` are (links, values of C, rules)."""

    # Fitting

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model, and choose the rule that makes label sets if it is not given.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The features.

        y : array-like or sparse matrix of shape (n_samples,) or (n_samples, n_labels)
            Classes, label sets (0 or 1 for every label), or label proportions (rows that sum to 1).

        sample_weight : array-like of shape (n_samples,), default=None
            The weights of the examples.

        Returns
        -------
        self
        """
        X, y = validate_data(
            self, X, y, multi_output=True, accept_sparse="csr", dtype=np.float64, order="C",
            ensure_all_finite=False,
        )  # fmt: skip
        check_finite(X)
        self._check_parameters()
        targets = Targets.of(y)
        problem = self._problem(X, targets, sample_weight)
        links, strengths = self._links(), self._strengths()
        rules = self._rules(len(targets.classes)) if targets.is_sets else [None]
        starts = self._starts(problem, targets, len(links))
        self.classes_, self._kind = targets.classes, targets.kind
        rule = rules[0]
        if self.searches:
            best, rule, scores = self._choose(problem, targets, links, strengths, rules, starts)
            path = [C for C in strengths if best.C >= C]
            self._fit_path(problem, links[best.link], path, starts[best.link])
            self._report_choice(best, scores)
        else:
            self._fit_path(problem, links[0], strengths, starts[0])
            if len(rules) > 1:
                starts = [self._parameters()]
                _, rule, _ = self._choose(problem, targets, links, strengths, rules, starts)
        setattr(self, f"{self.rule_parameter}_", rule)
        return self

    def _problem(self, X: Any, targets: Targets, sample_weight: Any) -> Problem:
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, copy=True)
        if (weights < 0).any():
            row = int(np.argmax(weights < 0))
            got = f"{weights[row]} in row {row}"
            raise FenchelError(f"sample_weight must not be negative, got {got}")
        weights *= targets.class_weights(self.class_weight, weights)
        matrix = targets.matrix
        if not self.unlabelled_counts:
            matrix = targets.distributions
            weights[targets.unlabelled] = 0.0
            warn_about(targets.unlabelled, "examples without a label are left out", "row")
        if targets.is_sets:
            warn_about(targets.unused, "labels without an example cannot be learned", "column")
        if not weights.any():
            raise FenchelError("sample_weight must not be zero for all examples with a label")
        if targets.kind == "binary":
            matrix = matrix[:, [1]]
        return Problem(X, matrix.toarray(), weights, bool(self.fit_intercept))

    def _starts(self, problem: Problem, targets: Targets, links: int) -> list[Array]:
        """The parameters to start from: those of the last fit for a warm start, or zero."""
        shape = problem.targets.shape[1], problem.features.shape[1]  # of coef_
        if self.warm_start and hasattr(self, "coef_"):
            if self.coef_.shape != shape or not np.array_equal(self.classes_, targets.classes):
                rule = (
                    "a warm start must have the classes and the number of features of the last fit"
                )
                raise FenchelError(f"{rule}, {self.coef_.shape}, got {shape}")
            return [self._parameters()] * links
        return [np.zeros(problem.shape)] * links

    def _parameters(self) -> Array:
        parts = [self.coef_.T, self.intercept_[None]] if self.fit_intercept else [self.coef_.T]
        return np.concatenate(parts)

    @property
    def _minimize(self) -> Any:
        return partial(Problem.minimize, tol=self.tol, max_iter=self.max_iter)

    def _fit_path(self, problem: Problem, link: Link, path: Sequence[float], start: Array) -> None:
        """Fit the model for increasing C, and keep the last solution."""
        report = self._print_iteration if self.verbose else None
        for C in path:
            solution = self._minimize(problem, link, C, start, on_iteration=report)
            start = solution.x
        if solution.reason:
            self._warn_early_stop(solution)
        self._link = link
        features = problem.features.shape[1]
        self.coef_ = np.ascontiguousarray(solution.x[:features].T)
        self.intercept_ = np.zeros(len(self.coef_))
        if problem.fit_intercept:
            self.intercept_ = solution.x[features].copy()
        self.n_iter_ = np.array([solution.iterations], dtype=np.int32)

    def _choose(
        self,
        problem: Problem,
        targets: Targets,
        links: Sequence[Link],
        strengths: Sequence[float],
        rules: Sequence[Any],
        starts: Sequence[Array],
    ) -> tuple[Candidate, Any, Array]:
        """The settings and the rule with the best score in cross-validation, and all scores."""
        candidates = [Candidate(i, C) for i in range(len(links)) for C in strengths]
        truth = targets.truth(proportions=callable(self.scoring))
        folds = list(self._folds(targets).split(problem.features, truth))
        held_out, stopped = fold_paths(
            folds, self.n_jobs, problem, links, candidates, starts, self._minimize
        )
        if stopped:
            total = f"{stopped} of {len(folds) * len(candidates)} fits of the cross-validation"
            advice = "increase max_iter, or scale the features"
            message = f"{total} stopped before the tolerance {self.tol:g} was reached: {advice}"
            warnings.warn(message, ConvergenceWarning, stacklevel=3)
        tested = np.concatenate([test for _, test in folds])
        weights = problem.weights[tested]
        scorer = get_scorer(self.scoring or ("f1_micro" if targets.is_sets else "accuracy"))
        table = np.empty((len(candidates), len(rules)))
        for row, (candidate, scores) in enumerate(zip(candidates, held_out, strict=True)):
            self._link = links[candidate.link]
            for column, rule in enumerate(rules):
                labels = self._labels(scores, rule)
                known = KnownPredictions(
                    self.classes_, self._shown(scores), self._probabilities(scores), labels
                )
                table[row, column] = score(scorer, known, truth[tested], weights)
        row, column = divmod(int(np.argmax(table)), len(rules))
        shape = len(links), len(strengths), len(rules)
        return candidates[row], rules[column], table.reshape(shape)

    def _folds(self, targets: Targets) -> Any:
        """The splitter of the cross-validation; a number of folds means shuffled ones."""
        if isinstance(self.cv, int | np.integer):
            splitter = KFold if targets.is_sets else StratifiedKFold
            return splitter(int(self.cv), shuffle=True, random_state=self.random_state)
        return check_cv(self.cv)

    def _rules(self, labels: int) -> list[float]:
        given = getattr(self, self.rule_parameter)
        if isinstance(given, str):
            return self._rule_grid(labels)
        return list(given) if isinstance(given, Iterable) else [given]

    def _check_parameters(self) -> None:
        check_number(self.tol, name="tol", above=0)
        check_count(self.max_iter, "max_iter")
        given = getattr(self, self.rule_parameter)
        if isinstance(given, str) and given != "cv":
            expected = "a number, numbers to choose among, or 'cv'"
            raise FenchelError(f"{self.rule_parameter} must be {expected}, got {given!r}")
        rules = [] if isinstance(given, str) else self._rules(0)
        if not isinstance(given, str) and not rules:
            raise FenchelError(f"{self.rule_parameter} must have at least one number, got none")
        for rule in rules:
            check_number(rule, name=self.rule_parameter, above=BELOW_ZERO)
        if not self._strengths():
            raise FenchelError("Cs must have at least one number, got none")
        for C in self._strengths():
            if np.inf != C:
                check_number(C, name="C", above=0)

    def _print_iteration(self, iteration: int, value: float, gradient: float) -> None:
        name = type(self).__name__
        print(f"{name}: iteration {iteration}, objective {value:.8g}, gradient {gradient:.1e}")

    def _warn_early_stop(self, solution: Solution) -> None:
        warnings.warn(
            f"L-BFGS stopped after {solution.iterations} iterations ({solution.reason}): the largest "
            f"component of the gradient is {solution.gradient:.1e}, the tolerance {self.tol:g}. "
            "Increase max_iter, or scale the features",
            ConvergenceWarning,
            stacklevel=4,
        )

    # Prediction

    def decision_function(self, X: Any) -> Array:
        """The scores W x + b.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The features.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_labels), or (n_samples,) for two classes
        """
        return self._shown(self._scores(X))

    def predict_proba(self, X: Any) -> Array:
        """The label proportions, which can be exactly zero, or class probabilities.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The features.

        Returns
        -------
        proportions : ndarray of shape (n_samples, n_labels)
        """
        return self._probabilities(self._scores(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """The classes or the label sets.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The features.

        Returns
        -------
        y : ndarray of shape (n_samples,), or (n_samples, n_labels) with 0 and 1
        """
        scores = self._scores(X)
        return self._labels(scores, getattr(self, f"{self.rule_parameter}_"))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of examples with the right class or exactly the right labels.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The features.

        y : array-like of shape (n_samples,) or (n_samples, n_labels)
            The targets, as in `fit`.

        sample_weight : array-like of shape (n_samples,), default=None
            The weights of the examples.

        Returns
        -------
        accuracy : float
        """
        check_is_fitted(self)
        labels = np.shape(y)[1:]
        if self._kind in ("multilabel", "proportions") and labels != self.classes_.shape:
            shape = f"({np.shape(X)[0]}, {len(self.classes_)})"
            raise FenchelError(f"y must have the shape {shape}, got {np.shape(y)}")
        return super().score(X, y, sample_weight)

    def _scores(self, X: Any) -> Array:
        check_is_fitted(self)
        X = validate_data(
            self, X, reset=False, accept_sparse="csr", dtype=np.float64, ensure_all_finite=False
        )
        check_finite(X)
        return linear_scores(X, np.concatenate([self.coef_.T, self.intercept_[None]]), True)

    def _shown(self, scores: Array) -> Array:
        return scores.ravel() if self._kind == "binary" else scores

    def _probabilities(self, scores: Array) -> Array:
        """The probabilities of all classes."""
        tensor = torch.from_numpy(scores)
        if self._kind == "multilabel":
            return self._link.probabilities(tensor).numpy()
        p = self._link.proportions(tensor).numpy()
        return np.concatenate([1.0 - p, p], 1) if self._kind == "binary" else p

    def _labels(self, scores: Array, rule: Any) -> NDArray[Any]:
        if self._kind == "binary":
            return self.classes_[(scores[:, 0] > 0).astype(np.intp)]
        if self._kind == "multiclass":
            return self.classes_[scores.argmax(1)]
        return self._sets(scores, rule).astype(np.int64)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.input_tags.sparse = True
        return tags


def check_finite(X: Any) -> None:
    """Refuse features that are NaN or infinite, naming the first."""
    values = X.data if sparse.issparse(X) else X
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()):
            return
    finite = np.isfinite(values)
    if finite.all():  # the sum alone is too large
        return
    place = int(np.argmin(finite))
    if sparse.issparse(X):
        matrix = X.tocoo()
        row, column, value = matrix.row[place], matrix.col[place], matrix.data[place]
    else:
        row, column = np.unravel_index(place, X.shape)
        value = X[row, column]
    got = "NaN" if np.isnan(value) else f"{value}"
    raise FenchelError(f"X must be finite, got {got} in row {row}, column {column}")


def warn_about(places: NDArray[np.intp], statement: str, unit: str) -> None:
    """Warn about some rows or columns, and name the first of them."""
    if len(places):
        more = ", …" if len(places) > SHOWN else ""
        shown = ", ".join(map(str, places[:SHOWN])) + more
        message = f"{statement}, got {len(places)} ({unit} {shown})"
        warnings.warn(message, UserWarning, stacklevel=4)
