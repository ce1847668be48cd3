"""entmax of batches of short rows for 1 < alpha <= 2 (see `shared/batch`).

Polynomials (alpha = 3/2 and 2) take Newton's steps (N.5). Powers start from the guesses (N.13) and (N.15)
and take Halley's steps (N.7). What remains after such a step is estimated from the change of the
curvature, which holds while t stays away from the edge; each score that is too close to the edge may
add (EDGE_STEPS e |step|)^(1/e). Rows that have not converged after MAX_VISITS visits are left to
`find_normalizer`, which is slower but always converges.
"""

from __future__ import annotations

import math

from numba import float64

from fenchel.kernels.cpu.arithmetic.elementary import power
from fenchel.kernels.cpu.entmax.guesses import guess_offsets
from fenchel.kernels.cpu.entmax.narrow_rows import NARROW_COLUMNS, solve_narrow_rows
from fenchel.kernels.cpu.launch.compilation import inlined, outlined, reducing
from fenchel.kernels.cpu.launch.memory import advance, load, minimum, real, store
from fenchel.kernels.cpu.shared.batch import (
    ACTIVE,
    BATCH,
    CURVATURE,
    MASS,
    NEAREST,
    OFFSET,
    PREVIOUS,
    REST,
    ROW_PARAMETER,
    SHORT_COLUMNS,
    SLOPE,
    UNSOLVED,
    batch_workspace,
    scores_as_given,
    solve_batches,
)
from fenchel.kernels.cpu.shared.columns import VECTOR, copy
from fenchel.kernels.cpu.solver.entries import coefficients, entry_with_curvature, is_polynomial
from fenchel.kernels.cpu.solver.newton import (
    FIRST_ORDER_LIMIT,
    POWER_SUM_VECTORS,
    mass_and_slope,
    newton_step,
)
from fenchel.kernels.cpu.solver.normalizer import tolerance_of, write_probabilities

MAX_VISITS = 8  # of a row
ROUNDING_TOLERANCES = 4.0  # |F - 1| below 4 tolerances may rise because of rounding
SMALLEST_DISTANCE = 1e-30
EDGE_STEPS = 8.0  # a score within 8 steps of the edge counts as close
ESTIMATE_SAFETY = 8.0  # factor on the estimate of the remaining error
# For alpha <= DENSE_ALPHA most scores are in the support, and batches also have longer rows.
DENSE_ALPHA, DENSE_COLUMNS = 1.2, 1024
ONE_HOT_TOLERANCES = 1.5  # if A is within 1.5 tolerances of the largest score, its p is exactly 1


@inlined
def _halley(step, mass, slope, curvature, e, offset):
    """(Halley's step, h) of (N.7); h is half the relative change of the slope of G over Newton's step."""
    half = 0.5 * (1.0 - e) * step * (curvature / slope - slope / mass)
    half = half if half < 0.5 else 0.5
    half = half if half > -0.5 else -0.5
    longer = step / (1.0 - half)
    limit = 0.5 * (1.0 / e - offset)
    bounded = longer if longer < limit else limit
    bounded = bounded if bounded > -offset else -offset
    return bounded, (half if bounded == longer else 1.0)


@inlined
def _remaining_error(step, half, slope, nearest, e, columns, model):
    """An estimate of |F - 1| after the step: the curvature, its change, and scores close to the edge.

    The curvature is the variance of 1/t under p; its change is at most that times the largest 1/t.
    """
    step = abs(step)
    reach = EDGE_STEPS * e * step
    share = float64(power(real(model, reach + SMALLEST_DISTANCE), real(model, 1.0 / e)))
    at_edge = 0.0 if nearest > reach else columns * share
    nearest = (nearest if nearest > reach else reach) + SMALLEST_DISTANCE
    change = abs(1.0 - 2.0 * e) / 3.0 * step / nearest
    return at_edge + slope * step * abs(half) * (abs(half) + change)


@inlined
def _move_offset(state, i, step, moves):
    rest = load(state, REST + i) + (step if moves else 0.0)
    far = abs(rest) > FIRST_ORDER_LIMIT
    store(state, OFFSET + i, load(state, OFFSET + i) + (rest if far else 0.0))
    store(state, REST + i, 0.0 if far else rest)


@outlined
def _take_newton_steps(state, tolerance):
    """Newton's step for every active row with a polynomial; returns the number of rows still active."""
    active = 0.0
    for i in range(BATCH):
        alpha, previous = load(state, ROW_PARAMETER + i), load(state, PREVIOUS + i)
        mass, slope = load(state, MASS + i), load(state, SLOPE + i)
        excess = abs(mass - 1.0)
        here = load(state, ACTIVE + i) > 0.0 and is_polynomial(alpha)
        moves = here and excess > tolerance and excess < previous
        rise = mass - 1.0 if alpha == 2.0 else 2.0 * (mass - math.sqrt(mass))
        _move_offset(state, i, rise / slope, moves)
        is_active = 1.0 if moves else 0.0
        store(state, PREVIOUS + i, excess if here else previous)
        store(state, ACTIVE + i, is_active if here else load(state, ACTIVE + i))
        active += is_active
    return active


