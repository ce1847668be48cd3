"""The integrals of `reference/paraboloid`, one pair of density and basis function at a time.

First the chords of a block of pairs are planned, in vectors over the pairs. Then, pair by pair, the
integral and its six slopes are summed in vectors over the chords.
"""

from __future__ import annotations

import math

from fenchel.kernels.cpu.disk.chords import BLOCK, PLAN, plan_chords
from fenchel.kernels.cpu.disk.peak import enough, node
from fenchel.kernels.cpu.disk.window import closed, expansion
from fenchel.kernels.cpu.launch.compilation import reducing, sequential
from fenchel.kernels.cpu.launch.memory import TENSORS, advance, integer_at, load, store
from fenchel.kernels.cpu.launch.sharing import for_each_row, matrix_row
from fenchel.kernels.reference.paraboloid import CONSTANT
from fenchel.kernels.reference.window import NARROW

SLOPES = 6


@reducing
def _place(middle, scale, first, step, count, places, heights, weights):
    for i in range(count):
        u, height, weight = node(i, middle, scale, first, step)
        store(places, i, u)
        store(heights, i, height)
        store(weights, i, weight * height * height)


def _summation(window):
    @reducing
    def total(places, heights, weights, count, length, x0, x1, y0, y1):
        """The integral and its slopes in the frame, rows (across, along), columns (G, G, e)."""
        s, s11, s12, s13, s21, s22, s23 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(count):
            u = load(places, i)
            x, y = x0 - x1 * u, y0 - y1 * u
            mass, lever, moment, twist = window(load(heights, i) * length, y, x)
            weight = load(weights, i)
            mass, lever = weight * mass, weight * lever
            moment, twist = weight * moment, weight * twist
            s += mass
            s11 += x * u * mass
            s12 += x * moment
            s13 -= x * mass
            s21 -= u * lever
            s22 -= twist
            s23 += lever
        return s, s11, s12 / length, s13, s21, s22 / length, s23

    return total


_closed_total, _expanded_total = _summation(closed), _summation(expansion)


@sequential
def _pair(linear, offset, value, slopes, plan, angles, workspace):
    a, b, c, d = load(linear, 0), load(linear, 1), load(linear, 2), load(linear, 3)
    x, y = load(offset, 0), load(offset, 1)
    cos, sin = load(plan, 0), load(plan, BLOCK)
    middle, scale = load(plan, 2 * BLOCK), load(plan, 3 * BLOCK)
    first, last = load(plan, 4 * BLOCK), load(plan, 5 * BLOCK)
    column1, column2 = cos * a + sin * b, cos * c + sin * d
    along1, along2 = cos * b - sin * a, cos * d - sin * c
    length = math.sqrt(along1 * along1 + along2 * along2)
    along1, along2 = along1 / length, along2 / length
    across1, across2 = along2, -along1
    x0, x1 = across1 * x + across2 * y, across1 * column1 + across2 * column2
    y0, y1 = along1 * x + along2 * y, along1 * column1 + along2 * column2
    angles = enough(angles, last - first)
    step = (last - first) / (angles - 1)
    heights, weights = advance(workspace, angles), advance(workspace, 2 * angles)
    _place(middle, scale, first, step, angles, workspace, heights, weights)
    if length * max(abs(y0) + abs(y1), 2.0) <= NARROW:
        sums = _expanded_total(workspace, heights, weights, angles, length, x0, x1, y0, y1)
    else:
        sums = _closed_total(workspace, heights, weights, angles, length, x0, x1, y0, y1)
    s, s11, s12, s13, s21, s22, s23 = sums
    factor = CONSTANT / (length * length * length)
    store(value, 0, factor * s)
    # axes · slopes in the frame · turnsᵀ
    top1, top2 = across1 * s11 + along1 * s21, across1 * s12 + along1 * s22
    low1, low2 = across2 * s11 + along2 * s21, across2 * s12 + along2 * s22
    store(slopes, 0, factor * (top1 * cos - top2 * sin))
    store(slopes, 1, factor * (top1 * sin + top2 * cos))
    store(slopes, 2, factor * (low1 * cos - low2 * sin))
    store(slopes, 3, factor * (low1 * sin + low2 * cos))
    store(slopes, 4, factor * (across1 * s13 + along1 * s23))
    store(slopes, 5, factor * (across2 * s13 + along2 * s23))


@sequential
def _block(arguments, row, _, columns, workspace):
    pairs, angles = integer_at(arguments, TENSORS + 4), integer_at(arguments, TENSORS + 5)
    start = row * BLOCK
    count = min(BLOCK, pairs - start)
    linear, offset = matrix_row(arguments, 0, start, 4), matrix_row(arguments, 1, start, 2)
    value, slopes = matrix_row(arguments, 2, start, 1), matrix_row(arguments, 3, start, SLOPES)
    plan = advance(workspace, 3 * angles)
    plan_chords(linear, offset, count, plan)
    for i in range(count):
        _pair(
            advance(linear, 4 * i),
            advance(offset, 2 * i),
            advance(value, i),
            advance(slopes, SLOPES * i),
            advance(plan, i),
            angles,
            workspace,
        )


def pair_rows(arguments):
    """The integral and its slopes of every pair; a row is a block of BLOCK pairs."""
    for_each_row(arguments, _block)


def pairs_workspace(angles: int) -> int:
    """Float64 numbers of scratch memory that a thread needs: the chords of a pair, and a plan."""
    return 3 * angles + PLAN * BLOCK
