"""Which entries of a row fusedmax has to look at, side by side, and where they end up.

|z - x| is at most 2 strength for the prox z of total variation, so the threshold tau of the projection
onto the simplex is at least that of sparsemax less 2 strength, and an entry more than 4 strength below
that is zero. Of several such low entries in a row one is enough, at any level that is low enough: it
costs its neighbours the strength, and that is all they know of it. A program treats one row.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportOperatorIssue=false
# pyright: reportGeneralTypeIssues=false
import triton
import triton.language as tl

from fenchel.kernels.triton.launch.addressing import row_offset
from fenchel.kernels.triton.launch.kernel import kernel
from fenchel.kernels.triton.launch.parameters import row_parameter
from fenchel.kernels.triton.tiles.combining import larger
from fenchel.kernels.triton.tiles.memory import finite_peak, load_block

BOUND_STEPS: tl.constexpr = tl.constexpr(2)  # Newton steps towards the threshold of sparsemax
ROUNDING: tl.constexpr = tl.constexpr(1e-4)  # far more than float32 can be wrong by
LOWEST: tl.constexpr = tl.constexpr(-3e38)


@triton.jit
def _is_listed(x, before, peak, floor):
    """(listed, low): low entries are listed if the column before them is not low, too."""
    there = x > float("-inf")
    low = there & (x - peak < floor)
    low_before = (before > float("-inf")) & (before - peak < floor)
    return there & ~(low & low_before), low


@triton.jit
def _row_peak(scores, mask, columns, step, mask_step, K: tl.constexpr):
    peak = tl.full([K], float("-inf"), tl.float32)
    for start in range(0, columns, K):
        peak = larger(peak, load_block(scores, mask, start, columns, step, mask_step, K))
    return finite_peak(tl.reduce(peak, 0, larger))


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
    """List the entries to look at: their scores, relative to the largest, and their columns.

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
    floor = tl.maximum(tau - ROUNDING - (4.0 + ROUNDING) * strength, LOWEST).to(tl.float32)
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