@outlined
def _take_halley_steps(state, columns, visits, model, tolerance):
    """Halley's step for every other active row; returns the number of rows still active."""
    active = 0.0
    for i in range(BATCH):
        alpha, previous = load(state, ROW_PARAMETER + i), load(state, PREVIOUS + i)
        offset = load(state, OFFSET + i) + load(state, REST + i)
        mass, slope, curvature = (
            load(state, MASS + i),
            load(state, SLOPE + i),
            load(state, CURVATURE + i),
        )
        excess = abs(mass - 1.0)
        newton = newton_step(mass, slope, alpha, model)
        e = alpha - 1.0
        step, half = _halley(newton, mass, slope, curvature, e, offset)
        remaining = _remaining_error(step, half, slope, load(state, NEAREST + i), e, columns, model)
        here = load(state, ACTIVE + i) > 0.0 and not is_polynomial(alpha)
        rises = excess >= previous and excess <= ROUNDING_TOLERANCES * tolerance
        ends = excess <= tolerance or rises or visits >= MAX_VISITS
        unsolved = here and visits >= MAX_VISITS and excess > ROUNDING_TOLERANCES * tolerance
        moves = here and not ends
        _move_offset(state, i, step, moves)
        store(state, PREVIOUS + i, excess if here else previous)
        store(state, UNSOLVED + i, 1.0 if unsolved else load(state, UNSOLVED + i))
        is_active = 1.0 if moves and ESTIMATE_SAFETY * remaining > tolerance else 0.0
        store(state, ACTIVE + i, is_active if here else load(state, ACTIVE + i))
        active += is_active
    return active


def is_batched(columns: int, alpha: float) -> bool:
    """Whether a row of this length is solved in a batch."""
    return 1.0 < alpha <= 2.0 and (
        columns <= SHORT_COLUMNS or (columns <= DENSE_COLUMNS and alpha <= DENSE_ALPHA)
    )


def entmax_workspace(columns: int, itemsize: int) -> int:
    """Scratch memory of a thread, in numbers: that of a batch, and once more for transposed scores."""
    return batch_workspace(columns, itemsize, 2 * itemsize)


_is_batched = inlined(is_batched)


@reducing
def _sum_with_curvature(data, vectors, row):
    mass, slope, curvature = real(data, 0.0), real(data, 0.0), real(data, 0.0)
    nearest = real(data, math.inf)
    for i in range(vectors * VECTOR):
        p, s, b, t = entry_with_curvature(load(data, i), row)
        mass += p
        slope += s
        curvature += b
        nearest = minimum(nearest, t)
    return mass, slope, curvature, nearest


@outlined
def _visit(data, vectors, place, state):
    """The sums of a row; for powers also that of p^(3 - 2 alpha), and the least distance to the edge."""
    offset, rest = load(state, OFFSET + place), load(state, REST + place)
    alpha, zero = load(state, ROW_PARAMETER + place), real(data, 0.0)
    mass, slope, curvature, nearest = 0.0, 0.0, 0.0, math.inf
    if is_polynomial(alpha):
        mass, slope = mass_and_slope(data, vectors, zero, offset, rest, alpha)
    else:
        row = coefficients(zero, offset, rest, alpha)
        for start in range(0, vectors, POWER_SUM_VECTORS):
            part = advance(data, start * VECTOR)
            p, s, b, t = _sum_with_curvature(part, min(POWER_SUM_VECTORS, vectors - start), row)
            mass += p
            slope += s
            curvature += b
            nearest = min(nearest, float64(t))
    store(state, MASS + place, mass)
    store(state, SLOPE + place, slope)
    store(state, CURVATURE + place, curvature)
    store(state, NEAREST + place, nearest)


@outlined
def find_normalizers(data, size, columns, rows, state):
    model = real(data, 0.0)
    tolerance = tolerance_of(model)
    if size <= NARROW_COLUMNS:
        solve_narrow_rows(data, size, state, advance(data, (BATCH + 1) * size), tolerance)
    active, visits, polynomial, powers = 0.0, 0, False, False
    for i in range(rows):
        active += load(state, ACTIVE + i)
        if is_polynomial(load(state, ROW_PARAMETER + i)):
            polynomial = True
        else:
            powers = True
    while active > 0.0:
        for i in range(rows):
            if load(state, ACTIVE + i) > 0.0:
                _visit(advance(data, i * size), size // VECTOR, i, state)
        active, visits = 0.0, visits + 1
        if polynomial:
            active += _take_newton_steps(state, tolerance)
        if powers:
            active += _take_halley_steps(state, float64(columns), visits, model, tolerance)


@outlined
def _write(data, out, columns, size, spare, place, state):
    offset, rest = load(state, OFFSET + place), load(state, REST + place)
    alpha, zero = load(state, ROW_PARAMETER + place), real(data, 0.0)
    if not is_polynomial(alpha) and abs(offset + rest) <= ONE_HOT_TOLERANCES * tolerance_of(zero):
        offset, rest = 0.0, 0.0
    if size == columns:
        write_probabilities(data, out, size // VECTOR, zero, offset, rest, alpha, 1.0)
    else:
        write_probabilities(data, spare, size // VECTOR, zero, offset, rest, alpha, 1.0)
        copy(spare, out, columns)


def solve_entmax_batches(arguments):
    """See `solve_batches`."""
    solve_batches(
        arguments, scores_as_given, True, _is_batched, guess_offsets, find_normalizers, _write
    )
