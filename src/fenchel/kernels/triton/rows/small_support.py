"""entmax of rows that fit on chip, for alpha that leave little support: those well above 3/2.

A row is solved on the LISTED largest scores of each thread. They are a subset, so the edge of the
support found there is a lower bound; if in no thread all of them lie above it, they hold the whole
support, and every other score has probability zero. Otherwise the whole tile is solved.

A thread holds V neighbouring columns of each of J slabs.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
# pyright: reportGeneralTypeIssues=false
# ruff: noqa: RET505 (what is known when a kernel is compiled needs if and else)
import triton
import triton.language as tl

from fenchel.kernels.triton.arithmetic.entries import FARTHEST, general_entry
from fenchel.kernels.triton.arithmetic.two_floats import two_sum
from fenchel.kernels.triton.launch.alpha import STEEP
from fenchel.kernels.triton.launch.kernel import kernel
from fenchel.kernels.triton.launch.tile_shapes import LISTED
from fenchel.kernels.triton.search.climbing import climb
from fenchel.kernels.triton.search.edge_guess import guess_edge
from fenchel.kernels.triton.search.normalizer import (
    FINE,
    approach,
    settle,
    shifted_entry,
    tile_visit,
)
from fenchel.kernels.triton.search.steep import (
    find_support,
    steep_tile_visit,
    support_entries,
    support_entry,
)
from fenchel.kernels.triton.tiles.across_threads import any_entry, row_max
from fenchel.kernels.triton.tiles.axes import ROW_AXIS, SLAB_AXIS
from fenchel.kernels.triton.tiles.combining import larger, smaller
from fenchel.kernels.triton.tiles.memory import (
    finite_peak,
    load_tile,
    row_epsilon,
    store_tile,
    tile_columns,
    tile_inside,
    tile_places,
    tile_rows,
)

# A tile of several rows has the axes (threads, R, J, V) or (J, R, threads, V): whichever of them makes
# Triton spread the threads of a warp over a row first, then over rows (see `reductions`).
THREADS_FIRST: tl.constexpr = tl.constexpr(ROW_AXIS.value == 0)
SLABS_OF_THREADS: tl.constexpr = tl.constexpr(2 if ROW_AXIS.value == 0 else 0)


@triton.jit
def _merge(a1, a2, a3, a4, b1, b2, b3, b4):
    """The four largest of two falling sequences of four, as a falling sequence; NaN wins."""
    c1, c2, c3, c4 = larger(a1, b4), larger(a2, b3), larger(a3, b2), larger(a4, b1)
    d1, d2, d3, d4 = larger(c1, c3), larger(c2, c4), smaller(c1, c3), smaller(c2, c4)
    return larger(d1, d2), smaller(d1, d2), larger(d3, d4), smaller(d3, d4)


@triton.jit
def _sorted_fours(tile, V: tl.constexpr):
    """Fours of neighbours as four tiles, falling; NaN wins."""
    shape: tl.constexpr = tile.shape
    left, right = tl.split(tl.reshape(tile, [shape[0], shape[1], shape[2], V // 4, 2, 2]))
    a, b = tl.split(larger(left, right))
    c, d = tl.split(smaller(left, right))
    middle, other = smaller(a, b), larger(c, d)
    return larger(a, b), larger(middle, other), smaller(middle, other), smaller(c, d)


@triton.jit
def largest_of_threads(x, R: tl.constexpr, V: tl.constexpr):
    """Four slabs, falling: the largest scores of every thread."""
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
    """One number a thread and row as a tile with J = 1."""
    if THREADS_FIRST:
        return tl.trans(listed)[:, None, :]
    else:
        return listed[None, :, :]


@triton.jit
def _over_columns(slab, R: tl.constexpr):
    """A slab with one number a thread, to be broadcast over J and V."""
    if R == 1:
        return slab[:, :, :, None]
    elif THREADS_FIRST:
        threads: tl.constexpr = slab.shape[2]
        return tl.trans(tl.reshape(slab, [R, threads]))[:, :, None, None]
    else:
        return slab[:, :, :, None]


@triton.jit
def _row_over_tile(value, R: tl.constexpr):
    """A row value, to be broadcast over a tile."""
    if R == 1:
        return value
    else:
        return tl.reshape(value, [R])[None, :, None, None]


@triton.jit
def _listed_power(listed, peak, e, columns, R: tl.constexpr, KIND: tl.constexpr):
    """(p of the listed scores, the edge of the support)."""
    z = (
        tl.maximum(listed[0] - peak, FARTHEST),
        tl.maximum(listed[1] - peak, FARTHEST),
        tl.maximum(listed[2] - peak, FARTHEST),
        tl.maximum(listed[3] - peak, FARTHEST),
    )
    point = guess_edge(z, e * 0.0, e, R, KIND) + 1.0 / e
    point, low = climb(tile_visit, z, point, e, columns, FINE, 0.0, R, KIND)
    edge = peak + (point + low - 1.0 / e)
    point, low = two_sum(point, low)
    first, _, _ = general_entry(z[0], point, low, e, KIND)
    second, _, _ = general_entry(z[1], point, low, e, KIND)
    third, _, _ = general_entry(z[2], point, low, e, KIND)
    fourth, _, _ = general_entry(z[3], point, low, e, KIND)
    return (first, second, third, fourth), edge


@triton.jit
def _listed_steep(listed, peak, e, columns, R: tl.constexpr):
    """(p of the listed scores, the smallest of them in the support)."""
    guess = guess_edge(listed, peak, e, R, STEEP)
    bottom, least = find_support(steep_tile_visit, listed, guess, peak, e, R)
    return support_entries(listed, bottom, least, e), bottom


@triton.jit
def _solve_whole(
    scores, out, mask, row, peak, e, count, columns, middle, inner,
    steps, out_steps, mask_steps,
    LEVELS: tl.constexpr, KIND: tl.constexpr, EVEN: tl.constexpr,
    J: tl.constexpr, R: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """Read, solve and write the whole tile, which is seldom needed."""
    column = tile_columns(J, K)
    inside = tile_inside(row, column, count, columns, R)
    places = tile_places(row, column, middle, inner, steps, LEVELS)
    mask_places = tile_places(row, column, middle, inner, mask_steps, LEVELS)
    x = load_tile(scores, mask, places, mask_places, inside, EVEN)
    if KIND == STEEP:
        guess = guess_edge((x,), peak, e, R, STEEP)
        bottom, least = find_support(steep_tile_visit, (x,), guess, peak, e, R, False)
        p = support_entry(x, bottom, least, e)
    else:
        z = tl.maximum(x - peak, FARTHEST)
        first, second, step = settle(z, approach(z, z, e, columns, R, KIND), e, columns, R)
        p = shifted_entry(first, second, step)
    out_places = tile_places(row, column, middle, inner, out_steps, LEVELS)
    store_tile(out, out_places, p + (peak - peak), inside, EVEN)


@triton.jit
def _columns_of_threads(J: tl.constexpr, R: tl.constexpr, K: tl.constexpr, V: tl.constexpr):
    """The columns of a tile; with several rows the threads of a row have an axis of their own."""
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
    """A tile of one row with an axis for the columns that a thread holds."""
    if R == 1:
        shape: tl.constexpr = tile.shape
        return tl.reshape(tile, [shape[0], shape[1], shape[2] // V, V])
    else:
        return tile


@triton.jit
def by_threads(tile, J: tl.constexpr, R: tl.constexpr, K: tl.constexpr, V: tl.constexpr):
    """A tile as `_columns_of_threads` orders it."""
    if R == 1:
        return tile
    elif THREADS_FIRST:
        return tl.permute(tl.reshape(tile, [R, J, K // V, V]), (2, 0, 1, 3))
    else:
        return tl.reshape(tile, [J, R, K // V, V])


@triton.jit
def _look_up(x, listed, p, R: tl.constexpr, V: tl.constexpr):
    """p of every score that is listed, 0 for the others."""
    threads = _by_thread(x, R, V)
    found = tl.zeros(threads.shape, tl.float32)
    for i in tl.static_range(LISTED):
        found = tl.where(threads == _over_columns(listed[i], R), _over_columns(p[i], R), found)
    return tl.reshape(found, x.shape)


@triton.jit
def write_listed(
    x, listed, scores, out, mask, row, e, count, columns, middle, inner,
    steps, out_steps, mask_steps,
    LEVELS: tl.constexpr, KIND: tl.constexpr, EVEN: tl.constexpr,
    J: tl.constexpr, R: tl.constexpr, K: tl.constexpr, V: tl.constexpr,
):  # fmt: skip
    """Solve a tile on the scores listed, or as a whole if they are too few, and write it."""
    peak = finite_peak(row_max(listed[0]))
    if KIND == STEEP:
        p, edge = _listed_steep(listed, peak, e, columns, R)
        overflows = any_entry(listed[3] >= edge)
    else:
        p, edge = _listed_power(listed, peak, e, columns, R, KIND)
        overflows = any_entry(listed[3] > edge)
    if overflows:
        _solve_whole(scores, out, mask, row, peak, e, count, columns, middle, inner,
                     steps, out_steps, mask_steps, LEVELS, KIND, EVEN, J, R, K)  # fmt: skip
    else:
        found = _look_up(x, listed, p, R, V) + _row_over_tile(peak - peak, R)  # NaN if there is one
        wide_row = _row_over_tile(row, R)
        column = _columns_of_threads(J, R, K, V)
        out_places = tile_places(wide_row, column, middle, inner, out_steps, LEVELS)
        store_tile(out, out_places, found, tile_inside(wide_row, column, count, columns, R), EVEN)


@triton.jit
def solve_listed(
    scores, out, mask, row, e, count, columns, middle, inner,
    steps, out_steps, mask_steps,
    LEVELS: tl.constexpr, KIND: tl.constexpr, EVEN: tl.constexpr,
    J: tl.constexpr, R: tl.constexpr, K: tl.constexpr, V: tl.constexpr,
):  # fmt: skip
    """Read, solve and write a tile, all of it on the scores listed if they are enough."""
    wide_row = _row_over_tile(row, R)
    column = _columns_of_threads(J, R, K, V)
    inside = tile_inside(wide_row, column, count, columns, R)
    places = tile_places(wide_row, column, middle, inner, steps, LEVELS)
    mask_places = tile_places(wide_row, column, middle, inner, mask_steps, LEVELS)
    x = load_tile(scores, mask, places, mask_places, inside, EVEN)
    listed = largest_of_threads(x, R, V)
    write_listed(x, listed, scores, out, mask, row, e, count, columns, middle, inner,
                 steps, out_steps, mask_steps, LEVELS, KIND, EVEN, J, R, K, V)  # fmt: skip


@kernel
def entmax_listed(
    scores, out, mask, alpha, eps, count, columns, middle, inner,
    steps, out_steps, mask_steps, alpha_steps,
    LEVELS: tl.constexpr, KIND: tl.constexpr, EVEN: tl.constexpr,
    J: tl.constexpr, R: tl.constexpr, K: tl.constexpr, V: tl.constexpr,
):  # fmt: skip
    row = tile_rows(tl.program_id(0) * R, R)
    e = row_epsilon(eps, alpha, alpha_steps, row, count, middle, inner, LEVELS, KIND, R)
    solve_listed(scores, out, mask, row, e, count, columns, middle, inner,
                 steps, out_steps, mask_steps, LEVELS, KIND, EVEN, J, R, K, V)  # fmt: skip
