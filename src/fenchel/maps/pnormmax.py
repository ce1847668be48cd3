"""pnormmax: the map whose regularizer is half the squared p-norm."""

from __future__ import annotations

from torch import Tensor

from fenchel.operators.maps import PNORMMAX


def pnormmax(
    scores: Tensor, p: float | Tensor = 1.5, dim: int = -1, *, mask: Tensor | None = None
) -> Tensor:
    r"""Sparse probabilities with the squared p-norm as the regularizer (sq-pnorm-max).

    With q for the probabilities, the map is

        argmax_{q ∈ Δ} ⟨q, x⟩ − ½‖q‖_p²  =  u^c/Σu^c,   u = (x − τ)_+,  c = 1/(p−1),

    where the threshold τ satisfies Σu^c · (Σu^{c+1})^{−(2−p)/p} = 1. p = 2 is sparsemax. An entry 1 or
    more below the largest score gets probability zero. For p ≤ 2 the regularizer is strongly convex
    and the map is Lipschitz; for p > 2 its slope is unbounded at the boundary of the support.

    Jacobian: K − K1 1ᵀK/(1ᵀK1) with K = [N^{p−2} diag(q^{2−p}) − (2−p) N^{−2} q qᵀ]/(p−1) on the support
    and N = ‖q‖_p. Cost: O(d) per row, one-dimensional root finding without sorting.

    Args:
        scores: Real scores of any shape. Entries of −inf get probability zero.
        p: A number above 1, or a tensor that broadcasts to `scores` with size 1 along `dim`. Tensors
            are differentiable.
        dim: The dimension that sums to one.
        mask: Boolean, broadcastable to `scores`; False entries get probability zero. A fully masked
            row is all zeros and has zero gradient.

    Returns:
        Probabilities of the shape and dtype of `scores`.

    Reference: Niculae & Blondel (2017), *A Regularized Framework for Sparse and Structured Neural
    Attention*, §3.1.

    >>> import torch, fenchel
    >>> fenchel.pnormmax(torch.tensor([1.0, 0.5, -1.0]))
    tensor([0.8474, 0.1526, 0.0000])
    """
    return PNORMMAX(scores, p, dim, mask)
