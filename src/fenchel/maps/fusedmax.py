"""fusedmax: sparse probabilities that are constant on contiguous segments."""

from __future__ import annotations

import torch
from torch import Tensor

from fenchel.checks import canonical_dim, check_mask, check_scores
from fenchel.kernels.reference.fusedmax import neighbour_before
from fenchel.operators.maps import FUSEDMAX


def fusedmax(
    scores: Tensor, strength: float | Tensor = 0.1, dim: int = -1, *, mask: Tensor | None = None
) -> Tensor:
    r"""Sparse probabilities that are constant on contiguous segments.

    With the strength λ, the map is

        argmax_{p ∈ Δ} ⟨p, x⟩ − ½‖p‖² − λ Σ |p_{i+1} − p_i|  =  P_Δ(prox_{λTV}(x)),

    the proximal operator of total variation followed by the projection onto the simplex (sparsemax);
    both are exact. λ = 0 is sparsemax. For large λ all entries are equal.

    Jacobian: the mean over the group (segment) of each entry minus the mean over the support. In λ,
    the derivative of a group is (neighbours above − neighbours below)/size, centred over the support.
    Cost: O(d) per row.

    Args:
        scores: Real scores of any shape; their order along `dim` matters. Entries of −inf are
            removed, as masked ones are.
        strength: A number at least 0, or a tensor that broadcasts to `scores` with size 1 along
            `dim`. Tensors are differentiable.
        dim: The dimension that sums to one.
        mask: Boolean, broadcastable to `scores`; False entries are removed from their row and get
            probability zero. The others keep their order and become neighbours. A fully masked row
            is all zeros and has zero gradient.

    Returns:
        Probabilities of the shape and dtype of `scores`.

    Reference: Niculae & Blondel (2017), *A Regularized Framework for Sparse and Structured Neural
    Attention*, Prop. 2 and 3.

    >>> import torch, fenchel
    >>> x = torch.tensor([0.0, 0.9, 1.0, 0.7, 0.1])
    >>> fenchel.fusedmax(x, strength=0.1)
    tensor([0.0000, 0.3833, 0.3833, 0.2333, 0.0000])
    >>> fenchel.sparsemax(x)
    tensor([0.0000, 0.3667, 0.4667, 0.1667, 0.0000])
    """
    return FUSEDMAX(scores, strength, dim, mask)[0]


def fused_groups(p: Tensor, dim: int = -1, *, mask: Tensor | None = None) -> Tensor:
    """Label the segments of equal neighbours in p with 1, 2, … along `dim`; zero entries get 0.

    Meant for inspection. Adjacent segments whose values happen to be equal get one label; the
    derivatives of `fusedmax` use the segments that its algorithm found and are not affected.

    Args:
        p: The result of `fusedmax`.
        dim: The dimension that sums to one.
        mask: The mask given to `fusedmax`, if any.

    Returns:
        Integers of the shape of p.

    >>> import torch, fenchel
    >>> fenchel.fused_groups(torch.tensor([0.2, 0.2, 0.0, 0.2, 0.4]))
    tensor([1, 1, 0, 2, 3])
    """
    check_scores(p, "p")
    dim = canonical_dim(dim, p.ndim)
    present = check_mask(mask, p)
    rows = p.detach().movedim(dim, -1)
    if rows.shape[-1] == 0:
        return torch.zeros_like(p, dtype=torch.long)
    there = torch.ones_like(rows, dtype=torch.bool)
    if present is not None:
        there = present.expand_as(p).movedim(dim, -1)
    before = neighbour_before(there)
    previous = torch.where(before >= 0, rows.gather(-1, before.clamp(min=0)), 0.0)
    inside = there & (rows != 0)
    groups = (inside & (rows != previous)).cumsum(-1)
    return torch.where(inside, groups, 0).movedim(-1, dim)
