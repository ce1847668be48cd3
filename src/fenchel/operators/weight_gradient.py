"""The gradient Σ g hᵀ in the weight of an output layer, summed over chunks of rows."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from fenchel.operators import dispatch
from fenchel.operators.layout import HALF


class WeightGradient(Protocol):
    """Sums Σ g hᵀ: `list_part` is called for every part of a chunk, then `add`, then `finish`.

    `empty_support_groups` returns memory in which the loss of a part writes where the support may be, if
    this is of use. `add` also computes the gradient g W in the hidden states if `by_hidden` is given.
    """

    def empty_support_groups(self, rows: int) -> Tensor | None: ...
    def list_part(
        self, gradient: Tensor, support_groups: Tensor | None, first: int, offset: int
    ) -> None: ...
    def add(
        self, gradient: Tensor, first: int, by_hidden: Tensor | None, weight: Tensor
    ) -> None: ...
    def finish(self, stop: int) -> None: ...


def weight_gradient(
    out: Tensor,
    hidden: Tensor,
    weight: Tensor,
    target: Tensor,
    alpha: float | Tensor,
    smoothing: float,
    rows: int,
) -> WeightGradient:
    """From the non-zero entries if the backend can list them, otherwise by matrix products."""
    make = dispatch.extension("linear_entmax_loss", "sparse_weight_gradient", hidden)
    sparse = None
    if make is not None and smoothing == 0:
        sparse = make(out, hidden, weight, target, alpha, rows)
    return DenseWeightGradient(out, hidden) if sparse is None else sparse


class DenseWeightGradient:
    """One matrix product per chunk; the sum is rounded to its dtype each time."""

    def __init__(self, out: Tensor, hidden: Tensor) -> None:
        self.out, self.hidden = out, hidden

    def empty_support_groups(self, rows: int) -> None:
        return None

    def list_part(
        self, gradient: Tensor, support_groups: Tensor | None, first: int, offset: int
    ) -> None:
        pass

    def add(self, gradient: Tensor, first: int, by_hidden: Tensor | None, weight: Tensor) -> None:
        if by_hidden is not None:
            product_into(by_hidden, gradient, weight)
        total, left = self.out, gradient.t()
        right = self.hidden[first : first + gradient.shape[0]]
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
