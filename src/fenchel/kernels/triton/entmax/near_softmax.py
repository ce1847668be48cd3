"""entmax of rows too long for the chip, for alpha near or below 1, where no score is left out.

A program visits its row block by block: once for the sums over softmax of (N.13), once with approximate
powers if the normalizer may be far from that guess, once with accurate powers for the last step, and once
to write. For results in half precision, approximate powers are accurate enough. A thread has one register
per sum, for any number of scores.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
# ruff: noqa: SIM109 (`in` is not compiled)
from typing import Any

import triton
import triton.language as tl

from fenchel.kernels.triton.arithmetic.accurate_powers import (
    accurate_power,
    output_power,
    rounded_point,
)
from fenchel.kernels.triton.arithmetic.elementary import (
    two_sum,
)
from fenchel.kernels.triton.arithmetic.entries import (
    FINITE_MINUS_INF,
)
from fenchel.kernels.triton.launch.addressing import (
    Rows,
    Strides,
    row_offset,
)
from fenchel.kernels.triton.launch.kernel import (
    kernel,
)
from fenchel.kernels.triton.launch.parameters import (
    FAST_ABOVE_1,
    FAST_BELOW_1,
    powers_for,
)
from fenchel.kernels.triton.launch.tile_shapes import (
    min_itemsize,
    near_softmax_tile,
)
from fenchel.kernels.triton.solver.alpha_up_to_1_45 import (
    MAX_ROUGH_VISITS,
    bounded_halley_step,
    final_step,
    needs_rough_visit,
    power_sums,
    rough_power_sums,
)
from fenchel.kernels.triton.solver.guesses import (
    LOWEST_SCORE,
    MAX_EMPTY_ROW_SUM,
    MEAN_BOUND_MAX_EPS,
    count_and_sum,
    guess_normalizer,
    mean_bound,
    shift_moments,
    softmax_moments,
)
from fenchel.kernels.triton.tiles.layout import (
    finite_peak,
    load_tile,
    store_tile,
    tile_columns,
    tile_rows,
)
from fenchel.kernels.triton.tiles.reductions import (
    nan_max,
    repeat_in_thread,
    row_max,
    row_sums,
    row_sums3,
    row_sums3_float64,
    slab_max,
    thread_max,
    thread_sum,
)


def launch_near_softmax(tensors: list[Any], eps: float, rows: Rows, steps: list[Strides]) -> None:
    tile = near_softmax_tile(rows, min_itemsize(tensors[0], tensors[2]))
    powers = powers_for(eps, rounded=tensors[1].element_size() < 4)
    entmax_near_softmax[(rows.count,)](
        *tensors[:3], eps, rows.columns, rows.middle, rows.inner, *steps[:3],
        LEVELS=rows.levels, POWERS=powers, MEAN_BOUND=eps < MEAN_BOUND_MAX_EPS.value,
        EVEN=rows.columns % (tile.slabs * tile.width) == 0,
        J=tile.slabs, K=tile.width, V=tile.vector, num_warps=tile.warps, maxnreg=tile.registers,
    )  # fmt: skip


@triton.jit
def _block(
    scores, mask, start, columns, steps, mask_steps, EVEN: tl.constexpr, J: tl.constexpr,
    K: tl.constexpr,
):  # fmt: skip
    column = start + tile_columns(J, K)
    wide = column.to(tl.int64)
    return load_tile(scores, mask, wide * steps[3], wide * mask_steps[3], column < columns, EVEN)


@triton.jit
def _thread_zeros(J: tl.constexpr, K: tl.constexpr, V: tl.constexpr):
    """0 for every thread."""
    return thread_max(slab_max(tile_columns(J, K)).to(tl.float32), V) * 0.0


@triton.jit
def _read_moments(
    scores, mask, columns, steps, mask_steps, MEAN_BOUND: tl.constexpr, EVEN: tl.constexpr,
    J: tl.constexpr, K: tl.constexpr, V: tl.constexpr,
):  # fmt: skip
    """(the largest score, the three sums, the number and the sum of scores not far below 0).

    Threads work independently until the end. The last two sums are skipped unless MEAN_BOUND.
    """
    peak = _thread_zeros(J, K, V) + LOWEST_SCORE
    total, first, second, count, plain = peak * 0.0, peak * 0.0, peak * 0.0, peak * 0.0, peak * 0.0
    for start in range(0, columns, J * K):
        x = _block(scores, mask, start, columns, steps, mask_steps, EVEN, J, K)
        top = nan_max(peak, thread_max(slab_max(x), V))
        total, first, second = shift_moments(total, first, second, peak - top)
        more = softmax_moments(tl.maximum(x - repeat_in_thread(top, V), FINITE_MINUS_INF))
        total += thread_sum(more[0], V)
        first += thread_sum(more[1], V)
        second += thread_sum(more[2], V)
        peak = top
        if MEAN_BOUND:
            more = count_and_sum(x)
            count += thread_sum(more[0], V)
            plain += thread_sum(more[1], V)
    highest = finite_peak(row_max(peak))
    total, first, second = shift_moments(total, first, second, peak - highest)
    total, first, second = row_sums3(total, first, second)
    count, plain = row_sums(count, plain)
    return highest, total, first, second, count, plain


@triton.jit
def _rough_visit(
    scores, mask, peak, point, e, inverse, columns, steps, mask_steps, EVEN: tl.constexpr,
    J: tl.constexpr, K: tl.constexpr, V: tl.constexpr,
):  # fmt: skip
    """F, and the sums of p/t and p/t^2, by the hardware's powers."""
    mass = _thread_zeros(J, K, V)
    slope, bend = mass, mass
    for start in range(0, columns, J * K):
        x = _block(scores, mask, start, columns, steps, mask_steps, EVEN, J, K)
        more = rough_power_sums(tl.maximum(x - peak, FINITE_MINUS_INF), point, e, inverse)
        mass += thread_sum(more[0], V)
        slope += thread_sum(more[1], V)
        bend += thread_sum(more[2], V)
    return row_sums3(mass, slope, bend)


