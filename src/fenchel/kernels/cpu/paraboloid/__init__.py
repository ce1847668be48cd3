"""Integrals of Gaussians over a paraboloid on the unit disk, with their derivatives, on the CPU.

The method is that of `reference/paraboloid`. First the chords of a block of pairs of a density and a
basis function are planned, in vectors over the pairs. Then, pair by pair, the integral and its six
derivatives are summed in vectors over the chords.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from fenchel.kernels.cpu.launch.compilation import Kernel, inlined, reducing
from fenchel.kernels.cpu.launch.memory import TENSORS, advance, integer_at, load, store
from fenchel.kernels.cpu.launch.threads import for_each_row, launch, matrix_row
from fenchel.kernels.cpu.paraboloid.chords import (
    PAIRS_PER_BLOCK,
    PLAN_SIZE,
    node,
    node_count,
    plan_chords,
)
from fenchel.kernels.cpu.paraboloid.window import closed_form, expansion
from fenchel.kernels.reference.paraboloid import CONSTANT
from fenchel.kernels.reference.paraboloid_window import EXPANSION_LIMIT

SLOPES = 6


@reducing
def _place_nodes(middle, scale, first, step, count, places, heights, weights):
    for i in range(count):
        u, height, weight = node(i, middle, scale, first, step)
        store(places, i, u)
        store(heights, i, height)
        store(weights, i, weight * height * height)


def _summation(window):
    @reducing
    def total(places, heights, weights, count, length, x0, x1, y0, y1):
        """The integral and its derivatives in the frame, rows (across, along), columns (G, G, e)."""
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


_closed_total, _expanded_total = _summation(closed_form), _summation(expansion)


@inlined
def _pair(linear, offset, value, slopes, plan, angles, workspace):
    a, b, c, d = load(linear, 0), load(linear, 1), load(linear, 2), load(linear, 3)
    x, y = load(offset, 0), load(offset, 1)
    cos, sin = load(plan, 0), load(plan, PAIRS_PER_BLOCK)
    middle, scale = load(plan, 2 * PAIRS_PER_BLOCK), load(plan, 3 * PAIRS_PER_BLOCK)
    first, last = load(plan, 4 * PAIRS_PER_BLOCK), load(plan, 5 * PAIRS_PER_BLOCK)
    column1, column2 = cos * a + sin * b, cos * c + sin * d
    along1, along2 = cos * b - sin * a, cos * d - sin * c
    length = math.sqrt(along1 * along1 + along2 * along2)
    along1, along2 = along1 / length, along2 / length
    across1, across2 = along2, -along1
    x0, x1 = across1 * x + across2 * y, across1 * column1 + across2 * column2
    y0, y1 = along1 * x + along2 * y, along1 * column1 + along2 * column2
    angles = node_count(angles, last - first)
    step = (last - first) / (angles - 1)
    heights, weights = advance(workspace, angles), advance(workspace, 2 * angles)
    _place_nodes(middle, scale, first, step, angles, workspace, heights, weights)
    if length * max(abs(y0) + abs(y1), 2.0) <= EXPANSION_LIMIT:
        sums = _expanded_total(workspace, heights, weights, angles, length, x0, x1, y0, y1)
    else:
        sums = _closed_total(workspace, heights, weights, angles, length, x0, x1, y0, y1)
    s, s11, s12, s13, s21, s22, s23 = sums
    factor = CONSTANT / (length * length * length)
    store(value, 0, factor * s)
    # axes · derivatives in the frame · rotationᵀ
    top1, top2 = across1 * s11 + along1 * s21, across1 * s12 + along1 * s22
    low1, low2 = across2 * s11 + along2 * s21, across2 * s12 + along2 * s22
    store(slopes, 0, factor * (top1 * cos - top2 * sin))
    store(slopes, 1, factor * (top1 * sin + top2 * cos))
    store(slopes, 2, factor * (low1 * cos - low2 * sin))
    store(slopes, 3, factor * (low1 * sin + low2 * cos))
    store(slopes, 4, factor * (across1 * s13 + along1 * s23))
    store(slopes, 5, factor * (across2 * s13 + along2 * s23))


@inlined
def _block(arguments, row, _, columns, workspace):
    pairs, angles = integer_at(arguments, TENSORS + 4), integer_at(arguments, TENSORS + 5)
    start = row * PAIRS_PER_BLOCK
    count = min(PAIRS_PER_BLOCK, pairs - start)
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


def _pair_rows(arguments):
    """The integral and its derivatives of every pair; a row is a block of pairs."""
    for_each_row(arguments, _block)


def _workspace(angles: int) -> int:
    """Scratch memory of a thread in float64 numbers: the chords of a pair, and the plan of a block."""
    return 3 * angles + PLAN_SIZE * PAIRS_PER_BLOCK


_pair_kernel = Kernel(_pair_rows)


def paraboloid(linear: Tensor, offset: Tensor, angles: int) -> tuple[Tensor, Tensor]:
    """The integral (…) and its derivatives (…, 6); see the reference."""
    shape, dtype = offset.shape[:-1], offset.dtype
    linear, offset = (
        tensor.to(torch.float64).reshape(-1, size).contiguous()
        for tensor, size in ((linear.flatten(-2), 4), (offset, 2))
    )
    pairs = len(offset)
    value, slopes = offset.new_empty(pairs), offset.new_empty(pairs, SLOPES)
    # `launch` chooses the number of threads by the size of this matrix: one row of nodes per block.
    blocks = offset.new_empty(1).expand(-(-pairs // PAIRS_PER_BLOCK), PAIRS_PER_BLOCK * angles)
    workspace = _workspace(angles)
    launch(_pair_kernel, blocks, 0.0, workspace, linear, offset, value, slopes, pairs, angles)
    return value.view(shape).to(dtype), slopes.view(*shape, SLOPES).to(dtype)
