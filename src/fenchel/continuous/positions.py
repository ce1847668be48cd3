"""Positions of the pieces of an input in the unit interval or the unit square."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from fenchel.checks import check_count, check_number
from fenchel.continuous.validation import check_real
from fenchel.errors import FenchelError


def regular_positions(
    *sizes: int, device: torch.device | str | None = None, dtype: torch.dtype | None = None
) -> Tensor:
    """The centers of equal pieces: (L,) for one size, (rows · columns, 2) for two.

    Pieces of an image are in row-major order; their positions are (x, y), with y pointing down.

    >>> regular_positions(4)
    tensor([0.1250, 0.3750, 0.6250, 0.8750])
    >>> regular_positions(2, 2)
    tensor([[0.2500, 0.2500],
            [0.7500, 0.2500],
            [0.2500, 0.7500],
            [0.7500, 0.7500]])
    """
    if len(sizes) not in (1, 2):
        raise FenchelError(f"sizes must be a length, or rows and columns, got {sizes}")
    for size in sizes:
        check_count(size, "every size")
    axes = [(torch.arange(n, device=device, dtype=dtype) + 0.5) / n for n in sizes]
    if len(axes) == 1:
        return axes[0]
    y, x = torch.meshgrid(*axes, indexing="ij")
    return torch.stack((x, y), -1).reshape(-1, 2)


def positions_within(lengths: Tensor, longest: int, dtype: torch.dtype | None = None) -> Tensor:
    """(…, longest): the centers of `lengths` equal pieces, continued beyond 1.

    >>> positions_within(torch.tensor([2, 4]), 4)
    tensor([[0.2500, 0.7500, 1.2500, 1.7500],
            [0.1250, 0.3750, 0.6250, 0.8750]])
    """
    dtype = torch.get_default_dtype() if dtype is None else dtype
    middles = torch.arange(longest, device=lengths.device, dtype=dtype) + 0.5
    return middles / lengths.unsqueeze(-1).clamp(min=1)


def box_positions(boxes: Tensor, size: tuple[float, float] = (1.0, 1.0)) -> Tensor:
    """The centers (…, 2) of boxes (…, 4), x₁ y₁ x₂ y₂, in an image of `size` (width, height).

    >>> box_positions(torch.tensor([[0.0, 0.0, 320.0, 240.0]]), size=(640, 480))
    tensor([[0.2500, 0.2500]])
    """
    check_real(boxes, "boxes")
    if boxes.shape[-1:] != (4,):
        raise FenchelError(f"boxes must have shape (…, 4), got {tuple(boxes.shape)}")
    if not isinstance(size, Sequence) or len(size) != 2:
        raise FenchelError(f"size must be a width and a height, got {size!r}")
    sides = [check_number(side, name="size", above=0) for side in size]
    corners = boxes.reshape(*boxes.shape[:-1], 2, 2)
    return corners.mean(-2) / torch.tensor(sides, dtype=boxes.dtype, device=boxes.device)
