"""entmax of rows that fit on chip: each is read once and written once.

A program has R rows in registers, as a tile of shape (J, R, K). `solver/alpha_up_to_1_45` finds the
normalizer for alpha up to 1.45, `solver/normalizer` up to 2, `solver/alpha_above_2` the support for
alpha > 2, and `softmax` solves alpha = 1.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false
import triton
import triton.language as tl

from fenchel.kernels.triton.arithmetic.elementary import (
    two_sum,
)
from fenchel.kernels.triton.arithmetic.entries import (
    FINITE_MINUS_INF,
)
from fenchel.kernels.triton.entmax.softmax import (
    softmax_tile,
)
from fenchel.kernels.triton.launch.kernel import (
    kernel,
)
from fenchel.kernels.triton.launch.parameters import (
    ABOVE_1_45,
    ABOVE_2,
    GENERAL,
    SOFTMAX,
)
from fenchel.kernels.triton.solver.alpha_above_2 import (
    find_support,
    probability_above_2,
    visit_tile_above_2,
)
from fenchel.kernels.triton.solver.alpha_up_to_1_45 import (
    probability_up_to_1_45,
    solve_up_to_1_45,
)
from fenchel.kernels.triton.solver.guesses import (
    guess_edge,
)
from fenchel.kernels.triton.solver.normalizer import (
    approach_root,
    below_peak,
    entry_below_peak,
    find_normalizer,
    find_root_above_1_45,
    probability_above_1_45,
)
from fenchel.kernels.triton.tiles.layout import (
    finite_peak,
    load_rows,
    row_epsilon,
    tile_rows,
    write_rows,
)
from fenchel.kernels.triton.tiles.reductions import (
    row_max,
    slab_max,
)


@triton.jit
def _solve_with_powers(
    x, peak, e, columns, KIND: tl.constexpr, POWERS: tl.constexpr, R: tl.constexpr
):
    """p of a tile for any alpha up to 2."""
    z = tl.maximum(x - peak, FINITE_MINUS_INF)
    if KIND == ABOVE_1_45:
        first, second, step = find_root_above_1_45(
            z, approach_root(z, z, e, columns, R, KIND), e, columns, R
        )
        p = probability_above_1_45(first, second, step)
    else:
        p, point, step = solve_up_to_1_45(z, e, POWERS, R)
        p = probability_up_to_1_45(z, p, point, step, e, POWERS)
    return p


@triton.jit
def solve_and_write(
    x, peak, out, row, e, count, columns, middle, inner, out_steps,
    LEVELS: tl.constexpr, KIND: tl.constexpr, POWERS: tl.constexpr, EVEN: tl.constexpr,
    J: tl.constexpr, R: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """Solve and write a tile of rows. POWERS is what `accurate_powers` may assume."""
    if KIND == SOFTMAX:
        p = softmax_tile(x, peak)
    elif KIND == ABOVE_2:
        guess = guess_edge((x,), peak, e, R, ABOVE_2)
        bottom, least = find_support(visit_tile_above_2, (x,), guess, peak, e, R)
        p = probability_above_2(x, bottom, least, e)
    elif KIND >= GENERAL:
        p = _solve_with_powers(x, peak, e, columns, KIND, POWERS, R)
    else:
        z = below_peak(x, peak, KIND)
        point, low = find_normalizer(z, below_peak(slab_max(x), peak, KIND), e, columns, R, KIND)
        point, low = two_sum(point, low)
        p = entry_below_peak(z, point, low, e, KIND)
    p += peak - peak  # NaN in a row that has NaN
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
    x = load_rows(
        scores, mask, row, count, columns, middle, inner, steps, mask_steps, LEVELS, EVEN, J, R, K,
    )  # fmt: skip
    peak = finite_peak(row_max(slab_max(x)))
    solve_and_write(
        x, peak, out, row, e, count, columns, middle, inner, out_steps, LEVELS, KIND, POWERS, EVEN,
        J, R, K,
    )  # fmt: skip
