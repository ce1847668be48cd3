"""The largest entries of long rows, ties in the order of their places."""

from __future__ import annotations

import torch
from torch import Tensor

SHORT = 256
CHUNK = 64


def largest(values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` largest of every row, the largest first, and their places; equal ones by place.

    `torch.topk` leaves the order of equal entries open, and on a GPU it depends on the number of
    rows. Here it does not: what is chosen from a row depends on that row alone. Long rows are
    read once, for the maxima of chunks: the `count` entries lie in `count` of these.

    >>> largest(torch.tensor([0.1, 0.4, 0.0, 0.4, 0.1]), 3)
    (tensor([0.4000, 0.4000, 0.1000]), tensor([1, 3, 0]))
    """
    size = values.shape[-1]
    if size <= max(SHORT, 2 * count * CHUNK):
        places = _places(values, count)
        return values.gather(-1, places), places
    rows = values.reshape(-1, size)
    chunks = size // CHUNK
    whole = rows[:, : chunks * CHUNK].unflatten(-1, (chunks, CHUNK))
    chosen = torch.sort(_places(whole.amax(-1), count), dim=-1).values
    row = torch.arange(len(rows), device=values.device).unsqueeze(-1)
    taken = torch.cat((whole[row, chosen].flatten(1), rows[:, chunks * CHUNK :]), -1)
    best = _places(taken, count)
    chunk = torch.cat((chosen, torch.full_like(row, chunks)), -1).gather(-1, best // CHUNK)
    places = torch.add(best % CHUNK, chunk, alpha=CHUNK)
    shape = (*values.shape[:-1], count)
    return taken.gather(-1, best).view(shape), places.view(shape)


def in_order(values: Tensor) -> tuple[Tensor, Tensor]:
    """Every row from its largest entry to its smallest, and their places; equal ones by place."""
    ordered = torch.sort(values, dim=-1, descending=True, stable=True)
    return ordered.values, ordered.indices


def _places(values: Tensor, count: int) -> Tensor:
    """Where the largest of every row are. Keys that differ make the answer unique.

    The bits of a float32 that is not negative are ordered as the number is; below them stands
    the place, counted from the end. A float64 leaves no room, so such rows are sorted.
    """
    if values.dtype == torch.float64:
        return in_order(values)[1][..., :count]
    size = values.shape[-1]
    from_end = torch.arange(size - 1, -1, -1, device=values.device)
    bits = values.float().contiguous().view(torch.int32)
    return torch.topk(torch.add(from_end, bits, alpha=size), count).indices
