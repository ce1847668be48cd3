"""The gradient Σ g hᵀ of an output layer's weight, from one chunk of rows after another."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from fenchel import dispatch
from fenchel.kernels.rows import HALF


class WeightSum(Protocol):
    """What adds it up: every part of a chunk is listed, then the chunk is added; at last it is finished.

    `listed` is room for what a kernel says about a part, where that is of use.
    """

    @property
    def listed(self) -> Tensor | None: ...
    def list_part(self, slopes: Tensor, first: int, offset: int) -> None: ...
    def add(self, slopes: Tensor, first: int) -> None: ...
    def finish(self) -> None: ...


def weight_sum(
    out: Tensor,
    hidden: Tensor,
    target: Tensor,
    alpha: float | Tensor,
    smoothing: float,
    rows: int,
    part: int,
) -> WeightSum:
    """By the entries that are not zero where a GPU is likely to find few, or by matrix products."""
    slopes = hidden.new_empty(0, out.shape[0])
    if (
        smoothing == 0
        and dispatch.chosen("entmax_loss", "entmax_loss_in_place", slopes) == "triton"
    ):
        from fenchel.kernels.triton.weight_gradient import SparseWeightGradient, worth_listing

        if worth_listing(hidden, out.shape[0], target, alpha):
            return SparseWeightGradient(out, hidden, target, rows, min(rows, part))
    return DenseWeightSum(out, hidden)


class DenseWeightSum:
    """One matrix product a chunk; the sum is rounded to its dtype every time."""

    listed = None

    def __init__(self, out: Tensor, hidden: Tensor) -> None:
        self.out, self.hidden = out, hidden

    def list_part(self, slopes: Tensor, first: int, offset: int) -> None:
        pass

    def add(self, slopes: Tensor, first: int) -> None:
        total, left = self.out, slopes.t()
        right = self.hidden[first : first + slopes.shape[0]]
        beta = 0 if first == 0 else 1
        if total.dtype == left.dtype:
            total.addmm_(left, right, beta=beta)
        elif left.is_cuda and left.dtype in HALF and total.dtype == torch.float32:
            torch.addmm(total, left, right, beta=beta, out_dtype=total.dtype, out=total)
        else:
            total.addmm_(left.to(total.dtype), right.to(total.dtype), beta=beta)

    def finish(self) -> None:
        pass
