"""The prox of 1-D total variation, one row a lane: Condat's direct method as a state machine.

A group that begins at `first` takes a value between `floor` and `ceiling`: the lowest and highest for
which the dual variable (the partial sums of x - value) has stayed within +-strength so far; `low` and
`high` are the dual variables of the two. When the next entry drives `low` below -strength no value will
do, and the group ended, at `floor`, where its dual variable last was +strength: entry `bottom`; likewise
at `ceiling`, at entry `top`. At the last entry the dual variable must come to zero.

All lanes of a program step together, each at an entry of its own, so a step does for every lane
whatever its turn is: begin a group, take one more entry, or end the group and go back behind it.

Reference: Condat (2013), A Direct Algorithm for 1-D Total Variation Denoising.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
import triton.language as tl

from fenchel.kernels.triton.launch.kernel import kernel
from fenchel.kernels.triton.launch.parameters import row_parameter
from fenchel.kernels.triton.structured.division import reciprocal


@kernel
def prox_lanes(
    strengths, values, signs, listed, resumed, high_part, low_part, count, columns, patience,
    middle, inner, strength_steps,
    LEVELS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Replace the first entry of every group by its value, and note there the sign of the jump.

    A lane gives up after `patience` steps an entry; `resumed` is then the first entry that has no
    group yet, otherwise the number of entries.
    """
    row = tl.program_id(0).to(tl.int64) * LANES + tl.arange(0, LANES)
    exists = row < count
    strength = row_parameter(
        high_part, low_part, strengths, row, exists, middle, inner, strength_steps, LEVELS
    )
    length = tl.load(listed + row, mask=exists, other=0)
    values += row * columns
    signs += row * columns
    i = tl.zeros([LANES], tl.int32)
    first, bottom, top, steps = i, i, i, i
    zero = tl.zeros([LANES], tl.float64)
    jump, floor, ceiling, low, high = zero, zero, zero, zero, zero
    fresh = i == 0
    unlinked = strength == 0.0  # then every entry is a group of its own
    active = length > 0
    while tl.max(active.to(tl.int32), axis=0) > 0:
        here = tl.where(fresh, first, i + 1)
        at_end = here == length
        y = tl.load(values + here, mask=active & (here < length), other=0.0)
        ends_low = tl.where(at_end, low < 0.0, y + low < floor - strength)
        ends_high = tl.where(at_end, high > 0.0, (y + high > ceiling + strength) | unlinked)
        ends_low = ends_low & active & ~fresh
        ends_high = ends_high & active & ~fresh & ~ends_low
        ends = ends_low | ends_high
        finished = active & at_end & ~ends
        inner_level = floor + low * reciprocal(here - first)
        level = tl.where(ends_low, floor, tl.where(ends_high, ceiling, inner_level))
        tl.store(values + first, level, mask=ends | finished)
        first = tl.where(ends, tl.where(ends_low, bottom, top) + 1, first)
        first = tl.where(finished, length, first)
        jump = tl.where(ends, tl.where(ends_low, -1.0, 1.0), jump)
        tl.store(signs + first, jump.to(tl.int8), mask=ends)
        share = reciprocal(here - first + 1)
        # one more entry
        low += y - floor
        high += y - ceiling
        above = tl.maximum(low - strength, 0.0)
        below = tl.minimum(high + strength, 0.0)
        bottom = tl.where(fresh | (low >= strength), here, bottom)
        top = tl.where(fresh | (high <= -strength), here, top)
        start = y - strength * jump
        floor = tl.where(fresh, start - strength, floor + above * share)
        ceiling = tl.where(fresh, start + strength, ceiling + below * share)
        low = tl.where(fresh, strength, low - above)
        high = tl.where(fresh, -strength, high - below)
        i = here
        fresh = ends
        steps += 1
        active = active & ~finished & (steps < patience * length)
    tl.store(resumed + row, first, mask=exists)
