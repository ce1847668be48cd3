"""The gradient Σ g hᵀ of an output layer's weight, from one chunk of rows after another."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from fenchel import dispatch
from fenchel.kernels.rows import HALF


class WeightSum(Protocol):
    """What adds it up: every part of a chunk is listed, then the chunk is added, then it is finished.

    `room` is for what a kernel says about a part, where that is of use. What is known of a chunk
    serves the gradient in the hidden states too: g W is written to `by_hidden`, if that is wanted.
    """

    def room(self, rows: int) -> Tensor | None: ...
    def list_part(self, slopes: Tensor, listed: Tensor | None, first: int, offset: int) -> None: ...
    def add(self, slopes: Tensor, first: int, by_hidden: Tensor | None, weight: Tensor) -> None: ...
    def finish(self, stop: int) -> None: ...


def weight_sum(
    out: Tensor,
    hidden: Tensor,
    weight: Tensor,
    target: Tensor,
    alpha: float | Tensor,
    smoothing: float,
    rows: int,
) -> WeightSum:
    """By the entries that are not zero where a GPU is likely to find few, or by matrix products."""
    slopes = hidden.new_empty(0, out.shape[0])
    if (
        smoothing == 0
        and dispatch.chosen("entmax_loss", "entmax_loss_in_place", slopes) == "triton"
    ):
        from fenchel.kernels.triton.weight_gradient import SparseWeightGradient, worth_listing

        if worth_listing(hidden, out.shape[0], target, alpha) and weight.stride(1) == 1:
            return SparseWeightGradient(out, hidden, target, rows)
    return DenseWeightSum(out, hidden)


class DenseWeightSum:
    """One matrix product a chunk; the sum is rounded to its dtype every time."""

    def __init__(self, out: Tensor, hidden: Tensor) -> None:
        self.out, self.hidden = out, hidden

    def room(self, rows: int) -> None:
        return None

    def list_part(self, slopes: Tensor, listed: Tensor | None, first: int, offset: int) -> None:
        pass

    def add(self, slopes: Tensor, first: int, by_hidden: Tensor | None, weight: Tensor) -> None:
        if by_hidden is not None:
            product_into(by_hidden, slopes, weight)
        total, left = self.out, slopes.t()
        right = self.hidden[first : first + slopes.shape[0]]
        beta = 0 if first == 0 else 1
        if total.dtype == left.dtype:
            total.addmm_(left, right, beta=beta)
        elif left.is_cuda and left.dtype in HALF and total.dtype == torch.float32:
            torch.addmm(total, left, right, beta=beta, out_dtype=total.dtype, out=total)
        else:
            total.addmm_(left.to(total.dtype), right.to(total.dtype), beta=beta)

    def finish(self, stop: int) -> None:
        pass


def product_into(out: Tensor, left: Tensor, right: Tensor) -> None:
    if out.dtype == left.dtype:
        torch.mm(left, right, out=out)
    else:
        out.copy_(torch.mm(left, right))
