"""The scores less than 1 below the largest of a row: where p is zero elsewhere, they are all it takes."""

from __future__ import annotations

import math

from numba import float64

from fenchel.kernels.cpu.columns.largest import largest_in
from fenchel.kernels.cpu.columns.selection import ROUNDING, list_above
from fenchel.kernels.cpu.columns.whole_vectors import fill
from fenchel.kernels.cpu.launch.compilation import sequential
from fenchel.kernels.cpu.launch.memory import advance, as_floats, as_indices, load, store


@sequential
def list_near_peak(scores, out, columns, workspace):
    """(their places, themselves less the largest, how many). `out` is filled with zeros.

    There are none in a row that is empty, whose p is zero, or broken, whose p is NaN.
    """
    places = as_indices(workspace)
    x = advance(as_floats(workspace), (columns + 1) // 2)
    largest = float64(largest_in(scores, columns))
    fill(out, columns, 0.0 if math.isfinite(largest) or largest < 0.0 else math.nan)
    if not math.isfinite(largest):
        return places, x, 0
    floor = largest - 1.0
    count = list_above(scores, columns, floor - ROUNDING * abs(floor), places)
    for i in range(count):
        store(x, i, float64(load(scores, load(places, i))) - largest)
    return places, x, count


def near_peak_workspace(columns: int, itemsize: int) -> int:
    """Numbers of scratch memory, of so many bytes each, that a thread needs."""
    return ((columns + 1) // 2 + columns) * (8 // itemsize)
