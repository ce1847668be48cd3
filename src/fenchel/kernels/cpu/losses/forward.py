"""The Fenchel-Young loss of entmax, and the normaliser of every row.

L(x; q) = Omega(q) + Omega*(x) - <q, x>, zero exactly when p = entmax(x) = q, with gradient p - q.
Nothing of the size of the scores is kept: the gradient is made again from the normaliser A.
"""

from __future__ import annotations

import math

from numba import float64

from fenchel.kernels.cpu.arithmetic.entries import coefficients
from fenchel.kernels.cpu.columns.whole_vectors import LANES, copy, load_tail
from fenchel.kernels.cpu.launch.compilation import scalar, sequential
from fenchel.kernels.cpu.launch.memory import TENSORS, advance, floats_at, load, rows_at, store
from fenchel.kernels.cpu.launch.sharing import for_each_row, matrix_row
from fenchel.kernels.cpu.losses.targets import (
    class_of,
    is_ignored,
    is_soft,
    smoothing_of,
)
from fenchel.kernels.cpu.losses.terms import smoothing_term, sum_powers, sum_soft_terms, target_term
from fenchel.kernels.cpu.search.normalizer import (
    BLOCK,
    SHORT,
    edge_of,
    maxima_of,
    normalizer_of,
    solve,
    workspace_end,
    workspace_size,
)

SOFT_RUN = 16  # multiples of LANES summed in the row's own precision


@scalar
def _others(scores, columns, label, largest, offset, rest, alpha, workspace, spare):
    """(sum of p, sum of p^alpha) over all columns but `label`; `spare` holds one block."""
    mass, power = 0.0, 0.0
    groups = columns // LANES
    maxima = maxima_of(workspace)
    edge = edge_of(offset, rest, alpha)
    for start in range(0, groups, BLOCK):
        if columns > SHORT and not float64(load(maxima, start // BLOCK)) - largest >= edge:
            continue
        size, place = min(BLOCK, groups - start), start * LANES
        block = advance(scores, place)
        if place <= label < place + size * LANES:
            copy(block, spare, size * LANES)
            store(spare, label - place, -math.inf)
            block = spare
        p, powers = sum_powers(block, size, largest, offset, rest, alpha)
        mass += p
        power += powers
    has_tail = load_tail(scores, columns, spare, -math.inf)
    if label >= groups * LANES:
        store(spare, label - groups * LANES, -math.inf)
    p, powers = sum_powers(spare, has_tail, largest, offset, rest, alpha)
    return mass + p, power + powers


@scalar
def _soft_loss(scores, target, columns, largest, offset, rest, alpha, spare):
    coefficient = coefficients(largest, normalizer_of(offset, rest, alpha), 0.0, alpha)
    total = 0.0
    groups = columns // LANES
    for start in range(0, groups, SOFT_RUN):
        x, q = advance(scores, start * LANES), advance(target, start * LANES)
        total += sum_soft_terms(x, q, min(SOFT_RUN, groups - start), coefficient)
    tail_q = advance(spare, LANES)
    load_tail(target, columns, tail_q, 0.0)
    has_tail = load_tail(scores, columns, spare, -math.inf)
    total += sum_soft_terms(spare, tail_q, has_tail, coefficient)
    return total / alpha


@scalar
def _class_loss(arguments, row, scores, columns, largest, offset, rest, alpha, workspace, spare):
    label = class_of(arguments, row)
    delta, power = _others(scores, columns, label, largest, offset, rest, alpha, workspace, spare)
    u = (load(scores, label) - float64(largest)) - normalizer_of(offset, rest, alpha)
    loss = power / alpha + target_term(u, delta, alpha)
    smoothing = smoothing_of(arguments)
    if smoothing > 0.0 and loss < math.inf:
        loss += smoothing_term(scores, columns, label, alpha, smoothing)
        loss = 0.0 if loss < 0.0 else loss
    return loss


@sequential
def _loss_row(arguments, row, alpha, columns, workspace):
    scores = matrix_row(arguments, 0, row, columns)
    losses, normalizers = rows_at(arguments, TENSORS + 5), floats_at(arguments, TENSORS + 6)
    if is_ignored(arguments, row):
        store(losses, row, 0.0)
        store(normalizers, row, -math.inf)
        return
    largest, offset, rest = solve(scores, columns, alpha, workspace)
    spare = advance(workspace, workspace_end(columns))
    loss = math.inf if largest < 0.0 else math.nan
    if math.isfinite(largest):
        if is_soft(arguments):
            target = matrix_row(arguments, 1, row, columns)
            loss = _soft_loss(scores, target, columns, largest, offset, rest, alpha, spare)
        else:
            loss = _class_loss(
                arguments, row, scores, columns, largest, offset, rest, alpha, workspace, spare
            )
    store(losses, row, loss)
    store(normalizers, row, largest + normalizer_of(offset, rest, alpha))


def loss_rows(arguments):
    """The loss of every row and its normaliser A, -inf for a row that is ignored."""
    for_each_row(arguments, _loss_row)


def loss_workspace(columns: int) -> int:
    """Numbers of scratch memory a thread needs: those of the search, and one block."""
    return workspace_size(columns) + BLOCK * LANES
