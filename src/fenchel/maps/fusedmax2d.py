"""fusedmax2d: sparse probabilities that are constant on connected regions of an image."""

from __future__ import annotations

from torch import Tensor

from fenchel.checks import check_dense, check_mask, check_parameter, check_scores
from fenchel.errors import FenchelError
from fenchel.operators.maps import FUSEDMAX2D


def fusedmax2d(
    scores: Tensor, strength: float | Tensor = 0.1, *, mask: Tensor | None = None
) -> Tensor:
    r"""Sparse probabilities over the last two dimensions that are constant on connected regions.

    With the strength λ and i ~ j for horizontal and vertical neighbours, the map is

        argmax_{p ∈ Δ} ⟨p, x⟩ − ½‖p‖² − λ Σ_{i~j} |p_i − p_j|  =  P_Δ(prox_{λTV₂}(x)).

    The proximal operator of 2-D total variation is computed by accelerated alternation of exact 1-D
    proximal operators along rows and columns, until the duality gap is at rounding level.
    `FenchelError` is raised if it does not converge.

    Derivatives: as for `fusedmax`, with regions instead of segments. Cost: O(height · width) per
    round; a few dozen rounds are usual.

    Args:
        scores: Real scores of shape (…, height, width). Entries of −inf are removed, as masked ones
            are.
        strength: A number at least 0, or a tensor that broadcasts to `scores` with size 1 along the
            last two dimensions. Tensors are differentiable.
        mask: Boolean, broadcastable to `scores`; False entries are removed and get probability zero.
            In every row and column, the remaining entries become neighbours. A fully masked image is
            all zeros and has zero gradient.

    Returns:
        Probabilities of the shape and dtype of `scores`.

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
        raise FenchelError(
            f"scores must have at least two dimensions, got shape {tuple(scores.shape)}"
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
            raise FenchelError(
                "strength must have size 1 along the last two dimensions,"
                f" got shape {tuple(strength.shape)}"
            )
        strength = strength.flatten(-2)
    strength = check_parameter(strength, rows, -1, name=name, above=above)
    return FUSEDMAX2D.apply(rows, strength, mask, width)[0].unflatten(-1, (height, width))