@triton.jit
def _accurate_visit(
    scores, mask, peak, point, e, inverse, columns, steps, mask_steps, POWERS: tl.constexpr,
    EVEN: tl.constexpr, J: tl.constexpr, K: tl.constexpr, V: tl.constexpr,
):  # fmt: skip
    """The same by exact powers."""
    mass = _thread_zeros(J, K, V)
    low, slope, bend = mass, mass, mass
    for start in range(0, columns, J * K):
        x = _block(scores, mask, start, columns, steps, mask_steps, EVEN, J, K)
        p, r = accurate_power(tl.maximum(x - peak, FINITE_MINUS_INF), point, e, inverse, POWERS)
        more = power_sums(p, r)
        mass, rounded_off = two_sum(mass, thread_sum(more[0], V))
        low += rounded_off
        slope += thread_sum(more[1], V)
        bend += thread_sum(more[2], V)
    return row_sums3_float64(mass.to(tl.float64) + low.to(tl.float64), slope, bend)


@kernel
def entmax_near_softmax(
    scores, out, mask, eps, columns, middle, inner, steps, out_steps, mask_steps,
    LEVELS: tl.constexpr, POWERS: tl.constexpr, MEAN_BOUND: tl.constexpr, EVEN: tl.constexpr,
    J: tl.constexpr, K: tl.constexpr, V: tl.constexpr,
):  # fmt: skip
    row = tile_rows(tl.program_id(0), 1)
    e = eps + 0.0
    inverse = 1.0 / e
    scores += row_offset(row, middle, inner, steps, LEVELS)
    out += row_offset(row, middle, inner, out_steps, LEVELS)
    if mask is not None:
        mask += row_offset(row, middle, inner, mask_steps, LEVELS)
    peak, total, first, second, count, plain = _read_moments(
        scores, mask, columns, steps, mask_steps, MEAN_BOUND, EVEN, J, K, V
    )
    point, climbing = guess_normalizer(total, first, second, e, POWERS)
    if MEAN_BOUND:
        point = tl.maximum(point, mean_bound(count, plain, e) - peak)
    ROUGH: tl.constexpr = POWERS == FAST_ABOVE_1 or POWERS == FAST_BELOW_1
    visits = 0
    if not ROUGH:
        climbing = climbing & (total > MAX_EMPTY_ROW_SUM)
        while climbing:
            mass, slope, bend = _rough_visit(
                scores, mask, peak, point, e, inverse, columns, steps, mask_steps, EVEN, J, K, V,
            )  # fmt: skip
            step = bounded_halley_step(mass, slope, bend, point, e, inverse, POWERS)
            point += step
            visits += 1
            climbing = needs_rough_visit(step, point, e, inverse) & (visits < MAX_ROUGH_VISITS)
    step = e * 0.0
    visits = 0
    solving = total > MAX_EMPTY_ROW_SUM
    while solving:
        point = rounded_point(point + step)
        if ROUGH:
            mass, slope, bend = _rough_visit(
                scores, mask, peak, point, e, inverse, columns, steps, mask_steps, EVEN, J, K, V,
            )  # fmt: skip
        else:
            mass, slope, bend = _accurate_visit(
                scores, mask, peak, point, e, inverse, columns, steps, mask_steps, POWERS, EVEN, J,
                K, V,
            )  # fmt: skip
        step, solving = final_step(mass, slope, bend, point, e, inverse, visits, POWERS)
        visits += 1
    for start in range(0, columns, J * K):
        x = _block(scores, mask, start, columns, steps, mask_steps, EVEN, J, K)
        p = output_power(x - peak, point, step, e, inverse, POWERS)
        p += peak - peak  # NaN in a row that has NaN
        column = start + tile_columns(J, K)
        store_tile(out, column.to(tl.int64) * out_steps[3], p, column < columns, EVEN)
