"""The prox of 1-D total variation in linear time, for rows that the direct method gave up.

Let f_i(b) be the least cost of the first i entries if z_i = b. Its slope is b - x_i plus the slope of
f_{i-1} clipped to [-strength, strength], a rising function made of straight pieces. Between the points
low_i and high_i where the slope of f_i is -strength and +strength it is kept as a list of knots
(a position, and how much the slope rises there) that is only ever cut and extended at its ends: every
knot is made once and dropped once. The last z is where the slope is zero, and backwards
z_i = z_{i+1} clipped to [low_i, high_i].

One row a lane; a program takes one block of rows after another, so that the lists need little memory.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
import triton
import triton.language as tl

from fenchel.kernels.triton.launch.kernel import kernel
from fenchel.kernels.triton.launch.parameters import row_parameter

NUMBERS_AN_ENTRY = 6  # float64: two bounds, two knots with their rises


@triton.jit
def _any(condition):
    return tl.max(condition.to(tl.int32), axis=0) > 0


@triton.jit
def _cut_from_left(knots, rises, left, right, offset, goal, going, LANES: tl.constexpr):
    """Drop the knots below the point where b + offset, bent at each knot, is `goal`."""
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
    """Fill the bounds of all entries but the last; returns the value of the last."""
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
def prox_slow_rows(
    strengths, values, signs, listed, resumed, workspace, high, low, count, columns,
    middle, inner, strength_steps,
    LEVELS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Go on where `prox_lanes` gave up."""
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
