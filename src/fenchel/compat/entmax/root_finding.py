"""`entmax.root_finding`: the maps that the package computes by bisection.

`n_iter` and `ensure_sum_one` are accepted and not used: results are exact.
"""

from __future__ import annotations

from numbers import Real

import torch
from torch import Tensor, nn

from fenchel.checks import canonical_dim, check_number, check_scores
from fenchel.maps import budget as _budget
from fenchel.maps import entmax as _entmax
from fenchel.maps import normmax as _normmax
from fenchel.maps import sparsemax as _sparsemax


def entmax_bisect(
    X: Tensor,
    alpha: float | Tensor = 1.5,
    dim: int = -1,
    n_iter: int = 50,
    ensure_sum_one: bool = True,
) -> Tensor:
    """`fenchel.entmax`, differentiable in α; `n_iter` and `ensure_sum_one` are not used."""
    return _entmax.entmax(X, alpha, dim)


def sparsemax_bisect(
    X: Tensor, dim: int = -1, n_iter: int | None = 50, ensure_sum_one: bool = True
) -> Tensor:
    """`fenchel.sparsemax`; `n_iter` and `ensure_sum_one` are not used."""
    return _sparsemax.sparsemax(X, dim)


def normmax_bisect(X: Tensor, alpha: float | Tensor = 2, dim: int = -1, n_iter: int = 50) -> Tensor:
    """`fenchel.normmax`; `n_iter` is not used.

    α ≤ 1 is allowed, as in that package. ⟨p, x⟩ − ‖p‖_α is then convex in p, so it is largest in a
    corner of the simplex: all mass on the largest score (shared by ties) and zero gradient, which
    is also the limit α → 1 from above.
    """
    check_scores(X)
    dim = canonical_dim(dim, X.ndim)
    if not isinstance(alpha, Tensor) and check_number(alpha, name="alpha", above=0) > 1:
        return _normmax.normmax(X, alpha, dim)
    if X.shape[dim] == 0:
        return X.clone()
    alpha = torch.as_tensor(alpha, dtype=X.dtype, device=X.device)
    peak = X.amax(dim, keepdim=True)
    largest = peak == X
    corner = largest / largest.sum(dim, keepdim=True)
    corner = torch.where(peak == float("-inf"), 0.0, corner).to(X.dtype)
    smooth = _normmax.normmax(X, torch.where(alpha > 1, alpha, 2.0), dim)
    return torch.where(alpha > 1, smooth, corner)


def budget_bisect(X: Tensor, budget: float | Tensor = 2, dim: int = -1, n_iter: int = 50) -> Tensor:
    """`fenchel.budget`; `n_iter` is not used. Numbers above the length of a row count as the length."""
    check_scores(X)
    dim = canonical_dim(dim, X.ndim)
    if isinstance(budget, Real) and not isinstance(budget, bool):
        budget = min(budget, X.shape[dim])
    return _budget.budget(X, budget, dim)


class SparsemaxBisect(nn.Module):
    """`sparsemax_bisect` as a module; `n_iter` is not used."""

    def __init__(self, dim: int = -1, n_iter: int | None = None) -> None:
        super().__init__()
        self.dim, self.n_iter = dim, n_iter

    def forward(self, X: Tensor) -> Tensor:
        return sparsemax_bisect(X, self.dim)


class EntmaxBisect(nn.Module):
    """`entmax_bisect` as a module; α may be an `nn.Parameter`. `n_iter` is not used."""

    def __init__(self, alpha: float | Tensor = 1.5, dim: int = -1, n_iter: int = 50) -> None:
        super().__init__()
        self.alpha, self.dim, self.n_iter = alpha, dim, n_iter

    def forward(self, X: Tensor) -> Tensor:
        return entmax_bisect(X, self.alpha, self.dim)


class NormmaxBisect(nn.Module):
    """`normmax_bisect` as a module; `n_iter` is not used."""

    def __init__(self, alpha: float | Tensor = 2, dim: int = -1, n_iter: int = 50) -> None:
        super().__init__()
        self.alpha, self.dim, self.n_iter = alpha, dim, n_iter

    def forward(self, X: Tensor) -> Tensor:
        return normmax_bisect(X, self.alpha, self.dim)


class BudgetBisect(nn.Module):
    """`budget_bisect` as a module; `n_iter` is not used."""

    def __init__(self, budget: float | Tensor = 2, dim: int = -1, n_iter: int = 50) -> None:
        super().__init__()
        self.budget, self.dim, self.n_iter = budget, dim, n_iter

    def forward(self, X: Tensor) -> Tensor:
        return budget_bisect(X, self.budget, self.dim)


class EntmaxBisectFunction:
    """`EntmaxBisectFunction.apply` is `entmax_bisect`."""

    apply = staticmethod(entmax_bisect)


class SparsemaxBisectFunction:
    """`SparsemaxBisectFunction.apply` is `sparsemax_bisect`."""

    apply = staticmethod(sparsemax_bisect)


class NormmaxBisectFunction:
    """`NormmaxBisectFunction.apply` is `normmax_bisect`."""

    apply = staticmethod(normmax_bisect)


class BudgetBisectFunction:
    """`BudgetBisectFunction.apply` is `budget_bisect`."""

    apply = staticmethod(budget_bisect)
