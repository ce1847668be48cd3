"""oscarmax: weights that are close become equal, wherever they are."""

from __future__ import annotations

import torch
from torch import Tensor

from fenchel.autocast import rounded_like
from fenchel.kernels.reference.entmax import widen
from fenchel.kernels.reference.oscar_composition import oscar_prox
from fenchel.kernels.rows import at_least_float32
from fenchel.maps.entmax import ENTMAX
from fenchel.maps.grouped import GroupedMapOperator

OSCARMAX = GroupedMapOperator("oscarmax", torch.int32)


def oscarmax(
    scores: Tensor, strength: float | Tensor = 0.01, dim: int = -1, *, mask: Tensor | None = None
) -> Tensor:
    r"""Sparse probabilities in clusters of equal value, not necessarily contiguous.

    Solves, with λ the strength and p_(1) ≥ p_(2) ≥ … the n entries in order,

        argmax_{p ∈ Δ} ⟨p, x⟩ − ½‖p‖² − λ Σ_{i<j} max(p_i, p_j),

    where Σ_{i<j} max(p_i, p_j) = Σ_k (n − k) p_(k), exactly: sort x decreasingly, subtract λ(n − k), pool
    adjacent violators, undo the sort, project onto the simplex (sparsemax). λ = 0 is sparsemax; adding a
    constant to the scores changes nothing. The paper's composition of two projections is only an
    approximation: `oscarmax_composition`.

    Entries of a cluster move as one: the Jacobian averages over each cluster and subtracts the mean over
    the support. The derivative in λ is the mean rank of the cluster less that of the support. Cost:
    linear in the entries, and n log n in those that the result tells apart.

    Args:
        scores: real scores of any shape; −inf is never attended.
        strength: a number from 0 on, or a tensor of them that broadcasts to `scores` with size 1 along
            `dim`. A tensor is differentiable.
        dim: the dimension that sums to one.
        mask: boolean, broadcasts to `scores`; True marks what may be attended. What is masked (or −inf)
            is removed from its row, and n counts what is left. A row with nothing left is all zeros
            and passes no gradient.

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
    r"""The 2017 paper's approximation of oscarmax, for comparison: P_Δ(prox_OSCAR(x)).

        prox_OSCAR(x) = argmin_z ½‖z − x‖² + λ Σ_{i<j} max(|z_i|, |z_j|)

    Before it is projected, z is shrunk towards zero, so the result depends on where the scores' zero
    is; the paper's erratum says that it does not solve the problem that `oscarmax` solves. In plain
    PyTorch, for comparison only. The arguments are those of `oscarmax`.

    Reference: Niculae & Blondel (2017), *A Regularized Framework for Sparse and Structured Neural
    Attention*, Prop. 2 and Errata.

    >>> import torch, fenchel
    >>> fenchel.oscarmax_composition(torch.tensor([0.0, 0.7, -0.1, 0.8, 0.2]), strength=0.1)
    tensor([0.0400, 0.4400, 0.0400, 0.4400, 0.0400])
    """
    scores, strength, mask, dim = OSCARMAX.canonical(scores, strength, dim, mask)
    rows = at_least_float32(scores)
    rows = rows if mask is None else rows.masked_fill(~mask, -torch.inf)
    if isinstance(strength, Tensor):
        strength = strength.movedim(dim, -1)
    z = oscar_prox(widen(rows).movedim(dim, -1), strength).movedim(-1, dim)
    return rounded_like(scores, ENTMAX.apply(z.to(rows.dtype), 2.0, None, dim))
