"""entmax of batches of short rows for alpha > 2 (see `shared/batch`), in float64.

The edge of sparsemax of the scores e x is a lower bound of the edge, (N.18), and few scores are above it.
They are listed for all rows together: score number j of row i has index j BATCH + i, and -inf stands for
none. The lists are visited in vectors across the rows.

The unknowns are b and u of (N.16). A score is in the support if F < 1 when its own probability is zero;
the smallest such score b is found by bisection. dF/du >= 1 there, so u <= 1 - F, and from there
Newton's method decreases to the root. Rows that need more digits than u^e has are left to another
kernel.
"""

from __future__ import annotations

import math

from fenchel.kernels.cpu.arithmetic.float64 import exp64, log64
from fenchel.kernels.cpu.launch.compilation import inlined, outlined
from fenchel.kernels.cpu.launch.memory import advance, as_indices, load, maximum, minimum, store
from fenchel.kernels.cpu.shared.batch import (
    ACTIVE,
    BATCH,
    CURVATURE,
    HIGH,
    LARGEST,
    LOW,
    MASS,
    NEAREST,
    OFFSET,
    PREVIOUS,
    REST,
    ROW_PARAMETER,
    SHORT_COLUMNS,
    SLOPE,
    UNSOLVED,
    iterate,
    scores_as_float64,
    solve_batches,
)
from fenchel.kernels.cpu.shared.columns import fill, list_above
from fenchel.kernels.cpu.solver.alpha_above_2 import LOGARITHMS_BELOW, SUM_ROUNDING

MAX_VISITS = 20  # visits of the lists for b, and for u
SMALLEST_LOG_POWER = math.log(LOGARITHMS_BELOW)  # log u^e below which u^e has too few digits
# Per row: the length of its list, 1/e, the score to test, the largest score known to be outside the
# support, the smallest known to be inside, u, and u^e
COUNT, INVERSE, TRIED, BELOW, BOTTOM, U, POWER = (
    NEAREST,
    REST,
    OFFSET,
    LOW,
    HIGH,
    CURVATURE,
    PREVIOUS,
)
LARGEST_ALPHA = 1000.0
LOWER_BOUND_TOLERANCE = 1e-2  # |F - 1| at which the search for the lower bound ends
BOUND_MARGIN = 1e-12  # rounding error of the lower bound
SCORE_COPIES = 3  # memory: the scores, the lists, and the columns of the listed scores


@outlined
def _choose_scores(listed, longest, state):
    """Choose the score next to the middle of the bracket, below it if there is one, else above.

    Returns the number of rows with such a score.
    """
    fill(advance(state, TRIED), BATCH, -math.inf)
    fill(advance(state, SLOPE), BATCH, math.inf)
    for j in range(longest):
        for i in range(BATCH):
            x, below, bottom = (
                load(listed, j * BATCH + i), load(state, BELOW + i), load(state, BOTTOM + i),
            )  # fmt: skip
            low = x <= 0.5 * below + 0.5 * bottom
            under = x if low & (x > below) & (x < bottom) else -math.inf
            over = x if (not low) & (x < bottom) else math.inf
            store(state, TRIED + i, maximum(load(state, TRIED + i), under))
            store(state, SLOPE + i, minimum(load(state, SLOPE + i), over))
    active = 0.0
    for i in range(BATCH):
        under, over = load(state, TRIED + i), load(state, SLOPE + i)
        tried = under if under > -math.inf else over
        is_active = load(state, ACTIVE + i) > 0.0 and tried < math.inf
        store(state, TRIED + i, tried if is_active else load(state, BOTTOM + i))
        store(state, ACTIVE + i, 1.0 if is_active else 0.0)
        active += 1.0 if is_active else 0.0
    return active


@inlined
def _entry(x, bottom, power, e, inverse):
    """(p, t)"""
    t = e * (x - bottom) + power
    return exp64(log64(t) * inverse), t


