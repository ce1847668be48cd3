"""entmax of rows too long for the chip, for alpha so near to 1, or below it, that no score is left out.

A program walks along its row, block by block: once for the sums over softmax that `smooth` starts
from, once with rough powers if the normaliser may be far from there, once with exact powers for the last
step to it, and once to write. For half precision, rough powers are exact enough. A thread has one
register a sum, whatever its number of scores.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
# ruff: noqa: SIM109 (`in` is not compiled)
import triton
import triton.language as tl

from fenchel.kernels.triton.arithmetic.entries import FARTHEST
from fenchel.kernels.triton.arithmetic.fine_powers import fine_power, plain_power, rounded_point
from fenchel.kernels.triton.arithmetic.two_floats import two_sum
from fenchel.kernels.triton.launch.addressing import row_offset
from fenchel.kernels.triton.launch.alpha import COARSE_ABOVE, COARSE_BELOW
from fenchel.kernels.triton.launch.kernel import kernel
from fenchel.kernels.triton.search.smooth import (
    MOST,
    is_long,
    last_step,
    power_slabs,
    rough_slabs,
    smooth_step,
)
from fenchel.kernels.triton.search.softmax_guess import (
    EMPTY,
    LOWEST,
    first_guess,
    heavy_bound,
    plain_slabs,
    seen_from,
    softmax_slabs,
)
from fenchel.kernels.triton.tiles.across_threads import fine_triples, row_max, row_sums, row_triples
from fenchel.kernels.triton.tiles.combining import larger
from fenchel.kernels.triton.tiles.memory import (
    finite_peak,
    load_tile,
    store_tile,
    tile_columns,
    tile_rows,
)
from fenchel.kernels.triton.tiles.within_threads import of_threads, slab_max, thread_max, thread_sum


@triton.jit
def _block(scores, mask, start, columns, steps, mask_steps, EVEN: tl.constexpr,
           J: tl.constexpr, K: tl.constexpr):  # fmt: skip
    column = start + tile_columns(J, K)
    wide = column.to(tl.int64)
    return load_tile(scores, mask, wide * steps[3], wide * mask_steps[3], column < columns, EVEN)


@triton.jit
def _nothing(J: tl.constexpr, K: tl.constexpr, V: tl.constexpr):
    """0 for every thread."""
    return thread_max(slab_max(tile_columns(J, K)).to(tl.float32), V) * 0.0


@triton.jit
def _first_sums(scores, mask, columns, steps, mask_steps, HEAVY: tl.constexpr, EVEN: tl.constexpr,
                J: tl.constexpr, K: tl.constexpr, V: tl.constexpr):  # fmt: skip
    """(the largest score, the three sums, the number and the sum of scores not far below 0).

    Every thread is on its own until the end. The last two are left out unless HEAVY.
    """
    peak = _nothing(J, K, V) + LOWEST
    total, first, second, count, plain = peak * 0.0, peak * 0.0, peak * 0.0, peak * 0.0, peak * 0.0
    for start in range(0, columns, J * K):
        x = _block(scores, mask, start, columns, steps, mask_steps, EVEN, J, K)
        top = larger(peak, thread_max(slab_max(x), V))
        total, first, second = seen_from(total, first, second, peak - top)
        more = softmax_slabs(tl.maximum(x - of_threads(top, V), FARTHEST))
        total += thread_sum(more[0], V)
        first += thread_sum(more[1], V)
        second += thread_sum(more[2], V)
        peak = top
        if HEAVY:
            more = plain_slabs(x)
            count += thread_sum(more[0], V)
            plain += thread_sum(more[1], V)
    highest = finite_peak(row_max(peak))
    total, first, second = seen_from(total, first, second, peak - highest)
    total, first, second = row_triples(total, first, second)
    count, plain = row_sums(count, plain)
    return highest, total, first, second, count, plain


@triton.jit
def _rough_visit(scores, mask, peak, point, e, inverse, columns, steps, mask_steps,
                 EVEN: tl.constexpr, J: tl.constexpr, K: tl.constexpr, V: tl.constexpr):  # fmt: skip
    """F, and the sums of p/t and p/t^2, by the hardware's powers."""
    mass = _nothing(J, K, V)
    slope, bend = mass, mass
    for start in range(0, columns, J * K):
        x = _block(scores, mask, start, columns, steps, mask_steps, EVEN, J, K)
        more = rough_slabs(tl.maximum(x - peak, FARTHEST), point, e, inverse)
        mass += thread_sum(more[0], V)
        slope += thread_sum(more[1], V)
        bend += thread_sum(more[2], V)
    return row_triples(mass, slope, bend)


