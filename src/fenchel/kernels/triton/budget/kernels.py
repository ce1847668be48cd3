"""budget of rows that fit on chip, and of long rows by their groups, in float32.

The maxima of a tile over its slabs, or of the groups of a long row, are solved first. They are a subset
of the scores, so their threshold is a lower bound, close to that of the row if k is small. Groups below
it have p = 0. If k is not less than the number of groups, no group is left out.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
import triton
import triton.language as tl

from fenchel.kernels.triton.budget.threshold import (
    entry_parts,
    find_budget_threshold,
    guess_threshold,
    moments,
    sum_entry_parts,
    visit_tile,
)
from fenchel.kernels.triton.launch.addressing import (
    row_offset,
)
from fenchel.kernels.triton.launch.kernel import (
    kernel,
)
from fenchel.kernels.triton.launch.parameters import (
    SPARSEMAX,
    row_parameter,
)
from fenchel.kernels.triton.shared.threshold_rows import (
    clipped_score,
    load_maxima,
    store_state,
)
from fenchel.kernels.triton.solver.groups import (
    list_groups,
    listed_indices,
    load_listed_groups,
    min_support_score,
    zeros_like_listed,
)
from fenchel.kernels.triton.tiles.layout import (
    SLAB_AXIS,
    finite_peak,
    load_rows,
    tile_rows,
    write_rows,
)
from fenchel.kernels.triton.tiles.reductions import (
    row_max,
    row_sums3,
    slab_max,
    slab_sum,
)

MIN_MAXIMA_PER_K: tl.constexpr = tl.constexpr(
    8.0
)  # least number of maxima per unit of k for a good start


@triton.jit
def _tile_moments(x, peak):
    there, z, squares = moments(x, peak)
    return row_sums3(slab_sum(there), slab_sum(z), slab_sum(squares))


@triton.jit
def _with_ends(edge, low, available, peak, k):
    """The threshold, also for rows with at most k scores, where all p are 1, and for k = 0."""
    takes_all = available.to(tl.float64) <= k
    edge = tl.where(takes_all, float("-inf"), tl.where(k > 0.0, edge, peak))
    return edge, tl.where(takes_all | (k <= 0.0), 0.0, low)


@triton.jit
def _nan_or_zero(peak, k):
    """0, or NaN in a row that has NaN or +inf."""
    return (peak - peak) + (k - k).to(tl.float32)


@triton.jit
def _first_guess(x, slab, peak, k, R: tl.constexpr):
    """(the number of scores or, if these suffice, of maxima; the first threshold; a lower bound)."""
    first = x if R > 1 else slab  # a visit to the maxima of short rows would cost as much
    available, total, squares = _tile_moments(first, peak)
    edge, floor = guess_threshold(available, total, squares, peak, k)
    if R == 1:
        if available.to(tl.float64) < MIN_MAXIMA_PER_K * k:
            available, total, squares = _tile_moments(x, peak)
            edge, floor = guess_threshold(available, total, squares, peak, k)
        else:
            active = (k > 0.0) & (available > 0.0) & (peak == peak)
            edge, _ = find_budget_threshold(visit_tile, (slab,), k, edge, floor, peak, active, 1)
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
    x = load_rows(
        scores, mask, row, count, columns, middle, inner, steps, mask_steps, LEVELS, EVEN, J, R, K,
    )  # fmt: skip
    slab = slab_max(x)
    peak = finite_peak(row_max(slab))
    available, edge, floor = _first_guess(x, slab, peak, k, R)
    active = (k > 0.0) & (available.to(tl.float64) > k) & (peak == peak)
    edge, rest = find_budget_threshold(visit_tile, (x,), k, edge, floor, peak, active, R)
    edge, rest = _with_ends(edge, rest, available, peak, k)
    p = tl.where(x > float("-inf"), clipped_score(x, 0.0, edge, rest), 0.0)
    p += _nan_or_zero(peak, k)
    write_rows(out, p, row, count, columns, middle, inner, out_steps, LEVELS, EVEN, J, R, K)


@triton.jit
def _visit_listed(data, edge, low):
    """`visit_tile` over the listed groups. The next groups are prefetched."""
    BLOCK: tl.constexpr = data[8].shape[SLAB_AXIS]
    inside = zeros_like_listed(data).to(tl.float64)
    positive = zeros_like_listed(data)
    ones = zeros_like_listed(data)
    x = load_listed_groups(data, 0)[0]
    for start in range(BLOCK, data[3] + BLOCK, BLOCK):
        ahead = load_listed_groups(data, start)[0]
        p, lives, is_one = entry_parts(x, edge, low)
        inside += p.to(tl.float64)
        positive += lives
        ones += is_one
        x = ahead
    return sum_entry_parts(inside, positive, ones)


@triton.jit
def _listed_moments(data):
    number = zeros_like_listed(data)
    total = zeros_like_listed(data)
    squares = zeros_like_listed(data)
    for start in range(0, data[3], data[8].shape[SLAB_AXIS]):
        there, z, square = moments(load_listed_groups(data, start)[0], data[7])
        number += there
        total += z
        squares += square
    return row_sums3(slab_sum(number), slab_sum(total), slab_sum(squares))


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
    edge, floor = guess_threshold(available, total, squares, peak, k)
    edge, rest = find_budget_threshold(visit_tile, (held,), k, edge, floor, peak, enough, 1)
    begin = min_support_score(0.0, tl.where(enough, edge, float("-inf")), 1.0, SPARSEMAX)
    listed += row * groups
    found = list_groups(held, listed, begin, WIDTH)
    places, within = listed_indices(GROUP, BLOCK)
    data = (scores, mask, listed, found, columns, steps[3], mask_steps[3], peak, places, within)
    if enough:
        floor = begin
    else:
        available, total, squares = _listed_moments(data)
        edge, floor = guess_threshold(available, total, squares, peak, k)
    active = (k > 0.0) & (available.to(tl.float64) > k) & (peak == peak)
    edge, rest = find_budget_threshold(_visit_listed, data, k, edge, floor, peak, active, 1)
    edge, rest = _with_ends(edge, rest, available, peak, k)
    store_state(state, row, _nan_or_zero(peak, k), edge, rest, 1.0)
