"""entmax of rows that fit on chip: each is read once and written once.

p = [1 + e (x - A)]_+^(1/e) with A such that the row sums to one. A program holds R rows in registers,
as a tile of shape (J, R, K); `normalizer` finds A for alpha <= 2, `steep` the support for alpha > 2, and
`softmax` takes alpha = 1.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
# ruff: noqa: SIM102 (what is known when a kernel is compiled needs if and else)
import triton
import triton.language as tl

from fenchel.kernels.triton.entries import (
    EACH_ROW,
    FARTHEST,
    GENERAL,
    SOFTMAX,
    STEEP,
    two_sum,
)
from fenchel.kernels.triton.moments import guess_edge
from fenchel.kernels.triton.normalizer import (
    approach,
    below_peak,
    entry_below_peak,
    settle,
    shifted_entry,
    solve,
)
from fenchel.kernels.triton.reductions import any_row, row_max, slab_max
from fenchel.kernels.triton.softmax import softmax_tile
from fenchel.kernels.triton.steep import find_support, steep_tile_visit, support_entry
from fenchel.kernels.triton.tiles import (
    finite_peak,
    load_scores,
    load_tile,
    row_epsilon,
    store_tile,
    tile_columns,
    tile_inside,
    tile_places,
    tile_rows,
)


@triton.jit
def entmax_tile(
    scores, out, mask, alpha, eps, count, columns, middle, inner,
    steps, out_steps, mask_steps, alpha_steps,
    LEVELS: tl.constexpr, KIND: tl.constexpr, EVEN: tl.constexpr,
    J: tl.constexpr, R: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    row = tile_rows(tl.program_id(0) * R, R)
    column = tile_columns(J, K)
    inside = tile_inside(row, column, count, columns, R)
    places = tile_places(row, column, middle, inner, steps, LEVELS)
    mask_places = tile_places(row, column, middle, inner, mask_steps, LEVELS)
    x = load_tile(scores, mask, places, mask_places, inside, EVEN)
    e = row_epsilon(eps, alpha, alpha_steps, row, count, middle, inner, LEVELS, KIND, R)
    slab = slab_max(x)
    peak = finite_peak(row_max(slab))
    out_places = tile_places(row, column, middle, inner, out_steps, LEVELS)
    if KIND == SOFTMAX:
        p = softmax_tile(x, peak)
    elif KIND == STEEP:
        guess = guess_edge((x,), peak, e, R, STEEP)
        bottom, least = find_support(steep_tile_visit, (x,), guess, peak, e, R)
        p = support_entry(x, bottom, least, e)
    elif KIND == EACH_ROW or KIND >= GENERAL:
        NARROW: tl.constexpr = GENERAL if KIND == EACH_ROW else KIND
        z = tl.maximum(x - peak, FARTHEST)
        slab = tl.maximum(slab - peak, FARTHEST)
        point = approach(z, slab, tl.minimum(e, 1.0), columns, R, NARROW)
        first, second, _, step = settle(z, point, tl.minimum(e, 1.0), columns, R, NARROW)
        p = shifted_entry(first, second, step, tl.minimum(e, 1.0), NARROW)
    else:
        z = below_peak(x, peak, KIND)
        point, low = solve(z, below_peak(slab, peak, KIND), e, columns, R, KIND)
        point, low = two_sum(point, low)
        p = entry_below_peak(z, point, low, e, KIND)
    p += peak - peak  # NaN in a row that holds one
    store_tile(out, out_places, p, inside, EVEN)
    if KIND == EACH_ROW:
        if any_row(e > 1.0, R):
            # Read anew: holding the scores as well would cost every other row its registers.
            x = load_scores(scores, mask, places, mask_places, inside)
            above = tl.maximum(e, 1.0)
            guess = guess_edge((x,), peak, above, R, STEEP)
            bottom, least = find_support(steep_tile_visit, (x,), guess, peak, above, R)
            p = support_entry(x, bottom, least, above)
            p += peak - peak
            tl.store(out + out_places, p, mask=inside & (e > 1.0))
