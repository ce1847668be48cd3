"""The Fenchel-Young loss of entmax, and the normalizer A of every row.

L(x; q) = Omega(q) + Omega*(x) - <q, x> is zero exactly when p = entmax(x) = q. It is added up from terms
that are not negative: see `terms`.
"""

from __future__ import annotations

import math

from numba import float64

from fenchel.kernels.cpu.entmax_loss.terms import (
    class_of,
    is_ignored,
    is_soft,
    smoothing_of,
    smoothing_term,
    sum_powers,
    sum_soft_terms,
    target_term,
)
from fenchel.kernels.cpu.launch.compilation import inlined
from fenchel.kernels.cpu.launch.memory import TENSORS, advance, floats_at, load, rows_at, store
from fenchel.kernels.cpu.launch.threads import for_each_row, matrix_row
from fenchel.kernels.cpu.shared.columns import VECTOR, copy, load_tail
from fenchel.kernels.cpu.solver.entries import coefficients
from fenchel.kernels.cpu.solver.normalizer import (
    BLOCK_VECTORS,
    WHOLE_ROW_COLUMNS,
    block_maxima_in,
    edge_of,
    find_normalizer,
    normalizer_of,
    normalizer_workspace,
    normalizer_workspace_end,
)

SOFT_SUM_VECTORS = 16  # vectors summed in the precision of the row, before a float64 total


@inlined
def _others(scores, columns, label, largest, offset, rest, alpha, workspace, spare):
    """(sum of p, sum of p^alpha) over all columns except `label`; `spare` is memory for one block."""
    mass, power = 0.0, 0.0
    vectors = columns // VECTOR
    maxima = block_maxima_in(workspace)
    edge = edge_of(offset, rest, alpha)
    for start in range(0, vectors, BLOCK_VECTORS):
        if (
            columns > WHOLE_ROW_COLUMNS
            and not float64(load(maxima, start // BLOCK_VECTORS)) - largest >= edge
        ):
            continue
        size, place = min(BLOCK_VECTORS, vectors - start), start * VECTOR
        block = advance(scores, place)
        if place <= label < place + size * VECTOR:
            copy(block, spare, size * VECTOR)
            store(spare, label - place, -math.inf)
            block = spare
        p, powers = sum_powers(block, size, largest, offset, rest, alpha)
        mass += p
        power += powers
    has_tail = load_tail(scores, columns, spare, -math.inf)
    if label >= vectors * VECTOR:
        store(spare, label - vectors * VECTOR, -math.inf)
    p, powers = sum_powers(spare, has_tail, largest, offset, rest, alpha)
    return mass + p, power + powers


@inlined
def _soft_loss(scores, target, columns, largest, offset, rest, alpha, spare):
    coefficient = coefficients(largest, normalizer_of(offset, rest, alpha), 0.0, alpha)
    total = 0.0
    vectors = columns // VECTOR
    for start in range(0, vectors, SOFT_SUM_VECTORS):
        x, q = advance(scores, start * VECTOR), advance(target, start * VECTOR)
        total += sum_soft_terms(x, q, min(SOFT_SUM_VECTORS, vectors - start), coefficient)
    tail_q = advance(spare, VECTOR)
    load_tail(target, columns, tail_q, 0.0)
    has_tail = load_tail(scores, columns, spare, -math.inf)
    total += sum_soft_terms(spare, tail_q, has_tail, coefficient)
    return total / alpha


@inlined
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


@inlined
def _loss_row(arguments, row, alpha, columns, workspace):
    scores = matrix_row(arguments, 0, row, columns)
    losses, normalizers = rows_at(arguments, TENSORS + 5), floats_at(arguments, TENSORS + 6)
    if is_ignored(arguments, row):
        store(losses, row, 0.0)
        store(normalizers, row, -math.inf)
        return
    largest, offset, rest = find_normalizer(scores, columns, alpha, workspace)
    spare = advance(workspace, normalizer_workspace_end(columns))
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
    """The loss of every row and its normalizer A, -inf for an ignored row."""
    for_each_row(arguments, _loss_row)


def loss_workspace(columns: int) -> int:
    """Scratch memory of a thread, in numbers: that of the search, and one block."""
    return normalizer_workspace(columns) + BLOCK_VECTORS * VECTOR
