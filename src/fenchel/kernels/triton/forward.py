"""entmax of rows that fit on chip: each is read once and written once.

p = [1 + e (x - A)]_+^(1/e) with A such that the row sums to one. A program holds R rows in registers,
as a tile of shape (J, R, K); `normalizer` finds A for alpha <= 2 and `steep` for alpha > 2.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
# ruff: noqa: SIM102, SIM109 (what is known when a kernel is compiled needs if and else)
import triton
import triton.language as tl

from fenchel.kernels.triton.entries import (
    EACH_ROW,
    GENERAL,
    STEEP,
    entry,
    steep_entry,
    two_sum,
)
from fenchel.kernels.triton.normalizer import approach, settle, shifted_entry, solve
from fenchel.kernels.triton.reductions import any_row, row_max, slab_max
from fenchel.kernels.triton.steep import solve_steep, steep_tile_sums
from fenchel.kernels.triton.tiles import (
    finite_peak,
    load_scores,
    row_epsilon,
    tile_columns,
    tile_inside,
    tile_places,
    tile_rows,
)


@triton.jit
def entmax_tile(
    scores, out, mask, alpha, eps, count, columns, middle, inner,
    steps, out_steps, mask_steps, alpha_steps,
    LEVELS: tl.constexpr, KIND: tl.constexpr, J: tl.constexpr, R: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    row = tile_rows(tl.program_id(0) * R, R)
    column = tile_columns(J, K)
    inside = tile_inside(row, column, count, columns, R)
    places = tile_places(row, column, middle, inner, steps, LEVELS)
    mask_places = tile_places(row, column, middle, inner, mask_steps, LEVELS)
    x = load_scores(scores, mask, places, mask_places, inside)
    e = row_epsilon(eps, alpha, alpha_steps, row, count, middle, inner, LEVELS, KIND, R)
    slab = slab_max(x)
    peak = finite_peak(row_max(slab))
    out_places = tile_places(row, column, middle, inner, out_steps, LEVELS)
    if KIND != STEEP:
        NARROW: tl.constexpr = GENERAL if KIND == EACH_ROW else KIND
        z = x - peak
        capped = tl.minimum(e, 1.0)
        if NARROW == GENERAL:
            point = approach(z, slab - peak, capped, columns, R, NARROW)
            p, point, low = settle(z, point, capped, columns, R)
            p = shifted_entry(z, p, point, low, capped)
        else:
            point, low = solve(z, slab - peak, capped, columns, R, NARROW)
            point, low = two_sum(point, low)
            p, _s, _t = entry(z, point, low, capped, NARROW)
        p += peak - peak  # NaN in a row that holds one
        chosen = inside & ((e <= 1.0) | (e != e)) if KIND == EACH_ROW else inside
        tl.store(out + out_places, p, mask=chosen)
    if KIND == STEEP or KIND == EACH_ROW:
        if any_row(e > 1.0, R):
            # Read anew: holding the scores as well would cost every other row its registers.
            x = load_scores(scores, mask, places, mask_places, inside)
            point, low = solve_steep(steep_tile_sums, (x,), peak, tl.maximum(e, 1.0), R)
            p, _s, _t = steep_entry(x, point, low, tl.maximum(e, 1.0))
            p += peak - peak
            tl.store(out + out_places, p, mask=inside & (e > 1.0))
