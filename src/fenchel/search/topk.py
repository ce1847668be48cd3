"""Top-k with ties broken by position, and the top-k tokens of the prefixes of a beam."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from fenchel.search.validate import row_statistics

SHORT_ROW = 256  # entries; shorter rows are not split into chunks
CHUNK = 64  # entries
CACHED_ENTRIES = 2**21  # entries that fit into the cache of a CPU


class Candidates(NamedTuple):
    """The continuations of prefixes (B, K) that can be among the best K + 1 of a sentence.

    These are the K + 2 most probable tokens of each prefix, since one of them may be `eos`, which
    finishes the sequence instead of continuing the prefix.

    >>> candidates = Candidates.of(torch.tensor([[[0.0, 0.1, 0.4, 0.3, 0.2]]]), eos=2)
    >>> candidates.probabilities, candidates.tokens
    (tensor([[[0.4000, 0.4000, 0.3000, 0.2000]]]), tensor([[[2, 3, 4]]]))
    """

    probabilities: Tensor  # (B, K, 1 + C): eos, then the top C tokens
    tokens: Tensor  # (B, K, C)
    statistics: Tensor  # (B, K, 3): the `row_statistics`

    @classmethod
    def of(cls, probabilities: Tensor, eos: int) -> Candidates:
        """Return the candidates of rows (B, K, V).

        Each row is read three times: for its top-k, its sum and its minimum. On a CPU, large
        inputs are split so that the second and third read hit the cache.
        """
        _, width, size = probabilities.shape
        read = partial(_read_rows, eos=eos, count=min(width + 2, size))
        if probabilities.device.type != "cpu" or probabilities.numel() <= CACHED_ENTRIES:
            return cls(*read(probabilities))
        parts = map(read, probabilities.split(max(1, CACHED_ENTRIES // (width * size))))
        return cls(*map(torch.cat, zip(*parts, strict=True)))


def _read_rows(probabilities: Tensor, eos: int, count: int) -> tuple[Tensor, ...]:
    best, tokens = stable_topk(probabilities, count)
    with_eos = torch.cat((probabilities[..., eos : eos + 1], best), -1)
    return with_eos, tokens, row_statistics(probabilities, maximum=best[..., 0])


def stable_topk(values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return the `count` largest entries of each row and their indices; ties go to the lower index.

    `torch.topk` leaves the order of ties open, and on a GPU it depends on the number of rows. Here
    the result for a row depends on that row alone. Values must not be negative. Long rows are
    split into chunks: the top `count` entries lie in the `count` chunks with the largest maxima.

    >>> stable_topk(torch.tensor([0.1, 0.4, 0.0, 0.4, 0.1]), 3)
    (tensor([0.4000, 0.4000, 0.1000]), tensor([1, 3, 0]))
    """
    size = values.shape[-1]
    if size <= max(SHORT_ROW, 2 * count * CHUNK):
        indices = _topk_indices(values, count)
        return values.gather(-1, indices), indices
    rows = values.reshape(-1, size)
    chunks = size // CHUNK
    whole = rows[:, : chunks * CHUNK].unflatten(-1, (chunks, CHUNK))
    chosen = torch.sort(_topk_indices(whole.amax(-1), count), dim=-1).values
    row = torch.arange(len(rows), device=values.device).unsqueeze(-1)
    gathered = torch.cat((whole[row, chosen].flatten(1), rows[:, chunks * CHUNK :]), -1)
    best = _topk_indices(gathered, count)
    chunk = torch.cat((chosen, torch.full_like(row, chunks)), -1).gather(-1, best // CHUNK)
    indices = torch.add(best % CHUNK, chunk, alpha=CHUNK)
    shape = (*values.shape[:-1], count)
    return gathered.gather(-1, best).view(shape), indices.view(shape)


def stable_sort(values: Tensor) -> tuple[Tensor, Tensor]:
    """Sort each row in descending order, with ties by index; return the values and the indices."""
    ordered = torch.sort(values, dim=-1, descending=True, stable=True)
    return ordered.values, ordered.indices


def _topk_indices(values: Tensor, count: int) -> Tensor:
    """Return the indices of the `count` largest entries, with unique integer keys.

    The bits of a non-negative float32, read as an integer, have the order of the floats; the key
    appends the index, counted from the end of the row. A float64 leaves no bits for the index, so
    such rows are sorted.
    """
    if values.dtype == torch.float64:
        return stable_sort(values)[1][..., :count]
    size = values.shape[-1]
    from_end = torch.arange(size - 1, -1, -1, device=values.device)
    bits = values.float().contiguous().view(torch.int32)
    return torch.topk(torch.add(from_end, bits, alpha=size), count).indices
