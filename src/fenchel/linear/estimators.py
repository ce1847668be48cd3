"""The linear classifiers, in the form of scikit-learn."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from fenchel.checks import check_number
from fenchel.errors import FenchelError
from fenchel.linear.classifier import LinearClassifier
from fenchel.linear.lbfgs import Array
from fenchel.linear.links import EntmaxLink, Link, LogisticLink
from fenchel.linear.selection import Candidate

STEPS = range(1, 11)  # the grids of the paper have ten values


@dataclass(eq=False, repr=False)
class OneStrength(LinearClassifier):
    """A classifier with a given C."""

    _: KW_ONLY
    C: float = 1.0

    def _strengths(self) -> list[float]:
        return [self.C]


@dataclass(eq=False, repr=False)
class StrengthPath(LinearClassifier):
    """A classifier that chooses C by cross-validation."""

    searches = True

    _: KW_ONLY
    Cs: Any = 10

    def _strengths(self) -> list[float]:
        if isinstance(self.Cs, int | np.integer):
            return np.logspace(-4, 4, int(self.Cs)).tolist()
        return sorted(float(C) for C in self.Cs)

    def _report_choice(self, candidate: Candidate, scores: Array) -> None:
        self.C_, self.Cs_ = candidate.C, np.array(self._strengths())
        self.scores_ = scores[0] if len(scores) == 1 else scores


@dataclass(eq=False, repr=False)
class ThresholdClassifier(LinearClassifier):
    """A classifier whose label sets are the labels above a threshold."""

    rule_parameter = "threshold"

    _: KW_ONLY
    threshold: Any = "cv"

    def _sets(self, scores: Array, rule: float) -> NDArray[np.bool_]:
        return self._probabilities(scores) > rule


@dataclass(eq=False, repr=False)
class SupportClassifier(LinearClassifier):
    """A classifier whose label sets are the support of its map at scores times a number."""

    rule_parameter = "inverse_temperature"

    _: KW_ONLY
    inverse_temperature: Any = "cv"

    def _rule_grid(self, labels: int) -> list[float]:
        return [0.5 * n for n in STEPS]

    def _sets(self, scores: Array, rule: float) -> NDArray[np.bool_]:
        return self._probabilities(rule * scores) > 0


class Softmax(ThresholdClassifier):
    """Softmax over the classes."""

    def _links(self) -> list[Link]:
        return [EntmaxLink(1.0)]

    def _rule_grid(self, labels: int) -> list[float]:
        return [n / labels for n in STEPS if n < labels]


class Logistic(ThresholdClassifier):
    """A sigmoid per class."""

    unlabelled_counts = True

    def _links(self) -> list[Link]:
        return [LogisticLink()]

    def _rule_grid(self, labels: int) -> list[float]:
        return [0.05 * n for n in STEPS]


class Sparsemax(SupportClassifier):
    """Sparsemax over the classes."""

    def _links(self) -> list[Link]:
        return [EntmaxLink(2.0)]


@final
@dataclass(eq=False, repr=False)
class SoftmaxClassifier(OneStrength, Softmax):
    r"""Multinomial logistic regression for classes, label sets and label proportions.

    Minimizes, with proportions q (uniform over the labels of a set, 1 for a class),

        ½‖W‖² + C Σ KL(q ‖ softmax(W x + b)),

    which for classes is scikit-learn's `LogisticRegression`. A label is in the predicted set if its
    probability is above a threshold.

    Parameters
    ----------
    C : float, default=1.0
        The inverse of the strength of the regularization; `np.inf` is none.

    threshold : float, sequence of float or 'cv', default='cv'
        The probability above which a label is in the predicted set. Of several, cross-validation
        chooses the best; "cv" stands for n/K with n = 1, …, 10 and K labels. Not used for classes.

    tol : float, default=1e-4
        L-BFGS stops when no component of the gradient of the mean loss is larger.

    fit_intercept : bool, default=True
        Whether there is an intercept b, which is not regularized.

    class_weight : dict or 'balanced', default=None
        The weights of classes, or of labels by the number of their column; "balanced" weights are
        inversely proportional to frequencies. An example has the mean weight of its labels.

    cv : int, cross-validation generator or iterable, default=5
        The folds that choose the threshold; a number means that many shuffled folds.

    scoring : str or callable, default=None
        What the choice maximizes, as in scikit-learn; None is "f1_micro" for label sets.

    warm_start : bool, default=False
        Whether `fit` starts from the solution of the previous call.

    max_iter : int, default=1000
        The largest number of iterations; a `ConvergenceWarning` says when it was too small.

    random_state : int, RandomState instance or None, default=None
        How the folds are shuffled.

    verbose : int, default=0
        Whether to print the objective in every iteration.

    n_jobs : int, default=None
        The number of folds that are fitted in parallel.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, or the numbers of the label columns.

    coef_ : ndarray of shape (n_classes, n_features) or (1, n_features)
        The weights W; one row for two classes, the scores being those of the second one.

    intercept_ : ndarray of shape (n_classes,) or (1,)
        The intercept b.

    threshold_ : float or None
        The threshold, None for classes.

    n_iter_ : ndarray of shape (1,)
        The number of iterations.

    References
    ----------
    Martins & Astudillo (2016), *From Softmax to Sparsemax*, Eq. 24 and section 4.2.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from fenchel.sklearn import SoftmaxClassifier
    >>> X, Y = make_multilabel_classification(allow_unlabeled=False, random_state=0)
    >>> model = SoftmaxClassifier(threshold=0.2).fit(X, Y)
    >>> model.predict(X[:2])
    array([[0, 0, 1, 0, 1],
           [0, 0, 1, 0, 0]])
    """


@final
@dataclass(eq=False, repr=False)
class LogisticClassifier(OneStrength, Logistic):
    r"""Independent logistic regressions, one per label or class.

    Minimizes ½‖W‖² + C Σ Σ_k [−q_k log σ(s_k) − (1 − q_k) log σ(−s_k)] with s = W x + b, where q_k is
    1 for the labels of an example, or the proportion of label k. An example without labels counts. A
    label is in the predicted set if its probability is above a threshold.

    The parameters, except for the default of the threshold, and the attributes are those of
    `SoftmaxClassifier`. `predict_proba` returns the probability of each label; for classes and
    proportions these are divided by their sum.

    Parameters
    ----------
    threshold : float, sequence of float or 'cv', default='cv'
        "cv" stands for 0.05, 0.1, …, 0.5.

    References
    ----------
    Martins & Astudillo (2016), *From Softmax to Sparsemax*, section 4.2.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from fenchel.sklearn import LogisticClassifier
    >>> X, Y = make_multilabel_classification(random_state=0)
    >>> LogisticClassifier(threshold=0.5).fit(X, Y).predict_proba(X[:1]).round(2)
    array([[0.03, 0.24, 0.46, 0.94, 0.96]])
    """


@final
@dataclass(eq=False, repr=False)
class SparsemaxClassifier(OneStrength, Sparsemax):
    r"""A linear model with the sparsemax loss: label proportions that can be exactly zero.

    Minimizes ½‖W‖² + C Σ L(W x + b; q) with the loss L(s; q) = ½‖q − s‖² − ½‖sparsemax(s) − s‖²,
    where q has the proportions (uniform over the labels of a set, 1 for a class). With two classes
    this is the modified Huber loss. A label is in the predicted set if sparsemax(t s) is positive
    there; the inverse temperature t says how large sets are.

    Parameters
    ----------
    inverse_temperature : float, sequence of float or 'cv', default='cv'
        The number t. Of several, cross-validation chooses the best; "cv" stands for 0.5, 1, …, 5. Not
        used for classes, and not by `predict_proba`.

    The other parameters and the attributes are those of `SoftmaxClassifier`.

    Attributes
    ----------
    inverse_temperature_ : float or None
        The number t, None for classes.

    References
    ----------
    Martins & Astudillo (2016), *From Softmax to Sparsemax*, Eq. 26 and section 4.2.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from fenchel.sklearn import SparsemaxClassifier
    >>> X, Y = make_multilabel_classification(allow_unlabeled=False, random_state=0)
    >>> SparsemaxClassifier(inverse_temperature=1.0).fit(X, Y).predict_proba(X[:2]).round(2)
    array([[0.  , 0.15, 0.33, 0.13, 0.39],
           [0.  , 0.  , 0.98, 0.02, 0.  ]])
    """


@final
@dataclass(eq=False, repr=False)
class EntmaxClassifier(OneStrength, SupportClassifier):
    r"""A linear model with the α-entmax loss, between `SoftmaxClassifier` and `SparsemaxClassifier`.

    Minimizes ½‖W‖² + C Σ L_α(W x + b; q), where L_α is `fenchel.entmax_loss`.

    Parameters
    ----------
    alpha : float, default=1.5
        1 is softmax, 2 is sparsemax; above 1 proportions can be exactly zero.

    The other parameters and the attributes are those of `SparsemaxClassifier`.

    References
    ----------
    Peters, Niculae & Martins (2019), *Sparse Sequence-to-Sequence Models*.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from fenchel.sklearn import EntmaxClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> EntmaxClassifier(alpha=1.5).fit(X, y).predict_proba(X[:1]).round(2)
    array([[1., 0., 0.]])
    """

    _: KW_ONLY
    alpha: float = 1.5

    def _links(self) -> list[Link]:
        return [EntmaxLink(check_number(self.alpha, name="alpha", above=0))]


@final
@dataclass(eq=False, repr=False)
class SoftmaxClassifierCV(StrengthPath, Softmax):
    """`SoftmaxClassifier` with C and the threshold chosen by cross-validation.

    All folds follow a path from the smallest C to the largest; each solution is the start of the next.

    Parameters
    ----------
    Cs : int or sequence of float, default=10
        The values of C to choose among; a number means as many between 1e-4 and 1e4.

    scoring : str or callable, default=None
        What the choice maximizes; None is "f1_micro" for label sets and "accuracy" for classes.

    The other parameters are those of `SoftmaxClassifier`.

    Attributes
    ----------
    C_ : float
        The chosen C.

    Cs_ : ndarray of shape (n_cs,)
        All values of C.

    scores_ : ndarray of shape (n_cs, n_rules)
        The score of every C and threshold on the held-out examples of all folds.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from fenchel.sklearn import SoftmaxClassifierCV
    >>> X, Y = make_multilabel_classification(allow_unlabeled=False, random_state=0)
    >>> model = SoftmaxClassifierCV(Cs=[0.01, 1, 100], random_state=0).fit(X, Y)
    >>> model.C_, model.threshold_
    (0.01, 0.2)
    """


@final
@dataclass(eq=False, repr=False)
class LogisticClassifierCV(StrengthPath, Logistic):
    """`LogisticClassifier` with C and the threshold chosen as by `SoftmaxClassifierCV`."""


@final
@dataclass(eq=False, repr=False)
class SparsemaxClassifierCV(StrengthPath, Sparsemax):
    """`SparsemaxClassifier` with C and the inverse temperature chosen as by `SoftmaxClassifierCV`."""


@final
@dataclass(eq=False, repr=False)
class EntmaxClassifierCV(StrengthPath, SupportClassifier):
    """`EntmaxClassifier` with α, C and the inverse temperature chosen as by `SoftmaxClassifierCV`.

    Parameters
    ----------
    alphas : sequence of float, default=(1.25, 1.5, 1.75, 2.0)
        The values of α to choose among.

    Attributes
    ----------
    alpha_ : float
        The chosen α.

    scores_ : ndarray of shape (n_alphas, n_cs, n_rules)
        The scores; without the first dimension for a single α.
    """

    _: KW_ONLY
    alphas: Any = (1.25, 1.5, 1.75, 2.0)

    def _links(self) -> list[Link]:
        if not len(self.alphas):
            raise FenchelError("alphas must have at least one number, got none")
        return [EntmaxLink(check_number(each, name="alpha", above=0)) for each in self.alphas]

    def _report_choice(self, candidate: Candidate, scores: Array) -> None:
        super()._report_choice(candidate, scores)
        self.alpha_ = float(self.alphas[candidate.link])
