"""What normmax and pnormmax share: the scores that can be in the support, and norms of p.

The support lies less than 1 below the largest score: see (N.34) and (N.35).
"""

from __future__ import annotations

import math

from numba import float64

from fenchel.kernels.cpu.arithmetic.float64 import power64
from fenchel.kernels.cpu.launch.compilation import inlined
from fenchel.kernels.cpu.launch.memory import advance, as_floats, as_indices, load, store
from fenchel.kernels.cpu.shared.columns import BOUND_ROUNDING, fill, largest_of_row, list_above


@inlined
def list_near_largest(scores, out, columns, workspace):
    """(indices, scores minus the largest, count) of the scores less than 1 below the largest.

    `out` is filled with zeros, or with NaN if the row has NaN or +inf. Such rows, and rows of -inf alone,
    have count 0.
    """
    places = as_indices(workspace)
    x = advance(as_floats(workspace), (columns + 1) // 2)
    largest = float64(largest_of_row(scores, columns))
    fill(out, columns, 0.0 if math.isfinite(largest) or largest < 0.0 else math.nan)
    if not math.isfinite(largest):
        return places, x, 0
    floor = largest - 1.0
    count = list_above(scores, columns, floor - BOUND_ROUNDING * abs(floor), places)
    for i in range(count):
        store(x, i, float64(load(scores, load(places, i))) - largest)
    return places, x, count


def near_largest_workspace(columns: int, itemsize: int) -> int:
    """Scratch memory of a thread, in numbers of `itemsize` bytes."""
    return ((columns + 1) // 2 + columns) * (8 // itemsize)


@inlined
def norm_of(p, places, count, s):
    """N = ||p||_s over the listed entries, scaled by the largest so that a large s does not underflow."""
    peak, total = 0.0, 0.0
    for i in range(count):
        peak = max(peak, float64(load(p, load(places, i))))
    for i in range(count):
        total += power64(load(p, load(places, i)) / peak, s)
    return peak * math.pow(total, 1.0 / s)


@inlined
def norm_derivative_of(p, places, count, s, size):
    """dN/ds, where `size` is N."""
    logs = 0.0
    for i in range(count):
        relative = load(p, load(places, i)) / size
        logs += power64(relative, s) * math.log(relative)
    return size * logs / s
