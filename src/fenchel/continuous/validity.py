"""Valid pieces of an input: within the lengths and allowed by the mask."""

from __future__ import annotations

from torch import Tensor

from fenchel.mechanisms.masks import within


def valid_pieces(length: int, lengths: Tensor | None, mask: Tensor | None) -> Tensor | None:
    """The valid pieces as a boolean tensor (…, length), or None if all are valid.

    >>> import torch
    >>> valid_pieces(3, torch.tensor([1, 3]), torch.tensor([True, True, False]))
    tensor([[ True, False, False],
            [ True,  True, False]])
    """
    if lengths is None:
        return mask
    inside = within(lengths, length)
    return inside if mask is None else inside & mask


def zero_elsewhere(pieces: Tensor, valid: Tensor | None, *, vectors: bool) -> Tensor:
    """The pieces (…, L), or vectors (…, L, D), with zeros for those that are not valid, even NaN.

    >>> import torch
    >>> zero_elsewhere(torch.tensor([1.0, torch.nan]), torch.tensor([True, False]), vectors=False)
    tensor([1., 0.])
    """
    if valid is None:
        return pieces
    return pieces.masked_fill(~(valid.unsqueeze(-1) if vectors else valid), 0.0)
