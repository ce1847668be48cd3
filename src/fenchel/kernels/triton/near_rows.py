"""entmax of rows too long for the chip, for alpha above 1 and so near to it that no score is left out.

A program walks along its row, block by block: once for the sums over softmax that `smooth` starts
from, once or twice with exact powers for the last step to the normaliser, and once to write.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
import triton
import triton.language as tl

from fenchel.kernels.triton.addressing import row_offset
from fenchel.kernels.triton.elementary import LOG2_E
from fenchel.kernels.triton.entries import FARTHEST, GENERAL, two_sum
from fenchel.kernels.triton.kernel import kernel
from fenchel.kernels.triton.normalizer import newton_step, strays
from fenchel.kernels.triton.reductions import larger, row_max, row_triples, slab_max
from fenchel.kernels.triton.smooth import (
    EMPTY,
    first_guess,
    power_slabs,
    smooth_entry,
    smooth_power,
    smooth_step,
    softmax_slabs,
    touch_of,
)
from fenchel.kernels.triton.tiles import finite_peak, load_tile, store_tile, tile_columns, tile_rows

LOWEST: tl.constexpr = tl.constexpr(-3e38)  # finite, below any score
VANISHED: tl.constexpr = tl.constexpr(-1e15)  # e^x is 0, and x^2 is finite
CURVED_STEPS: tl.constexpr = tl.constexpr(4)  # by Halley's method; then Newton's, which is safe
MOST_STEPS: tl.constexpr = tl.constexpr(40)


@triton.jit
def _block(scores, mask, start, columns, steps, mask_steps, EVEN: tl.constexpr,
           J: tl.constexpr, K: tl.constexpr):  # fmt: skip
    column = start + tile_columns(J, K)
    wide = column.to(tl.int64)
    return load_tile(scores, mask, wide * steps[3], wide * mask_steps[3], column < columns, EVEN)


@triton.jit
def _seen_from(total, first, second, by):
    """The sums of e^z, z e^z and z^2 e^z after z += by, which is not above 0."""
    by = tl.maximum(by, VANISHED)
    scale = tl.exp2(by * LOG2_E)
    second = scale * (second + by * (2.0 * first + by * total))
    return scale * total, scale * (first + by * total), second


@triton.jit
def _softmax_sums(scores, mask, columns, steps, mask_steps, EVEN: tl.constexpr,
                  J: tl.constexpr, K: tl.constexpr):  # fmt: skip
    """(the largest score, the three sums), every lane on its own until the end."""
    peak = slab_max(tile_columns(J, K)).to(tl.float32) * 0.0 + LOWEST
    total, first, second = peak * 0.0, peak * 0.0, peak * 0.0
    for start in range(0, columns, J * K):
        x = _block(scores, mask, start, columns, steps, mask_steps, EVEN, J, K)
        top = larger(peak, slab_max(x))
        total, first, second = _seen_from(total, first, second, peak - top)
        more = softmax_slabs(tl.maximum(x - top, FARTHEST))
        total, first, second = total + more[0], first + more[1], second + more[2]
        peak = top
    highest = finite_peak(row_max(peak))
    total, first, second = _seen_from(total, first, second, peak - highest)
    total, first, second = row_triples(total, first, second)
    return highest, total, first, second


@triton.jit
def _visit(scores, mask, peak, point, e, inverse, columns, steps, mask_steps,
           EXACT: tl.constexpr, EVEN: tl.constexpr, J: tl.constexpr, K: tl.constexpr):  # fmt: skip
    """F, and the sums of p/t and p/t^2."""
    mass = slab_max(tile_columns(J, K)).to(tl.float32) * 0.0
    low, slope, bend = mass, mass, mass
    for start in range(0, columns, J * K):
        x = _block(scores, mask, start, columns, steps, mask_steps, EVEN, J, K)
        z = tl.maximum(x - peak, FARTHEST)
        p = smooth_power(z, point, e, inverse, EXACT)
        more = power_slabs(z, p, point, e)
        mass, rounded_off = two_sum(mass, more[0])
        low, slope, bend = low + rounded_off, slope + more[1], bend + more[2]
    return row_triples(mass + low, slope, bend)


@kernel
def entmax_near_rows(
    scores, out, mask, eps, columns, middle, inner, steps, out_steps, mask_steps,
    LEVELS: tl.constexpr, EXACT: tl.constexpr, EVEN: tl.constexpr,
    J: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    row = tile_rows(tl.program_id(0), 1)
    e = eps + 0.0
    inverse = 1.0 / e
    scores += row_offset(row, middle, inner, steps, LEVELS)
    out += row_offset(row, middle, inner, out_steps, LEVELS)
    if mask is not None:
        mask += row_offset(row, middle, inner, mask_steps, LEVELS)
    peak, total, first, second = _softmax_sums(scores, mask, columns, steps, mask_steps, EVEN, J, K)
    guess = first_guess(total, first, second, e)
    point = guess[0]
    step = e * 0.0
    visits = 0
    solving = total > EMPTY
    while solving:
        point += step
        mass, slope, bend = _visit(scores, mask, peak, point, e, inverse, columns,
                                   steps, mask_steps, EXACT, EVEN, J, K)  # fmt: skip
        step = smooth_step(mass, slope, bend, point, e, inverse)
        if visits >= CURVED_STEPS:
            step = newton_step(mass, slope, e, GENERAL)
        visits += 1
        far = (tl.abs(step) > touch_of(e, inverse)) | strays(step, slope, bend, e)
        solving = far & (visits < MOST_STEPS)
    for start in range(0, columns, J * K):
        x = _block(scores, mask, start, columns, steps, mask_steps, EVEN, J, K)
        z = tl.maximum(x - peak, FARTHEST)
        p = smooth_power(z, point, e, inverse, EXACT)
        p = smooth_entry(z, p, point, step, e) + (peak - peak)  # NaN in a row that holds one
        column = start + tile_columns(J, K)
        store_tile(out, column.to(tl.int64) * out_steps[3], p, column < columns, EVEN)
