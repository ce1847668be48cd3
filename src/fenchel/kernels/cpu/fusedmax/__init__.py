"""fusedmax and its derivatives on the CPU.

fusedmax                     the projection onto the simplex of the prox of total variation
fusedmax_backward            its Jacobian times a vector, from p and the jumps
fusedmax_backward_strength   the same, and the gradient in the strength

The map is the projection onto the simplex of the prox z of total variation, (N.37). |z - x| is at most
2 strength, so the threshold tau is at least that of sparsemax minus 2 strength, and an entry more than
4 strength below that is zero. The other entries form stretches of neighbours, each with a prox of its
own. The entries between them are lower: at every level that matters, ending a stretch there costs
`strength`, which is x - strength at the end of the stretch.
"""

from __future__ import annotations

import math

import torch
from numba import float64
from torch import Tensor

from fenchel.kernels.cpu.fusedmax.backward import fusedmax_backward_rows, fusedmax_strength_rows
from fenchel.kernels.cpu.fusedmax.total_variation import prox_total_variation, prox_workspace
from fenchel.kernels.cpu.launch.compilation import Kernel, inlined
from fenchel.kernels.cpu.launch.memory import (
    TENSORS,
    advance,
    as_bytes,
    as_floats,
    as_indices,
    bytes_at,
    load,
    real,
    store,
)
from fenchel.kernels.cpu.launch.threads import for_each_row, launch, matrix_row
from fenchel.kernels.cpu.shared.columns import BOUND_ROUNDING, fill, list_above
from fenchel.kernels.cpu.shared.simplex_threshold import simplex_threshold
from fenchel.kernels.cpu.solver.normalizer import edge_of, find_normalizer, normalizer_workspace

JOINED, WALL, BORDER = 0, 1, 2  # before an entry: its neighbour, zeros, or the end of the row


@inlined
def _next_present(row, start, stop):
    """The first column from `start` that is not -inf, or `stop`."""
    while start < stop and load(row, start) == real(row, -math.inf):
        start += 1
    return start


@inlined
def _classify_gaps(row, columns, places, count, before):
    """Fill `before` with what precedes every entry; returns what follows the last one."""
    previous = -1
    for i in range(count):
        place = load(places, i)
        kind = BORDER if i == 0 else JOINED
        if place > previous + 1 and _next_present(row, previous + 1, place) < place:
            kind = WALL
        store(before, i, kind)
        previous = place
    return WALL if _next_present(row, previous + 1, columns) < columns else BORDER


@inlined
def _solve_stretches(x, before, behind, count, strength, z, signs, workspace):
    """Fill z, and the sign of the jump before every entry that is joined to its neighbour."""
    first = 0
    while first < count:
        last = first + 1
        while last < count and load(before, last) == JOINED:
            last += 1
        if load(before, first) == WALL:
            store(x, first, load(x, first) - strength)
        if last < count or behind == WALL:
            store(x, last - 1, load(x, last - 1) - strength)
        if last - first == 1:
            store(z, first, load(x, first))
        else:
            stretch = advance(x, first), advance(z, first), advance(signs, first)
            prox_total_variation(
                stretch[0], last - first, strength, stretch[1], stretch[2], workspace
            )
        first = last


@inlined
def _mark_fall(row, jumps, place, columns):
    """Mark the jump after a stretch: the next present entry is lower, at zero."""
    after = _next_present(row, place + 1, columns)
    if after < columns:
        store(jumps, after, -1)


@inlined
def _write(row, columns, places, before, behind, count, z, signs, tau, out, jumps):
    fill(out, columns, 0.0)
    fill(jumps, columns, 0)
    above = False
    for i in range(count):
        place, kind, value = load(places, i), load(before, i), load(z, i) - tau
        if kind != JOINED and above:
            _mark_fall(row, jumps, load(places, i - 1), columns)
        if value > 0.0:
            store(out, place, value)
        if kind == JOINED and (above or value > 0.0):
            store(jumps, place, load(signs, i))
        elif kind == WALL and value > 0.0:
            store(jumps, place, 1)
        above = value > 0.0
    if above and behind == WALL:
        _mark_fall(row, jumps, load(places, count - 1), columns)


@inlined
def _forward_row(arguments, row, strength, columns, workspace):
    scores, out = matrix_row(arguments, 0, row, columns), matrix_row(arguments, 1, row, columns)
    jumps = advance(bytes_at(arguments, TENSORS + 2), row * columns)
    largest, offset, rest = find_normalizer(scores, columns, 2.0, workspace)
    if not math.isfinite(largest):
        fill(out, columns, 0.0 if largest < 0.0 else math.nan)
        fill(jumps, columns, 0)
        return
    floor = largest + (edge_of(offset, rest, 2.0) - 4.0 * strength)
    places = as_indices(workspace)
    count = list_above(scores, columns, floor - BOUND_ROUNDING * (1.0 + abs(floor)), places)
    before = as_bytes(advance(places, columns))
    signs = advance(before, columns)
    x = advance(as_floats(workspace), (3 * columns + 3) // 4)
    z = advance(x, count)
    for i in range(count):
        store(x, i, float64(load(scores, load(places, i))) - largest)
    behind = _classify_gaps(scores, columns, places, count, before)
    _solve_stretches(x, before, behind, count, strength, z, signs, advance(z, count))
    tau = simplex_threshold(z, count)
    _write(scores, columns, places, before, behind, count, z, signs, tau, out, jumps)


def _forward_rows(arguments):
    """Probabilities and jumps of every row."""
    for_each_row(arguments, _forward_row)


def _workspace(columns: int, itemsize: int) -> int:
    """Scratch memory of a thread, in numbers of `itemsize` bytes."""
    floats = (3 * columns + 3) // 4 + 2 * columns + prox_workspace(columns)
    return max(floats * (8 // itemsize), normalizer_workspace(columns))


_forward_kernel, _backward_kernel = Kernel(_forward_rows), Kernel(fusedmax_backward_rows)
_strength_kernel = Kernel(fusedmax_strength_rows)


def fusedmax(scores: Tensor, strength: float | Tensor) -> tuple[Tensor, Tensor]:
    """Probabilities and jumps of every row; a tensor `strength` has one float64 per row."""
    out, jumps = torch.empty_like(scores), torch.empty_like(scores, dtype=torch.int8)
    workspace = _workspace(scores.shape[1], scores.element_size())
    launch(_forward_kernel, scores, strength, workspace, scores, out, jumps)
    return out, jumps


def fusedmax_backward(grad: Tensor, p: Tensor, jumps: Tensor) -> Tensor:
    """The gradient in the scores, given that in the probabilities p. Zero off the support."""
    out = torch.empty_like(p)
    launch(_backward_kernel, p, 0.0, p.shape[1], grad, p, out, jumps)
    return out


def fusedmax_backward_strength(grad: Tensor, p: Tensor, jumps: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients in the scores, and in the strength of every row (float64)."""
    by_strength = torch.zeros(p.shape[0], dtype=torch.float64)
    launch(_strength_kernel, p, 0.0, p.shape[1], grad, p, by_strength, jumps)
    return fusedmax_backward(grad, p, jumps), by_strength
