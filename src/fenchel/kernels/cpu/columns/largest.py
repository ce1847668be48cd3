"""The largest of some columns."""

from __future__ import annotations

import math

from fenchel.kernels.cpu.columns.whole_vectors import LANES
from fenchel.kernels.cpu.launch.compilation import scalar, sequential
from fenchel.kernels.cpu.launch.memory import load, maximum, real


@scalar
def largest_of(data, groups):
    """The largest of `groups` multiples of LANES columns; NaN if there is one."""
    largest = real(data, -math.inf)
    for i in range(groups * LANES):
        largest = maximum(largest, load(data, i))
    return largest


@sequential
def largest_in(row, columns):
    """The largest of a row; NaN if there is one."""
    largest = largest_of(row, columns // LANES)
    for i in range(columns // LANES * LANES, columns):
        largest = maximum(largest, load(row, i))
    return largest
