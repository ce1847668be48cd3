"""budget: soft k-subsets."""

from __future__ import annotations

from torch import Tensor

from fenchel.checks import BELOW_ZERO, canonical_dim, check_number, check_scores
from fenchel.errors import rule
from fenchel.maps.operator import MapOperator

BUDGET = MapOperator[Tensor]("budget", "k", above=BELOW_ZERO)


def budget(
    scores: Tensor, k: float | Tensor = 2, dim: int = -1, *, mask: Tensor | None = None
) -> Tensor:
    r"""k units shared among the entries, none of which takes more than one.

    Solves

        argmax ⟨p, x⟩ − ½‖p‖²  over  0 ≤ p ≤ 1, Σp = k,   that is  p = clip(x − τ, 0, 1),

    where τ makes the sum k. k = 1 is sparsemax; a well separated row gives the indicator of its k
    largest entries. With s the indicator of 0 < p < 1, the Jacobian is diag(s) − s sᵀ/Σs.

    Args:
        scores: real scores of any shape; −inf is never chosen.
        k: a number from 0 to the length of a row, or a tensor of them that broadcasts to `scores`
            with size 1 along `dim`. A tensor is differentiable.
        dim: the dimension that sums to k.
        mask: boolean, broadcasts to `scores`; True marks what may be chosen. A row with fewer than
            k entries left takes all of them.

    Reference: Martins & Kreutzer (2017), *Learning What's Easy: Fully Differentiable Neural Easy-First
    Taggers* (constrained sparsemax).

    >>> import torch, fenchel
    >>> fenchel.budget(torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0]), k=3)
    tensor([0.0000, 0.2500, 0.7500, 1.0000, 1.0000])
    """
    check_scores(scores)
    entries = scores.shape[canonical_dim(dim, scores.ndim)]
    if not isinstance(k, Tensor):
        number = check_number(k, name="k", above=BELOW_ZERO, or_tensor=True)
        if number > entries:
            raise rule("k must not exceed the number of entries", expected=f"k ≤ {entries}", got=k)
    return BUDGET(scores, k, dim, mask)
