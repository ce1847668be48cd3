"""The prox of 1-D total variation, one row per lane: Condat's direct method as a state machine.

A group that begins at `first` has a value between `floor` and `ceiling`: the lowest and highest for
which the dual variable (the partial sums of x - value) has stayed within +-strength so far; `low` and
`high` are the dual variables of these two. If the next entry makes `low` smaller than -strength, no
value is possible, and the group ended, with the value `floor`, where its dual variable last was
+strength: at entry `bottom`. Likewise for `ceiling` and entry `top`. At the last entry the dual
variable must be zero. All lanes of a program step together, each at its own entry, so a step does
whatever each lane needs next: begin a group, take one more entry, or end the group and return to the
entry after it.

Rows on which the direct method takes too many steps are solved in linear time by dynamic programming,
(N.38): the slope of f_i is a list of knots (a position and the change of slope there) between low_i and
high_i, which is only cut and extended at its ends. A program takes one block of rows after another, so
that the lists need little memory.

Reference: Condat (2013), A Direct Algorithm for 1-D Total Variation Denoising.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
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

NUMBERS_PER_ENTRY = 6  # float64: two bounds, two knots with their rises


@kernel
def prox_lanes(
    strengths, values, signs, listed, resumed, high_part, low_part, count, columns, patience,
    middle, inner, strength_steps,
    LEVELS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Replace the first entry of every group by the value of the group, and store the sign of its jump.

    A lane stops after `patience` steps per entry; `resumed` is then the first entry without a group,
    otherwise the number of entries.
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


@triton.jit
def _any(condition):
    return tl.max(condition.to(tl.int32), axis=0) > 0


@triton.jit
def _cut_from_left(knots, rises, left, right, offset, goal, going, LANES: tl.constexpr):
    """Drop the knots below the point where the piecewise linear function reaches `goal`."""
    slope = tl.full([LANES], 1.0, tl.float64)
    going = going & (left <= right)
    while _any(going):
        knot = tl.load(knots + left * LANES, mask=going, other=0.0)
        going = going & (slope * knot + offset < goal)
        rise = tl.load(rises + left * LANES, mask=going, other=0.0)
        offset -= rise * knot
        slope += rise
        left += going.to(tl.int32)
        going = going & (left <= right)
    return left, slope, (goal - offset) / slope


@triton.jit
def _cut_from_right(knots, rises, left, right, offset, goal, going, LANES: tl.constexpr):
    slope = tl.full([LANES], 1.0, tl.float64)
    going = going & (left <= right)
    while _any(going):
        knot = tl.load(knots + right * LANES, mask=going, other=0.0)
        going = going & (slope * knot + offset > goal)
        rise = tl.load(rises + right * LANES, mask=going, other=0.0)
        offset += rise * knot
        slope -= rise
        right -= going.to(tl.int32)
        going = going & (left <= right)
    return right, slope, (goal - offset) / slope


@triton.jit
def _forward(values, lows, highs, knots, rises, length, strength, jump, LANES: tl.constexpr):
    """Fill the bounds of all entries except the last; returns the value of the last."""
    left = length
    right = length - 1
    bend = strength * 0.0
    shift = -strength * jump  # the group before lies on a known side
    last = bend
    for i in range(tl.max(length, axis=0)):
        goes_on = i + 1 < length
        y = tl.load(values + i, mask=i < length, other=0.0) + shift
        goal = tl.where(goes_on, -strength, 0.0)
        left, slope, low = _cut_from_left(
            knots, rises, left, right, -y - bend, goal, i < length, LANES
        )
        right, fall, high = _cut_from_right(
            knots, rises, left, right, bend - y, strength, goes_on, LANES
        )
        last = tl.where(i + 1 == length, low, last)
        left = tl.where(goes_on, left - 1, left)
        right = tl.where(goes_on, right + 1, right)
        tl.store(knots + left * LANES, low, mask=goes_on)
        tl.store(rises + left * LANES, slope, mask=goes_on)
        tl.store(knots + right * LANES, high, mask=goes_on)
        tl.store(rises + right * LANES, -fall, mask=goes_on)
        tl.store(lows + i * LANES, low, mask=goes_on)
        tl.store(highs + i * LANES, high, mask=goes_on)
        bend = strength
        shift = strength * 0.0
    return last


@triton.jit
def _backward(values, signs, lows, highs, length, value, LANES: tl.constexpr):
    """Write the value and the jump of every group where it begins."""
    place = length - 2
    while _any(place >= 0):
        inside = place >= 0
        low = tl.load(lows + place * LANES, mask=inside, other=0.0)
        high = tl.load(highs + place * LANES, mask=inside, other=0.0)
        sign = tl.where(value < low, -1, tl.where(value > high, 1, 0))
        begins = inside & (sign != 0)
        tl.store(values + place + 1, value, mask=begins)
        tl.store(signs + place + 1, sign.to(tl.int8), mask=begins)
        value = tl.where(inside, tl.minimum(tl.maximum(value, low), high), value)
        place -= 1
    tl.store(values, value, mask=length > 0)


@kernel
def prox_by_knots(
    strengths, values, signs, listed, resumed, workspace, high, low, count, columns,
    middle, inner, strength_steps,
    LEVELS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Continue where `prox_lanes` stopped."""
    lane = tl.arange(0, LANES)
    program = tl.program_id(0).to(tl.int64)
    lows = workspace + program * (6 * columns + 4) * LANES + lane
    highs = lows + columns * LANES
    knots = highs + columns * LANES
    rises = knots + (2 * columns + 2) * LANES
    block = program
    while block * LANES < count:
        row = block * LANES + lane
        exists = row < count
        first = tl.load(resumed + row, mask=exists, other=0)
        length = tl.load(listed + row, mask=exists, other=0) - first
        if _any(length > 0):
            strength = row_parameter(
                high, low, strengths, row, exists, middle, inner, strength_steps, LEVELS
            )
            begin = row * columns + first
            jump = tl.load(signs + begin, mask=(length > 0) & (first > 0), other=0).to(tl.float64)
            value = _forward(
                values + begin, lows, highs, knots, rises, length, strength, jump, LANES
            )
            _backward(values + begin, signs + begin, lows, highs, length, value, LANES)
        block += tl.num_programs(0)
