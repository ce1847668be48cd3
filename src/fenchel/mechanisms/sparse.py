"""Probabilities as sparse matrices in PyTorch's CSR format."""

from __future__ import annotations

import math
import warnings

import torch
from torch import Tensor


def to_csr(dense: Tensor) -> Tensor:
    """A `torch.sparse_csr` tensor with the non-zero entries of each matrix of `dense`.

    PyTorch requires all matrices of a batch to store the same number of entries, so the sparser ones
    also store their first zeros, in the order of rows.

    >>> to_csr(torch.tensor([[0.0, 0.5], [0.0, 0.0]])).crow_indices()
    tensor([0, 1, 1])
    """
    *batch, rows, columns = dense.shape
    flat = dense.reshape(math.prod(batch), rows * columns)
    stored = flat != 0
    counts = stored.sum(-1, keepdim=True)
    most = int(counts.max()) if counts.numel() else 0
    stored = stored | (~stored & ((~stored).cumsum(-1) <= most - counts))
    positions = stored.nonzero()[:, 1]
    per_row = stored.reshape(len(flat), rows, columns).sum(-1)
    starts = torch.nn.functional.pad(per_row.cumsum(-1), (1, 0))
    return _compressed(starts, positions % max(columns, 1), flat[stored], tuple(dense.shape))


def csr_of_lists(starts: Tensor, columns: Tensor, values: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The same from concatenated entries: those of row i are at `starts[i]` to `starts[i + 1]`.

    >>> columns, values = torch.tensor([1, 0, 1]), torch.tensor([1.0, 0.5, 0.5])
    >>> csr_of_lists(torch.tensor([0, 1, 3]), columns, values, (2, 1, 2)).col_indices()
    tensor([[0, 1],
            [0, 1]])
    """
    *batch, rows, width = shape
    matrices = math.prod(batch)
    kept = values != 0  # half precision rounds some weights to zero
    if not bool(kept.all()):
        starts = torch.nn.functional.pad(kept.cumsum(0), (1, 0))[starts]
        columns, values = columns[kept], values[kept]
    per_matrix = starts[::rows].diff() if rows else starts.new_zeros(matrices)
    most = int(per_matrix.max())
    missing = torch.cat(
        [
            _missing(starts, columns, width, matrix * rows, int(most - count))
            for matrix, count in enumerate(per_matrix)
        ]
    )
    row = torch.repeat_interleave(starts.diff())
    position = torch.cat([row * width + columns, missing])
    order = position.argsort() if len(missing) else slice(None)
    values = torch.cat([values, values.new_zeros(len(missing))])[order]
    position = position[order]
    per_row = torch.bincount(position // width, minlength=matrices * rows)
    starts = torch.nn.functional.pad(per_row.reshape(matrices, rows).cumsum(-1), (1, 0))
    return _compressed(starts, position % width, values, shape)


def _missing(starts: Tensor, columns: Tensor, width: int, first: int, count: int) -> Tensor:
    """The first `count` zeros of a matrix whose first row is `first`, as row · width + column."""
    if count == 0:
        return columns.new_empty(0, dtype=torch.int64)
    found, row = [], first
    while count > 0:
        empty = torch.ones(width, dtype=torch.bool)
        empty[columns[starts[row] : starts[row + 1]].long()] = False
        found.append(empty.nonzero()[:count, 0] + row * width)
        count -= len(found[-1])
        row += 1
    return torch.cat(found)


def _compressed(starts: Tensor, columns: Tensor, values: Tensor, shape: tuple[int, ...]) -> Tensor:
    *batch, rows, _ = shape
    most = values.numel() // max(math.prod(batch), 1)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")
        # torch 2.11 also warns on CUDA, although `check_invariants` is given.
        warnings.filterwarnings("ignore", message="Sparse invariant checks are implicitly disabled")
        return torch.sparse_csr_tensor(
            starts.reshape(*batch, rows + 1),
            columns.reshape(*batch, most),
            values.reshape(*batch, most),
            size=shape,
            check_invariants=True,
        )
