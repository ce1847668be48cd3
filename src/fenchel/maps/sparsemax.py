"""sparsemax: the Euclidean projection onto the simplex."""

from __future__ import annotations

from torch import Tensor

from fenchel.maps.entmax import ENTMAX


def sparsemax(scores: Tensor, dim: int = -1, *, mask: Tensor | None = None) -> Tensor:
    r"""The probability vector nearest to the scores; what lies far below the largest gets zero.

    Solves

        argmin_{p ∈ Δ} ‖p − x‖²  =  [x − τ]_+,

    where τ makes the probabilities sum to one: α-entmax at α = 2. On the support S the Jacobian is
    diag(1_S) − 1_S 1_Sᵀ/|S|: the gradient minus its mean. Cost: a few passes over each row.

    Args:
        scores: real scores of any shape; −inf is never attended.
        dim: the dimension that sums to one.
        mask: boolean, broadcasts to `scores`; True marks what may be attended. A row with nothing
            left is all zeros and passes no gradient.

    Reference: Martins & Astudillo (2016), *From Softmax to Sparsemax*.

    >>> import torch, fenchel
    >>> fenchel.sparsemax(torch.tensor([1.0, 0.5, -1.0]))
    tensor([0.7500, 0.2500, 0.0000])
    """
    return ENTMAX(scores, 2.0, dim, mask)
