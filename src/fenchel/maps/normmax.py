"""normmax: the norm of p as the regularizer."""

from __future__ import annotations

from torch import Tensor

from fenchel.maps.operator import MapOperator

NORMMAX = MapOperator[Tensor]("normmax", "alpha", above=1)


def normmax(
    scores: Tensor, alpha: float | Tensor = 2.0, dim: int = -1, *, mask: Tensor | None = None
) -> Tensor:
    r"""Sparse probabilities that grow flatter, not denser, as α grows.

    Solves

        argmax_{p ∈ Δ} ⟨p, x⟩ − ‖p‖_α  =  w/Σw,   w = (x − τ)_+^{1/(α−1)},

    where τ makes Σ (x − τ)_+^{α/(α−1)} one. What lies 1 below the largest score is always zero; for
    large α the support is close to uniform (a soft top-k), for α → 1 only the largest is left.

    With s = p^{2−α} and h = g − p·g, the Jacobian maps g to ‖p‖_α^{α−1} (s∘h − p (s·h))/(α−1).
    Cost: a few passes over each row, no sorting.

    Args:
        scores: real scores of any shape; −inf is never attended.
        alpha: a number above 1, or a tensor of them that broadcasts to `scores` with size 1 along
            `dim`. A tensor is differentiable.
        dim: the dimension that sums to one.
        mask: boolean, broadcasts to `scores`; True marks what may be attended. A row with nothing
            left is all zeros and passes no gradient.

    Reference: Blondel, Martins & Niculae (2020), *Learning with Fenchel–Young Losses*.

    >>> import torch, fenchel
    >>> fenchel.normmax(torch.tensor([0.0, 0.25, 0.5, 0.75, 1.0]))
    tensor([0.0000, 0.0239, 0.1746, 0.3254, 0.4761])
    """
    return NORMMAX(scores, alpha, dim, mask)
