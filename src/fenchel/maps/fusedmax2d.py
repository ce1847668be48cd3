"""fusedmax2d: regions of an image share their weight."""

from __future__ import annotations

import torch
from torch import Tensor

from fenchel.checks import check_dense, check_mask, check_parameter, check_scores
from fenchel.errors import rule
from fenchel.maps.grouped import GroupedMapOperator

FUSEDMAX2D = GroupedMapOperator("fusedmax2d", torch.int32, layout="width")


def fusedmax2d(
    scores: Tensor, strength: float | Tensor = 0.1, *, mask: Tensor | None = None
) -> Tensor:
    r"""Sparse probabilities over the last two dimensions that are equal on connected regions.

    Solves, with λ the strength and d over the differences of horizontal and vertical neighbours,

        argmax_{p ∈ Δ} ⟨p, x⟩ − ½‖p‖² − λ Σ_d |d|  =  P_Δ(prox_{λTV₂}(x)).

    The proximal operator of 2-D total variation has no finite algorithm as simple as in one dimension: it
    is found by accelerated alternation of exact 1-D ones, along rows and along columns, until the duality
    gap is rounding, and the regions with it. An image that does not get there raises `FenchelError`.

    The derivatives are those of `fusedmax`, with regions for segments. Cost: linear in the entries for
    each of a few dozen rounds.

    Args:
        scores: real scores of shape (…, height, width); −inf is never attended.
        strength: a number from 0 on, or a tensor of them that broadcasts to `scores` with size 1 along
            the last two dimensions. A tensor is differentiable.
        mask: boolean, broadcasts to `scores`; True marks what may be attended. What is masked (or −inf)
            is removed: in every row and in every column the entries left become neighbours. An image
            with nothing left is all zeros and passes no gradient.

    References: Niculae & Blondel (2017), *A Regularized Framework for Sparse and Structured Neural
    Attention*; Chambolle & Pock (2015), *A remark on accelerated block coordinate descent for computing
    the proximity operators of a sum of convex functions*.

    >>> import torch, fenchel
    >>> fenchel.fusedmax2d(torch.tensor([[1.0, 0.9, 0.0], [0.8, 0.9, 0.0], [0.0, 0.0, 0.3]]))
    tensor([[0.2500, 0.2500, 0.0000],
            [0.2500, 0.2500, 0.0000],
            [0.0000, 0.0000, 0.0000]])
    """
    check_scores(scores)
    if scores.ndim < 2:
        raise rule(
            "scores must have two dimensions to normalise", expected="ndim ≥ 2", got="ndim 1"
        )
    height, width = scores.shape[-2:]
    rows = scores.flatten(-2)
    mask = check_mask(mask, scores)
    if mask is not None:
        mask = mask.expand_as(scores).flatten(-2)
    name, above = FUSEDMAX2D.parameter, FUSEDMAX2D.above
    if isinstance(strength, Tensor) and strength.ndim > 1:
        check_dense(strength, name)
        if strength.shape[-2:] != (1, 1):
            raise rule(
                "strength has one value an image",
                expected="size 1 along the last two dimensions",
                got=tuple(strength.shape),
            )
        strength = strength.flatten(-2)
    strength = check_parameter(strength, rows, -1, name=name, above=above)
    return FUSEDMAX2D.apply(rows, strength, mask, width)[0].unflatten(-1, (height, width))
