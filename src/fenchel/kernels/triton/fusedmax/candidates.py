"""The entries of a row that can be in the support of fusedmax, as a list, and the values of its groups.

|z - x| is at most 2 strength for the prox z of total variation, so the threshold tau of the projection
onto the simplex is at least that of sparsemax minus 2 strength, and an entry more than 4 strength below
that is zero. Of several such neighbours one is kept, at any level that is low enough: it costs its
neighbours the strength, whatever its value. After the prox, p = [z - tau]_+ is written with tau such
that the row sums to one. A program solves one row.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
# pyright: reportGeneralTypeIssues=false
# pyright: reportOperatorIssue=false
import triton
import triton.language as tl

from fenchel.kernels.triton.launch.addressing import (
    row_offset,
)
from fenchel.kernels.triton.launch.kernel import (
    kernel,
)
from fenchel.kernels.triton.launch.parameters import (
    row_parameter,
)
from fenchel.kernels.triton.tiles.layout import (
    finite_peak,
    load_block,
)
from fenchel.kernels.triton.tiles.reductions import (
    nan_max,
)

BOUND_STEPS: tl.constexpr = tl.constexpr(2)  # Newton steps towards the threshold of sparsemax
ROUNDING_MARGIN: tl.constexpr = tl.constexpr(1e-4)  # far more than float32 can be wrong by
LOWEST_SCORE: tl.constexpr = tl.constexpr(-3e38)


@triton.jit
def _is_listed(x, before, peak, floor):
    """(listed, low): low entries are listed if the column before them is not low."""
    there = x > float("-inf")
    low = there & (x - peak < floor)
    low_before = (before > float("-inf")) & (before - peak < floor)
    return there & ~(low & low_before), low


@triton.jit
def _row_peak(scores, mask, columns, step, mask_step, K: tl.constexpr):
    peak = tl.full([K], float("-inf"), tl.float32)
    for start in range(0, columns, K):
        peak = nan_max(peak, load_block(scores, mask, start, columns, step, mask_step, K))
    return finite_peak(tl.reduce(peak, 0, nan_max))


@triton.jit
def _lower_bound(scores, mask, peak, columns, step, mask_step, K: tl.constexpr):
    """A lower bound of the threshold of sparsemax, relative to the largest score."""
    tau = peak * 0.0 - 1.0
    for _ in tl.static_range(BOUND_STEPS):
        total = tl.zeros([K], tl.float32)
        size = tl.zeros([K], tl.float32)
        for start in range(0, columns, K):
            x = load_block(scores, mask, start, columns, step, mask_step, K)
            above = tl.maximum(x - peak - tau, 0.0)
            total += above
            size += tl.where(above > 0.0, 1.0, 0.0)
        tau += (tl.sum(total, axis=0) - 1.0) / tl.maximum(tl.sum(size, axis=0), 1.0)
    return tau


@kernel
def list_candidates(
    scores, mask, strengths, values, signs, places, listed, high, low, columns, middle, inner,
    steps, mask_steps, strength_steps,
    LEVELS: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """List the candidates: their scores, relative to the largest, and their columns.

    `listed` is their number, or -1 for a row with NaN.
    """
    row = tl.program_id(0).to(tl.int64)
    strength = row_parameter(
        high, low, strengths, row, row >= 0, middle, inner, strength_steps, LEVELS
    )
    scores += row_offset(row, middle, inner, steps, LEVELS)
    if mask is not None:
        mask += row_offset(row, middle, inner, mask_steps, LEVELS)
    peak = _row_peak(scores, mask, columns, steps[3], mask_steps[3], K)
    tau = _lower_bound(scores, mask, peak, columns, steps[3], mask_steps[3], K)
    floor = tl.maximum(tau - ROUNDING_MARGIN - (4.0 + ROUNDING_MARGIN) * strength, LOWEST_SCORE).to(
        tl.float32
    )
    level = -2.0 - 6.0 * strength
    values += row * columns
    signs += row * columns
    places += row * columns
    filled = 0
    for start in range(0, columns, K):
        x = load_block(scores, mask, start, columns, steps[3], mask_steps[3], K)
        before = load_block(scores, mask, start - 1, columns, steps[3], mask_steps[3], K)
        chosen, is_low = _is_listed(x, before, peak, floor)
        place = filled + tl.cumsum(chosen.to(tl.int32), axis=0) - 1
        relative = x.to(tl.float64) - peak.to(tl.float64)
        tl.store(values + place, tl.where(is_low, level, relative), mask=chosen)
        tl.store(signs + place, tl.zeros([K], tl.int8), mask=chosen)
        tl.store(places + place, start + tl.arange(0, K), mask=chosen)
        filled += tl.sum(chosen.to(tl.int32), axis=0)
    known = peak + strength
    tl.store(listed + row, tl.where(known == known, filled, -1))


@triton.jit
def _larger_index(a, b):
    return tl.maximum(a, b)


@triton.jit
def _expand(values, signs, length, K: tl.constexpr):
    """Give every entry of the list the value of its group; returns the largest."""
    peak = tl.full([K], float("-inf"), tl.float64)
    first = 0
    for start in range(0, length, K):
        place = start + tl.arange(0, K)
        inside = place < length
        begins = tl.load(signs + place, mask=inside, other=0) != 0
        begin = tl.associative_scan(tl.where(begins, place, 0), 0, _larger_index)
        begin = tl.maximum(begin, first)
        z = tl.load(values + begin, mask=inside, other=float("-inf"))
        tl.store(values + place, z, mask=inside)
        first = tl.max(begin, axis=0)
        peak = tl.maximum(peak, z)
    return tl.max(peak, axis=0)


@triton.jit
def _threshold(values, length, peak, K: tl.constexpr):
    """tau, by Newton's method from the left, which never overshoots; in float64."""
    tau = peak - 1.0
    size_before = (length * 0 - 1).to(tl.float32)
    going_on = length > 0
    while going_on:
        total = tl.zeros([K], tl.float64)
        size = tl.zeros([K], tl.float32)
        for start in range(0, length, K):
            place = start + tl.arange(0, K)
            z = tl.load(values + place, mask=place < length, other=float("-inf"))
            above = tl.maximum(z - tau, 0.0)
            total += above
            size += tl.where(above > 0.0, 1.0, 0.0)
        row_size = tl.sum(size, axis=0)
        following = tau + (tl.sum(total, axis=0) - 1.0) / row_size
        going_on = (row_size != size_before) & (following > tau)
        tau = tl.where(going_on, following, tau)
        size_before = row_size
    return tau


