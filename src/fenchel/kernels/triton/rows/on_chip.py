"""entmax of rows that fit on chip: each is read once and written once.

p = [1 + e (x - A)]_+^(1/e) with A such that the row sums to one. A program holds R rows in registers,
as a tile of shape (J, R, K); `smooth` finds A for alpha up to 1.45, `normalizer` up to 2, `steep` the
support for alpha > 2, and `softmax` takes alpha = 1.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false
import triton
import triton.language as tl

from fenchel.kernels.triton.arithmetic.entries import FARTHEST
from fenchel.kernels.triton.arithmetic.two_floats import two_sum
from fenchel.kernels.triton.launch.alpha import GENERAL, SHARP, SOFTMAX, STEEP
from fenchel.kernels.triton.launch.kernel import kernel
from fenchel.kernels.triton.rows.softmax import softmax_tile
from fenchel.kernels.triton.search.edge_guess import guess_edge
from fenchel.kernels.triton.search.normalizer import (
    approach,
    below_peak,
    entry_below_peak,
    settle,
    shifted_entry,
    solve,
)
from fenchel.kernels.triton.search.smooth import smooth_entry, solve_smooth
from fenchel.kernels.triton.search.steep import find_support, steep_tile_visit, support_entry
from fenchel.kernels.triton.tiles.across_threads import row_max
from fenchel.kernels.triton.tiles.memory import (
    finite_peak,
    load_rows,
    row_epsilon,
    tile_rows,
    write_rows,
)
from fenchel.kernels.triton.tiles.within_threads import slab_max


@triton.jit
def _by_powers(x, peak, e, columns, KIND: tl.constexpr, POWERS: tl.constexpr, R: tl.constexpr):
    """p of a tile for any alpha up to 2."""
    z = tl.maximum(x - peak, FARTHEST)
    if KIND == SHARP:
        first, second, step = settle(z, approach(z, z, e, columns, R, KIND), e, columns, R)
        p = shifted_entry(first, second, step)
    else:
        p, point, step = solve_smooth(z, e, POWERS, R)
        p = smooth_entry(z, p, point, step, e, POWERS)
    return p


@triton.jit
def solve_scores(
    x, peak, out, row, e, count, columns, middle, inner, out_steps,
    LEVELS: tl.constexpr, KIND: tl.constexpr, POWERS: tl.constexpr, EVEN: tl.constexpr,
    J: tl.constexpr, R: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """Solve and write a tile of rows. POWERS: what `fine_powers` may take for granted of alpha."""
    if KIND == SOFTMAX:
        p = softmax_tile(x, peak)
    elif KIND == STEEP:
        guess = guess_edge((x,), peak, e, R, STEEP)
        bottom, least = find_support(steep_tile_visit, (x,), guess, peak, e, R)
        p = support_entry(x, bottom, least, e)
    elif KIND >= GENERAL:
        p = _by_powers(x, peak, e, columns, KIND, POWERS, R)
    else:
        z = below_peak(x, peak, KIND)
        point, low = solve(z, below_peak(slab_max(x), peak, KIND), e, columns, R, KIND)
        point, low = two_sum(point, low)
        p = entry_below_peak(z, point, low, e, KIND)
    p += peak - peak  # NaN in a row that holds one
    write_rows(out, p, row, count, columns, middle, inner, out_steps, LEVELS, EVEN, J, R, K)


@kernel
def entmax_tile(
    scores, out, mask, alpha, eps, count, columns, middle, inner,
    steps, out_steps, mask_steps, alpha_steps,
    LEVELS: tl.constexpr, KIND: tl.constexpr, POWERS: tl.constexpr, EVEN: tl.constexpr,
    J: tl.constexpr, R: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    row = tile_rows(tl.program_id(0), R)
    e = row_epsilon(eps, alpha, alpha_steps, row, count, middle, inner, LEVELS, KIND, R)
    x = load_rows(scores, mask, row, count, columns, middle, inner, steps, mask_steps,
                  LEVELS, EVEN, J, R, K)  # fmt: skip
    peak = finite_peak(row_max(slab_max(x)))
    solve_scores(x, peak, out, row, e, count, columns, middle, inner, out_steps,
                 LEVELS, KIND, POWERS, EVEN, J, R, K)  # fmt: skip
