"""Batches of short rows: what the maps that solve BATCH rows together have in common.

In the search of a single short row, every step waits for the sum and the division before it. Here, a
visit adds up all rows of a batch, and then one vector operation computes the steps of all rows. Rows that
the method does not solve are marked for another kernel.
"""

from __future__ import annotations

import math

from fenchel.kernels.cpu.arithmetic.lanes import BATCH
from fenchel.kernels.cpu.launch.compilation import inlined, outlined
from fenchel.kernels.cpu.launch.memory import (
    ROWS_CLAIMED,
    ROWS_UNSOLVED,
    TENSORS,
    advance,
    as_floats,
    as_pointer_like,
    claim,
    floats_at,
    integer_at,
    load,
    real,
    store,
)
from fenchel.kernels.cpu.launch.threads import matrix_row, parameter_of, work_of
from fenchel.kernels.cpu.shared.columns import VECTOR, copy, fill, largest_of_vectors, pad

SHORT_COLUMNS = 256  # longest rows that are solved in batches
# The state of a batch: for each quantity, one float64 per row. These are the offsets.
(ROW_PARAMETER, LARGEST, OFFSET, REST, PREVIOUS, ACTIVE, UNSOLVED) = (BATCH * i for i in range(7))
(MASS, SLOPE, CURVATURE, NEAREST, LOW, HIGH, STATE_SIZE) = (BATCH * i for i in range(7, 14))
WRITTEN = -1.0  # in UNSOLVED: p of this row has been written


def padded_columns(columns: int) -> int:
    """The columns of a row, rounded up to a multiple of VECTOR."""
    return (columns + VECTOR - 1) // VECTOR * VECTOR


padded_size = inlined(padded_columns)


def batch_workspace(columns: int, itemsize: int, inside: int) -> int:
    """Scratch memory in numbers of `itemsize` bytes: the state of a batch, its scores, and a spare row.

    Scores take `inside` bytes each.
    """
    return (8 * STATE_SIZE + inside * (BATCH + 1) * padded_columns(columns)) // itemsize


@outlined
def _load_row(scores, columns, parameter, centred, data, size, place, state):
    """Copy x, or x - max x if `centred`, padded with -inf, and initialize the state of the row."""
    if columns == size:
        largest = real(data, largest_of_vectors(scores, size // VECTOR))
    else:
        copy(scores, data, columns)
        pad(data, columns, -math.inf)
        largest = largest_of_vectors(data, size // VECTOR)
    solvable = math.isfinite(largest)
    if solvable:
        pivot = largest if centred else real(data, 0.0)
        for i in range(columns):
            store(data, i, real(data, load(scores, i)) - pivot)
    store(state, ROW_PARAMETER + place, parameter)
    store(state, LARGEST + place, largest)
    store(state, OFFSET + place, 0.0)
    store(state, REST + place, 0.0)
    store(state, PREVIOUS + place, math.inf)
    store(state, ACTIVE + place, 1.0 if solvable else 0.0)
    store(state, UNSOLVED + place, 0.0 if solvable else 1.0)
    return largest


@inlined
def scores_as_float64(workspace):
    """The scores of a batch, in float64."""
    return advance(as_floats(workspace), STATE_SIZE)


@inlined
def scores_as_given(workspace):
    """The scores of a batch, in the dtype of the rows."""
    return as_pointer_like(workspace, scores_as_float64(workspace))


@inlined
def iterate(visit, take_steps, data, size, rows, state):
    """Visit the active rows and take steps until none is active."""
    active = 1.0
    while active > 0.0:
        for i in range(rows):
            if load(state, ACTIVE + i) > 0.0:
                visit(advance(data, i * size), size, i, state)
        active = take_steps(state)


@inlined
def _solve_batch(
    arguments, first, rows, columns, state, data, centred, accepts, begin, search, write
):
    """Write p of `rows` rows; the third tensor, if there is one, becomes 1 for unsolved rows, else 0."""
    unsolved = advance(state, UNSOLVED)
    for i in range(BATCH):
        store(unsolved, i, 1.0)
        store(state, ACTIVE + i, 0.0)
        store(state, ROW_PARAMETER + i, 2.0)
    size, entered = padded_size(columns), 0
    for i in range(rows):
        parameter = parameter_of(arguments, first + i)
        if accepts(columns, parameter):
            scores = matrix_row(arguments, 0, first + i, columns)
            largest = _load_row(
                scores, columns, parameter, centred, advance(data, i * size), size, i, state
            )
            entered += 1
            if not math.isfinite(largest):
                nothing = 0.0 if largest < 0.0 else math.nan
                fill(matrix_row(arguments, 1, first + i, columns), columns, nothing)
                store(unsolved, i, WRITTEN)
    if entered > 0:
        begin(data, size, rows, state)
        search(data, size, columns, rows, state)
    unsolved_rows = 0
    for i in range(rows):
        if load(unsolved, i) > 0.0:
            unsolved_rows += 1
        elif load(unsolved, i) == WRITTEN:
            store(unsolved, i, 0.0)
        else:
            out = matrix_row(arguments, 1, first + i, columns)
            spare = advance(data, BATCH * size)
            write(advance(data, i * size), out, columns, size, spare, i, state)
    claim(arguments, ROWS_UNSOLVED, unsolved_rows)
    if integer_at(arguments, TENSORS + 2) != 0:
        copy(unsolved, advance(floats_at(arguments, TENSORS + 2), first), rows)


@inlined
def solve_batches(arguments, data_of, centred, accepts, begin, search, write):
    """Solve the rows that this thread claims, BATCH at a time.

    `accepts(columns, parameter)` tells which rows this method solves. The other functions see the scores
    at `data_of(workspace)`, minus their maximum if `centred`: `begin` and `search` find the thresholds of
    all rows, and `write` writes p of one row.
    """
    rows, chunk, columns, workspace = work_of(arguments)
    state, data = as_floats(workspace), data_of(workspace)
    start = claim(arguments, ROWS_CLAIMED, chunk)
    while start < rows:
        end = min(start + chunk, rows)
        for first in range(start, end, BATCH):
            count = min(BATCH, end - first)
            _solve_batch(
                arguments,
                first,
                count,
                columns,
                state,
                data,
                centred,
                accepts,
                begin,
                search,
                write,
            )
        start = claim(arguments, ROWS_CLAIMED, chunk)
