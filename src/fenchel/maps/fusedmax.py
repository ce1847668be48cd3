"""fusedmax: neighbours share their weight, in whole segments."""

from __future__ import annotations

import torch
from torch import Tensor

from fenchel.checks import canonical_dim, check_mask, check_scores
from fenchel.kernels.reference.penalties import neighbour_before
from fenchel.maps.grouped import GroupedMapOperator

FUSEDMAX = GroupedMapOperator("fusedmax", torch.int8)


def fusedmax(
    scores: Tensor, strength: float | Tensor = 0.1, dim: int = -1, *, mask: Tensor | None = None
) -> Tensor:
    r"""Sparse probabilities that are equal on contiguous segments.

    Solves, with λ the strength,

        argmax_{p ∈ Δ} ⟨p, x⟩ − ½‖p‖² − λ Σ |p_{i+1} − p_i|  =  P_Δ(prox_{λTV}(x)),

    the projection onto the simplex (sparsemax) of the proximal operator of total variation, both exact.
    λ = 0 is sparsemax; once λ is large enough every entry is in one group.

    Entries that are fused move as one: the Jacobian averages over each group and subtracts the mean over
    the support. The derivative in λ exists too: a group gains (neighbours above − neighbours below) over
    its size. Cost: linear in the entries.

    Args:
        scores: real scores of any shape; their order along `dim` matters. −inf is never attended.
        strength: a number from 0 on, or a tensor of them that broadcasts to `scores` with size 1 along
            `dim`. A tensor is differentiable.
        dim: the dimension that sums to one.
        mask: boolean, broadcasts to `scores`; True marks what may be attended. What is masked (or −inf)
            is removed from its row: the entries left keep their order and become neighbours. A row
            with nothing left is all zeros and passes no gradient.

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
    """The segments of equal neighbours in the support of p, numbered 1, 2, … along `dim`; 0 off it.

    For a person who looks at p. Segments whose values agree by chance are counted as one; the
    derivatives of `fusedmax` do not depend on that.

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
