"""budget of rows on chip, and of long rows by their groups, in float32.

The maxima of a tile over its slabs, or those of the groups of a long row, are solved first: they are some
of the scores, so their threshold is not above that of all, and for a small k it is near. Groups that do
not reach it hold zeros. Where k is not below the number of groups, nothing is left out.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
import triton
import triton.language as tl

from fenchel.kernels.triton.launch.addressing import row_offset
from fenchel.kernels.triton.launch.alpha import SPARSEMAX
from fenchel.kernels.triton.launch.kernel import kernel
from fenchel.kernels.triton.launch.parameters import row_parameter
from fenchel.kernels.triton.rows.groups import (
    list_groups,
    listed_shape,
    listed_tile,
    listed_zeros,
    support_begins,
)
from fenchel.kernels.triton.thresholds.budget_search import (
    guess,
    moments,
    over_row,
    shares,
    solve_budget,
    visit_tile,
)
from fenchel.kernels.triton.thresholds.rows import load_maxima, store_state, threshold_entry
from fenchel.kernels.triton.tiles.across_threads import row_max, row_triples
from fenchel.kernels.triton.tiles.axes import SLAB_AXIS
from fenchel.kernels.triton.tiles.memory import finite_peak, load_rows, tile_rows, write_rows
from fenchel.kernels.triton.tiles.within_threads import slab_max, slab_sum

SPARE: tl.constexpr = tl.constexpr(8.0)  # so many maxima as k units make a good start


@triton.jit
def _tile_moments(x, peak):
    there, z, squares = moments(x, peak)
    return row_triples(slab_sum(there), slab_sum(z), slab_sum(squares))


@triton.jit
def _with_ends(edge, low, available, peak, k):
    """The threshold also of rows with no more than k scores, all taken, and of k = 0."""
    takes_all = available.to(tl.float64) <= k
    edge = tl.where(takes_all, float("-inf"), tl.where(k > 0.0, edge, peak))
    return edge, tl.where(takes_all | (k <= 0.0), 0.0, low)


@triton.jit
def _not_a_number(peak, k):
    """0, or NaN in a row that holds one, or +inf."""
    return (peak - peak) + (k - k).to(tl.float32)


@triton.jit
def _begin(x, slab, peak, k, R: tl.constexpr):
    """(how many scores there are or, if that is enough, maxima; where to begin; a number below)."""
    first = x if R > 1 else slab  # a visit to the maxima of short rows would cost as much
    available, total, squares = _tile_moments(first, peak)
    edge, floor = guess(available, total, squares, peak, k)
    if R == 1:
        if available.to(tl.float64) < SPARE * k:
            available, total, squares = _tile_moments(x, peak)
            edge, floor = guess(available, total, squares, peak, k)
        else:
            active = (k > 0.0) & (available > 0.0) & (peak == peak)
            edge, _ = solve_budget(visit_tile, (slab,), k, edge, floor, peak, active, 1)
            floor = edge - 1.0
    return available, edge, floor


@kernel
def budget_tile(
    scores, out, mask, ks, high, low, count, columns, middle, inner,
    steps, out_steps, mask_steps, k_steps,
    LEVELS: tl.constexpr, EVEN: tl.constexpr, J: tl.constexpr, R: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    row = tile_rows(tl.program_id(0), R)
    k = row_parameter(high, low, ks, row, row < count, middle, inner, k_steps, LEVELS)
    x = load_rows(scores, mask, row, count, columns, middle, inner, steps, mask_steps,
                  LEVELS, EVEN, J, R, K)  # fmt: skip
    slab = slab_max(x)
    peak = finite_peak(row_max(slab))
    available, edge, floor = _begin(x, slab, peak, k, R)
    active = (k > 0.0) & (available.to(tl.float64) > k) & (peak == peak)
    edge, rest = solve_budget(visit_tile, (x,), k, edge, floor, peak, active, R)
    edge, rest = _with_ends(edge, rest, available, peak, k)
    p = tl.where(x > float("-inf"), threshold_entry(x, 0.0, edge, rest), 0.0)
    p += _not_a_number(peak, k)
    write_rows(out, p, row, count, columns, middle, inner, out_steps, LEVELS, EVEN, J, R, K)


@triton.jit
def _visit_listed(data, edge, low):
    """`visit_tile` over the listed groups. What comes next is loaded ahead."""
    BLOCK: tl.constexpr = data[8].shape[SLAB_AXIS]
    inside = listed_zeros(data).to(tl.float64)
    positive = listed_zeros(data)
    ones = listed_zeros(data)
    x = listed_tile(data, 0)[0]
    for start in range(BLOCK, data[3] + BLOCK, BLOCK):
        ahead = listed_tile(data, start)[0]
        p, lives, is_one = shares(x, edge, low)
        inside += p.to(tl.float64)
        positive += lives
        ones += is_one
        x = ahead
    return over_row(inside, positive, ones)


@triton.jit
def _listed_moments(data):
    number = listed_zeros(data)
    total = listed_zeros(data)
    squares = listed_zeros(data)
    for start in range(0, data[3], data[8].shape[SLAB_AXIS]):
        there, z, square = moments(listed_tile(data, start)[0], data[7])
        number += there
        total += z
        squares += square
    return row_triples(slab_sum(number), slab_sum(total), slab_sum(squares))


@kernel
def solve_budget_groups(
    scores, mask, ks, maxima, listed, state, high, low, columns, groups, middle, inner,
    steps, mask_steps, k_steps,
    LEVELS: tl.constexpr, GROUP: tl.constexpr, BLOCK: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    row = tile_rows(tl.program_id(0), 1)
    k = row_parameter(high, low, ks, row, row >= 0, middle, inner, k_steps, LEVELS)
    scores += row_offset(row, middle, inner, steps, LEVELS)
    if mask is not None:
        mask += row_offset(row, middle, inner, mask_steps, LEVELS)
    held = load_maxima(maxima, row, groups, WIDTH)
    peak = finite_peak(row_max(held))
    available, total, squares = _tile_moments(held, peak)
    enough = (k > 0.0) & (available.to(tl.float64) > k) & (peak == peak)
    edge, floor = guess(available, total, squares, peak, k)
    edge, rest = solve_budget(visit_tile, (held,), k, edge, floor, peak, enough, 1)
    begin = support_begins(0.0, tl.where(enough, edge, float("-inf")), 1.0, SPARSEMAX)
    listed += row * groups
    found = list_groups(held, listed, begin, WIDTH)
    places, within = listed_shape(GROUP, BLOCK)
    data = (scores, mask, listed, found, columns, steps[3], mask_steps[3], peak, places, within)
    if enough:
        floor = begin
    else:
        available, total, squares = _listed_moments(data)
        edge, floor = guess(available, total, squares, peak, k)
    active = (k > 0.0) & (available.to(tl.float64) > k) & (peak == peak)
    edge, rest = solve_budget(_visit_listed, data, k, edge, floor, peak, active, 1)
    edge, rest = _with_ends(edge, rest, available, peak, k)
    store_state(state, row, _not_a_number(peak, k), edge, rest, 1.0)
