"""normmax: the map whose regularizer is the α-norm."""

from __future__ import annotations

from torch import Tensor

from fenchel.operators.maps import NORMMAX


def normmax(
    scores: Tensor, alpha: float | Tensor = 2.0, dim: int = -1, *, mask: Tensor | None = None
) -> Tensor:
    r"""Sparse probabilities that are nearly uniform on their support for large α.

    The map is

        argmax_{p ∈ Δ} ⟨p, x⟩ − ‖p‖_α  =  w/Σw,   w = (x − τ)_+^{1/(α−1)},

    where the threshold τ satisfies Σ (x − τ)_+^{α/(α−1)} = 1. An entry 1 or more below the largest score
    gets probability zero. For large α the map is close to a uniform top-k; as α → 1 it approaches
    the argmax.

    Jacobian: with s = p^{2−α} and h = g − ⟨p, g⟩, the product with a vector g is
    ‖p‖_α^{α−1} (s∘h − p ⟨s, h⟩)/(α−1). Cost: O(d) per row, a few passes without sorting.

    Args:
        scores: Real scores of any shape. Entries of −inf get probability zero.
        alpha: A number above 1, or a tensor that broadcasts to `scores` with size 1 along `dim`.
            Tensors are differentiable.
        dim: The dimension that sums to one.
        mask: Boolean, broadcastable to `scores`; False entries get probability zero. A fully masked
            row is all zeros and has zero gradient.

    Returns:
        Probabilities of the shape and dtype of `scores`.

    Reference: Blondel, Martins & Niculae (2020), *Learning with Fenchel–Young Losses*.

    >>> import torch, fenchel
    >>> fenchel.normmax(torch.tensor([0.0, 0.25, 0.5, 0.75, 1.0]))
    tensor([0.0000, 0.0239, 0.1746, 0.3254, 0.4761])
    """
    return NORMMAX(scores, alpha, dim, mask)