@kernel
def write_fused(
    out, jumps, values, signs, places, listed, columns, middle, inner, out_steps, jump_steps,
    LEVELS: tl.constexpr, L: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """Write zeros, K columns at a time, and then the listed entries, L at a time."""
    row = tl.program_id(0).to(tl.int64)
    values += row * columns
    signs += row * columns
    places += row * columns
    out += row_offset(row, middle, inner, out_steps, LEVELS)
    jumps += row_offset(row, middle, inner, jump_steps, LEVELS)
    length = tl.load(listed + row)
    empty = tl.zeros([K], tl.float32) + tl.where(length < 0, float("nan"), 0.0)
    for start in range(0, columns, K):
        column = start + tl.arange(0, K)
        inside = column < columns
        tl.store(out + column.to(tl.int64) * out_steps[3], empty, mask=inside)
        tl.store(jumps + column.to(tl.int64) * jump_steps[3], tl.zeros([K], tl.int8), mask=inside)
    peak = _expand(values, signs, length, L)
    tl.debug_barrier()
    tau = _threshold(values, length, peak, L)
    for start in range(0, length, L):
        place = start + tl.arange(0, L)
        inside = place < length
        z = tl.load(values + place, mask=inside, other=float("-inf"))
        before = inside & (place > 0)
        z_before = tl.load(values + place - 1, mask=before, other=float("-inf"))
        sign = tl.load(signs + place, mask=inside, other=0)
        column = tl.load(places + place, mask=inside, other=0).to(tl.int64)
        p = tl.maximum(z - tau, 0.0).to(tl.float32)
        tl.store(out + column * out_steps[3], p, mask=inside)
        near = (z > tau) | (z_before > tau)
        tl.store(jumps + column * jump_steps[3], sign, mask=inside & near)
