"""The interface of encoded data sets, for training and evaluation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, Self

import torch
from torch import Tensor


class Dataset(Protocol):
    """Encoded examples from which batches are gathered."""

    @property
    def lengths(self) -> Tensor:
        """(N, K) int64 on the CPU: the lengths of the K padded parts of every example."""
        ...

    def __len__(self) -> int: ...

    def batch(self, index: Tensor) -> Any:
        """The examples at `index` (B,), as the `loss` of the model takes them."""
        ...

    def to(self, device: torch.device | str) -> Self:
        """The same data set on `device`, where batches are then gathered."""
        ...

    def tensors(self) -> Iterable[Tensor]:
        """Tensors that are equal for equal examples only."""
        ...
