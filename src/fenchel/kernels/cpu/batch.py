"""Short rows, BATCH at a time: p of each for 1 < alpha <= 2.

A short row waits for every sum and division of its search. So every visit goes along all rows of a
batch before one vector of steps is made of their sums. Rows that another kernel must solve are left.
"""

from __future__ import annotations

import math

from numba import float64

from fenchel.kernels.cpu.batch_guess import guess_offsets
from fenchel.kernels.cpu.batch_step import (
    ALPHA,
    BATCH,
    BEND,
    CLIMBING,
    LOST,
    MASS,
    NEAR,
    OFFSET,
    PREVIOUS,
    REST,
    SLOPE,
    STATE,
    is_polynomial,
    take_polynomial_steps,
    take_steps,
)
from fenchel.kernels.cpu.columns import LANES, copy, fill, pad
from fenchel.kernels.cpu.compilation import outlined, reducing, scalar
from fenchel.kernels.cpu.entries import coefficients, curved_entry
from fenchel.kernels.cpu.memory import (
    TENSORS,
    advance,
    as_floats,
    floats_at,
    integer_at,
    load,
    minimum,
    real,
    store,
)
from fenchel.kernels.cpu.normalizer import POWER_RUN, sums
from fenchel.kernels.cpu.probabilities import write
from fenchel.kernels.cpu.row import largest_of, tolerance_of
from fenchel.kernels.cpu.sharing import alpha_of, matrix_row

SHORT = 256  # columns up to which rows are solved in batches,
LONGER = 1024  # and for alpha up to DENSE, where most columns are in the support
DENSE = 1.2
EMPTY = -1.0  # stands for a row whose p is written already
ALONE = 1.5  # tolerances; a score whose A is that near has everything, to the last bit


def padded(columns: int) -> int:
    """A multiple of LANES."""
    return (columns + LANES - 1) // LANES * LANES


row_size = scalar(padded)


def batch_workspace(columns: int) -> int:
    """Numbers of scratch memory for a batch: its state, its scores, and one row more."""
    return 2 * STATE + (BATCH + 1) * padded(columns) + 2


def is_batched(columns: int, alpha: float) -> bool:
    """Whether such a row is solved in a batch."""
    return 1.0 < alpha <= 2.0 and (columns <= SHORT or (columns <= LONGER and alpha <= DENSE))


_is_batched = scalar(is_batched)


@outlined
def _enter(scores, columns, alpha, data, size, place, state):
    """Copy x - largest, padded with -inf, and begin at the largest score."""
    if columns == size:
        largest = largest_of(scores, size // LANES)
    else:
        copy(scores, data, columns)
        pad(data, columns, -math.inf)
        largest = largest_of(data, size // LANES)
    solvable = math.isfinite(largest)
    if solvable:
        for i in range(columns):
            store(data, i, load(scores, i) - largest)
    store(state, ALPHA + place, alpha)
    store(state, OFFSET + place, 0.0)
    store(state, REST + place, 0.0)
    store(state, PREVIOUS + place, math.inf)
    store(state, CLIMBING + place, 1.0 if solvable else 0.0)
    store(state, LOST + place, 0.0 if solvable else 1.0)
    return largest


@reducing
def _curved_run(data, groups, row):
    mass, slope, bend = real(data, 0.0), real(data, 0.0), real(data, 0.0)
    near = real(data, math.inf)
    for i in range(groups * LANES):
        p, s, b, t = curved_entry(load(data, i), row)
        mass += p
        slope += s
        bend += b
        near = minimum(near, t)
    return mass, slope, bend, near


@outlined
def _visit(data, groups, place, state):
    """The sums of a row; powers need also that of p^(3 - 2 alpha), and what is nearest to the edge."""
    offset, rest = load(state, OFFSET + place), load(state, REST + place)
    alpha, zero = load(state, ALPHA + place), real(data, 0.0)
    mass, slope, bend, near = 0.0, 0.0, 0.0, math.inf
    if is_polynomial(alpha):
        mass, slope = sums(data, groups, zero, offset, rest, alpha)
    else:
        row = coefficients(zero, offset, rest, alpha)
        for start in range(0, groups, POWER_RUN):
            part = advance(data, start * LANES)
            p, s, b, t = _curved_run(part, min(POWER_RUN, groups - start), row)
            mass += p
            slope += s
            bend += b
            near = min(near, float64(t))
    store(state, MASS + place, mass)
    store(state, SLOPE + place, slope)
    store(state, BEND + place, bend)
    store(state, NEAR + place, near)


@outlined
def _climb(data, size, columns, rows, state, model, tolerance):
    climbing, visits, polynomial, powers = 1.0, 0, False, False
    for i in range(rows):
        if is_polynomial(load(state, ALPHA + i)):
            polynomial = True
        else:
            powers = True
    while climbing > 0.0:
        for i in range(rows):
            if load(state, CLIMBING + i) > 0.0:
                _visit(advance(data, i * size), size // LANES, i, state)
        climbing, visits = 0.0, visits + 1
        if polynomial:
            climbing += take_polynomial_steps(state, tolerance)
        if powers:
            climbing += take_steps(state, float64(columns), visits, model, tolerance)


@outlined
def _write(data, out, columns, size, spare, place, state):
    offset, rest = load(state, OFFSET + place), load(state, REST + place)
    alpha, zero = load(state, ALPHA + place), real(data, 0.0)
    if not is_polynomial(alpha) and abs(offset + rest) <= ALONE * tolerance_of(zero):
        offset, rest = 0.0, 0.0
    if size == columns:
        write(data, out, size // LANES, zero, offset, rest, alpha, 1.0)
    else:
        write(data, spare, size // LANES, zero, offset, rest, alpha, 1.0)
        copy(spare, out, columns)


@outlined
def solve_batch(arguments, first, rows, columns, workspace):
    """Write p of `rows` rows, and for each 1 to the third tensor, if there is one, where it is left to
    other methods, or 0."""
    state, data = as_floats(workspace), advance(workspace, 2 * STATE)
    lost = advance(state, LOST)
    for i in range(BATCH):
        store(lost, i, 1.0)
        store(state, CLIMBING + i, 0.0)
        store(state, ALPHA + i, 2.0)
    size, model, entered = row_size(columns), real(workspace, 0.0), 0
    for i in range(rows):
        alpha = alpha_of(arguments, first + i)
        if _is_batched(columns, alpha):
            scores = matrix_row(arguments, 0, first + i, columns)
            largest = _enter(scores, columns, alpha, advance(data, i * size), size, i, state)
            entered += 1
            if not math.isfinite(largest):
                nothing = 0.0 if largest < 0.0 else math.nan
                fill(matrix_row(arguments, 1, first + i, columns), columns, nothing)
                store(lost, i, EMPTY)
    if entered > 0:
        guess_offsets(data, size, rows, state, model)
        _climb(data, size, columns, rows, state, model, tolerance_of(model))
        for i in range(rows):
            if load(lost, i) == EMPTY:
                store(lost, i, 0.0)
            elif load(lost, i) == 0.0:
                out = matrix_row(arguments, 1, first + i, columns)
                spare = advance(data, BATCH * size)
                _write(advance(data, i * size), out, columns, size, spare, i, state)
    if integer_at(arguments, TENSORS + 2) != 0:
        copy(lost, advance(floats_at(arguments, TENSORS + 2), first), rows)
