"""Targets of a loss: a class index a row, or a row of probabilities.

A kernel finds them in its arguments 1 to 3: the tensor, whether it holds probabilities, and the
class index that means "ignore this row".
"""

from __future__ import annotations

from torch import Tensor

from fenchel.kernels.cpu.compilation import scalar
from fenchel.kernels.cpu.memory import TENSORS, integer_at, integers_at, load


def target_words(target: Tensor, ignore_index: int) -> tuple[Tensor, int, int]:
    """The arguments a kernel reads the target from."""
    return target, int(target.dtype.is_floating_point), ignore_index


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
