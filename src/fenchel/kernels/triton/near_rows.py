"""entmax of rows too long for the chip, for alpha so near to 1, or below it, that no score is left out.

A program walks along its row, block by block: once for the sums over softmax that `smooth` starts
from, once with rough powers if the normaliser may be far from there, once with exact powers for the last
step to it, and once to write.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
import triton
import triton.language as tl

from fenchel.kernels.triton.addressing import row_offset
from fenchel.kernels.triton.entries import FARTHEST, two_sum
from fenchel.kernels.triton.fine_powers import plain_power, rounded_point
from fenchel.kernels.triton.kernel import kernel
from fenchel.kernels.triton.reductions import (
    fine_triples,
    larger,
    row_max,
    row_sums,
    row_triples,
    slab_max,
)
from fenchel.kernels.triton.smooth import (
    EMPTY,
    LOWEST,
    MOST,
    first_guess,
    heavy_bound,
    is_long,
    last_step,
    plain_slabs,
    power_slabs,
    rough_slabs,
    seen_from,
    smooth_entry,
    smooth_powers,
    smooth_step,
    softmax_slabs,
)
from fenchel.kernels.triton.tiles import finite_peak, load_tile, store_tile, tile_columns, tile_rows


@triton.jit
def _block(scores, mask, start, columns, steps, mask_steps, EVEN: tl.constexpr,
           J: tl.constexpr, K: tl.constexpr):  # fmt: skip
    column = start + tile_columns(J, K)
    wide = column.to(tl.int64)
    return load_tile(scores, mask, wide * steps[3], wide * mask_steps[3], column < columns, EVEN)


@triton.jit
def _first_sums(scores, mask, columns, steps, mask_steps, HEAVY: tl.constexpr, EVEN: tl.constexpr,
                J: tl.constexpr, K: tl.constexpr):  # fmt: skip
    """(the largest score, the three sums, the number and the sum of scores not far below 0).

    Every lane is on its own until the end. The last two are left out unless HEAVY.
    """
    peak = slab_max(tile_columns(J, K)).to(tl.float32) * 0.0 + LOWEST
    total, first, second, count, plain = peak * 0.0, peak * 0.0, peak * 0.0, peak * 0.0, peak * 0.0
    for start in range(0, columns, J * K):
        x = _block(scores, mask, start, columns, steps, mask_steps, EVEN, J, K)
        top = larger(peak, slab_max(x))
        total, first, second = seen_from(total, first, second, peak - top)
        more = softmax_slabs(tl.maximum(x - top, FARTHEST))
        total, first, second = total + more[0], first + more[1], second + more[2]
        peak = top
        if HEAVY:
            more = plain_slabs(x)
            count, plain = count + more[0], plain + more[1]
    highest = finite_peak(row_max(peak))
    total, first, second = seen_from(total, first, second, peak - highest)
    total, first, second = row_triples(total, first, second)
    count, plain = row_sums(count, plain)
    return highest, total, first, second, count, plain


@triton.jit
def _rough_visit(scores, mask, peak, point, e, inverse, columns, steps, mask_steps,
                 EVEN: tl.constexpr, J: tl.constexpr, K: tl.constexpr):  # fmt: skip
    """F, and the sums of p/t and p/t^2, by the hardware's powers."""
    mass = slab_max(tile_columns(J, K)).to(tl.float32) * 0.0
    slope, bend = mass, mass
    for start in range(0, columns, J * K):
        x = _block(scores, mask, start, columns, steps, mask_steps, EVEN, J, K)
        more = rough_slabs(tl.maximum(x - peak, FARTHEST), point, e, inverse)
        mass, slope, bend = mass + more[0], slope + more[1], bend + more[2]
    return row_triples(mass, slope, bend)


@triton.jit
def _visit(scores, mask, peak, point, e, inverse, columns, steps, mask_steps,
           POWERS: tl.constexpr, EVEN: tl.constexpr, J: tl.constexpr, K: tl.constexpr):  # fmt: skip
    """F, and the sums of p/t and p/t^2."""
    mass = slab_max(tile_columns(J, K)).to(tl.float32) * 0.0
    low, slope, bend = mass, mass, mass
    for start in range(0, columns, J * K):
        x = _block(scores, mask, start, columns, steps, mask_steps, EVEN, J, K)
        z = tl.maximum(x - peak, FARTHEST)
        p, r = smooth_powers(z, point, e, inverse, POWERS)
        more = power_slabs(p, r)
        mass, rounded_off = two_sum(mass, more[0])
        low, slope, bend = low + rounded_off, slope + more[1], bend + more[2]
    return fine_triples(mass.to(tl.float64) + low.to(tl.float64), slope, bend)


@kernel
def entmax_near_rows(
    scores, out, mask, eps, columns, middle, inner, steps, out_steps, mask_steps,
    LEVELS: tl.constexpr, POWERS: tl.constexpr, HEAVY: tl.constexpr, EVEN: tl.constexpr,
    J: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    row = tile_rows(tl.program_id(0), 1)
    e = eps + 0.0
    inverse = 1.0 / e
    scores += row_offset(row, middle, inner, steps, LEVELS)
    out += row_offset(row, middle, inner, out_steps, LEVELS)
    if mask is not None:
        mask += row_offset(row, middle, inner, mask_steps, LEVELS)
    peak, total, first, second, count, plain = _first_sums(
        scores, mask, columns, steps, mask_steps, HEAVY, EVEN, J, K
    )
    point, climbing = first_guess(total, first, second, e, POWERS)
    if HEAVY:
        point = tl.maximum(point, heavy_bound(count, plain, e) - peak)
    visits = 0
    climbing = climbing & (total > EMPTY)
    while climbing:
        mass, slope, bend = _rough_visit(scores, mask, peak, point, e, inverse, columns,
                                         steps, mask_steps, EVEN, J, K)  # fmt: skip
        step = smooth_step(mass, slope, bend, point, e, inverse, POWERS)
        point += step
        visits += 1
        climbing = is_long(step, point, e, inverse) & (visits < MOST)
    step = e * 0.0
    visits = 0
    solving = total > EMPTY
    while solving:
        point = rounded_point(point + step)
        mass, slope, bend = _visit(scores, mask, peak, point, e, inverse, columns,
                                   steps, mask_steps, POWERS, EVEN, J, K)  # fmt: skip
        step, solving = last_step(mass, slope, bend, point, e, inverse, visits, POWERS)
        visits += 1
    for start in range(0, columns, J * K):
        x = _block(scores, mask, start, columns, steps, mask_steps, EVEN, J, K)
        z = tl.maximum(x - peak, FARTHEST)
        p = plain_power(z, point, e, inverse, POWERS)
        p = smooth_entry(z, p, point, step, e, POWERS) + (
            peak - peak
        )  # NaN in a row that holds one
        column = start + tile_columns(J, K)
        store_tile(out, column.to(tl.int64) * out_steps[3], p, column < columns, EVEN)
