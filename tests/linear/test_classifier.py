"""Label sets, proportions and classes; the choice of C and of the rule; warm starts; bad input."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris, make_multilabel_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import f1_score
from sklearn.model_selection import GridSearchCV, PredefinedSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fenchel import FenchelError
from fenchel.sklearn import (
    EntmaxClassifier,
    EntmaxClassifierCV,
    LogisticClassifier,
    LogisticClassifierCV,
    SoftmaxClassifier,
    SoftmaxClassifierCV,
    SparsemaxClassifier,
    SparsemaxClassifierCV,
)

SINGLE = [SoftmaxClassifier, LogisticClassifier, SparsemaxClassifier, EntmaxClassifier]
SEARCHES = [SoftmaxClassifierCV, LogisticClassifierCV, SparsemaxClassifierCV, EntmaxClassifierCV]
SPARSE = [SparsemaxClassifier, EntmaxClassifier]


@pytest.fixture(scope="module")
def sets():
    """300 examples with 10 features and sets of 5 labels."""
    return make_multilabel_classification(
        n_samples=300, n_features=10, n_classes=5, n_labels=2, allow_unlabeled=False, random_state=0
    )


def rule_of(model) -> str:
    return "threshold" if hasattr(model, "threshold") else "inverse_temperature"


@pytest.mark.parametrize("kind", SPARSE)
def test_proportions_sum_to_one_and_can_be_exactly_zero(kind, sets):
    X, Y = sets
    p = kind(inverse_temperature=1.0).fit(X, Y).predict_proba(X)
    np.testing.assert_allclose(p.sum(1), 1.0)
    assert (p == 0).mean() > 0.05
    assert (p >= 0).all()


@pytest.mark.parametrize("kind", [SoftmaxClassifier, *SPARSE])
def test_proportions_can_be_learned(kind, sets):
    """The targets are the proportions of a model of the same kind, so the error can be small."""
    X, Y = sets
    X = StandardScaler().fit_transform(X)
    target = kind().set_params(**{rule_of(kind()): 0.5}).fit(X, Y / Y.sum(1, keepdims=True))
    q = target.predict_proba(X)
    found = clone(target).set_params(C=1e4, tol=1e-6).fit(X, q)
    np.testing.assert_allclose(found.predict_proba(X), q, atol=0.01)


@pytest.mark.parametrize("kind", SPARSE)
def test_a_larger_inverse_temperature_makes_smaller_sets(kind, sets):
    X, Y = sets
    sizes = []
    for t in (0.5, 1.0, 2.0, 5.0):
        labels = kind(inverse_temperature=t).fit(X, Y).predict(X)
        assert labels.sum(1).min() >= 1
        sizes.append(labels.sum())
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < sizes[0]


@pytest.mark.parametrize("kind", [SoftmaxClassifier, LogisticClassifier])
def test_labels_are_those_above_the_threshold(kind, sets):
    X, Y = sets
    model = kind(threshold=0.3).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), model.predict_proba(X) > 0.3)


@pytest.mark.parametrize("kind", SPARSE)
def test_labels_are_the_support_of_the_map(kind, sets):
    import torch

    import fenchel

    X, Y = sets
    model = kind(inverse_temperature=1.5).fit(X, Y)
    scores = torch.from_numpy(1.5 * model.decision_function(X))
    alpha = getattr(model, "alpha", 2.0)
    np.testing.assert_array_equal(model.predict(X), fenchel.entmax(scores, alpha).numpy() > 0)


@pytest.mark.parametrize("kind", SINGLE)
def test_the_rule_has_the_best_f1_on_held_out_examples(kind, sets):
    """On one fold, which a user can redo by hand."""
    X, Y = sets
    fold = np.full(300, -1)
    fold[200:] = 0
    name = rule_of(kind())
    chosen = kind(cv=PredefinedSplit(fold), tol=1e-6).fit(X, Y)
    rule = getattr(chosen, f"{name}_")
    grid = chosen._rules(5)

    def held_out(value):
        model = kind(tol=1e-6).set_params(**{name: value}).fit(X[:200], Y[:200])
        return f1_score(Y[200:], model.predict(X[200:]), average="micro", zero_division=0)

    scores = [held_out(value) for value in grid]
    assert rule == grid[int(np.argmax(scores))]
    assert len(set(scores)) > 3
    fixed = kind(tol=1e-6).set_params(**{name: rule}).fit(X, Y)
    np.testing.assert_array_equal(chosen.predict(X), fixed.predict(X))


def test_the_grids_are_those_of_the_paper():
    tenths = np.arange(1, 11)
    np.testing.assert_allclose(LogisticClassifier()._rules(6), 0.05 * tenths)
    np.testing.assert_allclose(SoftmaxClassifier()._rules(20), tenths / 20)
    np.testing.assert_allclose(SoftmaxClassifier()._rules(6), tenths[:5] / 6)
    np.testing.assert_allclose(SparsemaxClassifier()._rules(6), 0.5 * tenths)


def test_several_rules_are_those_to_choose_among(sets):
    X, Y = sets
    model = LogisticClassifier(threshold=[0.9, 0.4, 0.95], random_state=0).fit(X, Y)
    assert model.threshold_ == 0.4


def test_classes_need_no_rule():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    for kind in SINGLE:
        model = kind().fit(X, names)
        assert model.score(X, names) > 0.9
        assert getattr(model, f"{rule_of(model)}_") is None
        np.testing.assert_allclose(model.predict_proba(X).sum(1), 1.0)


def test_scoring_chooses_what_the_rule_is_best_for(sets):
    X, Y = sets
    micro = SparsemaxClassifier(random_state=0).fit(X, Y)
    exact = SparsemaxClassifier(random_state=0, scoring="accuracy").fit(X, Y)
    assert exact.inverse_temperature_ != micro.inverse_temperature_
    assert exact.score(X, Y) > micro.score(X, Y)


@pytest.mark.parametrize("kind", SEARCHES)
def test_a_search_finds_the_best_C_and_rule(kind, sets):
    X, Y = sets
    Cs = [1e-3, 1e-1, 10.0]
    model = kind(Cs=Cs, random_state=0).fit(X, Y)
    rules = model._rules(5)
    alphas = (4,) if kind is EntmaxClassifierCV else ()
    assert model.scores_.shape == (*alphas, 3, len(rules))
    place = np.unravel_index(model.scores_.argmax(), model.scores_.shape)
    assert Cs[place[-2]] == model.C_
    assert getattr(model, f"{rule_of(model)}_") == rules[place[-1]]
    if alphas:
        assert model.alpha_ == model.alphas[place[0]]
    np.testing.assert_array_equal(model.Cs_, Cs)


def test_a_search_fits_the_model_of_its_C(sets):
    X, Y = sets
    search = SparsemaxClassifierCV(Cs=[1e-3, 1e-1, 10.0], random_state=0, tol=1e-7).fit(X, Y)
    model = SparsemaxClassifier(
        C=search.C_, inverse_temperature=search.inverse_temperature_, tol=1e-7
    ).fit(X, Y)
    np.testing.assert_allclose(search.coef_, model.coef_, atol=1e-4)


def test_a_search_for_classes_agrees_with_scikit_learn():
    X, y = load_iris(return_X_y=True)
    folds = PredefinedSplit(np.arange(150) % 5)
    Cs = [1e-3, 1e-1, 10.0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # about defaults that will change
        theirs = LogisticRegressionCV(Cs=Cs, cv=folds, tol=1e-6, max_iter=1000).fit(X, y)
    ours = SoftmaxClassifierCV(Cs=Cs, cv=folds, tol=1e-6).fit(X, y)
    assert np.ravel(theirs.C_)[0] == ours.C_
    by_fold = (
        next(iter(theirs.scores_.values())) if isinstance(theirs.scores_, dict) else theirs.scores_
    )
    np.testing.assert_allclose(ours.scores_[:, 0], np.reshape(by_fold, (5, -1))[:, :3].mean(0))


@pytest.mark.parametrize("kind", [SparsemaxClassifier, SparsemaxClassifierCV])
def test_folds_in_processes_give_the_same_model(kind, sets):
    X, Y = sets
    models = [kind(random_state=0, n_jobs=jobs).fit(X, Y) for jobs in (None, 2)]
    np.testing.assert_allclose(models[0].coef_, models[1].coef_)
    assert models[0].inverse_temperature_ == models[1].inverse_temperature_


@pytest.mark.parametrize("kind", SINGLE)
def test_a_warm_start_needs_fewer_iterations(kind, sets):
    X, Y = sets
    model = kind(warm_start=True, tol=1e-6).set_params(**{rule_of(kind()): 0.5}).fit(X, Y)
    cold = model.n_iter_[0]
    before = model.coef_
    assert model.fit(X, Y).n_iter_[0] <= 1
    np.testing.assert_allclose(model.coef_, before, atol=1e-3)
    assert model.fit(X[:-1], Y[:-1]).n_iter_[0] < cold
    with pytest.raises(FenchelError, match="a warm start must have the classes and the number of"):
        model.fit(X[:, 1:], Y)


def test_weights_repeat_examples(sets):
    X, Y = sets
    weights = np.random.default_rng(0).integers(0, 3, size=300)
    folds = np.arange(300) % 3
    options = {"tol": 1e-8, "max_iter": 5000, "C": 0.1}
    for kind in SINGLE:
        ours = kind(**options, cv=PredefinedSplit(folds)).fit(X, Y, sample_weight=weights)
        repeated = kind(**options, cv=PredefinedSplit(folds.repeat(weights)))
        repeated.fit(X.repeat(weights, axis=0), Y.repeat(weights, axis=0))
        np.testing.assert_allclose(ours.coef_, repeated.coef_, atol=1e-5)
        assert getattr(ours, f"{rule_of(ours)}_") == getattr(repeated, f"{rule_of(ours)}_")


def test_a_class_weight_weighs_the_examples_with_the_label(sets):
    X, Y = sets
    q = Y / Y.sum(1, keepdims=True)
    by_label = np.array([1.0, 5.0, 1.0, 0.5, 1.0])
    options = {"inverse_temperature": 1.0, "tol": 1e-8}
    named = SparsemaxClassifier(**options, class_weight={1: 5.0, 3: 0.5}).fit(X, Y)
    given = SparsemaxClassifier(**options).fit(X, Y, sample_weight=q @ by_label)
    np.testing.assert_allclose(named.coef_, given.coef_, atol=1e-6)
    balanced = SparsemaxClassifier(**options, class_weight="balanced").fit(X, Y)
    mass = q.sum(0)
    given.fit(X, Y, sample_weight=q @ (300 / (5 * mass)))
    np.testing.assert_allclose(balanced.coef_, given.coef_, atol=1e-6)


def test_an_estimator_is_part_of_a_grid_search(sets):
    X, Y = sets
    pipeline = make_pipeline(StandardScaler(), SparsemaxClassifier())
    grid = {
        "sparsemaxclassifier__C": [0.01, 1.0],
        "sparsemaxclassifier__inverse_temperature": [1.0, 2.0],
    }
    search = GridSearchCV(pipeline, grid, scoring="f1_micro", cv=3).fit(X, Y)
    assert search.best_score_ > 0.6
    assert search.predict(X).shape == Y.shape


# Bad input


def test_an_early_stop_is_a_warning(sets):
    X, Y = sets
    with pytest.warns(ConvergenceWarning, match=r"L-BFGS stopped after 2 iterations \(max_iter\)"):
        SparsemaxClassifier(max_iter=2, inverse_temperature=1.0).fit(X, Y)
    with pytest.warns(ConvergenceWarning) as found:
        SparsemaxClassifierCV(max_iter=2, Cs=[0.1, 1.0]).fit(X, Y)
    assert any("10 of 10 fits of the cross-validation" in str(each.message) for each in found)
    assert len(found) == 2


def test_unlabelled_examples_are_left_out(sets):
    X, Y = sets[0], sets[1].copy()
    Y[[3, 8]] = 0
    rest = np.delete(np.arange(300), [3, 8])
    for kind in (SoftmaxClassifier, *SPARSE):
        model = kind(tol=1e-8).set_params(**{rule_of(kind()): 0.5})
        with pytest.warns(
            UserWarning, match=r"examples without a label are left out, got 2 \(row 3, 8\)"
        ):
            found = clone(model).fit(X, Y)
        np.testing.assert_allclose(found.coef_, model.fit(X[rest], Y[rest]).coef_, atol=1e-6)
    LogisticClassifier().fit(X, Y)  # for which they are examples of the absence of labels


def test_labels_without_examples_are_named(sets):
    X, Y = sets[0], sets[1].copy()
    Y[:, 2], Y[:, 0] = 0, 1
    for kind in SINGLE:
        with pytest.warns(UserWarning, match=r"without an example .* got 1 \(column 2\)"):
            labels = kind(random_state=0).fit(X, Y).predict(X)
        assert not labels[:, 2].any()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_features_that_are_not_finite_are_named(value, convert, sets):
    X, Y = sets
    model = SparsemaxClassifier(inverse_temperature=1.0).fit(X, Y)
    X = X.copy()
    X[7, 4] = value
    name = "NaN" if np.isnan(value) else str(value)
    for call in (lambda: model.fit(convert(X), Y), lambda: model.predict(convert(X))):
        with pytest.raises(FenchelError, match=f"X must be finite, got {name} in row 7, column 4"):
            call()


def test_large_finite_features_are_no_error(sets):
    """Their sum is infinite."""
    model = SparsemaxClassifier(inverse_temperature=1.0).fit(*sets)
    with np.errstate(over="ignore"):
        assert model.predict_proba(np.full((2, 10), 1e308)).shape == (2, 5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda q: q * 0.5, r"must sum to 1 in every row, got 0\.5 in row 0"),
        (lambda q: q - (np.arange(5) == 2), r"must not be negative, got -.* in row 0, column 2"),
    ],
)
def test_proportions_that_are_none_are_named(change, message, sets):
    X, Y = sets
    q = Y / Y.sum(1, keepdims=True)
    q[:, 0], q[:, 1] = 0.3, 0.7
    q[:, 2:] = 0.0
    with pytest.raises(FenchelError, match=message):
        SparsemaxClassifier().fit(X, change(q))


@pytest.mark.parametrize("wrong", [-1, 2])
def test_label_sets_that_are_not_0_and_1_are_named(wrong: int, sets):
    X, Y = sets
    with pytest.raises(FenchelError, match=f"must be 0 or 1, got {wrong} in row 0, column 1"):
        SparsemaxClassifier().fit(X, np.where(np.arange(5) == 1, wrong, Y * 0))


def test_targets_of_another_shape_are_an_error(sets):
    X, Y = sets
    model = SparsemaxClassifier(inverse_temperature=1.0).fit(X, Y)
    with pytest.raises(FenchelError, match=r"y must have the shape \(300, 5\), got \(300, 4\)"):
        model.score(X, Y[:, :4])
    with pytest.raises(ValueError, match="expecting 10 features"):
        model.predict(X[:, 1:])


@pytest.mark.parametrize(
    ("kind", "parameters", "message"),
    [
        (SparsemaxClassifier, {"C": 0.0}, r"C must be above 0 and finite, got 0\.0"),
        (SparsemaxClassifier, {"C": "1"}, r"C must be a number, got '1'"),
        (SparsemaxClassifier, {"tol": -1.0}, "tol must be above 0"),
        (SparsemaxClassifier, {"max_iter": 0}, "max_iter must be a whole number of at least 1"),
        (SparsemaxClassifier, {"inverse_temperature": "best"}, "must be a number, .* got 'best'"),
        (SoftmaxClassifier, {"threshold": -0.1}, "threshold must be at least 0"),
        (SoftmaxClassifier, {"threshold": []}, "threshold must have at least one number"),
        (EntmaxClassifier, {"alpha": 0}, "alpha must be above 0"),
        (SparsemaxClassifier, {"class_weight": "even"}, "class_weight must be 'balanced'"),
        (
            SparsemaxClassifier,
            {"class_weight": {9: 1.0}},
            "class_weight must name classes of y, got 9",
        ),
        (SparsemaxClassifierCV, {"Cs": []}, "Cs must have at least one number"),
        (SparsemaxClassifierCV, {"Cs": [1.0, -1.0]}, r"C must be above 0 and finite, got -1\.0"),
        (EntmaxClassifierCV, {"alphas": ()}, "alphas must have at least one number"),
    ],
)
def test_bad_parameters_are_named(kind, parameters, message, sets):
    with pytest.raises(FenchelError, match=message):
        kind(**parameters).fit(*sets)


def test_negative_weights_are_named(sets):
    weights = np.ones(300)
    weights[4] = -0.5
    with pytest.raises(FenchelError, match=r"must not be negative, got -0\.5 in row 4"):
        SparsemaxClassifier().fit(*sets, sample_weight=weights)
