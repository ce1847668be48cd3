"""Pool adjacent violators: the nearest non-increasing sequence to blocks of numbers, in linear time.

A stack of groups, as sums and sizes, whose means fall. The numbers are u_k = x_k + strength k for the
ranks k = 0, 1, ...; a block is a number of entries whose order does not matter yet.
"""

from __future__ import annotations

from numba import float64

from fenchel.kernels.cpu.launch.compilation import scalar, sequential
from fenchel.kernels.cpu.launch.memory import load, store
from fenchel.kernels.cpu.structured.simplex_threshold import weighted_threshold


@scalar
def block_sum(total, size, rank, strength):
    """The sum of u over `size` entries with the sum `total`, the first of which has rank `rank`."""
    return total + strength * size * (rank + 0.5 * (size - 1.0))


@scalar
def push(stack, groups, total, size):
    """Add a block; groups that do not lie above what follows them are joined to it."""
    sums, sizes = stack
    while groups > 0 and load(sums, groups - 1) * size < total * load(sizes, groups - 1):
        groups -= 1
        total += load(sums, groups)
        size += load(sizes, groups)
    store(sums, groups, total)
    store(sizes, groups, size)
    return groups + 1


@sequential
def push_ordered(row, ordered, count, largest, strength, rank, stack, groups):
    """Add `count` ordered entries one by one, the first of which has rank `rank`."""
    for i in range(count):
        x = float64(load(row, load(ordered, i))) - largest
        groups = push(stack, groups, x + strength * (rank + i), 1.0)
    return groups


@sequential
def settle(stack, groups):
    """Turn the sums into means; returns the threshold of their projection onto the simplex."""
    sums, sizes = stack
    for group in range(groups):
        store(sums, group, load(sums, group) / load(sizes, group))
    return weighted_threshold(sums, sizes, groups)
