"""entmax of short rows, BATCH at a time (see `batch`), for 1 < alpha <= 2."""

from __future__ import annotations

import math

from numba import float64

from fenchel.kernels.cpu.arithmetic.entries import coefficients, curved_entry
from fenchel.kernels.cpu.batches.batch import (
    ALPHA,
    BEND,
    CLIMBING,
    MASS,
    NEAR,
    OFFSET,
    REST,
    SHORT,
    SLOPE,
    own_data,
    solve_batches,
)
from fenchel.kernels.cpu.batches.guesses import guess_offsets
from fenchel.kernels.cpu.batches.steps import is_polynomial, take_polynomial_steps, take_steps
from fenchel.kernels.cpu.columns.whole_vectors import LANES, copy
from fenchel.kernels.cpu.launch.compilation import outlined, reducing, scalar
from fenchel.kernels.cpu.launch.memory import advance, load, minimum, real, store
from fenchel.kernels.cpu.search.climbing import POWER_RUN, sums
from fenchel.kernels.cpu.search.normalizer import tolerance_of
from fenchel.kernels.cpu.search.probabilities import write

LONGER = 1024  # columns up to which, as well, for alpha up to DENSE: most are in the support
DENSE = 1.2
ALONE = 1.5  # tolerances; a score whose A is that near has everything, to the last bit


def is_batched(columns: int, alpha: float) -> bool:
    """Whether such a row is solved in a batch."""
    return 1.0 < alpha <= 2.0 and (columns <= SHORT or (columns <= LONGER and alpha <= DENSE))


_is_batched = scalar(is_batched)


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
def _climb(data, size, columns, rows, state):
    model = real(data, 0.0)
    tolerance = tolerance_of(model)
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


def solve_entmax_batches(arguments):
    """See `solve_batches`."""
    solve_batches(arguments, own_data, True, _is_batched, guess_offsets, _climb, _write)
