"""Pooling adjacent violators as geometry: the least concave line above the sums of sorted scores.

With C_k the sum of the k largest u = x + strength rank, the threshold and the size of the support
follow from (N.39) without the groups. The groups are the straight pieces of the least concave line
above C_0, ..., C_m, and the value of a group is the slope of its piece. The corners of the line are
found in two ways. From one corner, the next is where the slope of the line to it is largest, which a
program finds for one row in parallel: good for large supports, which mostly have few groups. Or one
lane per row visits the sums in order and keeps the corners on a stack, which takes two steps per entry:
good for small supports, and for what the first way leaves after some corners.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
# pyright: reportAttributeAccessIssue=false
# ruff: noqa: SIM108 (in device code both branches of a choice would run)
import triton
import triton.language as tl

from fenchel.kernels.triton.arithmetic.elementary import (
    reciprocal,
)
from fenchel.kernels.triton.launch.kernel import (
    kernel,
)
from fenchel.kernels.triton.launch.parameters import (
    row_parameter,
)

MAX_LANE_SUPPORT: tl.constexpr = tl.constexpr(64)  # entries of a support that is left to a lane
MAX_CORNERS: tl.constexpr = tl.constexpr(16)


@triton.jit
def _cumulative_sums(ordered, sums, starts, strength, columns, K: tl.constexpr):
    """Write C_1, C_2, ...; returns m, tau and the first corner of the line, at the largest C_k/k.

    C is -inf between equal scores, where there is no corner.
    """
    largest = tl.load(ordered).to(tl.float64)
    unlinked = tl.zeros([K], tl.float64) + strength == 0.0  # then every entry is a group of its own
    best = tl.full([K], float("-inf"), tl.float64)
    attained = tl.zeros([K], tl.int32)
    steepest, corner_at = best, attained
    before = largest * 0.0
    for start in range(0, columns, K):
        rank = start + tl.arange(0, K)
        x = tl.load(ordered + rank, mask=rank < columns, other=float("-inf"))
        following = tl.load(ordered + rank + 1, mask=rank + 1 < columns, other=float("-inf"))
        there = x > float("-inf")
        u = tl.where(there, x.to(tl.float64) - largest + strength * rank.to(tl.float64), 0.0)
        corner = there & ((x != following) | unlinked)
        total = tl.where(corner, before + tl.cumsum(u, axis=0), float("-inf"))
        tl.store(sums + rank, total, mask=there)
        tl.store(starts + rank, rank, mask=there & unlinked)
        share = reciprocal(rank + 1)
        slope = total * share
        rate = slope - share
        attained = tl.where(rate > best, rank + 1, attained)
        best = tl.maximum(best, rate)
        corner_at = tl.where(slope >= steepest, rank + 1, corner_at)
        steepest = tl.maximum(steepest, slope)
        before += tl.sum(u, axis=0)
    tau = tl.max(best, axis=0)
    support = tl.min(tl.where(best == tau, attained, columns), axis=0)
    highest = tl.max(steepest, axis=0)
    first = tl.max(tl.where(steepest == highest, corner_at, 0), axis=0)
    return support, tau, tl.minimum(first, support)


@triton.jit
def _find_corners(sums, starts, support, corner, K: tl.constexpr):
    """Find more corners of a large support; returns the number of groups, negative if there are more."""
    # If the strength is NaN, there is no corner.
    height = tl.load(sums + corner - 1, mask=corner > 0, other=0.0)
    number = support * 0 + 1
    tl.store(starts, 0)
    while (corner < support) & (support > MAX_LANE_SUPPORT) & (number < MAX_CORNERS):
        best = tl.full([K], float("-inf"), tl.float64)
        attained = tl.zeros([K], tl.int32)
        for start in range(corner, support, K):
            rank = start + tl.arange(0, K)
            total = tl.load(sums + rank, mask=rank < support, other=float("-inf"))
            slope = (total - height) * reciprocal(rank + 1 - corner)
            attained = tl.where(slope >= best, rank + 1, attained)
            best = tl.maximum(best, slope)
        steepest = tl.max(best, axis=0)
        tl.store(starts + number, corner)
        corner = tl.max(tl.where(best == steepest, attained, 0), axis=0)
        height = tl.load(sums + corner - 1)
        number += 1
    tl.store(starts + number, corner, mask=corner < support)
    return tl.where(corner < support, -number, number)


@kernel
def find_oscar_support(
    ordered, strengths, sums, starts, supports, groups, taus, high, low, columns, middle, inner,
    strength_steps,
    LEVELS: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """The support, its threshold, and the number of groups; -n if only n of more groups are known."""
    row = tl.program_id(0).to(tl.int64)
    strength = row_parameter(
        high, low, strengths, row, row >= 0, middle, inner, strength_steps, LEVELS
    )
    ordered += row * columns
    sums += row * columns
    starts += row * columns
    largest = tl.load(ordered)
    support = 0
    number = 1
    tau = largest.to(tl.float64)
    if (largest > float("-inf")) & (largest < float("inf")):
        support, tau, corner = _cumulative_sums(ordered, sums, starts, strength, columns, K)
        tl.debug_barrier()
        if strength == 0.0:
            number = support
        else:
            number = _find_corners(sums, starts, support, corner, K)
    tl.store(supports + row, support)
    tl.store(groups + row, number)
    tl.store(taus + row, tau)


@triton.jit
def sum_at(sums, corner, active):
    return tl.load(sums + corner - 1, mask=active & (corner > 0), other=0.0)


@kernel
def pool_lanes(sums, starts, supports, groups, count, columns, LANES: tl.constexpr):
    """Write the beginnings and the number of the groups, for rows whose groups are not known yet."""
    row = tl.program_id(0).to(tl.int64) * LANES + tl.arange(0, LANES)
    exists = row < count
    support = tl.load(supports + row, mask=exists, other=0)
    number = tl.load(groups + row, mask=exists, other=1)
    wanted = number <= 0
    sums += row * columns
    starts += row * columns
    depth = tl.where(wanted, -number, 0)  # corners beside the first, which is at 0
    last = tl.load(starts + depth, mask=wanted, other=0)
    before = tl.load(starts + depth - 1, mask=depth > 0, other=0)
    sum_last = sum_at(sums, last, wanted)
    sum_before = sum_at(sums, before, wanted)
    i = last + 1
    active = wanted
    while tl.max(active.to(tl.int32), axis=0) > 0:
        total = tl.load(sums + i - 1, mask=active, other=0.0)
        rise = (total - sum_last) * (last - before).to(tl.float64)
        below = rise >= (sum_last - sum_before) * (i - last).to(tl.float64)
        skipped = total == float("-inf")
        popped = active & (depth > 0) & below & ~skipped
        pushed = active & ~popped & ~skipped
        depth = tl.where(popped, depth - 1, tl.where(pushed, depth + 1, depth))
        tl.store(starts + depth, i, mask=pushed & (i < support))
        below_top = popped & (depth > 0)
        older = tl.load(starts + depth - 1, mask=below_top, other=0)
        sum_older = sum_at(sums, older, below_top)
        old_last, old_sum = last, sum_last
        last = tl.where(pushed, i, tl.where(popped, before, last))
        sum_last = tl.where(pushed, total, tl.where(popped, sum_before, sum_last))
        before = tl.where(pushed, old_last, tl.where(popped, older, before))
        sum_before = tl.where(pushed, old_sum, tl.where(popped, sum_older, sum_before))
        i = tl.where(popped, i, i + 1)
        active = active & (i <= support)
    tl.store(groups + row, depth, mask=wanted)
