"""How the threads of a kernel share out its rows, and how a row finds its data."""

from __future__ import annotations

from fenchel.kernels.cpu.launch.compilation import scalar
from fenchel.kernels.cpu.launch.memory import (
    ALPHA,
    ALPHA_STRIDE,
    CHUNK,
    COLUMNS,
    ROWS,
    ROWS_CLAIMED,
    TENSORS,
    THREADS_STARTED,
    WORKSPACE,
    WORKSPACE_SIZE,
    advance,
    claim,
    floats_at,
    integer_at,
    load,
    rows_at,
)


@scalar
def own_workspace(arguments):
    """Scratch memory for this thread alone."""
    thread = claim(arguments, THREADS_STARTED, 1)
    scratch = thread * integer_at(arguments, WORKSPACE_SIZE)
    return advance(rows_at(arguments, WORKSPACE), scratch)


@scalar
def work_of(arguments):
    """(rows in all, rows claimed at once, columns, this thread's workspace)"""
    rows, chunk = integer_at(arguments, ROWS), integer_at(arguments, CHUNK)
    return rows, chunk, integer_at(arguments, COLUMNS), own_workspace(arguments)


@scalar
def for_each_row(arguments, do_row):
    """Call `do_row(arguments, row, alpha, columns, workspace)` for the rows this thread claims."""
    rows, chunk, columns, workspace = work_of(arguments)
    start = claim(arguments, ROWS_CLAIMED, chunk)
    while start < rows:
        for row in range(start, min(start + chunk, rows)):
            do_row(arguments, row, alpha_of(arguments, row), columns, workspace)
        start = claim(arguments, ROWS_CLAIMED, chunk)


@scalar
def alpha_of(arguments, row):
    """The alpha of a row."""
    return load(floats_at(arguments, ALPHA), row * integer_at(arguments, ALPHA_STRIDE))


@scalar
def is_left(arguments, row):
    """Whether another kernel has left the row to this one: the third tensor says so, if there is one."""
    listed = integer_at(arguments, TENSORS + 2) != 0
    return not listed or load(floats_at(arguments, TENSORS + 2), row) > 0.0


@scalar
def matrix_row(arguments, position, row, columns):
    """A pointer to a row of the matrix that is argument number `position` of the kernel."""
    return advance(rows_at(arguments, TENSORS + position), row * columns)


@scalar
def gradient_rows(arguments, row, columns):
    """A row of each of the first three matrices: the gradient that arrives, p, and what is written."""
    return (
        matrix_row(arguments, 0, row, columns),
        matrix_row(arguments, 1, row, columns),
        matrix_row(arguments, 2, row, columns),
    )
