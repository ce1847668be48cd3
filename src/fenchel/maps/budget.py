"""budget: soft k-subsets."""

from __future__ import annotations

from torch import Tensor

from fenchel.checks import BELOW_ZERO, canonical_dim, check_number, check_scores
from fenchel.errors import FenchelError
from fenchel.operators.maps import BUDGET


def budget(
    scores: Tensor, k: float | Tensor = 2, dim: int = -1, *, mask: Tensor | None = None
) -> Tensor:
    r"""Soft selection of k entries: weights between 0 and 1 that sum to k.

    The map is

        argmax ⟨p, x⟩ − ½‖p‖²  over  0 ≤ p ≤ 1, Σp = k,   that is  p = clip(x − τ, 0, 1),

    where the threshold τ makes the weights sum to k. k = 1 is sparsemax. If the k-th largest score is
    at least 1 above the next, the result is the indicator of the k largest scores.

    Jacobian: diag(s) − s sᵀ/Σs with s the indicator of 0 < p < 1. Cost: a few passes over each
    row without sorting.

    Args:
        scores: Real scores of any shape. Entries of −inf get weight zero.
        k: A number between 0 and the length of a row, or a tensor that broadcasts to `scores` with
            size 1 along `dim`. Tensors are differentiable.
        dim: The dimension that sums to k.
        mask: Boolean, broadcastable to `scores`; False entries get weight zero. If fewer than k
            entries remain, each of them gets weight 1.

    Returns:
        Weights of the shape and dtype of `scores`.

    Reference: Martins & Kreutzer (2017), *Learning What's Easy: Fully Differentiable Neural Easy-First
    Taggers* (constrained sparsemax).

    >>> import torch, fenchel
    >>> fenchel.budget(torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0]), k=3)
    tensor([0.0000, 0.2500, 0.7500, 1.0000, 1.0000])
    """
    check_scores(scores)
    entries = scores.shape[canonical_dim(dim, scores.ndim)]
    if not isinstance(k, Tensor):
        number = check_number(k, name="k", above=BELOW_ZERO, or_tensor=True)
        if number > entries:
            raise FenchelError(f"k must be at most the number of entries ({entries}), got {k}")
    return BUDGET(scores, k, dim, mask)
