"""softmax with a mask."""

from __future__ import annotations

from torch import Tensor

from fenchel.operators.maps import ENTMAX


def softmax(scores: Tensor, dim: int = -1, *, mask: Tensor | None = None) -> Tensor:
    r"""Softmax, the dense map: α-entmax at α = 1.

    The map is

        argmax_{p ∈ Δ} ⟨p, x⟩ − Σ p log p  =  exp(x)/Σ exp(x).

    Unlike `torch.softmax`, it takes a mask, and a fully masked row is all zeros instead of NaN.

    Jacobian: diag(p) − p pᵀ. Cost: O(d) per row.

    Args:
        scores: Real scores of any shape. Entries of −inf get probability zero.
        dim: The dimension that sums to one.
        mask: Boolean, broadcastable to `scores`; False entries get probability zero. A fully masked
            row is all zeros and has zero gradient.

    Returns:
        Probabilities of the shape and dtype of `scores`.

    >>> import torch, fenchel
    >>> fenchel.softmax(torch.tensor([1.0, 0.5, -1.0]))
    tensor([0.5741, 0.3482, 0.0777])
    >>> fenchel.softmax(torch.tensor([1.0, 0.5]), mask=torch.tensor([False, False]))
    tensor([0., 0.])
    """
    return ENTMAX(scores, 1.0, dim, mask)
