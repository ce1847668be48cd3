"""Dense probabilities to the compressed rows of PyTorch."""

from __future__ import annotations

import math
import warnings

import torch
from torch import Tensor


def to_csr(dense: Tensor) -> Tensor:
    """A `torch.sparse_csr` tensor with the non-zero entries of each matrix of `dense`.

    Each matrix of a batch must store as many entries: where one has fewer than the fullest, its
    first zeros (in the order of rows) are stored too.

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
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")
        return torch.sparse_csr_tensor(
            starts.reshape(*batch, rows + 1),
            (positions % max(columns, 1)).reshape(*batch, most),
            flat[stored].reshape(*batch, most),
            size=tuple(dense.shape),
            check_invariants=True,
        )
