"""Short rows, BATCH at a time: what the maps that solve them so have in common.

A short row waits for every sum and division of its search. So every visit goes along all rows of a
batch before one vector of steps is made of their sums. Rows that another kernel must solve are left.
"""

from __future__ import annotations

import math

from fenchel.kernels.cpu.columns.largest import largest_of
from fenchel.kernels.cpu.columns.whole_vectors import LANES, copy, fill, pad
from fenchel.kernels.cpu.launch.compilation import outlined, scalar
from fenchel.kernels.cpu.launch.memory import (
    ROWS_CLAIMED,
    ROWS_LEFT,
    TENSORS,
    advance,
    as_floats,
    as_type_of,
    claim,
    floats_at,
    integer_at,
    load,
    real,
    store,
)
from fenchel.kernels.cpu.launch.sharing import alpha_of, matrix_row, work_of

BATCH = 16  # rows
SHORT = 256  # columns up to which rows are solved in batches
# The float64 numbers of every row, and where they begin
(ALPHA, LARGEST, OFFSET, REST, PREVIOUS, CLIMBING, LOST) = (BATCH * i for i in range(7))
(MASS, SLOPE, BEND, NEAR, LOW, HIGH, STATE) = (BATCH * i for i in range(7, 14))
EMPTY = -1.0  # stands for a row whose p is written already


def padded(columns: int) -> int:
    """A multiple of LANES."""
    return (columns + LANES - 1) // LANES * LANES


row_size = scalar(padded)


def batch_workspace(columns: int, itemsize: int, inside: int) -> int:
    """Numbers of scratch memory, of `itemsize` bytes each, for the state of a batch, its scores, and
    one row more, of `inside` bytes each."""
    return (8 * STATE + inside * (BATCH + 1) * padded(columns)) // itemsize


@outlined
def _enter(scores, columns, alpha, centred, data, size, place, state):
    """Copy x, or x - largest, padded with -inf, and begin at the largest score."""
    if columns == size:
        largest = real(data, largest_of(scores, size // LANES))
    else:
        copy(scores, data, columns)
        pad(data, columns, -math.inf)
        largest = largest_of(data, size // LANES)
    solvable = math.isfinite(largest)
    if solvable:
        pivot = largest if centred else real(data, 0.0)
        for i in range(columns):
            store(data, i, real(data, load(scores, i)) - pivot)
    store(state, ALPHA + place, alpha)
    store(state, LARGEST + place, largest)
    store(state, OFFSET + place, 0.0)
    store(state, REST + place, 0.0)
    store(state, PREVIOUS + place, math.inf)
    store(state, CLIMBING + place, 1.0 if solvable else 0.0)
    store(state, LOST + place, 0.0 if solvable else 1.0)
    return largest


@scalar
def wide_data(workspace):
    """The scores of a batch as float64."""
    return advance(as_floats(workspace), STATE)


@scalar
def own_data(workspace):
    """The scores of a batch in the type of their rows."""
    return as_type_of(workspace, wide_data(workspace))


@scalar
def climb(visit, take_steps, data, size, rows, state):
    """Visit and move the rows until none climbs."""
    climbing = 1.0
    while climbing > 0.0:
        for i in range(rows):
            if load(state, CLIMBING + i) > 0.0:
                visit(advance(data, i * size), size, i, state)
        climbing = take_steps(state)


@scalar
def _solve_batch(
    arguments, first, rows, columns, state, data, centred, takes, begin, search, write
):
    """Write p of `rows` rows, and for each 1 to the third tensor, if there is one, where it is left to
    other methods, or 0.
    """
    lost = advance(state, LOST)
    for i in range(BATCH):
        store(lost, i, 1.0)
        store(state, CLIMBING + i, 0.0)
        store(state, ALPHA + i, 2.0)
    size, entered = row_size(columns), 0
    for i in range(rows):
        alpha = alpha_of(arguments, first + i)
        if takes(columns, alpha):
            scores = matrix_row(arguments, 0, first + i, columns)
            largest = _enter(
                scores, columns, alpha, centred, advance(data, i * size), size, i, state
            )
            entered += 1
            if not math.isfinite(largest):
                nothing = 0.0 if largest < 0.0 else math.nan
                fill(matrix_row(arguments, 1, first + i, columns), columns, nothing)
                store(lost, i, EMPTY)
    if entered > 0:
        begin(data, size, rows, state)
        search(data, size, columns, rows, state)
    left = 0
    for i in range(rows):
        if load(lost, i) > 0.0:
            left += 1
        elif load(lost, i) == EMPTY:
            store(lost, i, 0.0)
        else:
            out = matrix_row(arguments, 1, first + i, columns)
            spare = advance(data, BATCH * size)
            write(advance(data, i * size), out, columns, size, spare, i, state)
    claim(arguments, ROWS_LEFT, left)
    if integer_at(arguments, TENSORS + 2) != 0:
        copy(lost, advance(floats_at(arguments, TENSORS + 2), first), rows)


@scalar
def solve_batches(arguments, data_of, centred, takes, begin, search, write):
    """Solve the rows that this thread claims, BATCH at a time.

    `takes(columns, alpha)` says which rows are solved here. What the others see, at `data_of` the
    workspace, are scores, less the largest if these are to be `centred`: `begin` and `search` find the
    thresholds of all rows, and `write` writes p of one.
    """
    rows, chunk, columns, workspace = work_of(arguments)
    state, data = as_floats(workspace), data_of(workspace)
    start = claim(arguments, ROWS_CLAIMED, chunk)
    while start < rows:
        end = min(start + chunk, rows)
        for first in range(start, end, BATCH):
            count = min(BATCH, end - first)
            _solve_batch(
                arguments, first, count, columns, state, data, centred, takes, begin, search, write
            )
        start = claim(arguments, ROWS_CLAIMED, chunk)