@triton.jit
def _fine_visit(scores, mask, peak, point, e, inverse, columns, steps, mask_steps,
                POWERS: tl.constexpr, EVEN: tl.constexpr,
                J: tl.constexpr, K: tl.constexpr, V: tl.constexpr):  # fmt: skip
    """The same by exact powers."""
    mass = _nothing(J, K, V)
    low, slope, bend = mass, mass, mass
    for start in range(0, columns, J * K):
        x = _block(scores, mask, start, columns, steps, mask_steps, EVEN, J, K)
        p, r = fine_power(tl.maximum(x - peak, FARTHEST), point, e, inverse, POWERS)
        more = power_slabs(p, r)
        mass, rounded_off = two_sum(mass, thread_sum(more[0], V))
        low += rounded_off
        slope += thread_sum(more[1], V)
        bend += thread_sum(more[2], V)
    return fine_triples(mass.to(tl.float64) + low.to(tl.float64), slope, bend)


@kernel
def entmax_near_rows(
    scores, out, mask, eps, columns, middle, inner, steps, out_steps, mask_steps,
    LEVELS: tl.constexpr, POWERS: tl.constexpr, HEAVY: tl.constexpr, EVEN: tl.constexpr,
    J: tl.constexpr, K: tl.constexpr, V: tl.constexpr,
):  # fmt: skip
    row = tile_rows(tl.program_id(0), 1)
    e = eps + 0.0
    inverse = 1.0 / e
    scores += row_offset(row, middle, inner, steps, LEVELS)
    out += row_offset(row, middle, inner, out_steps, LEVELS)
    if mask is not None:
        mask += row_offset(row, middle, inner, mask_steps, LEVELS)
    peak, total, first, second, count, plain = _first_sums(
        scores, mask, columns, steps, mask_steps, HEAVY, EVEN, J, K, V
    )
    point, climbing = first_guess(total, first, second, e, POWERS)
    if HEAVY:
        point = tl.maximum(point, heavy_bound(count, plain, e) - peak)
    ROUGH: tl.constexpr = POWERS == COARSE_ABOVE or POWERS == COARSE_BELOW
    visits = 0
    if not ROUGH:
        climbing = climbing & (total > EMPTY)
        while climbing:
            mass, slope, bend = _rough_visit(scores, mask, peak, point, e, inverse, columns,
                                             steps, mask_steps, EVEN, J, K, V)  # fmt: skip
            step = smooth_step(mass, slope, bend, point, e, inverse, POWERS)
            point += step
            visits += 1
            climbing = is_long(step, point, e, inverse) & (visits < MOST)
    step = e * 0.0
    visits = 0
    solving = total > EMPTY
    while solving:
        point = rounded_point(point + step)
        if ROUGH:
            mass, slope, bend = _rough_visit(scores, mask, peak, point, e, inverse, columns,
                                             steps, mask_steps, EVEN, J, K, V)  # fmt: skip
        else:
            mass, slope, bend = _fine_visit(scores, mask, peak, point, e, inverse, columns,
                                            steps, mask_steps, POWERS, EVEN, J, K, V)  # fmt: skip
        step, solving = last_step(mass, slope, bend, point, e, inverse, visits, POWERS)
        visits += 1
    for start in range(0, columns, J * K):
        x = _block(scores, mask, start, columns, steps, mask_steps, EVEN, J, K)
        p = plain_power(x - peak, point, step, e, inverse, POWERS)
        p += peak - peak  # NaN in a row that holds one
        column = start + tile_columns(J, K)
        store_tile(out, column.to(tl.int64) * out_steps[3], p, column < columns, EVEN)
