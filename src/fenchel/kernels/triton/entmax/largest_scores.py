"""entmax of rows that fit on chip, for alpha with a small support: well above 3/2.

A row is solved on the LISTED largest scores of each thread, which has V neighbouring columns of each of J
slabs. They are a subset, so the edge of their support is a lower bound. If in no thread all of them are
above it, they contain the whole support, and every other score has probability zero. Otherwise the whole
tile is solved.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false
# pyright: reportGeneralTypeIssues=false
# ruff: noqa: RET505 (what is known when a kernel is compiled needs if and else)
import triton
import triton.language as tl

from fenchel.kernels.triton.arithmetic.elementary import (
    two_sum,
)
from fenchel.kernels.triton.arithmetic.entries import (
    FINITE_MINUS_INF,
    general_entry,
)
from fenchel.kernels.triton.launch.kernel import (
    kernel,
)
from fenchel.kernels.triton.launch.parameters import (
    ABOVE_2,
)
from fenchel.kernels.triton.launch.tile_shapes import (
    LISTED_PER_THREAD,
)
from fenchel.kernels.triton.solver.alpha_above_2 import (
    find_support,
    probabilities_above_2,
    probability_above_2,
    visit_tile_above_2,
)
from fenchel.kernels.triton.solver.guesses import (
    guess_edge,
)
from fenchel.kernels.triton.solver.newton import (
    find_root,
)
from fenchel.kernels.triton.solver.normalizer import (
    FINE_TOLERANCE,
    approach_root,
    find_root_above_1_45,
    probability_above_1_45,
    tile_visit,
)
from fenchel.kernels.triton.tiles.layout import (
    ROW_AXIS,
    SLAB_AXIS,
    finite_peak,
    load_tile,
    row_epsilon,
    store_tile,
    tile_columns,
    tile_inside,
    tile_places,
    tile_rows,
)
from fenchel.kernels.triton.tiles.reductions import (
    any_entry,
    nan_max,
    nan_min,
    row_max,
)

# A tile of several rows has the axes (threads, R, J, V) or (J, R, threads, V): whichever of them makes
# Triton spread the threads of a warp over a row first, then over rows (see `axes`).
THREADS_FIRST: tl.constexpr = tl.constexpr(ROW_AXIS.value == 0)
SLABS_OF_THREADS: tl.constexpr = tl.constexpr(2 if ROW_AXIS.value == 0 else 0)


@triton.jit
def _merge(a1, a2, a3, a4, b1, b2, b3, b4):
    """The four largest of two descending sequences of four, descending; NaN counts as largest."""
    c1, c2, c3, c4 = nan_max(a1, b4), nan_max(a2, b3), nan_max(a3, b2), nan_max(a4, b1)
    d1, d2, d3, d4 = nan_max(c1, c3), nan_max(c2, c4), nan_min(c1, c3), nan_min(c2, c4)
    return nan_max(d1, d2), nan_min(d1, d2), nan_max(d3, d4), nan_min(d3, d4)


@triton.jit
def _sorted_fours(tile, V: tl.constexpr):
    """Groups of four neighbours as four tiles, descending; NaN counts as largest."""
    shape: tl.constexpr = tile.shape
    left, right = tl.split(tl.reshape(tile, [shape[0], shape[1], shape[2], V // 4, 2, 2]))
    a, b = tl.split(nan_max(left, right))
    c, d = tl.split(nan_min(left, right))
    middle, other = nan_min(a, b), nan_max(c, d)
    return nan_max(a, b), nan_max(middle, other), nan_min(middle, other), nan_min(c, d)


@triton.jit
def largest_of_threads(x, R: tl.constexpr, V: tl.constexpr):
    """Four slabs, descending: the largest scores of every thread."""
    fours = _sorted_fours(_by_thread(x, R, V), V)
    if R == 1:
        listed = tl.reduce(fours, SLAB_AXIS, _merge, keep_dims=True)
        return tl.reduce(listed, 3, _merge)
    else:
        listed = tl.reduce(fours, SLABS_OF_THREADS, _merge)
        a, b, c, d = tl.reduce(listed, 2, _merge)
        return _as_slab(a), _as_slab(b), _as_slab(c), _as_slab(d)


@triton.jit
def _as_slab(listed):
    """One number per thread and row as a tile with J = 1."""
    if THREADS_FIRST:
        return tl.trans(listed)[:, None, :]
    else:
        return listed[None, :, :]


@triton.jit
def _over_columns(slab, R: tl.constexpr):
    """A slab with one number per thread, to be broadcast over J and V."""
    if R == 1:
        return slab[:, :, :, None]
    elif THREADS_FIRST:
        threads: tl.constexpr = slab.shape[2]
        return tl.trans(tl.reshape(slab, [R, threads]))[:, :, None, None]
    else:
        return slab[:, :, :, None]


@triton.jit
def broadcast_row_value(value, R: tl.constexpr):
    """A row value, to be broadcast over a tile."""
    if R == 1:
        return value
    else:
        return tl.reshape(value, [R])[None, :, None, None]


@triton.jit
def columns_of_threads(J: tl.constexpr, R: tl.constexpr, K: tl.constexpr, V: tl.constexpr):
    """The columns of a tile; with several rows the threads of a row have their own axis."""
    if R == 1:
        return tile_columns(J, K)
    else:
        slab = tl.arange(0, J) * K
        thread = tl.arange(0, K // V) * V
        neighbour = tl.arange(0, V)[None, None, None, :]
        if THREADS_FIRST:
            column = thread[:, None, None, None] + slab[None, None, :, None] + neighbour
        else:
            column = slab[:, None, None, None] + thread[None, None, :, None] + neighbour
        return column


@triton.jit
def _by_thread(tile, R: tl.constexpr, V: tl.constexpr):
    """A tile of one row with an axis for the columns of a thread."""
    if R == 1:
        shape: tl.constexpr = tile.shape
        return tl.reshape(tile, [shape[0], shape[1], shape[2] // V, V])
    else:
        return tile


@triton.jit
def split_by_thread(tile, J: tl.constexpr, R: tl.constexpr, K: tl.constexpr, V: tl.constexpr):
    """A tile as `columns_of_threads` orders it."""
    if R == 1:
        return tile
    elif THREADS_FIRST:
        return tl.permute(tl.reshape(tile, [R, J, K // V, V]), (2, 0, 1, 3))
    else:
        return tl.reshape(tile, [J, R, K // V, V])


@triton.jit
def look_up_listed(x, listed, p, R: tl.constexpr, V: tl.constexpr):
    """p of every score that is listed, 0 for the others."""
    threads = _by_thread(x, R, V)
    found = tl.zeros(threads.shape, tl.float32)
    for i in tl.static_range(LISTED_PER_THREAD):
        found = tl.where(threads == _over_columns(listed[i], R), _over_columns(p[i], R), found)
    return tl.reshape(found, x.shape)


@triton.jit
def _solve_listed_up_to_2(listed, peak, e, columns, R: tl.constexpr, KIND: tl.constexpr):
    """(p of the listed scores, the edge of the support)."""
    z = (
        tl.maximum(listed[0] - peak, FINITE_MINUS_INF),
        tl.maximum(listed[1] - peak, FINITE_MINUS_INF),
        tl.maximum(listed[2] - peak, FINITE_MINUS_INF),
        tl.maximum(listed[3] - peak, FINITE_MINUS_INF),
    )
    point = guess_edge(z, e * 0.0, e, R, KIND) + 1.0 / e
    point, low = find_root(tile_visit, z, point, e, columns, FINE_TOLERANCE, 0.0, R, KIND)
    edge = peak + (point + low - 1.0 / e)
    point, low = two_sum(point, low)
    first, _, _ = general_entry(z[0], point, low, e, KIND)
    second, _, _ = general_entry(z[1], point, low, e, KIND)
    third, _, _ = general_entry(z[2], point, low, e, KIND)
    fourth, _, _ = general_entry(z[3], point, low, e, KIND)
    return (first, second, third, fourth), edge


@triton.jit
def _solve_listed_above_2(listed, peak, e, columns, R: tl.constexpr):
    """(p of the listed scores, the smallest of them in the support)."""
    guess = guess_edge(listed, peak, e, R, ABOVE_2)
    bottom, least = find_support(visit_tile_above_2, listed, guess, peak, e, R)
    return probabilities_above_2(listed, bottom, least, e), bottom


@triton.jit
def _solve_whole(
    scores, out, mask, row, peak, e, count, columns, middle, inner,
    steps, out_steps, mask_steps,
    LEVELS: tl.constexpr, KIND: tl.constexpr, EVEN: tl.constexpr,
    J: tl.constexpr, R: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """Read, solve and write the whole tile, which is rarely needed."""
    column = tile_columns(J, K)
    inside = tile_inside(row, column, count, columns, R)
    places = tile_places(row, column, middle, inner, steps, LEVELS)
    mask_places = tile_places(row, column, middle, inner, mask_steps, LEVELS)
    x = load_tile(scores, mask, places, mask_places, inside, EVEN)
    if KIND == ABOVE_2:
        guess = guess_edge((x,), peak, e, R, ABOVE_2)
        bottom, least = find_support(visit_tile_above_2, (x,), guess, peak, e, R, False)
        p = probability_above_2(x, bottom, least, e)
    else:
        z = tl.maximum(x - peak, FINITE_MINUS_INF)
        first, second, step = find_root_above_1_45(
            z, approach_root(z, z, e, columns, R, KIND), e, columns, R
        )
        p = probability_above_1_45(first, second, step)
    out_places = tile_places(row, column, middle, inner, out_steps, LEVELS)
    store_tile(out, out_places, p + (peak - peak), inside, EVEN)


@triton.jit
def write_listed(
    x, listed, scores, out, mask, row, e, count, columns, middle, inner,
    steps, out_steps, mask_steps,
    LEVELS: tl.constexpr, KIND: tl.constexpr, EVEN: tl.constexpr,
    J: tl.constexpr, R: tl.constexpr, K: tl.constexpr, V: tl.constexpr,
):  # fmt: skip
    """Solve a tile on the listed scores, or as a whole if they are too few, and write it."""
    peak = finite_peak(row_max(listed[0]))
    if KIND == ABOVE_2:
        p, edge = _solve_listed_above_2(listed, peak, e, columns, R)
        overflows = any_entry(listed[3] >= edge)
    else:
        p, edge = _solve_listed_up_to_2(listed, peak, e, columns, R, KIND)
        overflows = any_entry(listed[3] > edge)
    if overflows:
        _solve_whole(
            scores, out, mask, row, peak, e, count, columns, middle, inner, steps, out_steps,
            mask_steps, LEVELS, KIND, EVEN, J, R, K,
        )  # fmt: skip
    else:
        found = look_up_listed(x, listed, p, R, V) + broadcast_row_value(
            peak - peak, R
        )  # NaN if there is one
        wide_row = broadcast_row_value(row, R)
        column = columns_of_threads(J, R, K, V)
        out_places = tile_places(wide_row, column, middle, inner, out_steps, LEVELS)
        store_tile(out, out_places, found, tile_inside(wide_row, column, count, columns, R), EVEN)


@triton.jit
def _solve_listed(
    scores, out, mask, row, e, count, columns, middle, inner,
    steps, out_steps, mask_steps,
    LEVELS: tl.constexpr, KIND: tl.constexpr, EVEN: tl.constexpr,
    J: tl.constexpr, R: tl.constexpr, K: tl.constexpr, V: tl.constexpr,
):  # fmt: skip
    """Read, solve and write a tile, using the listed scores if they are enough."""
    wide_row = broadcast_row_value(row, R)
    column = columns_of_threads(J, R, K, V)
    inside = tile_inside(wide_row, column, count, columns, R)
    places = tile_places(wide_row, column, middle, inner, steps, LEVELS)
    mask_places = tile_places(wide_row, column, middle, inner, mask_steps, LEVELS)
    x = load_tile(scores, mask, places, mask_places, inside, EVEN)
    listed = largest_of_threads(x, R, V)
    write_listed(
        x, listed, scores, out, mask, row, e, count, columns, middle, inner, steps, out_steps,
        mask_steps, LEVELS, KIND, EVEN, J, R, K, V,
    )  # fmt: skip


@kernel
def entmax_largest_scores(
    scores, out, mask, alpha, eps, count, columns, middle, inner,
    steps, out_steps, mask_steps, alpha_steps,
    LEVELS: tl.constexpr, KIND: tl.constexpr, EVEN: tl.constexpr,
    J: tl.constexpr, R: tl.constexpr, K: tl.constexpr, V: tl.constexpr,
):  # fmt: skip
    row = tile_rows(tl.program_id(0), R)
    e = row_epsilon(eps, alpha, alpha_steps, row, count, middle, inner, LEVELS, KIND, R)
    _solve_listed(
        scores, out, mask, row, e, count, columns, middle, inner, steps, out_steps, mask_steps,
        LEVELS, KIND, EVEN, J, R, K, V,
    )  # fmt: skip
