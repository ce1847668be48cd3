"""The objective of the linear classifiers, written out, and its minimum from a conic solver.

Nothing here is shared with the library. For the scores s of an example, each loss is Ω*(s) − ⟨q, s⟩
up to a constant, and Ω* is a minimum over new variables t and u_k ≥ s_k − t:

    softmax     t      with Σ exp(s_k − t) ≤ 1
    sparsemax   t + ½ Σ u_k² + ½          with u ≥ 0
    1.5-entmax  t + Σ u_k³/12 + 4/3       with u ≥ 0
    logistic    Σ t_k  with exp(s_k − t_k) + exp(−t_k) ≤ 1
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.special import logsumexp


def sparsemax_rows(scores: np.ndarray) -> np.ndarray:
    """The projection of every row onto the simplex, by sorting."""
    ranked = -np.sort(-scores, axis=1)
    sums = np.cumsum(ranked, axis=1) - 1.0
    counts = np.arange(1, scores.shape[1] + 1)
    size = (ranked * counts > sums).sum(1)
    threshold = sums[np.arange(len(scores)), size - 1] / size
    return np.maximum(scores - threshold[:, None], 0.0)


def entmax15_rows(scores: np.ndarray) -> np.ndarray:
    """1.5-entmax of every row, by bisection for the threshold of [s/2 − τ]²."""
    half = scores / 2
    low, high = half.max(1, keepdims=True) - 1.0, half.max(1, keepdims=True)
    for _ in range(60):
        middle = (low + high) / 2
        above = (np.maximum(half - middle, 0.0) ** 2).sum(1, keepdims=True) > 1.0
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.maximum(half - low, 0.0) ** 2


def row_losses(loss: str, scores: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Ω*(s) − ⟨q, s⟩ of every row."""
    if loss == "softmax":
        return logsumexp(scores, axis=1) - (q * scores).sum(1)
    if loss == "logistic":
        return (np.logaddexp(0.0, scores) - q * scores).sum(1)
    if loss == "sparsemax":
        p = sparsemax_rows(scores)
        return ((p - q) * scores).sum(1) - 0.5 * ((p**2).sum(1) - 1.0)
    p = entmax15_rows(scores)
    return ((p - q) * scores).sum(1) - ((p**1.5).sum(1) - 1.0) / 0.75


def objective(loss: str, X, q, C: float, coef, intercept) -> float:
    """½‖W‖² + C Σ [Ω*(s) − ⟨q, s⟩]."""
    scores = X @ coef.T + intercept
    return 0.5 * float((coef**2).sum()) + C * float(row_losses(loss, scores, q).sum())


def minimum(loss: str, X: np.ndarray, q: np.ndarray, C: float) -> float:
    """The minimum of the objective over W and b, by an interior-point method."""
    if loss == "logistic":
        labels = range(q.shape[1])
        return sum(_minimum("softmax", X, _against_none(q[:, k]), C, fixed=0) for k in labels)
    return _minimum(loss, X, q, C)


def _against_none(q: np.ndarray) -> np.ndarray:
    """The proportions of a label, and of its absence, which comes first."""
    return np.stack([1.0 - q, q], 1)


def _minimum(loss: str, X: np.ndarray, q: np.ndarray, C: float, fixed: int = -1) -> float:
    """As above; the scores of the class `fixed`, if there is one, are zero.

    The variables are W and b by class, t by example, u by class and example, for cubes v and a.
    """
    (N, D), K = X.shape, q.shape[1]
    cubes = N * K if loss == "entmax" else 0
    t, u = K * (D + 1), K * (D + 1) + N
    v, a = u + N * K, u + N * K + cubes
    size = a + cubes
    quadratic, linear = np.zeros(size), np.zeros(size)
    linear[t:u] = C
    margins = sparse.lil_matrix((N * K, size))  # s_k − t
    for k in range(K):
        own = slice(k * (D + 1), (k + 1) * (D + 1))
        quadratic[own] = [*np.ones(D), 0.0]
        if k != fixed:
            features = np.hstack([X, np.ones((N, 1))])
            margins[k * N : (k + 1) * N, own] = features
            linear[own] -= C * (features.T @ q[:, k])
        margins[k * N : (k + 1) * N, t:u] = -np.eye(N)
    extra = _Rows(size)
    if loss == "softmax":
        sums = np.hstack([np.eye(N)] * K)
        extra.add("Nonnegative", np.ones(N), {u: -sums})
        for i in range(N * K):
            extra.add(
                "Exponential", [0.0, 1.0, 0.0], {0: margins[i], u + i: np.array([[0, 0, 1.0]]).T}
            )
        return _solve(quadratic, linear, extra)
    identity = np.eye(N * K)
    extra.add("Nonnegative", np.zeros(N * K), {0: -margins.toarray(), u: identity})
    extra.add("Nonnegative", np.zeros(N * K), {u: identity})
    if loss == "sparsemax":
        quadratic[u:] = C
        return _solve(quadratic, linear, extra) + 0.5 * C * N
    linear[v:a] = C / 12
    one = np.eye(3)
    for i in range(N * K):  # v u ≥ a² and a ≥ u², so v ≥ u³
        parts = {v + i: one[:, [0]] + one[:, [2]], a + i: 2 * one[:, [1]]}
        extra.add("SecondOrder", np.zeros(3), {**parts, u + i: one[:, [0]] - one[:, [2]]})
        parts = {a + i: one[:, [0]] + one[:, [2]], u + i: 2 * one[:, [1]]}
        extra.add("SecondOrder", [1.0, 0.0, -1.0], parts)
    return _solve(quadratic, linear, extra) + C * N * 4 / 3


class _Rows:
    """Constraints: rows times the variables, plus constants, are in a cone."""

    def __init__(self, size: int) -> None:
        self.size, self.rows, self.constants, self.cones = size, [], [], []

    def add(self, cone: str, constants, parts: dict[int, np.ndarray]) -> None:
        """Parts are matrices by their first column; a sparse one has a single row."""
        rows = sparse.lil_matrix((len(constants), self.size))
        for column, part in parts.items():
            if sparse.issparse(part):
                rows[0] = part
            else:
                rows[:, column : column + part.shape[1]] += part
        self.rows.append(rows.tocsr())
        self.constants += list(constants)
        self.cones.append((cone, len(constants)))


def _solve(quadratic: np.ndarray, linear: np.ndarray, constraints: _Rows) -> float:
    clarabel = pytest.importorskip("clarabel", reason="the conic solver is not installed")
    kinds = [
        clarabel.ExponentialConeT()
        if cone == "Exponential"
        else getattr(clarabel, f"{cone}ConeT")(size)
        for cone, size in constraints.cones
    ]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    solver = clarabel.DefaultSolver(
        sparse.diags(quadratic).tocsc(), linear, -sparse.vstack(constraints.rows).tocsc(),
        np.asarray(constraints.constants, float), kinds, settings,
    )  # fmt: skip
    solution = solver.solve()
    if str(solution.status) not in ("Solved", "AlmostSolved"):
        raise ArithmeticError(f"the conic solver ended with {solution.status}")
    return float(solution.obj_val)
