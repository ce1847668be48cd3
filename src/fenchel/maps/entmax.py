"""α-entmax: one map for softmax (α = 1), 1.5-entmax and sparsemax (α = 2), and everything around."""

from __future__ import annotations

from torch import Tensor

from fenchel.maps.operator import MapOperator

ENTMAX = MapOperator[Tensor]("entmax", "alpha", above=0)


def entmax(
    scores: Tensor, alpha: float | Tensor = 1.5, dim: int = -1, *, mask: Tensor | None = None
) -> Tensor:
    r"""Probabilities that can be exactly zero; α says how readily.

    Solves, with the Tsallis entropy H_α(p) = (1 − Σ p^α)/(α(α−1)),

        argmax_{p ∈ Δ} ⟨p, x⟩ + H_α(p)  =  [1 + (α−1)(x − A)]_+^{1/(α−1)},

    where A makes the probabilities sum to one. α = 1 is softmax, 2 is sparsemax; above 1 an entry
    more than 1/(α−1) below the largest is always zero; below 1 the tails are heavier than softmax's.

    The Jacobian is diag(s) − s sᵀ/Σs with s = p^{2−α} on the support; the derivative in α exists
    everywhere, α = 1 included. Cost: a few passes over each row, no sorting.

    Args:
        scores: real scores of any shape; −inf is never attended.
        alpha: a number above 0, or a tensor of them that broadcasts to `scores` with size 1 along
            `dim` (one α a row, a head, a batch…). A tensor is differentiable. Under `torch.compile`
            a number is part of the graph, and each new one compiles it again: one that changes from
            step to step should be a tensor.
        dim: the dimension that sums to one.
        mask: boolean, broadcasts to `scores`; True marks what may be attended. A row with nothing
            left is all zeros and passes no gradient.

    References:
        Peters, Niculae & Martins (2019), *Sparse Sequence-to-Sequence Models*;
        Correia, Niculae & Martins (2019), *Adaptively Sparse Transformers* (the derivative in α).

    >>> import torch, fenchel
    >>> x = torch.tensor([1.0, 0.5, -1.0])
    >>> fenchel.entmax(x, alpha=1.5)
    tensor([0.6740, 0.3260, 0.0000])
    >>> alpha = torch.tensor(1.5, requires_grad=True)
    >>> fenchel.entmax(x, alpha)[0].backward()
    >>> alpha.grad
    tensor(0.1239)
    """
    return ENTMAX(scores, alpha, dim, mask)
