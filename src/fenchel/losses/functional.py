"""Fenchel–Young losses: L_Ω(x; q) = Ω(q) + Ω*(x) − ⟨q, x⟩, with gradient map(x) − q."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from fenchel.checks import check_parameter
from fenchel.errors import rule
from fenchel.kernels.reference.entmax_loss import counted
from fenchel.losses.in_place import may_overwrite, overwriting_row_loss
from fenchel.losses.operator import entmax_row_loss
from fenchel.losses.reduction import class_dimension, reduce_loss, smooth_probabilities
from fenchel.losses.target import smoothed

if TYPE_CHECKING:
    from fenchel.regularizers import Regularizer


def entmax_loss(
    scores: Tensor,
    target: Tensor,
    alpha: float | Tensor = 1.5,
    *,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
    inplace: bool = False,
) -> Tensor:
    r"""The loss that α-entmax minimises: cross-entropy at α = 1, sparse and with a margin above.

    With the Tsallis Ω_α and its conjugate,

        L_α(x; q) = Ω_α(q) + Ω_α*(x) − ⟨q, x⟩,    ∂L/∂x = entmax_α(x) − q.

    It is convex, never negative, and for a single class exactly zero once that class leads by the
    margin 1/(α−1). For probabilities q (soft or multi-label targets) it is zero when the map gives q:
    at α = 1 that is KL(q ‖ softmax(x)), which is `F.cross_entropy` less the entropy of q.

    Args:
        scores: (C), (N, C) or (N, C, d1, …), as in `F.cross_entropy`; −inf is a class that cannot be.
        target: class indices of the shape without C, or probabilities of the shape of `scores`.
        alpha: a number above 0, or a differentiable tensor that broadcasts to `scores` with size 1
            along the classes.
        weight: one weight a class. A row of probabilities weighs the mean of its classes' weights.
        ignore_index: a class index whose rows cost nothing.
        reduction: "mean" (over the weights of the rows that count), "sum" or "none".
        label_smoothing: the share of the target that is spread evenly over the classes.
        inplace: whether the gradient may replace the scores (N, C) in their memory, which no other
            matrix of that size is then needed for. They must be the result of an operation that does
            not need them for its own derivative, as those of a linear layer; their values are lost,
            and there is one backward pass, which cannot be differentiated. Under `torch.compile` and
            `torch.func`, and for scores of other shapes or that share memory, it changes nothing.

    Reference: Peters, Niculae & Martins (2019), *Sparse Sequence-to-Sequence Models*.

    >>> import torch, fenchel
    >>> scores = torch.tensor([[3.0, 0.5, -1.0], [0.2, 0.1, 0.0]])
    >>> fenchel.entmax_loss(scores, torch.tensor([0, 2]), reduction="none")
    tensor([0.0000, 0.6693])
    """
    dim = class_dimension(scores)
    alpha = check_parameter(alpha, scores, dim, name="alpha", above=0)
    by_row = alpha.movedim(dim, -1) if isinstance(alpha, Tensor) else alpha

    def row_loss(rows: Tensor, target: Tensor, ignore_index: int, smoothing: float) -> Tensor:
        if target.dtype.is_floating_point:
            target = smooth_probabilities(target, smoothing)
        call = overwriting_row_loss if inplace and may_overwrite(rows) else entmax_row_loss
        return call(rows, target, by_row, ignore_index, smoothing)

    return reduce_loss(
        row_loss,
        scores,
        target,
        weight=weight,
        ignore_index=ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )


def sparsemax_loss(
    scores: Tensor,
    target: Tensor,
    *,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
    inplace: bool = False,
) -> Tensor:
    r"""The loss that sparsemax minimises: `entmax_loss` at α = 2.

        L(x; q) = ½‖q − x‖² − ½‖sparsemax(x) − x‖²,    ∂L/∂x = sparsemax(x) − q.

    With two classes it is the modified Huber loss. The arguments are those of `entmax_loss`.

    Reference: Martins & Astudillo (2016), *From Softmax to Sparsemax*, Eqs. 20 and 26.

    >>> import torch, fenchel
    >>> fenchel.sparsemax_loss(torch.tensor([1.0, 0.5]), torch.tensor([0.7, 0.3]))
    tensor(0.0025)
    """
    return entmax_loss(
        scores,
        target,
        2.0,
        weight=weight,
        ignore_index=ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
        inplace=inplace,
    )


def fenchel_young_loss(
    scores: Tensor,
    target: Tensor,
    omega: Regularizer,
    *,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    r"""The loss of any regularizer: L_Ω(x; q) = Ω(q) + Ω*(x) − ⟨q, x⟩, with ∂L/∂x = omega.map(x) − q.

    It is convex in the scores, never negative, and zero exactly when the map gives the target. The
    other arguments are those of `entmax_loss`.

    Reference: Blondel, Martins & Niculae (2020), *Learning with Fenchel–Young Losses*.

    >>> import torch, fenchel
    >>> scores, target = torch.tensor([[1.0, 0.5, -1.0]]), torch.tensor([1])
    >>> fenchel.fenchel_young_loss(scores, target, fenchel.Norm(alpha=2.0))
    tensor(0.5886)
    """
    dim = class_dimension(scores)
    check_omega(omega)

    def row_loss(rows: Tensor, target: Tensor, ignore_index: int, smoothing: float) -> Tensor:
        if smoothing == 0:
            return omega.row_loss(rows, target, ignore_index, dim)
        smooth = smoothed(target, rows, ignore_index, smoothing)
        loss = omega.row_loss(rows, smooth, ignore_index, dim)
        return torch.where(counted(target, ignore_index), loss, 0.0)

    return reduce_loss(
        row_loss,
        scores,
        target,
        weight=weight,
        ignore_index=ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )


def check_omega(omega: Regularizer) -> None:
    if not callable(getattr(omega, "row_loss", None)) or isinstance(omega, type):
        expected, got = "a regularizer, such as fenchel.Norm()", repr(omega)
        raise rule("omega must be a regularizer", expected=expected, got=got)
