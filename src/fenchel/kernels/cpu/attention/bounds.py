"""A lower bound of the edges of a panel of queries at once, one query per lane of a vector.

No sum goes across a vector. The bound is that of sparsemax or 1.5-entmax of some scores, which is below
the edge of any smaller α (N.8); for α > 2 it is that of sparsemax of (α − 1) x (N.18). Newton's method
approaches the root from below, so every iterate is a lower bound.
"""

from __future__ import annotations

from fenchel.kernels.cpu.arithmetic.lanes import (
    BATCH,
    lanes_like,
    larger,
    load_lanes,
    square_root,
    store_lanes,
    where_above,
)
from fenchel.kernels.cpu.attention.problem import PANEL, alpha_at
from fenchel.kernels.cpu.attention.products import TILE_ROWS
from fenchel.kernels.cpu.launch.compilation import inlined, outlined
from fenchel.kernels.cpu.launch.memory import advance, store

STEPS = 5
LARGEST = 1e30  # queries with a larger score, or with none above -LARGEST, keep their bound
MARGIN = 2.0**-20  # of the bound, relative, for rounding


@inlined
def _sums(scores, rows, column, edge):
    """(Σ t, Σ t², count) with t = [x - edge]₊, of the rows of BATCH queries."""
    zero, one = lanes_like(edge, 0.0), lanes_like(edge, 1.0)
    total, squares, count = zero, zero, zero
    for r in range(rows):
        t = larger(load_lanes(scores, r * PANEL + column) - edge, zero)
        total = total + t
        squares = squares + t * t
        count = count + where_above(t, zero, one, zero)
    return total, squares, count


@inlined
def _largest(scores, rows, column):
    peak = load_lanes(scores, column)
    for r in range(1, rows):
        peak = larger(peak, load_lanes(scores, r * PANEL + column))
    return peak


@inlined
def store_maxima(tile, maxima):
    """The largest score of each query of a tile."""
    for column in range(0, PANEL, BATCH):
        store_lanes(maxima, column, _largest(tile, TILE_ROWS, column))


@inlined
def _entmax15_edge(scores, rows, column, peak):
    """The edge A - 2 of α = 3/2, where p = (x - edge)²/4."""
    zero, four = lanes_like(peak, 0.0), lanes_like(peak, 4.0)
    edge = peak - lanes_like(peak, 2.0)
    for _ in range(STEPS):
        total, squares, _ = _sums(scores, rows, column, edge)
        mass = squares / four
        step = four * (mass - square_root(mass)) / total
        edge = edge + where_above(step, zero, step, zero)
    return edge


@inlined
def _sparsemax_edge(scores, rows, column, peak, reach):
    """The edge where Σ [x - edge]₊ is `reach`."""
    zero = lanes_like(peak, 0.0)
    edge = peak - reach
    for _ in range(STEPS):
        total, _, count = _sums(scores, rows, column, edge)
        step = (total - reach) / count
        edge = edge + where_above(step, zero, step, zero)
    return edge


@outlined
def raise_bounds(arguments, head, first_query, queries, scores, rows, bounds, spare):
    """Raise the bounds of a panel by `rows` scores of every query.

    `spare` has room for two numbers per query.
    """
    shifts, reaches, is_gentle = spare, advance(spare, PANEL), True
    for i in range(PANEL):
        alpha = alpha_at(arguments, head, first_query + min(i, queries - 1))
        is_gentle = is_gentle and alpha <= 1.5
    for i in range(PANEL):
        alpha = alpha_at(arguments, head, first_query + min(i, queries - 1))
        width = 2.0 if is_gentle else 1.0
        store(shifts, i, width - 1.0 / (alpha - 1.0) if alpha <= 2.0 else 0.0)
        store(reaches, i, 1.0 if alpha <= 2.0 else 1.0 / (alpha - 1.0))
    for column in range(0, PANEL, BATCH):
        peak = _largest(scores, rows, column)
        reach, limit = load_lanes(reaches, column), lanes_like(peak, LARGEST)
        if is_gentle:
            edge = _entmax15_edge(scores, rows, column, peak)
        else:
            edge = _sparsemax_edge(scores, rows, column, peak, reach)
        edge = edge + load_lanes(shifts, column)
        zero = lanes_like(peak, 0.0)
        size = larger(edge, zero - edge) + lanes_like(peak, 1.0) + larger(reach, zero - reach)
        edge = edge - size * lanes_like(peak, 4 * MARGIN)
        old = load_lanes(bounds, column)
        raised = where_above(limit, peak, larger(old, edge), old)
        store_lanes(bounds, column, where_above(peak, zero - limit, raised, old))
