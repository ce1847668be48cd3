"""The losses as modules, with the arguments of `nn.CrossEntropyLoss`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, final

from torch import Tensor, nn

from fenchel.errors import rule
from fenchel.losses.functional import entmax_loss, fenchel_young_loss, sparsemax_loss
from fenchel.losses.reduction import REDUCTIONS
from fenchel.mechanisms.exponent import Alpha, Exponent, describe
from fenchel.regularizers import Regularizer


class _Loss(nn.Module, ABC):
    """What the losses share with cross-entropy; the subclass is the loss."""

    weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__()
        if reduction not in REDUCTIONS:
            raise rule("reduction must be known", expected=f"one of {REDUCTIONS}", got=reduction)
        self.register_buffer("weight", weight)
        self.ignore_index, self.reduction = ignore_index, reduction
        self.label_smoothing = label_smoothing

    def forward(self, scores: Tensor, target: Tensor) -> Tensor:
        return self._loss(
            scores,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )

    @abstractmethod
    def _loss(self, scores: Tensor, target: Tensor, **options: Any) -> Tensor: ...

    def extra_repr(self) -> str:
        weighted = "" if self.weight is None else f"weight of {len(self.weight)} classes, "
        return (
            f"{weighted}ignore_index={self.ignore_index}, reduction={self.reduction!r}, "
            f"label_smoothing={self.label_smoothing}"
        )


@final
class SparsemaxLoss(_Loss):
    """`fenchel.sparsemax_loss`; the arguments are those of `nn.CrossEntropyLoss`.

    >>> import torch
    >>> SparsemaxLoss()(torch.tensor([[1.0, 0.5, -1.0]]), torch.tensor([1]))
    tensor(0.5625)
    """

    def _loss(self, scores: Tensor, target: Tensor, **options: Any) -> Tensor:
        return sparsemax_loss(scores, target, **options)


@final
class EntmaxLoss(_Loss):
    """`fenchel.entmax_loss`; α is a number, a tensor, an `nn.Parameter`, or `"learned"`.

    >>> import torch
    >>> EntmaxLoss(alpha=1.5)(torch.tensor([[3.0, 0.5], [0.2, 0.1]]), torch.tensor([0, 1]))
    tensor(0.2211)
    """

    def __init__(
        self,
        alpha: Alpha = 1.5,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, ignore_index, reduction, label_smoothing)
        self.exponent = Exponent(alpha)

    @property
    def alpha(self) -> float | Tensor:
        return self.exponent()

    def _loss(self, scores: Tensor, target: Tensor, **options: Any) -> Tensor:
        return entmax_loss(scores, target, self.alpha, **options)

    def extra_repr(self) -> str:
        return f"{describe(self.exponent)}, {super().extra_repr()}"


@final
class FenchelYoungLoss(_Loss):
    """`fenchel.fenchel_young_loss` of any regularizer.

    >>> import torch
    >>> from fenchel.regularizers import Norm
    >>> FenchelYoungLoss(Norm(alpha=2.0))(torch.tensor([[1.0, 0.5, -1.0]]), torch.tensor([1]))
    tensor(0.5886)
    """

    def __init__(
        self,
        omega: Regularizer,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, ignore_index, reduction, label_smoothing)
        self.omega = omega

    def _loss(self, scores: Tensor, target: Tensor, **options: Any) -> Tensor:
        return fenchel_young_loss(scores, target, self.omega, **options)

    def extra_repr(self) -> str:
        return f"omega={self.omega!r}, {super().extra_repr()}"
