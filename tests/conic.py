"""The structured maps as conic programmes, solved by an interior-point method: a second oracle.

Nothing here is shared with the library: the penalties are written out with one variable for every
absolute value, maximum or power, as they are defined.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytest
from scipy import sparse

Edges = Sequence[tuple[int, int]]
Cones = list[tuple[str, float]]  # the solver's name of each kind, and its size or its power


def _solve(
    quadratic: sparse.csc_matrix, linear, rows, bounds, cones: Cones, entries: int
) -> np.ndarray:
    """min ½vᵀQv + ⟨c, v⟩ with (b − A v) in the cones: the first `entries` of v."""
    clarabel = pytest.importorskip("clarabel", reason="the conic solver is not installed")
    kinds = [getattr(clarabel, f"{name}ConeT")(number) for name, number in cones]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-13
    # What it settles for where rounding stops it.
    settings.reduced_tol_gap_abs = settings.reduced_tol_gap_rel = 1e-10
    settings.reduced_tol_feas = 1e-10
    solver = clarabel.DefaultSolver(
        quadratic, np.asarray(linear, float), rows, np.asarray(bounds, float), kinds, settings
    )
    solution = solver.solve()
    if str(solution.status) not in ("Solved", "AlmostSolved"):
        raise ArithmeticError(f"the conic solver ended with {solution.status}")
    return np.array(solution.x)[:entries]


def total_variation(x: Sequence[float], strength: float, edges: Edges) -> np.ndarray:
    """argmax_{p ∈ Δ} ⟨p, x⟩ − ½‖p‖² − λ Σ_{(i,j)} |p_i − p_j|, one variable an edge."""
    d, m = len(x), len(edges)
    difference = _edge_matrix(edges, d, sign=-1.0)
    slack = sparse.identity(m)
    rows = sparse.vstack(
        [
            sparse.hstack([np.ones((1, d)), sparse.csc_matrix((1, m))]),
            sparse.hstack([-sparse.identity(d), sparse.csc_matrix((d, m))]),
            sparse.hstack([difference, -slack]),
            sparse.hstack([-difference, -slack]),
        ],
        format="csc",
    )
    cones: Cones = [("Zero", 1), ("Nonnegative", d + 2 * m)]
    quadratic = sparse.block_diag([sparse.identity(d), sparse.csc_matrix((m, m))], format="csc")
    linear = [*(-np.asarray(x)), *[strength] * m]
    return _solve(quadratic, linear, rows, [1.0, *[0.0] * (d + 2 * m)], cones, d)


def fusedmax(x: Sequence[float], strength: float) -> np.ndarray:
    return total_variation(x, strength, [(i, i + 1) for i in range(len(x) - 1)])


def fusedmax2d(x: np.ndarray, strength: float) -> np.ndarray:
    place = np.arange(x.size).reshape(x.shape)
    across = zip(place[:, :-1].ravel(), place[:, 1:].ravel(), strict=True)
    down = zip(place[:-1].ravel(), place[1:].ravel(), strict=True)
    return total_variation(x.ravel(), strength, [*across, *down]).reshape(x.shape)


def oscarmax(x: Sequence[float], strength: float) -> np.ndarray:
    """argmax_{p ∈ Δ} ⟨p, x⟩ − ½‖p‖² − λ Σ_{i<j} max(p_i, p_j), one variable a pair."""
    d = len(x)
    pairs = list(combinations(range(d), 2))
    m = len(pairs)
    slack = sparse.identity(m)
    either = [_edge_matrix([(pair[k],) for pair in pairs], d, sign=0.0) for k in (0, 1)]
    rows = sparse.vstack(
        [
            sparse.hstack([np.ones((1, d)), sparse.csc_matrix((1, m))]),
            sparse.hstack([-sparse.identity(d), sparse.csc_matrix((d, m))]),
            sparse.hstack([either[0], -slack]),
            sparse.hstack([either[1], -slack]),
        ],
        format="csc",
    )
    cones: Cones = [("Zero", 1), ("Nonnegative", d + 2 * m)]
    quadratic = sparse.block_diag([sparse.identity(d), sparse.csc_matrix((m, m))], format="csc")
    linear = [*(-np.asarray(x)), *[strength] * m]
    return _solve(quadratic, linear, rows, [1.0, *[0.0] * (d + 2 * m)], cones, d)


def pnormmax(x: Sequence[float], s: float) -> np.ndarray:
    """argmax_{p ∈ Δ} ⟨p, x⟩ − ½N², |p_i| ≤ r_i^{1/s} N^{1−1/s}, Σr = N."""
    d = len(x)
    total = sparse.hstack([np.ones((1, d)), sparse.csc_matrix((1, d + 1))])
    share = sparse.hstack([sparse.csc_matrix((1, d)), np.ones((1, d)), [[-1.0]]])
    sign = sparse.hstack([-sparse.identity(d), sparse.csc_matrix((d, d + 1))])
    powers = sparse.lil_matrix((3 * d, 2 * d + 1))
    for i in range(d):
        powers[3 * i, d + i] = powers[3 * i + 1, 2 * d] = powers[3 * i + 2, i] = -1.0
    rows = sparse.vstack([total, share, sign, powers], format="csc")
    cones: Cones = [("Zero", 2), ("Nonnegative", d)]
    cones += [("Power", 1 / s)] * d
    quadratic = sparse.csc_matrix(([1.0], ([2 * d], [2 * d])), shape=(2 * d + 1,) * 2)
    linear = [*(-np.asarray(x)), *[0.0] * (d + 1)]
    return _solve(quadratic, linear, rows, [1.0, *[0.0] * (4 * d + 1)], cones, d)


def _edge_matrix(edges: Sequence[tuple[int, ...]], d: int, sign: float) -> sparse.csc_matrix:
    """A row an edge: 1 at its first end, `sign` at its second."""
    matrix = sparse.lil_matrix((len(edges), d))
    for row, ends in enumerate(edges):
        matrix[row, ends[0]] = 1.0
        if sign:
            matrix[row, ends[1]] = sign
    return matrix.tocsc()
