"""Targets of a loss: a class index a row, smoothed or not, or a row of probabilities.

A kernel finds them in its arguments 1 to 4: the tensor, whether it holds probabilities, the class
index that means "ignore this row", and the share s of a class that is spread over all C classes:
class k stands for q = (1 - s) e_k + s/C.
"""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from fenchel.kernels.cpu.launch.compilation import scalar
from fenchel.kernels.cpu.launch.memory import TENSORS, floats_at, integer_at, integers_at, load


def target_words(
    target: Tensor, ignore_index: int, smoothing: float
) -> tuple[Tensor, int, int, Tensor]:
    """The arguments a kernel reads the target from."""
    return target, int(target.dtype.is_floating_point), ignore_index, _in_memory(smoothing)


@lru_cache(maxsize=64)
def _in_memory(number: float) -> Tensor:
    return torch.tensor([number], dtype=torch.float64, device="cpu")


@scalar
def is_soft(arguments):
    """Whether the target holds probabilities."""
    return integer_at(arguments, TENSORS + 2) != 0


@scalar
def class_of(arguments, row):
    """The class index of a row."""
    return load(integers_at(arguments, TENSORS + 1), row)


@scalar
def is_ignored(arguments, row):
    """Whether the row costs nothing."""
    ignored = integer_at(arguments, TENSORS + 3)
    return not is_soft(arguments) and class_of(arguments, row) == ignored


@scalar
def smoothing_of(arguments):
    """The share of a class that is spread over all classes."""
    return load(floats_at(arguments, TENSORS + 4), 0)
