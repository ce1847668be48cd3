"""Losses as modules, with the arguments of `nn.CrossEntropyLoss`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from typing import Any, ClassVar, final

from torch import Tensor, nn

from fenchel.checks import check_tensor
from fenchel.losses.functional import (
    check_omega,
    entmax_loss,
    fenchel_young_loss,
    sparsemax_loss,
)
from fenchel.losses.linear import check_rows, linear_entmax_loss
from fenchel.losses.reduction import check_options
from fenchel.mechanisms.exponent import Alpha, Exponent
from fenchel.nn.settings import Settings, WithExponent, hold
from fenchel.regularizers import Regularizer


class _Options(Settings):
    """The options of `nn.CrossEntropyLoss`."""

    weight_name: ClassVar[str] = "weight"  # the name of the buffer of class weights

    def __init__(
        self,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__()
        check_options(reduction, label_smoothing, ignore_index)
        if weight is not None:
            check_tensor(weight, self.weight_name)
        self.register_buffer(self.weight_name, weight)
        self.ignore_index, self.reduction = ignore_index, reduction
        self.label_smoothing = label_smoothing

    def _options(self) -> dict[str, Any]:
        return {
            "ignore_index": self.ignore_index,
            "reduction": self.reduction,
            "label_smoothing": self.label_smoothing,
        }


class _Loss(_Options, ABC):
    """A loss of scores; subclasses implement `_loss`."""

    weight: Tensor | None

    def forward(self, scores: Tensor, target: Tensor) -> Tensor:
        return self._loss(scores, target, weight=self.weight, **self._options())

    @abstractmethod
    def _loss(self, scores: Tensor, target: Tensor, **options: Any) -> Tensor: ...


class _Overwriting(_Loss):
    """A loss whose gradient can overwrite the scores."""

    def __init__(
        self,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
        inplace: bool = False,
    ) -> None:
        super().__init__(weight, ignore_index, reduction, label_smoothing)
        self.inplace = inplace

    def _options(self) -> dict[str, Any]:
        return {**super()._options(), "inplace": self.inplace}


@final
class SparsemaxLoss(_Overwriting):
    """`fenchel.sparsemax_loss` as a module, with the arguments of `nn.CrossEntropyLoss` and `inplace`.

    With `inplace=True`, the gradient overwrites the scores, which saves one matrix of their size. The
    scores must come from an operation whose backward pass does not need its output, such as a
    linear layer, and only one backward pass is possible (see `fenchel.entmax_loss`).

    >>> import torch
    >>> SparsemaxLoss()(torch.tensor([[1.0, 0.5, -1.0]]), torch.tensor([1]))
    tensor(0.5625)
    """

    def _loss(self, scores: Tensor, target: Tensor, **options: Any) -> Tensor:
        return sparsemax_loss(scores, target, **options)


@final
class EntmaxLoss(WithExponent, _Overwriting):
    """`fenchel.entmax_loss` as a module; α is a number, a tensor, an `nn.Parameter` or "learned".

    The other arguments are those of `SparsemaxLoss`.

    >>> import torch
    >>> EntmaxLoss(alpha=1.5)(torch.tensor([[3.0, 0.5], [0.2, 0.1]]), torch.tensor([0, 1]))
    tensor(0.2211)
    >>> layer, criterion = torch.nn.Linear(8, 100), EntmaxLoss(alpha=1.5, inplace=True)
    >>> loss = criterion(layer(torch.randn(5, 8)), torch.arange(5))
    >>> loss.backward()  # the gradient overwrites the scores
    """

    def __init__(
        self,
        alpha: Alpha = 1.5,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
        inplace: bool = False,
    ) -> None:
        super().__init__(weight, ignore_index, reduction, label_smoothing, inplace)
        self.exponent = Exponent(alpha)

    def _loss(self, scores: Tensor, target: Tensor, **options: Any) -> Tensor:
        return entmax_loss(scores, target, self.alpha, **options)


@final
class LinearEntmaxLoss(WithExponent, _Options):
    """`fenchel.linear_entmax_loss` as a module, called with the weight and bias of the output layer.

    >>> import torch
    >>> layer, criterion = torch.nn.Linear(8, 100), LinearEntmaxLoss(alpha=1.5)
    >>> hidden, target = torch.randn(5, 8), torch.arange(5)
    >>> loss = criterion(hidden, layer.weight, target, layer.bias)
    >>> loss.allclose(EntmaxLoss(alpha=1.5)(layer(hidden), target))
    True
    """

    weight_name = "class_weight"
    class_weight: Tensor | None

    def __init__(
        self,
        alpha: Alpha = 1.5,
        class_weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
        chunk_rows: int | None = None,
    ) -> None:
        super().__init__(class_weight, ignore_index, reduction, label_smoothing)
        self.exponent = Exponent(alpha)
        check_rows(chunk_rows)
        self.chunk_rows = chunk_rows

    def forward(
        self, hidden: Tensor, weight: Tensor, target: Tensor, bias: Tensor | None = None
    ) -> Tensor:
        return linear_entmax_loss(
            hidden,
            weight,
            target,
            self.alpha,
            bias=bias,
            class_weight=self.class_weight,
            chunk_rows=self.chunk_rows,
            **self._options(),
        )


@final
class FenchelYoungLoss(_Loss):
    """`fenchel.fenchel_young_loss` as a module, for any regularizer.

    Parameters, tensors and modules of the regularizer, such as α in `Tsallis(nn.Parameter(…))` or the
    `fn` of a `Custom`, are registered with the loss: they are trained, moved and saved with it.

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
        check_omega(omega)
        self.omega = omega
        settings = vars(omega).items() if isinstance(omega, Regularizer) else ()
        self._held = [name for name, value in settings if isinstance(value, Tensor | nn.Module)]
        for name in self._held:
            hold(self, name, getattr(omega, name))

    def _loss(self, scores: Tensor, target: Tensor, **options: Any) -> Tensor:
        omega = copy(self.omega)
        for name in self._held:
            setattr(omega, name, getattr(self, name))  # which may have been moved or replaced
        return fenchel_young_loss(scores, target, omega, **options)
