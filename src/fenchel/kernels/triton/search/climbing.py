"""A climb to the root of F(A) = 1, visit by visit: when it ends, and where it goes next.

`visit(data, point, e, KIND)` returns F of every row, the step of Newton's or Halley's method from there
(`steps`) and, if it is one that a climb may end with, whether that step may miss the root. Where scores
leave the support Halley's step may pass the root, and Newton's from there may lead back to where it
began: every row keeps a bracket, and a step that leaves it goes to its middle instead.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false
# ruff: noqa: RET505 (what is known when a kernel is compiled needs if and else)
import triton
import triton.language as tl

from fenchel.kernels.triton.arithmetic.entries import first_point
from fenchel.kernels.triton.arithmetic.two_floats import two_sum
from fenchel.kernels.triton.launch.alpha import ENTMAX15, GENERAL, SHARP, TAME
from fenchel.kernels.triton.search.steps import sharp_touch
from fenchel.kernels.triton.tiles.across_threads import any_row

NEXT: tl.constexpr = tl.constexpr(1.2e-7)  # so much less of a number is at most the one below it
ROOM: tl.constexpr = tl.constexpr(0.01)
STRAY: tl.constexpr = tl.constexpr(4e-6)  # excess above which no rounding keeps it from falling


@triton.jit
def needs_more(mass, step, e, columns, loose, leap, KIND: tl.constexpr):
    """Whether |F - 1| is above `loose` and need not be below after this step."""
    far = (tl.abs(mass - 1.0) > loose) & (mass > 0.0)
    if KIND == ENTMAX15:  # F'' is half the size of the support
        return far & (0.25 * columns * mass * step * step > 0.5 * loose)
    elif KIND == SHARP:
        return far & (tl.abs(step) > sharp_touch(e))
    elif KIND >= GENERAL:
        return far & ((e > TAME) | (tl.abs(step) > leap))
    else:
        return far


@triton.jit
def still_falls(mass, excess, KIND: tl.constexpr):
    """Whether |F - 1| is below `excess`, as it is until rounding ends it.

    Where powers are needed it may rise when the step before moved the support.
    """
    falls = tl.abs(mass - 1.0) < excess
    if KIND >= GENERAL:
        falls = falls | (excess > STRAY)
    return falls


@triton.jit
def narrowed(point, mass, low, high):
    """The bracket with a point in it where F is `mass`."""
    return tl.where(mass >= 1.0, point, low), tl.where(mass < 1.0, point, high)


@triton.jit
def next_point(point, step, low, high, KIND: tl.constexpr):
    """point + step; where powers are needed, the middle of the bracket if that is not inside it. For
    other alphas it is not rounded up: beyond the root many small entries may be gone."""
    if KIND >= GENERAL:
        ahead = point + step
        outside = ((ahead <= low) | (ahead >= high)) & (ahead != point)
        return tl.where(outside, 0.5 * (low + high), ahead)
    else:
        ahead, rest = two_sum(point, step)
        below = tl.maximum(ahead - tl.abs(ahead) * NEXT, point)
        return tl.where((rest < 0.0) & (step > 0.0), below, ahead)


@triton.jit
def lowest_point(e, KIND: tl.constexpr):
    """Where a bracket begins: a tangent may cross 1 a little to the left of where the search begins, and
    from there the root is near, while the middle of the bracket is not."""
    return first_point(e, KIND) - ROOM


@triton.jit
def _before_visits(point, e, KIND: tl.constexpr):
    """The state of `_after_visit` where nothing is known."""
    infinite = point + float("inf")
    return point, point * 0.0, lowest_point(e, KIND), infinite, infinite, point == point


@triton.jit
def _after_visit(seen, state, e, columns, loose, leap, KIND: tl.constexpr):
    """(point, step, bracket, excess, whether it goes on) of every row, given a visit to `point`."""
    mass, found = seen[0], seen[1]
    point, step, low, high, excess, climbing = state
    low, high = narrowed(point, mass, low, high)
    falls = still_falls(mass, excess, KIND)
    excess = tl.where(climbing, tl.abs(mass - 1.0), excess)
    step = tl.where(climbing, found, step)
    ahead = next_point(point, step, low, high, KIND)
    far = needs_more(mass, step, e, columns, loose, leap, KIND)
    if len(seen) > 2:
        far = far | (seen[2] & (tl.abs(mass - 1.0) > loose) & (mass > 0.0))
    climbing = climbing & falls & far & (ahead != point)
    return tl.where(climbing, ahead, point), step, low, high, excess, climbing


@triton.jit
def climb(
    visit: tl.constexpr, data, point, e, columns, loose, leap, R: tl.constexpr, KIND: tl.constexpr,
    UNROLL: tl.constexpr = True,
):  # fmt: skip
    """(point, step) whose sum is the root, from a point at or to the left of it.

    Ends when |F - 1| is below `loose`, when it must be after the next step (`leap`: the length from
    which one by Halley suffices), or when it no longer falls (rounding). NaN ends at once.
    UNROLL: the first visit stands before the loop, which is faster on chip. Triton takes long to compile
    a kernel with many loads, so a visit that loads stands in the loop alone.
    """
    state = _before_visits(point, e, KIND)
    mass = point * 0.0
    if UNROLL:
        seen = visit(data, state[0], e, KIND)
        mass = seen[0]
        state = _after_visit(seen, state, e, columns, loose, leap, KIND)
    while any_row(state[5], R):
        seen = visit(data, state[0], e, KIND)
        mass = seen[0]
        state = _after_visit(seen, state, e, columns, loose, leap, KIND)
    return state[0], tl.where(mass > 0.0, state[1], 0.0)
