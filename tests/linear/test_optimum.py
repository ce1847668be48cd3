"""The classifiers minimize the objective of their docstrings."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from fenchel.sklearn import (
    EntmaxClassifier,
    LogisticClassifier,
    SoftmaxClassifier,
    SparsemaxClassifier,
)
from tests.linear.optimum import minimum, objective

CLASSIFIERS = {
    "softmax": SoftmaxClassifier,
    "logistic": LogisticClassifier,
    "sparsemax": SparsemaxClassifier,
    "entmax": EntmaxClassifier,
}
FIXED = {
    "softmax": {"threshold": 0.2},
    "logistic": {"threshold": 0.5},
    "sparsemax": {"inverse_temperature": 1.0},
    "entmax": {"inverse_temperature": 1.0},
}


def make(loss: str, **parameters):
    return CLASSIFIERS[loss](**FIXED[loss], **parameters)


def draw(targets: str, seed: int = 0):
    """20 examples with 3 features; 4 classes, sets of labels, or proportions with zeros."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(20, 3))
    if targets == "classes":
        y = rng.integers(4, size=20)
        return X, y, np.eye(4)[y]
    if targets == "sets":
        y = (rng.random((20, 4)) < 0.4).astype(int)
        y[np.arange(20), rng.integers(4, size=20)] = 1
        return X, y, y / y.sum(1, keepdims=True)
    y = np.maximum(rng.dirichlet(np.ones(4), size=20) - 0.15, 0.0)
    y /= y.sum(1, keepdims=True)
    return X, y, y


@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("targets", ["classes", "sets", "proportions"])
@pytest.mark.parametrize("loss", CLASSIFIERS)
def test_the_objective_is_that_of_a_conic_solver(loss, targets, C):
    X, y, q = draw(targets)
    if loss == "logistic":
        q = (q > 0).astype(float) if targets == "sets" else q
    model = make(loss, C=C, tol=1e-9, max_iter=10_000).fit(X, y)
    ours = objective(loss, X, q, C, model.coef_, model.intercept_)
    best = minimum(loss, X, q, C)
    scale = C * len(X)  # that of the mean loss, which the tolerance is about
    assert ours / scale == pytest.approx(best / scale, rel=0, abs=1e-9)


@pytest.mark.parametrize("loss", ["softmax", "sparsemax", "entmax"])
def test_two_classes_share_one_row_of_weights(loss):
    """It is half the difference of the two rows that the general problem has, with half the C."""
    X, y, _ = draw("classes")
    y = y % 2
    one = make(loss, C=1.0, tol=1e-9).fit(X, y)
    two = make(loss, C=0.5, tol=1e-9).fit(X, np.eye(2, dtype=int)[y])
    assert one.coef_.shape == (1, 3)
    np.testing.assert_allclose(one.coef_[0], two.coef_[1] - two.coef_[0], atol=1e-6)
    np.testing.assert_allclose(one.predict_proba(X), two.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_softmax_is_the_logistic_regression_of_scikit_learn(classes, weighted):
    X, y, _ = draw("classes")
    y = y % classes
    weights = np.random.default_rng(1).random(20) + 0.5 if weighted else None
    options = {"C": 0.7, "tol": 1e-9, "class_weight": "balanced", "max_iter": 1000}
    theirs = LogisticRegression(**options).fit(X, y, sample_weight=weights)
    ours = SoftmaxClassifier(**options).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-5)


def test_logistic_is_one_logistic_regression_per_label():
    X, y, _ = draw("sets")
    ours = LogisticClassifier(C=0.7, threshold=0.5, tol=1e-9).fit(X, y)
    for k in range(4):
        theirs = LogisticRegression(C=0.7, tol=1e-9, max_iter=1000).fit(X, y[:, k])
        np.testing.assert_allclose(ours.coef_[k], theirs.coef_[0], atol=1e-6)
        np.testing.assert_allclose(ours.predict_proba(X)[:, k], theirs.predict_proba(X)[:, 1])


@pytest.mark.parametrize("loss", CLASSIFIERS)
def test_sparse_and_dense_features_give_the_same_model(loss):
    X, y, _ = draw("sets")
    X[np.abs(X) < 0.5] = 0.0
    dense = make(loss, tol=1e-9).fit(X, y)
    for kind in (sparse.csr_array, sparse.csc_matrix, sparse.coo_array):
        other = make(loss, tol=1e-9).fit(kind(X), kind(y))
        np.testing.assert_allclose(other.coef_, dense.coef_, atol=1e-6)
        np.testing.assert_array_equal(other.predict(kind(X)), dense.predict(X))


@pytest.mark.parametrize("alpha", [1.0, 1.000001, 1.3, 1.5, 2.0, 3.0])
def test_entmax_reaches_a_gradient_of_zero(alpha):
    """The gradient is that of `fenchel.entmax_loss`, by finite differences of nothing but the loss."""
    import torch

    import fenchel

    X, y, q = draw("sets")
    model = make("entmax", alpha=alpha, tol=1e-9, max_iter=10_000).fit(X, y)
    W = torch.tensor(model.coef_, requires_grad=True)
    b = torch.tensor(model.intercept_, requires_grad=True)
    scores = torch.tensor(X) @ W.T + b
    loss = fenchel.entmax_loss(scores, torch.tensor(q), alpha, reduction="sum")
    (loss + 0.5 * W.square().sum()).backward()
    assert W.grad is not None
    assert b.grad is not None
    assert W.grad.abs().max() < 1e-6
    assert b.grad.abs().max() < 1e-6


@pytest.mark.parametrize("loss", CLASSIFIERS)
def test_without_an_intercept_the_model_is_odd_in_the_features(loss):
    X, y, _ = draw("classes")
    model = make(loss, fit_intercept=False).fit(X, y)
    np.testing.assert_array_equal(model.intercept_, 0.0)
    np.testing.assert_allclose(model.decision_function(-X), -model.decision_function(X))
