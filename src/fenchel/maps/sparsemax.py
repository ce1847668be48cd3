"""sparsemax: the Euclidean projection onto the simplex."""

from __future__ import annotations

from torch import Tensor

from fenchel.operators.maps import ENTMAX


def sparsemax(scores: Tensor, dim: int = -1, *, mask: Tensor | None = None) -> Tensor:
    r"""Sparse probabilities: the Euclidean projection of the scores onto the simplex.

    The map, which is α-entmax at α = 2, is

        argmin_{p ∈ Δ} ‖p − x‖²  =  [x − τ]_+,

    where the threshold τ makes the probabilities sum to one. An entry 1 or more below the largest
    score gets probability zero.

    Jacobian: diag(s) − s sᵀ/|S| with s the indicator of the support S. A vector–Jacobian product
    subtracts the mean over the support. Cost: O(d) per row, a few passes without sorting.

    Args:
        scores: Real scores of any shape. Entries of −inf get probability zero.
        dim: The dimension that sums to one.
        mask: Boolean, broadcastable to `scores`; False entries get probability zero. A fully masked
            row is all zeros and has zero gradient.

    Returns:
        Probabilities of the shape and dtype of `scores`.

    Reference: Martins & Astudillo (2016), *From Softmax to Sparsemax*.

    >>> import torch, fenchel
    >>> fenchel.sparsemax(torch.tensor([1.0, 0.5, -1.0]))
    tensor([0.7500, 0.2500, 0.0000])
    """
    return ENTMAX(scores, 2.0, dim, mask)
