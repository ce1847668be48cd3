"""The gradients of oscarmax in the scores and in the strength: (N.26), from p and the first ranks.

A group is identified by its first rank. The strength moves it by its mean rank, first + (size - 1)/2,
minus the mean rank of the support.
"""

from __future__ import annotations

from fenchel.kernels.cpu.launch.compilation import inlined
from fenchel.kernels.cpu.launch.memory import (
    TENSORS,
    advance,
    as_floats,
    as_indices,
    floats_at,
    indices_at,
    load,
    store,
)
from fenchel.kernels.cpu.launch.threads import for_each_row, gradient_rows, matrix_row
from fenchel.kernels.cpu.shared.columns import fill, list_nonzero


@inlined
def _sum_groups(grad, p, first, places, count, sums, sizes):
    """Fill the sums of `grad` and the sizes of the groups, by first rank; returns the total.

    Consecutive entries of one group are added up before they are stored. A NaN in p is in the support and
    makes the total NaN.
    """
    fill(sums, count, 0.0)  # the ranks of the support are below `count`
    fill(sizes, count, 0.0)
    whole, poison, group, start, total = 0.0, 0.0, 0, 0, 0.0
    for i in range(count):
        place = load(places, i)
        if load(first, place) != group:
            store(sums, group, load(sums, group) + total)
            store(sizes, group, load(sizes, group) + (i - start))
            whole, total, group, start = whole + total, 0.0, load(first, place), i
        total += load(grad, place)
        poison += load(p, place)
    store(sums, group, load(sums, group) + total)
    store(sizes, group, load(sizes, group) + (count - start))
    return (whole + total) + 0.0 * poison


@inlined
def _means(sums, sizes, count, shift):
    for group in range(count):
        size = load(sizes, group)
        store(sums, group, load(sums, group) / (size if size > 0.0 else 1.0) - shift)


@inlined
def _backward_row(arguments, row, strength, columns, workspace):
    grad, p, out = gradient_rows(arguments, row, columns)
    first = advance(indices_at(arguments, TENSORS + 3), row * columns)
    places = as_indices(workspace)
    sums = advance(as_floats(workspace), (columns + 1) // 2)
    sizes = advance(sums, columns)
    fill(out, columns, 0.0)
    count = list_nonzero(p, columns, places)
    if count == 0:
        return
    shift = _sum_groups(grad, p, first, places, count, sums, sizes) / count
    _means(sums, sizes, count, shift)
    for i in range(count):
        place = load(places, i)
        store(out, place, load(sums, load(first, place)))


@inlined
def _strength_row(arguments, row, strength, columns, workspace):
    grad, p = matrix_row(arguments, 0, row, columns), matrix_row(arguments, 1, row, columns)
    first = advance(indices_at(arguments, TENSORS + 3), row * columns)
    places = as_indices(workspace)
    sums = advance(as_floats(workspace), (columns + 1) // 2)
    sizes = advance(sums, columns)
    count = list_nonzero(p, columns, places)
    whole = _sum_groups(grad, p, first, places, count, sums, sizes)
    # The ranks of the support are 0, 1, ..., count - 1: their mean is (count - 1)/2.
    middle, result = 0.5 * (count - 1), 0.0 * whole
    for i in range(count):
        group = load(first, load(places, i))
        rank = group + 0.5 * (load(sizes, group) - 1.0)
        result += (rank - middle) * load(grad, load(places, i))
    store(floats_at(arguments, TENSORS + 2), row, result)


def oscarmax_backward_rows(arguments):
    """The gradient in the scores. Zero off the support."""
    for_each_row(arguments, _backward_row)


def oscarmax_strength_rows(arguments):
    """The gradient in the strength of every row."""
    for_each_row(arguments, _strength_row)


def oscarmax_backward_workspace(columns: int, itemsize: int) -> int:
    """Scratch memory of a thread, in numbers of `itemsize` bytes."""
    return ((columns + 1) // 2 + 2 * columns) * (8 // itemsize)
