"""`entmax.losses`: Fenchel–Young losses of class indices, one per row, or reduced.

`k` and `n_iter` are accepted and not used: results are exact.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from numbers import Integral

from torch import Tensor, nn

from fenchel.checks import check_known, check_tensor
from fenchel.errors import FenchelError
from fenchel.losses.functional import entmax_loss, fenchel_young_loss
from fenchel.losses.reduction import reduced
from fenchel.regularizers import Norm

REDUCTIONS = {"elementwise_mean": "mean", "mean": "mean", "sum": "sum", "none": "none"}


def sparsemax_loss(X: Tensor, target: Tensor, k: int | None = None) -> Tensor:
    """`fenchel.sparsemax_loss`, one value per row; `k` is not used."""
    return entmax_loss(X, target, 2.0, reduction="none")


def sparsemax_bisect_loss(X: Tensor, target: Tensor, n_iter: int = 50) -> Tensor:
    """`fenchel.sparsemax_loss`, one value per row; `n_iter` is not used."""
    return entmax_loss(X, target, 2.0, reduction="none")


def entmax15_loss(X: Tensor, target: Tensor, k: int | None = None) -> Tensor:
    """`fenchel.entmax_loss` at α = 1.5, one value per row; `k` is not used."""
    return entmax_loss(X, target, 1.5, reduction="none")


def entmax_bisect_loss(
    X: Tensor, target: Tensor, alpha: float | Tensor = 1.5, n_iter: int = 50
) -> Tensor:
    """`fenchel.entmax_loss`, one value per row, differentiable in α; `n_iter` is not used."""
    return entmax_loss(X, target, alpha, reduction="none")


def normmax_bisect_loss(
    X: Tensor, target: Tensor, alpha: float | Tensor = 2, n_iter: int = 50
) -> Tensor:
    """The Fenchel–Young loss of `fenchel.Norm`, one value per row; `n_iter` is not used."""
    return fenchel_young_loss(X, target, Norm(alpha), reduction="none")


class _Loss(nn.Module, ABC):
    """Rows whose target is `ignore_index` have loss zero and are not counted by the mean."""

    def __init__(self, ignore_index: int | Tensor, reduction: str) -> None:
        super().__init__()
        check_known("reduction", reduction, tuple(REDUCTIONS))
        whole = isinstance(ignore_index, Integral | Tensor) and not isinstance(ignore_index, bool)
        if not whole:
            raise FenchelError(f"ignore_index must be an integer, got {ignore_index!r}")
        self.ignore_index, self.reduction = ignore_index, reduction

    def forward(self, X: Tensor, target: Tensor) -> Tensor:
        check_tensor(target, "target")
        target = target.masked_fill(target == self.ignore_index, -100)
        return reduced(self.loss(X, target), REDUCTIONS[self.reduction], target, None, -100)

    @abstractmethod
    def loss(self, X: Tensor, target: Tensor) -> Tensor: ...


class SparsemaxLoss(_Loss):
    """`sparsemax_loss`, reduced; `k` is not used."""

    def __init__(
        self,
        k: int | None = None,
        ignore_index: int | Tensor = -100,
        reduction: str = "elementwise_mean",
    ) -> None:
        super().__init__(ignore_index, reduction)
        self.k = k

    def loss(self, X: Tensor, target: Tensor) -> Tensor:
        return sparsemax_loss(X, target)


class SparsemaxBisectLoss(_Loss):
    """`sparsemax_bisect_loss`, reduced; `n_iter` is not used."""

    def __init__(
        self,
        n_iter: int = 50,
        ignore_index: int | Tensor = -100,
        reduction: str = "elementwise_mean",
    ) -> None:
        super().__init__(ignore_index, reduction)
        self.n_iter = n_iter

    def loss(self, X: Tensor, target: Tensor) -> Tensor:
        return sparsemax_bisect_loss(X, target)


class Entmax15Loss(_Loss):
    """`entmax15_loss`, reduced; `k` is not used."""

    def __init__(
        self,
        k: int | None = 100,
        ignore_index: int | Tensor = -100,
        reduction: str = "elementwise_mean",
    ) -> None:
        super().__init__(ignore_index, reduction)
        self.k = k

    def loss(self, X: Tensor, target: Tensor) -> Tensor:
        return entmax15_loss(X, target)


class EntmaxBisectLoss(_Loss):
    """`entmax_bisect_loss`, reduced; α may be an `nn.Parameter`. `n_iter` is not used."""

    def __init__(
        self,
        alpha: float | Tensor = 1.5,
        n_iter: int = 50,
        ignore_index: int | Tensor = -100,
        reduction: str = "elementwise_mean",
    ) -> None:
        super().__init__(ignore_index, reduction)
        self.alpha, self.n_iter = alpha, n_iter

    def loss(self, X: Tensor, target: Tensor) -> Tensor:
        return entmax_bisect_loss(X, target, self.alpha)


class NormmaxBisectLoss(_Loss):
    """`normmax_bisect_loss`, reduced; `n_iter` is not used."""

    def __init__(
        self,
        alpha: float | Tensor = 2,
        n_iter: int = 50,
        ignore_index: int | Tensor = -100,
        reduction: str = "elementwise_mean",
    ) -> None:
        super().__init__(ignore_index, reduction)
        self.alpha, self.n_iter = alpha, n_iter

    def loss(self, X: Tensor, target: Tensor) -> Tensor:
        return normmax_bisect_loss(X, target, self.alpha)


class SparsemaxLossFunction:
    """`SparsemaxLossFunction.apply` is `sparsemax_loss`."""

    apply = staticmethod(sparsemax_loss)


class SparsemaxBisectLossFunction:
    """`SparsemaxBisectLossFunction.apply` is `sparsemax_bisect_loss`."""

    apply = staticmethod(sparsemax_bisect_loss)


class Entmax15LossFunction:
    """`Entmax15LossFunction.apply` is `entmax15_loss`."""

    apply = staticmethod(entmax15_loss)


class EntmaxBisectLossFunction:
    """`EntmaxBisectLossFunction.apply` is `entmax_bisect_loss`."""

    apply = staticmethod(entmax_bisect_loss)


class NormmaxBisectLossFunction:
    """`NormmaxBisectLossFunction.apply` is `normmax_bisect_loss`."""

    apply = staticmethod(normmax_bisect_loss)
