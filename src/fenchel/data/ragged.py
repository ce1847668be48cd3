"""Rows of different lengths in one tensor."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from itertools import chain

import numpy as np
import torch
from torch import Tensor

from fenchel.data.vocabulary import PAD


class Ragged:
    """Rows of numbers of different lengths: all rows one after the other, and where each starts.

    >>> rows = Ragged([[5, 6, 7], [8], [9, 4]])
    >>> rows.padded(torch.tensor([2, 0])).tolist()
    [[9, 4, 0], [5, 6, 7]]

    Attributes:
        lengths: (R,) int64, the lengths of the rows, on the CPU.
        values: (N,) int32, the numbers of all rows, and PAD at the end as often as the longest row
            is long: so any row, read on to that length, stays inside.
    """

    def __init__(self, rows: Sequence[Sequence[int]]) -> None:
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        total, longest = int(lengths.sum()), int(lengths.max(initial=0))
        values = np.full(total + longest, PAD, np.int32)
        values[:total] = np.fromiter(chain.from_iterable(rows), np.int32, total)
        self.lengths = torch.from_numpy(lengths)
        self.values = torch.from_numpy(values)
        self._starts = torch.from_numpy(np.cumsum(lengths) - lengths)
        self._lengths_there = self.lengths
        self._columns = torch.from_numpy(np.arange(longest))

    def padded(self, index: Tensor) -> Tensor:
        """The rows at `index` (B,), which is on the CPU, as int64 (B, longest) filled up with PAD."""
        width = int(self.lengths.index_select(0, index).max()) if len(index) else 0
        there = index.to(self.values.device, non_blocking=True)
        starts = self._starts.index_select(0, there)
        lengths = self._lengths_there.index_select(0, there)
        windows = self.values.as_strided((self.values.shape[0] - width + 1, width), (1, 1))
        rows = windows.index_select(0, starts).long()
        return rows.masked_fill_(self._columns[:width] >= lengths.unsqueeze(1), PAD)

    def to(self, device: torch.device | str) -> Ragged:
        """The same rows, gathered on `device`."""
        moved = copy(self)
        moved.values, moved._starts = self.values.to(device), self._starts.to(device)
        moved._lengths_there = self.lengths.to(device)
        moved._columns = self._columns.to(device)
        return moved
