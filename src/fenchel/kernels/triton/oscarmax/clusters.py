"""From the groups of sorted scores to oscarmax: every entry finds its group by its score.

The first scores of the groups decrease. Equal scores are in different groups only if the strength is
zero: then every entry is a group, and equal ones take their ranks in the order of their columns.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
import triton
import triton.language as tl

from fenchel.kernels.triton.arithmetic.elementary import (
    reciprocal,
)
from fenchel.kernels.triton.launch.addressing import (
    row_offset,
)
from fenchel.kernels.triton.launch.kernel import (
    kernel,
)
from fenchel.kernels.triton.launch.parameters import (
    row_parameter,
)
from fenchel.kernels.triton.oscarmax.pooling import (
    sum_at,
)
from fenchel.kernels.triton.tiles.layout import (
    load_block,
)


@triton.jit
def _group_of(x, inside, ordered, sums, starts, support, groups):
    """(first rank, value) of the last group whose first score is not below x."""
    low = (x * 0.0).to(tl.int32)
    high = low + groups - 1
    span = groups
    while span > 1:
        middle = (low + high + 1) // 2
        first = tl.load(starts + middle, mask=inside, other=0)
        reached = tl.load(ordered + first, mask=inside, other=0.0) >= x
        low = tl.where(reached, middle, low)
        high = tl.where(reached, high, middle - 1)
        span = (span + 1) // 2
    begin = tl.load(starts + low, mask=inside, other=0)
    end = tl.load(starts + low + 1, mask=inside & (low + 1 < groups), other=0)
    end = tl.where(low + 1 < groups, end, support)
    rise = sum_at(sums, end, inside) - sum_at(sums, begin, inside)
    return begin, rise * reciprocal(tl.maximum(end - begin, 1))


@triton.jit
def _number_ties(
    scores, mask, first, value, rank, columns, steps, mask_steps, first_steps, K: tl.constexpr,
):  # fmt: skip
    """Give the entries of score `value` the ranks from `rank`, in the order of columns."""
    for start in range(0, columns, K):
        x = load_block(scores, mask, start, columns, steps[3], mask_steps[3], K)
        equal = x == value
        number = rank + tl.cumsum(equal.to(tl.int32), axis=0) - 1
        place = (start + tl.arange(0, K)).to(tl.int64) * first_steps[3]
        tl.store(first + place, number, mask=equal)
        rank += tl.sum(equal.to(tl.int32), axis=0)


@kernel
def write_clusters(
    scores, out, first, mask, strengths, ordered, sums, starts, supports, groups, taus, high, low,
    columns, middle, inner,
    steps, out_steps, first_steps, mask_steps, strength_steps,
    LEVELS: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    strength = row_parameter(
        high, low, strengths, row, row >= 0, middle, inner, strength_steps, LEVELS
    )
    ordered += row * columns
    sums += row * columns
    starts += row * columns
    support = tl.load(supports + row)
    number = tl.load(groups + row)
    tau = tl.load(taus + row)
    largest = tl.load(ordered)
    lowest = tl.load(ordered + support - 1, mask=support > 0, other=float("inf"))
    alone = reciprocal(support).to(tl.float32)  # if there is one group
    poison = tl.where((largest < float("inf")) & (strength == strength), 0.0, float("nan"))
    scores += row_offset(row, middle, inner, steps, LEVELS)
    if mask is not None:
        mask += row_offset(row, middle, inner, mask_steps, LEVELS)
    out += row_offset(row, middle, inner, out_steps, LEVELS)
    first += row_offset(row, middle, inner, first_steps, LEVELS)
    for start in range(0, columns, K):
        x = load_block(scores, mask, start, columns, steps[3], mask_steps[3], K)
        inside = (x >= lowest) & (x < float("inf"))
        if number == 1:
            begin = tl.zeros([K], tl.int32)
            p = tl.where(inside, alone, 0.0) + poison
        else:
            begin, z = _group_of(x, inside, ordered, sums, starts, support, number)
            p = tl.where(inside, tl.maximum(z - tau, 0.0), 0.0).to(tl.float32) + poison
        column = start + tl.arange(0, K)
        place = column.to(tl.int64)
        tl.store(out + place * out_steps[3], p, mask=column < columns)
        name = tl.where(x == float("-inf"), -1, tl.where(p > 0.0, begin, 0))
        tl.store(first + place * first_steps[3], name, mask=column < columns)
    if strength == 0.0:
        tl.debug_barrier()
        begin_equal = 0
        for rank in range(1, support + 1):
            value = tl.load(ordered + rank - 1)
            following = tl.load(ordered + rank, mask=rank < support, other=float("-inf"))
            if value != following:
                if rank - begin_equal > 1:
                    _number_ties(
                        scores, mask, first, value, begin_equal, columns, steps, mask_steps,
                        first_steps, K,
                    )  # fmt: skip
                begin_equal = rank
