"""pnormmax: half the squared p-norm as the regularizer."""

from __future__ import annotations

from torch import Tensor

from fenchel.maps.operator import MapOperator

PNORMMAX = MapOperator[Tensor]("pnormmax", "p", above=1)


def pnormmax(
    scores: Tensor, p: float | Tensor = 1.5, dim: int = -1, *, mask: Tensor | None = None
) -> Tensor:
    r"""Sparse probabilities with softer edges than sparsemax: sq-pnorm-max.

    Solves, with q for the probabilities,

        argmax_{q ∈ Δ} ⟨q, x⟩ − ½‖q‖_p²  =  u^c/Σu^c,   u = (x − τ)_+,  c = 1/(p−1),

    where τ makes Σu^c · (Σu^{c+1})^{−(2−p)/p} one: a root in one dimension, found to the last bit. p = 2
    is sparsemax. What lies 1 below the largest score is always zero. Up to p = 2 the regularizer is
    strongly convex and the map has bounded slopes; above, it is steep at the edge of its support.

    With N = ‖q‖_p and K = [N^{p−2} diag(q^{2−p}) − (2−p) N^{−2} q qᵀ]/(p−1) on the support, the Jacobian
    is K − K1 1ᵀK/(1ᵀK1). Cost: a few passes over each row, no sorting.

    Args:
        scores: real scores of any shape; −inf is never attended.
        p: a number above 1, or a tensor of them that broadcasts to `scores` with size 1 along `dim`.
            A tensor is differentiable.
        dim: the dimension that sums to one.
        mask: boolean, broadcasts to `scores`; True marks what may be attended. A row with nothing
            left is all zeros and passes no gradient.

    Reference: Niculae & Blondel (2017), *A Regularized Framework for Sparse and Structured Neural
    Attention*, §3.1.

    >>> import torch, fenchel
    >>> fenchel.pnormmax(torch.tensor([1.0, 0.5, -1.0]))
    tensor([0.8474, 0.1526, 0.0000])
    """
    return PNORMMAX(scores, p, dim, mask)