@outlined
def _test_scores(listed, longest, state):
    """Test whether the chosen scores are in the support, and shrink the brackets."""
    fill(advance(state, MASS), BATCH, 0.0)
    fill(advance(state, SLOPE), BATCH, 1.0)
    for j in range(longest):
        for i in range(BATCH):
            e, inverse = load(state, ROW_PARAMETER + i) - 1.0, load(state, INVERSE + i)
            p, t = _entry(load(listed, j * BATCH + i), load(state, TRIED + i), 0.0, e, inverse)
            store(state, MASS + i, load(state, MASS + i) + (p if t > 0.0 else 0.0))
            store(state, SLOPE + i, minimum(load(state, SLOPE + i), t if t > 0.0 else 1.0))
    for i in range(BATCH):
        mass, tried = load(state, MASS + i), load(state, TRIED + i)
        here, inside = load(state, ACTIVE + i) > 0.0, mass < 1.0
        unsolved = here and load(state, SLOPE + i) < LOGARITHMS_BELOW
        store(state, BOTTOM + i, tried if here and inside else load(state, BOTTOM + i))
        store(state, BELOW + i, tried if here and not inside else load(state, BELOW + i))
        store(state, U + i, 1.0 - mass if here and inside else load(state, U + i))
        store(state, UNSOLVED + i, 1.0 if unsolved else load(state, UNSOLVED + i))


@outlined
def _set_powers(state):
    """Set u^e, or zero where it would have too few digits."""
    for i in range(BATCH):
        log_power = (load(state, ROW_PARAMETER + i) - 1.0) * log64(load(state, U + i))
        store(state, POWER + i, exp64(log_power) if log_power > SMALLEST_LOG_POWER else 0.0)


@outlined
def _sum_probabilities(listed, longest, state):
    """F and u dF/du."""
    fill(advance(state, MASS), BATCH, 0.0)
    fill(advance(state, SLOPE), BATCH, 0.0)
    for j in range(longest):
        for i in range(BATCH):
            x, bottom, power = (
                load(listed, j * BATCH + i), load(state, BOTTOM + i), load(state, POWER + i),
            )  # fmt: skip
            p, t = _entry(
                x, bottom, power, load(state, ROW_PARAMETER + i) - 1.0, load(state, INVERSE + i)
            )
            share = p * (power / t)
            store(state, MASS + i, load(state, MASS + i) + (p if x >= bottom else 0.0))
            store(state, SLOPE + i, load(state, SLOPE + i) + (share if x >= bottom else 0.0))


@outlined
def _take_u_steps(state):
    """Newton's step of u (see `solver/alpha_above_2`); returns the number of rows still active."""
    active = 0.0
    for i in range(BATCH):
        u, slope = load(state, U + i), load(state, SLOPE + i)
        excess, here = load(state, MASS + i) - 1.0, load(state, ACTIVE + i) > 0.0
        curved = 0.5 * (load(state, ROW_PARAMETER + i) - 2.0) * excess * excess
        following = u - u * excess / slope
        following = following if following < 1.0 else 1.0
        unsolved = here and not (load(state, POWER + i) > 0.0 and following > 0.0)
        near = abs(excess) <= SUM_ROUNDING or curved <= SUM_ROUNDING * slope
        is_active = here and not (unsolved or near)
        store(state, U + i, following if here and not unsolved else u)
        store(state, UNSOLVED + i, 1.0 if unsolved else load(state, UNSOLVED + i))
        store(state, ACTIVE + i, 1.0 if is_active else 0.0)
        active += 1.0 if is_active else 0.0
    return active


@outlined
def _mark_unsolved(state):
    """Mark the rows that are still active or have no u^e as unsolved; activate the others."""
    for i in range(BATCH):
        unsolved, power = load(state, UNSOLVED + i), load(state, POWER + i)
        unknown = (load(state, ACTIVE + i) > 0.0) | (power == 0.0)
        unsolved = 1.0 if (unsolved == 0.0) & unknown else unsolved
        store(state, UNSOLVED + i, unsolved)
        store(state, ACTIVE + i, 1.0 if unsolved == 0.0 else 0.0)


