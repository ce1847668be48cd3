"""oscarmax: sparse probabilities in clusters of equal value."""

from __future__ import annotations

import torch
from torch import Tensor

from fenchel.autocast import rounded_like
from fenchel.kernels.reference.entmax import widen
from fenchel.kernels.reference.oscarmax import oscar_prox
from fenchel.operators.layout import at_least_float32
from fenchel.operators.maps import ENTMAX, OSCARMAX


def oscarmax(
    scores: Tensor, strength: float | Tensor = 0.01, dim: int = -1, *, mask: Tensor | None = None
) -> Tensor:
    r"""Sparse probabilities in clusters of equal value, not necessarily contiguous.

    With the strength λ and the n entries p_(1) ≥ p_(2) ≥ … sorted, the map is

        argmax_{p ∈ Δ} ⟨p, x⟩ − ½‖p‖² − λ Σ_{i<j} max(p_i, p_j),

    where Σ_{i<j} max(p_i, p_j) = Σ_k (n − k) p_(k). It is computed exactly: sort x in decreasing order,
    subtract λ(n − k), pool adjacent violators, undo the sort, project onto the simplex (sparsemax).
    λ = 0 is sparsemax. The paper's composition of two projections (`oscarmax_composition`) only
    approximates this problem.

    Jacobian: the mean over the cluster of each entry minus the mean over the support. The derivative
    in λ is the mean rank of the cluster minus that of the support. Cost: O(n) per row, plus
    O(m log m) to sort the m scores that can be in the support.

    Args:
        scores: Real scores of any shape. Entries of −inf are removed, as masked ones are.
        strength: A number at least 0, or a tensor that broadcasts to `scores` with size 1 along
            `dim`. Tensors are differentiable.
        dim: The dimension that sums to one.
        mask: Boolean, broadcastable to `scores`; False entries are removed and get probability zero,
            and n counts the remaining ones. A fully masked row is all zeros and has zero gradient.

    Returns:
        Probabilities of the shape and dtype of `scores`.

    References: Niculae & Blondel (2017), *A Regularized Framework for Sparse and Structured Neural
    Attention*; Zeng & Figueiredo (2014), *The Ordered Weighted ℓ1 Norm: Atomic Formulation, Projections,
    and Algorithms* (pooling).

    >>> import torch, fenchel
    >>> fenchel.oscarmax(torch.tensor([0.0, 0.7, -0.1, 0.8, 0.2]), strength=0.1)
    tensor([0.0000, 0.4667, 0.0000, 0.4667, 0.0667])
    """
    return OSCARMAX(scores, strength, dim, mask)[0]


def oscarmax_composition(
    scores: Tensor, strength: float | Tensor = 0.01, dim: int = -1, *, mask: Tensor | None = None
) -> Tensor:
    r"""The approximation of oscarmax from the 2017 paper, P_Δ(prox_OSCAR(x)), for comparison.

        prox_OSCAR(x) = argmin_z ½‖z − x‖² + λ Σ_{i<j} max(|z_i|, |z_j|)

    The prox shrinks the scores towards zero, so the result changes when a constant is added to the
    scores. According to the erratum of the paper, it does not solve the problem of `oscarmax`. It is
    written in plain PyTorch and has no kernels. The arguments are those of `oscarmax`.

    Reference: Niculae & Blondel (2017), *A Regularized Framework for Sparse and Structured Neural
    Attention*, Prop. 2 and Errata.

    >>> import torch, fenchel
    >>> fenchel.oscarmax_composition(torch.tensor([0.0, 0.7, -0.1, 0.8, 0.2]), strength=0.1)
    tensor([0.0400, 0.4400, 0.0400, 0.4400, 0.0400])
    """
    scores, strength, mask, dim = OSCARMAX.check(scores, strength, dim, mask)
    rows = at_least_float32(scores)
    rows = rows if mask is None else rows.masked_fill(~mask, -torch.inf)
    if isinstance(strength, Tensor):
        strength = strength.movedim(dim, -1)
    z = oscar_prox(widen(rows).movedim(dim, -1), strength).movedim(-1, dim)
    return rounded_like(scores, ENTMAX.apply(z.to(rows.dtype), 2.0, None, dim))
