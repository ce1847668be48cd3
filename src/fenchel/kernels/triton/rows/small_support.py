"""entmax of rows that fit on chip, for alpha that leave little support: those well above 3/2.

A row is solved on the LISTED largest scores of each thread (`thread_lists`). They are a subset, so the
edge of the support found there is a lower bound; if in no thread all of them lie above it, they hold the
whole support, and every other score has probability zero. Otherwise the whole tile is solved.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false
import triton
import triton.language as tl

from fenchel.kernels.triton.arithmetic.entries import FARTHEST, general_entry
from fenchel.kernels.triton.arithmetic.two_floats import two_sum
from fenchel.kernels.triton.launch.alpha import STEEP
from fenchel.kernels.triton.launch.kernel import kernel
from fenchel.kernels.triton.rows.thread_lists import (
    columns_of_threads,
    largest_of_threads,
    look_up,
    row_over_tile,
)
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
        found = look_up(x, listed, p, R, V) + row_over_tile(peak - peak, R)  # NaN if there is one
        wide_row = row_over_tile(row, R)
        column = columns_of_threads(J, R, K, V)
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
    wide_row = row_over_tile(row, R)
    column = columns_of_threads(J, R, K, V)
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
    row = tile_rows(tl.program_id(0), R)
    e = row_epsilon(eps, alpha, alpha_steps, row, count, middle, inner, LEVELS, KIND, R)
    solve_listed(scores, out, mask, row, e, count, columns, middle, inner,
                 steps, out_steps, mask_steps, LEVELS, KIND, EVEN, J, R, K, V)  # fmt: skip
