"""softmax, with the library's masks: the dense end of the family."""

from __future__ import annotations

from torch import Tensor

from fenchel.maps.entmax import ENTMAX


def softmax(scores: Tensor, dim: int = -1, *, mask: Tensor | None = None) -> Tensor:
    r"""The dense map, for comparison and for models that switch between maps.

    Solves

        argmax_{p ∈ Δ} ⟨p, x⟩ − Σ p log p  =  exp(x)/Σ exp(x):

    α-entmax at α = 1. It differs from `torch.softmax` in taking a mask, and in that a row with
    nothing left is all zeros with zero gradient instead of NaN.

    Args:
        scores: real scores of any shape; −inf is never attended.
        dim: the dimension that sums to one.
        mask: boolean, broadcasts to `scores`; True marks what may be attended.

    >>> import torch, fenchel
    >>> fenchel.softmax(torch.tensor([1.0, 0.5, -1.0]))
    tensor([0.5741, 0.3482, 0.0777])
    >>> fenchel.softmax(torch.tensor([1.0, 0.5]), mask=torch.tensor([False, False]))
    tensor([0., 0.])
    """
    return ENTMAX(scores, 1.0, dim, mask)
