"""`entmax.activations`: sparsemax and 1.5-entmax.

`k` is accepted and not used: results are exact.
"""

from __future__ import annotations

from torch import Tensor, nn

from fenchel.maps import entmax as _entmax
from fenchel.maps import sparsemax as _sparsemax


def sparsemax(X: Tensor, dim: int = -1, k: int | None = None) -> Tensor:
    """`fenchel.sparsemax`; `k` is not used."""
    return _sparsemax.sparsemax(X, dim)


def entmax15(X: Tensor, dim: int = -1, k: int | None = None) -> Tensor:
    """`fenchel.entmax` at α = 1.5; `k` is not used."""
    return _entmax.entmax(X, 1.5, dim)


class Sparsemax(nn.Module):
    """`sparsemax` as a module; `k` is not used."""

    def __init__(self, dim: int = -1, k: int | None = None) -> None:
        super().__init__()
        self.dim, self.k = dim, k

    def forward(self, X: Tensor) -> Tensor:
        return sparsemax(X, self.dim)


class Entmax15(nn.Module):
    """`entmax15` as a module; `k` is not used."""

    def __init__(self, dim: int = -1, k: int | None = None) -> None:
        super().__init__()
        self.dim, self.k = dim, k

    def forward(self, X: Tensor) -> Tensor:
        return entmax15(X, self.dim)


class SparsemaxFunction:
    """`SparsemaxFunction.apply` is `sparsemax`."""

    apply = staticmethod(sparsemax)


class Entmax15Function:
    """`Entmax15Function.apply` is `entmax15`, with the default dim of that package."""

    @staticmethod
    def apply(X: Tensor, dim: int = 0, k: int | None = None) -> Tensor:
        return entmax15(X, dim)


def _sparsemax_threshold_and_support(
    X: Tensor, dim: int = -1, k: int | None = None
) -> tuple[Tensor, Tensor]:
    """τ with sparsemax(x) = [x − τ]_+, and the number of entries above it."""
    return _threshold_and_support(X, 2.0, dim)


def _entmax_threshold_and_support(
    X: Tensor, dim: int = -1, k: int | None = None
) -> tuple[Tensor, Tensor]:
    """τ with entmax15(2x) = [x − τ]_+², and the number of entries above it."""
    return _threshold_and_support(X, 1.5, dim)


def _threshold_and_support(X: Tensor, alpha: float, dim: int) -> tuple[Tensor, Tensor]:
    """On the support p = (x − τ)^{1/(α−1)} for scores x/(α−1), so the largest one gives τ."""
    p = _entmax.entmax(X / (alpha - 1), alpha, dim)
    tau = X.amax(dim, keepdim=True) - p.amax(dim, keepdim=True) ** (alpha - 1)
    return tau, (p > 0).sum(dim, keepdim=True)
