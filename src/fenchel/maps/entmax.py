"""α-entmax: softmax (α = 1), 1.5-entmax, sparsemax (α = 2) and every α > 0 between and beyond."""

from __future__ import annotations

from torch import Tensor

from fenchel.operators.maps import ENTMAX


def entmax(
    scores: Tensor, alpha: float | Tensor = 1.5, dim: int = -1, *, mask: Tensor | None = None
) -> Tensor:
    r"""Probabilities that can be exactly zero, with sparsity controlled by α.

    With the Tsallis entropy H_α(p) = (1 − Σ p^α)/(α(α−1)), the map is

        argmax_{p ∈ Δ} ⟨p, x⟩ + H_α(p)  =  [1 + (α−1)(x − A)]_+^{1/(α−1)},

    where the normalizer A makes the probabilities sum to one. α = 1 is softmax and α = 2 is sparsemax.
    For α > 1, an entry more than 1/(α−1) below the largest score gets probability zero. For α < 1,
    there are no zeros and the tails are heavier than those of softmax.

    Jacobian: diag(s) − s sᵀ/Σs with s = p^{2−α} on the support, 0 elsewhere. The derivative in α exists
    everywhere, including α = 1.

    Cost: O(d) per row, a few passes without sorting.

    Args:
        scores: Real scores of any shape. Entries of −inf get probability zero.
        alpha: A positive number, or a tensor that broadcasts to `scores` with size 1 along `dim`, such
            as one α per row or per head. Tensors are differentiable. `torch.compile` treats a number
            as a constant and recompiles when it changes; pass a tensor if it changes at every step.
        dim: The dimension that sums to one.
        mask: Boolean, broadcastable to `scores`; False entries get probability zero. A fully masked
            row is all zeros and has zero gradient.

    Returns:
        Probabilities of the shape and dtype of `scores`.

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
