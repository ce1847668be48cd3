"""The regularized loss of a linear model, and its minimization.

With weights w_i and targets q_i, the parameters (W, b) minimize

    F(W, b) = Σ w_i [Ω*(W x_i + b) − ⟨q_i, W x_i + b⟩] + ‖W‖²/(2 C),

which is the objective of scikit-learn's `LogisticRegression`, divided by C and without the constant
Σ w_i Ω(q_i). Its tolerance is about the gradient of F/Σ w_i.

Dense features are centred: with x − μ and b + W μ instead of x and b, F is the same and better
conditioned, and L-BFGS needs a fraction of the iterations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fenchel.linear.lbfgs import Solution, minimize
from fenchel.linear.links import Link

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Problem:
    """Examples to fit a linear model to.

    Attributes:
        features: Dense or CSR, (examples, features).
        targets: Proportions, (examples, scores).
        weights: One per example.
        fit_intercept: Whether the model has an intercept.
    """

    features: Any
    targets: Array
    weights: Array
    fit_intercept: bool

    @property
    def shape(self) -> tuple[int, int]:
        """That of the parameters: a row per feature and one of intercepts, a column per score."""
        return self.features.shape[1] + self.fit_intercept, self.targets.shape[1]

    def part(self, rows: NDArray[np.intp]) -> Problem:
        """Some of the examples."""
        parts = self.features[rows], self.targets[rows], self.weights[rows]
        return Problem(*parts, self.fit_intercept)

    def minimize(
        self,
        link: Link,
        C: float,
        start: Array,
        *,
        tol: float,
        max_iter: int,
        on_iteration: Callable[[int, float, float], object] | None = None,
    ) -> Solution:
        """The parameters at which no component of the gradient of F/Σ w_i is larger than `tol`."""
        objective = Objective(self, link, 1.0 / C)
        found = minimize(
            objective,
            objective.centred(start).ravel(),
            objective.largest,
            tol=tol,
            max_iter=max_iter,
            on_iteration=on_iteration,
        )
        return replace(found, x=objective.uncentred(found.x.reshape(self.shape)))


class Objective:
    """F and its gradient, as a function of the parameters of the centred features."""

    def __init__(self, problem: Problem, link: Link, strength: float) -> None:
        self.link, self.strength, self.shape = link, strength, problem.shape
        self.features, self.mean = problem.features, None
        self.targets = torch.from_numpy(problem.targets)
        self.total = float(problem.weights.sum())
        equal = (problem.weights == 1.0).all()
        self.weights = None if equal else torch.from_numpy(problem.weights).unsqueeze(1)
        self.count, self.ones = self.features.shape[1], np.ones(self.features.shape[0])
        self.has_intercept = problem.fit_intercept
        if self.has_intercept and isinstance(self.features, np.ndarray):
            self.mean = problem.weights @ self.features / self.total
            self.features = self.features - self.mean

    def __call__(self, flat: Array) -> tuple[float, Array]:
        """F and its gradient."""
        parameters = flat.reshape(self.shape)
        weights = parameters[: self.count]
        scores = self.features @ weights
        if self.has_intercept:
            scores += parameters[-1]
        value, residual = self.link.loss(torch.from_numpy(scores), self.targets, self.weights)
        slopes = residual.numpy()
        gradient = np.empty(self.shape)
        np.multiply(self.strength, weights, out=gradient[: self.count])
        gradient[: self.count] += self.features.T @ slopes
        if self.has_intercept:
            gradient[-1] = self.ones @ slopes  # faster than the sum of an array over its rows
        return value + 0.5 * self.strength * float(np.vdot(weights, weights)), gradient.ravel()

    def largest(self, flat: Array) -> float:
        """The largest component of a gradient, in the parameters of the original features."""
        gradient = flat.reshape(self.shape)
        if self.mean is not None:
            gradient = gradient.copy()
            gradient[:-1] += np.outer(self.mean, gradient[-1])
        return max(float(gradient.max()), -float(gradient.min())) / self.total

    def centred(self, parameters: Array) -> Array:
        """The parameters of the centred features."""
        return self._with_intercept(parameters, 1.0)

    def uncentred(self, parameters: Array) -> Array:
        """The parameters of the original features."""
        return self._with_intercept(parameters, -1.0)

    def _with_intercept(self, parameters: Array, sign: float) -> Array:
        moved = parameters.copy()
        if self.mean is not None:
            moved[-1] += sign * (self.mean @ parameters[:-1])
        return moved
