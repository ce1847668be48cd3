"""L-BFGS for smooth convex functions of many variables.

A step costs one evaluation and two passes over the kept pairs. In the L-BFGS-B of scipy, which also
handles bounds, passes over the pairs take most of the time of a linear model with sparse features.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Function = Callable[[Array], tuple[float, Array]]

PAIRS = 30  # for up to SMALL variables
FEW_PAIRS = 10  # for more, where passes over them take most of the time
SMALL = 100_000
DECREASE, CURVATURE = 1e-4, 0.9  # Wolfe's conditions
TRIALS = 40  # steps along a direction
ROUNDING = 64 * np.finfo(float).eps  # relative changes of the function below this are noise
STALLED = 20  # iterations without progress after which the search ends


@dataclass(frozen=True)
class Solution:
    """Where the search ended.

    Attributes:
        x: The variables.
        iterations: The number of iterations.
        gradient: The measure of the gradient.
        reason: Why the search ended before the tolerance was reached, "" if it was.
    """

    x: Array
    iterations: int
    gradient: float
    reason: str


def minimize(
    function: Function,
    start: Array,
    measure: Callable[[Array], float],
    *,
    tol: float,
    max_iter: int,
    on_iteration: Callable[[int, float, float], object] | None = None,
) -> Solution:
    """Minimize a convex function by L-BFGS.

    Args:
        function: Returns the value and the gradient.
        start: The variables to start from.
        measure: The size of a gradient, in the norm that `tol` is about.
        tol: The search ends when the measure is at most this.
        max_iter: The largest number of iterations.
        on_iteration: Called with the iteration, the value and the measure.

    >>> scale = np.array([1.0, 10.0, 100.0])
    >>> quadratic = lambda x: (float(scale @ (x - 1) ** 2) / 2, scale * (x - 1))
    >>> found = minimize(quadratic, np.zeros(3), np.linalg.norm, tol=1e-8, max_iter=100)
    >>> found.x.round(6), found.reason
    (array([1., 1., 1.]), '')
    """
    x, (value, gradient) = start, function(start)
    pairs = Pairs(x.size, PAIRS if x.size <= SMALL else FEW_PAIRS)
    best, stalled = measure(gradient), 0
    size = best
    for iteration in range(max_iter + 1):
        if on_iteration is not None:
            on_iteration(iteration, value, size)
        if size <= tol:
            return Solution(x, iteration, size, "")
        if iteration == max_iter or stalled == STALLED:
            break
        direction = pairs.direction(gradient)
        slope = float(gradient @ direction)
        if not slope < 0:
            pairs.clear()
            direction = -gradient
            slope = -float(gradient @ gradient)
        length = 1.0 if pairs.count else 1.0 / np.sqrt(-slope)
        step = _search(function, x, value, slope, direction, length)
        if step is None:
            if not pairs.count:
                return Solution(x, iteration, size, "no step decreases the objective")
            pairs.clear()
            continue
        length, new_value, new_gradient = step
        moved = length * direction
        x = x + moved
        pairs.add(moved, new_gradient - gradient, new_gradient)
        size = measure(new_gradient)
        progress = value - new_value > ROUNDING * abs(value) or size < best
        stalled, best = 0 if progress else stalled + 1, min(size, best)
        value, gradient = new_value, new_gradient
    reason = "max_iter" if stalled < STALLED else "the objective no longer decreases"
    return Solution(x, iteration, size, reason)


def _search(
    function: Function, x: Array, value: float, slope: float, direction: Array, length: float
) -> tuple[float, float, Array] | None:
    """A step that satisfies Wolfe's conditions, with the value and the gradient there.

    Where values differ by rounding alone, slopes decide (Hager & Zhang 2005, the approximate Wolfe
    conditions).
    """
    low, low_slope, high, high_slope = 0.0, slope, np.inf, np.nan
    noise = ROUNDING * abs(value)
    for _ in range(TRIALS):
        found, gradient = function(x + length * direction)
        here = float(gradient @ direction)
        decreases = found <= value + DECREASE * length * slope
        flat = found <= value + noise and here <= (2 * DECREASE - 1) * slope
        if not (decreases or flat):
            high, high_slope = length, here
        elif here < CURVATURE * slope:
            low, low_slope, before = length, here, low
            if high == np.inf:
                length = min(max(_zero(before, slope, low, low_slope), 2 * low), 10 * low)
                continue
        else:
            return length, found, gradient
        width = high - low
        length = min(
            max(_zero(low, low_slope, high, high_slope), low + 0.1 * width), high - 0.1 * width
        )
    return None


def _zero(a: float, slope_a: float, b: float, slope_b: float) -> float:
    """Where the line through two slopes is zero; the middle if it does not rise."""
    if slope_b > slope_a:
        return a - slope_a * (b - a) / (slope_b - slope_a)
    return 0.5 * (a + b)


class Pairs:
    """The latest steps s and changes of the gradient y, and the matrix H that they define.

    With rows s and y in S and Y, D = diag(s·y) and R the upper triangle of S Yᵀ,

        H g = γ g + Sᵀ R⁻ᵀ [(D + γ Y Yᵀ) R⁻¹ S g − γ Y g] − γ Yᵀ R⁻¹ S g,    γ = s·y / y·y,

    which needs S g and Y g for the gradient g at every step, and two sums over rows.

    Reference: Byrd, Nocedal & Schnabel (1994), *Representations of quasi-Newton matrices*, Eq. 3.1.
    """

    def __init__(self, variables: int, room: int) -> None:
        self.steps, self.changes = np.empty((room, variables)), np.empty((room, variables))
        self.order: list[int] = []  # the rows, from the oldest to the latest
        self.products = np.zeros((room, room))  # s_i · y_j, by row
        self.gram = np.zeros((room, room))  # y_i · y_j
        self.along_steps, self.along_changes = np.zeros(room), np.zeros(room)  # S g and Y g
        self.gamma = 1.0

    @property
    def count(self) -> int:
        """The number of pairs."""
        return len(self.order)

    def clear(self) -> None:
        """Forget all pairs."""
        self.order, self.gamma = [], 1.0

    def add(self, step: Array, change: Array, gradient: Array) -> None:
        """Keep a pair instead of the oldest one; one without curvature is left out.

        `gradient` is the one that has changed.
        """
        curvature, length = float(step @ change), float(change @ change)
        row = self.count
        if curvature > np.finfo(float).eps * length:
            row = self.order.pop(0) if self.count == len(self.steps) else self.count
            self.order.append(row)
            self.steps[row], self.changes[row] = step, change
            self.gamma = curvature / length
        used = self.count
        before = self.along_steps[:used].copy(), self.along_changes[:used].copy()
        self.along_steps[:used] = self.steps[:used] @ gradient
        self.along_changes[:used] = self.changes[:used] @ gradient
        if row < used:
            # The products with y are differences of those with g.
            self.products[:used, row] = self.along_steps[:used] - before[0]
            self.gram[:used, row] = self.along_changes[:used] - before[1]
            self.products[row, row], self.gram[row, row] = curvature, length
            self.gram[row, :used] = self.gram[:used, row]

    def direction(self, gradient: Array) -> Array:
        """−H g, for the gradient that was added last."""
        if not self.order:
            return -gradient
        used, order, gamma = self.count, self.order, self.gamma
        pick = np.ix_(order, order)
        upper = np.triu(self.products[pick])
        first = np.linalg.solve(upper, self.along_steps[order])
        inner = self.gram[pick] @ first - self.along_changes[order]
        inner = upper.diagonal() * first + gamma * inner
        by_step, by_change = np.empty(used), np.empty(used)
        by_step[order] = np.linalg.solve(upper.T, inner)
        by_change[order] = gamma * first
        direction = by_change @ self.changes[:used] - by_step @ self.steps[:used]
        return direction - gamma * gradient
