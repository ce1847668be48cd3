"""From lists of candidates to supports: BATCH queries at a time.

The scores of the candidates are computed again, in float64 and relative to the largest one: p of sparse
maps is more sensitive to them than that of softmax. Long lists are solved once before, in the precision
of the row, so that this is done for little more than the support.
"""

from __future__ import annotations

import math

from numba import float64, int64

from fenchel.kernels.cpu.attention.batches import (
    add_row,
    begin_batch,
    is_solved,
    offset_of,
    solve_batch,
    write_solved_row,
)
from fenchel.kernels.cpu.attention.candidates import FAILED, MARGIN, keep_above, refresh
from fenchel.kernels.cpu.attention.problem import (
    BIAS,
    CAPACITY,
    DEPTH,
    K_HEADS,
    K_ROW,
    Q_HEADS,
    Q_ROW,
    K,
    Q,
    alpha_at,
    bias_at,
    head_rows,
    scale_of,
)
from fenchel.kernels.cpu.attention.thresholds import probabilities
from fenchel.kernels.cpu.launch.compilation import inlined, outlined, reducing
from fenchel.kernels.cpu.launch.memory import advance, integer_at, load, real, store
from fenchel.kernels.cpu.shared.batch import LARGEST, LOW, UNSOLVED
from fenchel.kernels.cpu.shared.columns import VECTOR, largest_of_vectors, pad

SURELY_FEW = 32  # candidates; longer lists are shortened before their scores are computed again


@inlined
def _list_of(arguments, lists, i):
    _, _, scores, places = lists
    start = i * integer_at(arguments, CAPACITY)
    return advance(scores, start), advance(places, start)


@inlined
def _longest(counts, queries):
    """The length of the longest list, in whole vectors; FAILED if one has failed."""
    longest = 0
    for i in range(queries):
        count = int64(load(counts, i))
        if count == FAILED:
            return FAILED
        longest = max(longest, count)
    return (longest + VECTOR - 1) // VECTOR * VECTOR


@outlined
def _shorten(arguments, head, query, queries, lists, size, data, state):
    """Drop the candidates below the edges of the lists as they are."""
    bounds, counts, _, _ = lists
    begin_batch(state)
    for i in range(queries):
        alpha, count = alpha_at(arguments, head, query + i), int64(load(counts, i))
        scores, _ = _list_of(arguments, lists, i)
        if count > 0:
            add_row(scores, count, alpha, 0.0, data, size, i, state)
    solve_batch(data, size, queries, state, True)
    for i in range(queries):
        alpha, count = alpha_at(arguments, head, query + i), int64(load(counts, i))
        scores, places = _list_of(arguments, lists, i)
        bound = load(bounds, i)
        if is_solved(state, i):
            reach = 1.0 / (alpha - 1.0)
            edge = load(state, LARGEST + i) + (offset_of(state, i) - reach)
            edge -= 4 * MARGIN * (reach + abs(edge) + abs(load(state, LARGEST + i)))
            bound = max(bound, real(bound, edge))
            count = keep_above(scores, places, count, bound)
        elif count > SURELY_FEW:
            bound, count = refresh(scores, places, count, alpha, bound)
        store(bounds, i, bound)
        store(counts, i, count)


@reducing
def exact_product(left, right, depth):
    """The inner product in float64."""
    total = 0.0
    for e in range(depth):
        total += float64(load(left, e)) * float64(load(right, e))
    return total


@outlined
def _refine(arguments, head, query, scores, places, count):
    """Compute the scores again, relative to the largest one; returns that, which may not be a number."""
    largest = largest_of_vectors(scores, pad(scores, count, -math.inf))
    pivot = float64(largest)
    k, k_row = head_rows(arguments, K, K_HEADS, head), integer_at(arguments, K_ROW)
    q = head_rows(arguments, Q, Q_HEADS, head)
    q = advance(q, query * integer_at(arguments, Q_ROW))
    depth, scale = integer_at(arguments, DEPTH), scale_of(arguments)
    for i in range(count):
        key = load(places, i)
        score = scale * exact_product(q, advance(k, key * k_row), depth)
        if integer_at(arguments, BIAS) != 0:
            score += bias_at(arguments, head, query, key)
        store(scores, i, score - pivot)
    return largest


@outlined
def _solve_alone(scores, count, alpha, bound, largest, p):
    """Write p of refined scores; false if they are not numbers."""
    slack = 4 * MARGIN * (abs(bound) + abs(largest) + 1.0)
    bound = real(bound, (float64(bound) - float64(largest)) - slack)
    groups = pad(scores, count, -math.inf)
    return math.isfinite(probabilities(scores, groups, count, alpha, bound, p))


@inlined
def _keep_support(scores, places, count, p):
    kept = 0
    for i in range(count):
        share, place = load(p, i), load(places, i)
        store(scores, kept, share)
        store(places, kept, place)
        kept += 1 if share > real(share, 0.0) else 0
    return kept


@outlined
def find_supports(arguments, head, query, queries, lists, p, data, state):
    """Find the supports of up to BATCH queries; their p take the place of the scores.

    `lists` has the bounds, counts, scores and keys of the first query; `p` is memory for as many numbers
    as a list has, `data` for those of a batch. Returns the sum of the counts, or FAILED: a list is too
    short, or a score is not a number.
    """
    bounds, counts, _, _ = lists
    pivots = advance(state, LOW)  # which the solver does not use
    size = _longest(counts, queries)
    is_long = size > SURELY_FEW
    if is_long:
        _shorten(arguments, head, query, queries, lists, size, data, state)
        size = _longest(counts, queries)
    else:
        begin_batch(state)
    if size <= 0:
        return size
    for i in range(queries):
        alpha, count = alpha_at(arguments, head, query + i), int64(load(counts, i))
        scores, places = _list_of(arguments, lists, i)
        if count > 0:
            largest = _refine(arguments, head, query + i, scores, places, count)
            if not math.isfinite(largest):
                return FAILED
            offset = max(offset_of(state, i), 0.0) if is_long and is_solved(state, i) else 0.0
            store(pivots, i, largest)
            store(state, UNSOLVED + i, 1.0)
            add_row(scores, count, alpha, offset, data, size, i, state)
    solve_batch(data, size, queries, state, not is_long)
    total = 0
    for i in range(queries):
        count = int64(load(counts, i))
        scores, places = _list_of(arguments, lists, i)
        if count > 0:
            if is_solved(state, i):
                write_solved_row(data, p, size, i, state)
            else:
                alpha, pivot = alpha_at(arguments, head, query + i), load(pivots, i)
                if not _solve_alone(scores, count, alpha, load(bounds, i), real(p, pivot), p):
                    return FAILED
            count = _keep_support(scores, places, count, p)
            store(counts, i, count)
            total += count
    return total
