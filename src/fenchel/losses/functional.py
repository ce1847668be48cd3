"""Fenchel–Young losses: L_Ω(x; q) = Ω(q) + Ω*(x) − ⟨q, x⟩, with gradient map(x) − q."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from fenchel.checks import check_parameter
from fenchel.errors import FenchelError
from fenchel.losses.in_place import may_overwrite, overwriting_row_loss
from fenchel.losses.reduction import class_dimension, reduce_loss
from fenchel.operators.entmax_loss import entmax_row_loss
from fenchel.operators.loss_target import smooth_probabilities, smoothed, zero_ignored

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
    r"""The Fenchel–Young loss of α-entmax: cross-entropy at α = 1, sparse with a margin for α > 1.

    With the Tsallis negentropy Ω_α and its conjugate Ω_α*, the loss and its gradient are

        L_α(x; q) = Ω_α(q) + Ω_α*(x) − ⟨q, x⟩,    ∂L/∂x = entmax_α(x) − q.

    It is convex and non-negative, also in floating point. For a class index, it is exactly zero if the
    score of that class is at least 1/(α−1) above all others. For probabilities q, it is zero if
    entmax_α(x) = q; at α = 1 it is then KL(q ‖ softmax(x)), `F.cross_entropy` minus the entropy of q.

    Cost: O(C) per row.

    Args:
        scores: (C), (N, C) or (N, C, d1, …), as in `F.cross_entropy`. −inf excludes a class.
        target: Class indices of the shape of `scores` without C, or probabilities of the shape of
            `scores`.
        alpha: A positive number, or a differentiable tensor that broadcasts to `scores` with size 1
            along the classes.
        weight: One weight per class. A row of probabilities q has the weight Σ q_c weight_c.
        ignore_index: Rows with this class index have loss zero and are not counted by the mean.
        reduction: "mean" (weighted, over the rows that are not ignored), "sum" or "none".
        label_smoothing: The share of the target that is spread evenly over all classes.
        inplace: Whether the gradient may overwrite the scores (N, C), which saves one matrix of that
            size. The scores must come from an operation whose backward pass does not need its
            output, such as a linear layer. Their values are lost, and only one backward pass is
            possible, without `create_graph`. Ignored under `torch.compile` and `torch.func`, and for
            scores of other shapes or that share memory.

    Returns:
        A scalar, or one loss per row for `reduction="none"`.

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
    r"""The loss of sparsemax: `entmax_loss` at α = 2.

    The loss and its gradient are

        L(x; q) = ½‖q − x‖² − ½‖sparsemax(x) − x‖²,    ∂L/∂x = sparsemax(x) − q.

    For a class index, it is exactly zero if the score of that class is at least 1 above all others.
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
    r"""The Fenchel–Young loss of a regularizer Ω.

    With the conjugate Ω*(x) = max_p ⟨p, x⟩ − Ω(p), the loss and its gradient are

        L_Ω(x; q) = Ω(q) + Ω*(x) − ⟨q, x⟩,    ∂L/∂x = ∇Ω*(x) − q = omega.map(x) − q.

    It is convex in the scores and non-negative, and zero if and only if the map of the scores is the
    target. In floating point it is zero up to rounding there: differences below zero, which rounding
    can cause, are replaced by zero.

    Cost: that of `omega.map`, plus O(C) per row.

    Args:
        scores: (C), (N, C) or (N, C, d1, …), as in `F.cross_entropy`.
        target: Class indices or probabilities.
        omega: A regularizer such as `fenchel.Norm(alpha=2.0)`, `fenchel.Fused()` or `fenchel.Custom(fn)`.
        weight, ignore_index, reduction, label_smoothing: As for `entmax_loss`.

    Returns:
        A scalar, or one loss per row for `reduction="none"`.

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
        return zero_ignored(loss, target, ignore_index)

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
        raise FenchelError(f"omega must be a regularizer such as fenchel.Norm(), got {omega!r}")
