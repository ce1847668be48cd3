"""Means kept as sums and counts, so that batches and processes can be added up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor


class Mean(NamedTuple):
    """A mean kept as a sum and a count, so that batches and processes can be added up."""

    total: Tensor
    count: Tensor


Means = dict[str, Mean]


def stack_means(means: Means) -> Tensor:
    """The sums and counts as one tensor (K, 2) that holds even long sums of counts exactly.

    >>> means = {"accuracy": Mean(torch.tensor(3.0), torch.tensor(4))}
    >>> read_means(["accuracy"], stack_means(means) + stack_means(means))
    {'accuracy': 0.75}
    """
    values = [value.detach() for mean in means.values() for value in mean]
    exact = torch.float32 if values[0].device.type == "mps" else torch.float64
    return torch.stack([value.to(exact) for value in values]).view(-1, 2)


def read_means(names: Sequence[str], stacked: Tensor) -> dict[str, float]:
    """The means in a tensor of `stack_means`, read in one transfer from the device."""
    rows = stacked.tolist()
    return {name: total / max(count, 1) for name, (total, count) in zip(names, rows, strict=True)}
