"""oscarmax and its derivatives on the CPU.

oscarmax                     sort, shift, pool adjacent violators, project onto the simplex
oscarmax_backward            its Jacobian times a vector, from p and the first ranks of groups
oscarmax_backward_strength   the same, and the gradient in the strength

With ranks k = 0, 1, ... of the n present entries in decreasing order, u_k = x_k + strength k is pooled
to be non-increasing: a group takes the mean of its u. Two bounds save most rows the full sort:

* If strength n >= 2 (max x - min x), no beginning of the row has a larger mean than the row, so it is one
  group. (The mean of the first k exceeds that of all by at most max x - mean, and by at most
  (n - k)/k (mean - min x); one of these is below strength (n - k)/2 for every k.)
* The largest u of a group with an entry of score X is at most X + strength (n - 1), and the largest z
  is at least max x. So an entry with X <= max x - 1 - strength (n - 1) is zero, as are all below it.
"""

from __future__ import annotations

import math

import torch
from numba import float64
from torch import Tensor

from fenchel.kernels.cpu.launch.compilation import Kernel, inlined, reducing
from fenchel.kernels.cpu.launch.memory import (
    TENSORS,
    advance,
    as_floats,
    as_indices,
    indices_at,
    load,
    real,
    store,
)
from fenchel.kernels.cpu.launch.threads import for_each_row, launch, matrix_row
from fenchel.kernels.cpu.oscarmax.backward import (
    oscarmax_backward_rows,
    oscarmax_backward_workspace,
    oscarmax_strength_rows,
)
from fenchel.kernels.cpu.oscarmax.pooling import (
    buckets_workspace,
    means_and_threshold,
    pool_buckets,
    push_ordered,
)
from fenchel.kernels.cpu.oscarmax.sorting import INSERTION_SORT_ENTRIES, sort_descending
from fenchel.kernels.cpu.shared.columns import BOUND_ROUNDING, fill, largest_of_row, list_above


@reducing
def _count_present(row, columns):
    """The number of entries that are not -inf, and the smallest of them."""
    count, smallest = real(row, 0.0), real(row, math.inf)
    for i in range(columns):
        x = load(row, i)
        there = x > real(row, -math.inf)
        count += real(row, 1.0) if there else real(row, 0.0)
        smallest = x if there and x < smallest else smallest
    return float64(count), float64(smallest)


@inlined
def _write(places, groups, z, sizes, tau, out, first):
    start = 0
    for group in range(groups):
        value, end = load(z, group) - tau, start + int(load(sizes, group))
        if value <= 0.0:
            return
        for i in range(start, end):
            store(out, load(places, i), value)
            store(first, load(places, i), start)
        start = end


@inlined
def _mark_absent(row, columns, first):
    """Set the first rank to -1 where the score is -inf, else to 0."""
    for i in range(columns):
        store(first, i, -1 if load(row, i) == real(row, -math.inf) else 0)


@inlined
def _write_one_group(row, columns, count, out):
    share, zero = real(out, 1.0 / count), real(out, 0.0)
    for i in range(columns):
        store(out, i, share if load(row, i) > real(row, -math.inf) else zero)


@inlined
def _pool_entries(row, places, count, largest, strength, out, first, workspace):
    stack = (workspace, advance(workspace, count))
    ordered = sort_descending(row, places, count, advance(workspace, 2 * count))
    groups = push_ordered(row, ordered, count, largest, strength, 0.0, stack, 0)
    tau = means_and_threshold(stack, groups)
    _write(ordered, groups, stack[0], stack[1], tau, out, first)


@inlined
def _forward_row(arguments, row, strength, columns, workspace):
    scores, out = matrix_row(arguments, 0, row, columns), matrix_row(arguments, 1, row, columns)
    first = advance(indices_at(arguments, TENSORS + 2), row * columns)
    largest = float64(largest_of_row(scores, columns))
    _mark_absent(scores, columns, first)
    if not math.isfinite(largest):
        fill(out, columns, 0.0 if largest < 0.0 else math.nan)
        return
    present, smallest = _count_present(scores, columns)
    if strength > 0.0 and strength * present >= 2.0 * (largest - smallest):
        _write_one_group(scores, columns, present, out)
        return
    fill(out, columns, 0.0)
    floor = largest - 1.0 - strength * (present - 1.0)
    places = as_indices(workspace)
    count = list_above(scores, columns, floor - BOUND_ROUNDING * abs(floor), places)
    rest = advance(as_floats(workspace), (columns + 1) // 2)
    if count <= INSERTION_SORT_ENTRIES:
        _pool_entries(scores, places, count, largest, strength, out, first, rest)
    else:
        reach = min(largest - smallest, largest - floor)
        pool_buckets(scores, places, count, largest, reach, strength, out, first, rest)


def _forward_rows(arguments):
    """Probabilities and first ranks of every row."""
    for_each_row(arguments, _forward_row)


def _workspace(columns: int, itemsize: int) -> int:
    """Scratch memory of a thread, in numbers of `itemsize` bytes."""
    floats = (columns + 1) // 2 + buckets_workspace(columns)
    return floats * (8 // itemsize)


_forward_kernel, _backward_kernel = Kernel(_forward_rows), Kernel(oscarmax_backward_rows)
_strength_kernel = Kernel(oscarmax_strength_rows)


def oscarmax(scores: Tensor, strength: float | Tensor) -> tuple[Tensor, Tensor]:
    """Probabilities and first ranks of every row; a tensor `strength` has one float64 per row."""
    out, first = torch.empty_like(scores), torch.empty_like(scores, dtype=torch.int32)
    workspace = _workspace(scores.shape[1], scores.element_size())
    launch(_forward_kernel, scores, strength, workspace, scores, out, first)
    return out, first


def oscarmax_backward(grad: Tensor, p: Tensor, first: Tensor) -> Tensor:
    """The gradient in the scores, given that in the probabilities p. Zero off the support."""
    out = torch.empty_like(p)
    workspace = oscarmax_backward_workspace(p.shape[1], p.element_size())
    launch(_backward_kernel, p, 0.0, workspace, grad, p, out, first)
    return out


def oscarmax_backward_strength(grad: Tensor, p: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients in the scores, and in the strength of every row (float64)."""
    by_strength = torch.zeros(p.shape[0], dtype=torch.float64)
    workspace = oscarmax_backward_workspace(p.shape[1], p.element_size())
    launch(_strength_kernel, p, 0.0, workspace, grad, p, by_strength, first)
    return oscarmax_backward(grad, p, first), by_strength
