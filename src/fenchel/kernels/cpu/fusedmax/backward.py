"""The gradients of fusedmax in the scores and in the strength: (N.26), from p and the jumps.

A group of the support begins at its first entry or where a jump is not zero. The strength moves a group
by the jump after it minus the jump before it, divided by its size.
"""

from __future__ import annotations

from fenchel.kernels.cpu.launch.compilation import inlined
from fenchel.kernels.cpu.launch.memory import (
    TENSORS,
    advance,
    as_indices,
    bytes_at,
    floats_at,
    load,
    store,
)
from fenchel.kernels.cpu.launch.threads import for_each_row, gradient_rows, matrix_row
from fenchel.kernels.cpu.shared.columns import fill, list_nonzero


@inlined
def _group_end(jumps, places, first, count):
    """The index of the entry after the group that begins at entry `first`."""
    last = first + 1
    while last < count and load(jumps, load(places, last)) == 0:
        last += 1
    return last


@inlined
def _sum_of(values, places, first, last):
    total = 0.0
    for i in range(first, last):
        total += load(values, load(places, i))
    return total


@inlined
def _backward_row(arguments, row, strength, columns, workspace):
    grad, p, out = gradient_rows(arguments, row, columns)
    jumps = advance(bytes_at(arguments, TENSORS + 3), row * columns)
    places = as_indices(workspace)
    fill(out, columns, 0.0)
    count = list_nonzero(p, columns, places)
    if count == 0:
        return
    # A NaN in p is in the support and makes every gradient NaN.
    shift = _sum_of(grad, places, 0, count) / count + 0.0 * _sum_of(p, places, 0, count)
    first = 0
    while first < count:
        last = _group_end(jumps, places, first, count)
        value = _sum_of(grad, places, first, last) / (last - first) - shift
        for i in range(first, last):
            store(out, load(places, i), value)
        first = last


@inlined
def _jump_after(jumps, place, columns):
    """The first jump after column `place`, zero if there is none."""
    for i in range(place + 1, columns):
        if load(jumps, i) != 0:
            return float(load(jumps, i))
    return 0.0


@inlined
def _strength_row(arguments, row, strength, columns, workspace):
    grad, p = matrix_row(arguments, 0, row, columns), matrix_row(arguments, 1, row, columns)
    jumps = advance(bytes_at(arguments, TENSORS + 3), row * columns)
    places = as_indices(workspace)
    count = list_nonzero(p, columns, places)
    result, moved, first = 0.0, 0.0, 0
    while first < count:
        last = _group_end(jumps, places, first, count)
        ends = _jump_after(jumps, load(places, last - 1), columns)
        move = ends - float(load(jumps, load(places, first)))
        result += move * _sum_of(grad, places, first, last) / (last - first)
        moved += move
        first = last
    if count > 0:
        result -= moved / count * _sum_of(grad, places, 0, count)
        result += 0.0 * _sum_of(p, places, 0, count)
    store(floats_at(arguments, TENSORS + 2), row, result)


def fusedmax_backward_rows(arguments):
    """The gradient in the scores. Zero off the support."""
    for_each_row(arguments, _backward_row)


def fusedmax_strength_rows(arguments):
    """The gradient in the strength of every row."""
    for_each_row(arguments, _strength_row)
