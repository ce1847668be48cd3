"""entmax of rows that fit on chip: each is read once and written once.

p = [1 + e (x - A)]_+^(1/e) with A such that the row sums to one. A program holds R rows in registers,
as a tile of shape (J, R, K); `normalizer` finds A for alpha <= 2, `steep` the support for alpha > 2, and
`softmax` takes alpha = 1.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
import triton
import triton.language as tl

from fenchel.kernels.triton.entries import (
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
    softmax_point,
    solve,
)
from fenchel.kernels.triton.reductions import row_max, slab_max
from fenchel.kernels.triton.softmax import softmax_tile
from fenchel.kernels.triton.steep import find_support, steep_tile_visit, support_entry
from fenchel.kernels.triton.tiles import (
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
def solve_tile(
    scores, out, mask, row, e, count, columns, middle, inner, steps, out_steps, mask_steps,
    LEVELS: tl.constexpr, KIND: tl.constexpr, EVEN: tl.constexpr,
    J: tl.constexpr, R: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """Read, solve and write a tile of rows."""
    column = tile_columns(J, K)
    inside = tile_inside(row, column, count, columns, R)
    places = tile_places(row, column, middle, inner, steps, LEVELS)
    mask_places = tile_places(row, column, middle, inner, mask_steps, LEVELS)
    x = load_tile(scores, mask, places, mask_places, inside, EVEN)
    slab = slab_max(x)
    peak = finite_peak(row_max(slab))
    out_places = tile_places(row, column, middle, inner, out_steps, LEVELS)
    if KIND == SOFTMAX:
        p = softmax_tile(x, peak)
    elif KIND == STEEP:
        guess = guess_edge((x,), peak, e, R, STEEP)
        bottom, least = find_support(steep_tile_visit, (x,), guess, peak, e, R)
        p = support_entry(x, bottom, least, e)
    elif KIND >= GENERAL:
        z = tl.maximum(x - peak, FARTHEST)
        if KIND == GENERAL:
            point = softmax_point(z)
        else:
            point = approach(z, tl.maximum(slab - peak, FARTHEST), e, columns, R, KIND)
        first, second, _, step = settle(z, point, e, columns, R, KIND)
        p = shifted_entry(first, second, step, e, KIND)
    else:
        z = below_peak(x, peak, KIND)
        point, low = solve(z, below_peak(slab, peak, KIND), e, columns, R, KIND)
        point, low = two_sum(point, low)
        p = entry_below_peak(z, point, low, e, KIND)
    p += peak - peak  # NaN in a row that holds one
    store_tile(out, out_places, p, inside, EVEN)


@triton.jit
def entmax_tile(
    scores, out, mask, alpha, eps, count, columns, middle, inner,
    steps, out_steps, mask_steps, alpha_steps,
    LEVELS: tl.constexpr, KIND: tl.constexpr, EVEN: tl.constexpr,
    J: tl.constexpr, R: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    row = tile_rows(tl.program_id(0) * R, R)
    e = row_epsilon(eps, alpha, alpha_steps, row, count, middle, inner, LEVELS, KIND, R)
    solve_tile(scores, out, mask, row, e, count, columns, middle, inner,
               steps, out_steps, mask_steps, LEVELS, KIND, EVEN, J, R, K)  # fmt: skip