@outlined
def _find_probabilities(listed, longest, state):
    """Replace the listed scores by their probabilities."""
    for i in range(BATCH):
        store(state, BOTTOM + i, load(state, LARGEST + i))
        store(state, U + i, 1.0)
        store(state, POWER + i, 1.0)
        store(state, ACTIVE + i, 1.0 if load(state, UNSOLVED + i) == 0.0 else 0.0)
    visits = 0
    while _choose_scores(listed, longest, state) > 0.0 and visits < MAX_VISITS:
        _test_scores(listed, longest, state)
        visits += 1
    _mark_unsolved(state)
    visits, active = 0, 1.0
    while active > 0.0 and visits < MAX_VISITS:
        _set_powers(state)
        _sum_probabilities(listed, longest, state)
        active, visits = _take_u_steps(state), visits + 1
    _set_powers(state)
    _mark_unsolved(state)
    for j in range(longest):
        for i in range(BATCH):
            x, bottom, power = (
                load(listed, j * BATCH + i), load(state, BOTTOM + i), load(state, POWER + i),
            )  # fmt: skip
            p, _ = _entry(
                x, bottom, power, load(state, ROW_PARAMETER + i) - 1.0, load(state, INVERSE + i)
            )
            store(listed, j * BATCH + i, p if x >= bottom else 0.0)


def is_batched_above_2(columns: int, alpha: float) -> bool:
    """Whether such a row is solved in a batch."""
    return columns <= SHORT_COLUMNS and 2.0 < alpha <= LARGEST_ALPHA


_is_batched = inlined(is_batched_above_2)


@inlined
def _distance_to_edge(x, largest, edge):
    return (x - largest) - edge


@outlined
def _visit(data, size, place, state):
    """The sum of the distances of the scores above the edge, and their number."""
    largest, edge = load(state, LARGEST + place), load(state, OFFSET + place)
    mass, count = 0.0, 0.0
    for i in range(size):
        t = maximum(_distance_to_edge(load(data, i), largest, edge), 0.0)
        mass += t
        count += 1.0 if t > 0.0 else 0.0
    store(state, MASS + place, mass)
    store(state, SLOPE + place, count)


@outlined
def _take_steps(state):
    """Newton's step for every active row; returns the number of rows still active."""
    active = 0.0
    for i in range(BATCH):
        edge, excess = load(state, OFFSET + i), load(state, MASS + i) - load(state, INVERSE + i)
        moves = load(state, ACTIVE + i) > 0.0 and excess > LOWER_BOUND_TOLERANCE
        store(state, OFFSET + i, edge + excess / load(state, SLOPE + i) if moves else edge)
        store(state, ACTIVE + i, 1.0 if moves else 0.0)
        active += 1.0 if moves else 0.0
    return active


@outlined
def _list_candidates(data, size, rows, state, listed, places):
    """List the scores above the edges, and their columns; returns the length of the longest list."""
    spare, longest = as_indices(advance(data, BATCH * size)), 0
    fill(advance(state, COUNT), BATCH, 0.0)
    for i in range(rows):
        if load(state, UNSOLVED + i) == 0.0:
            row = advance(data, i * size)
            bound = load(state, LARGEST + i) + (load(state, OFFSET + i) - BOUND_MARGIN)
            bound -= BOUND_MARGIN * abs(bound)
            count = list_above(row, size, bound, spare)
            for j in range(count):
                store(listed, j * BATCH + i, load(row, load(spare, j)))
                store(places, j * BATCH + i, load(spare, j))
            store(state, COUNT + i, count)
            store(state, BELOW + i, bound)
            longest = max(longest, count)
    for i in range(BATCH):
        for j in range(int(load(state, COUNT + i)), longest):
            store(listed, j * BATCH + i, -math.inf)
    return longest


@outlined
def _begin(data, size, rows, state):
    for i in range(BATCH):
        inverse = 1.0 / (load(state, ROW_PARAMETER + i) - 1.0)
        store(state, INVERSE + i, inverse)
        store(state, OFFSET + i, -inverse)
    iterate(_visit, _take_steps, data, size, rows, state)


@outlined
def _search(data, size, columns, rows, state):
    listed = advance(data, (BATCH + 1) * size)
    places = advance(listed, BATCH * size)
    _find_probabilities(listed, _list_candidates(data, size, rows, state, listed, places), state)


@outlined
def _write(data, out, columns, size, spare, place, state):
    listed = advance(spare, size + place)
    places = advance(listed, BATCH * size)
    fill(out, columns, 0.0)
    for j in range(int(load(state, COUNT + place))):
        store(out, int(load(places, j * BATCH)), load(listed, j * BATCH))


def solve_batches_above_2(arguments):
    """Kernel of the batches. The scores are not centred, because their differences must be exact."""
    solve_batches(arguments, scores_as_float64, False, _is_batched, _begin, _search, _write)
