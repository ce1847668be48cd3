"""Fits the linear model of a multi-label task, and chooses its settings on held-out examples."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy import sparse

from fenchel.errors import FenchelError
from fenchel.extras import require
from fenchel.models.labels import LinearLabels
from fenchel.tasks.multilabel.processor import EncodedLabels
from fenchel.training.config import TrainingConfig
from fenchel.training.task import FittedModel
from fenchel.training.validation import validate

if TYPE_CHECKING:
    from fenchel.tasks.multilabel.task import MultilabelTask

CLASSIFIERS = {
    "softmax": "SoftmaxClassifier",
    "logistic": "LogisticClassifier",
    "entmax": "EntmaxClassifier",
    "sparsemax": "SparsemaxClassifier",
}


def fit_labels(
    task: MultilabelTask, train: EncodedLabels, dev: EncodedLabels | None, training: TrainingConfig
) -> FittedModel:
    """Choose the penalty, α and the rule on the development examples, or else by cross-validation.

    The model is then fitted to all training examples.
    """
    sklearn = require("fenchel.sklearn", extra="train")
    name, count = CLASSIFIERS[task.model.loss], len(train)
    by_penalty = {1.0 / (penalty * count): penalty for penalty in task.penalties}
    options = {"tol": task.tolerance, "max_iter": training.epochs}
    search = getattr(sklearn, f"{name}CV")(
        Cs=list(by_penalty), scoring=_scoring(training), random_state=training.seed, **options
    )
    rule = search.rule_parameter
    if task.rules:
        search.set_params(**{rule: list(task.rules)})
    if task.model.loss == "entmax":
        search.set_params(alphas=list(task.alphas))
    exceptions = require("sklearn.exceptions", extra="train")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", exceptions.ConvergenceWarning)
        if dev is None:
            fitted = search.set_params(cv=_folds(task, count)).fit(train.features, train.targets)
        else:
            fitted = _chosen_on(dev, train, search, getattr(sklearn, name)(**options))
    model = _model(task, fitted, rule, search)
    iterations = int(fitted.n_iter_[0])
    means = validate(task, model, train if dev is None else dev)
    record = {**means, training.monitor: float(search.scores_.max())}
    values = {"penalty": by_penalty[search.C_], rule: float(getattr(search, f"{rule}_"))}
    if task.model.loss == "entmax":
        values["alpha"] = search.alpha_
    chosen = ", ".join(f"{name} {value:.3g}" for name, value in values.items())
    where = f"{task.folds}-fold cross-validation" if dev is None else "the development examples"
    remarks = [f"chosen by {where}: {chosen}"]
    converged = iterations < training.epochs
    if not converged:
        remarks.append(
            f"L-BFGS stopped after {iterations} epochs, before the tolerance {task.tolerance:g}: "
            "more epochs, scaled features or a larger penalty may help"
        )
    return FittedModel(model, iterations, record, converged, tuple(remarks))


def f1_of_means(right: Any, found: Any) -> float:
    """F1 of the precision and the recall that are averaged over labels.

    This is what the paper calls macro-averaged F1; usually that is the average of the F1 of labels.
    """
    metrics = require("sklearn.metrics", extra="train")
    precision, recall, _, _ = metrics.precision_recall_fscore_support(
        right, found, average="macro", zero_division=0
    )
    total = float(precision + recall)
    return 2 * float(precision * recall) / total if total else 0.0


def _scoring(training: TrainingConfig) -> Any:
    """The monitored metric as a scorer of scikit-learn."""
    if training.monitor != "f1_of_means":
        return training.monitor
    return require("sklearn.metrics", extra="train").make_scorer(f1_of_means)


def _folds(task: MultilabelTask, count: int) -> int:
    if task.folds > count:
        raise FenchelError(
            f"folds must be at most {count}, the number of examples, got {task.folds}"
        )
    return task.folds


def _chosen_on(dev: EncodedLabels, train: EncodedLabels, search: Any, single: Any) -> Any:
    """A model of the training examples with the settings that `search` finds best for others."""
    splitters = require("sklearn.model_selection", extra="train")
    fold = np.repeat([-1, 0], [len(train), len(dev)])
    stack = sparse.vstack if sparse.issparse(train.features) else np.vstack
    features = stack([train.features, dev.features])
    search.set_params(cv=splitters.PredefinedSplit(fold))
    search.fit(features, np.vstack([train.targets, dev.targets]))
    single.set_params(
        C=search.C_, **{search.rule_parameter: getattr(search, f"{search.rule_parameter}_")}
    )
    if hasattr(search, "alpha_"):
        single.set_params(alpha=search.alpha_)
    return single.fit(train.features, train.targets)


def _model(task: MultilabelTask, fitted: Any, rule: str, search: Any) -> LinearLabels:
    """A model with the parameters of a fitted classifier."""
    model = task.build_model()
    with torch.no_grad():
        model.output.weight.copy_(torch.from_numpy(fitted.coef_))
        model.output.bias.copy_(torch.from_numpy(fitted.intercept_))
        model.rule.fill_(float(getattr(search, f"{rule}_")))
        model.alpha.fill_(getattr(search, "alpha_", float(model.alpha)))
    return model.eval()
