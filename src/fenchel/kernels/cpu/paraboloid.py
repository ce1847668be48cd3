"""The integrals of `reference/paraboloid`, one pair of density and basis function at a time.

First the chords of a block of pairs are planned, in vectors over the pairs: their direction and
places, as the reference chooses them. Then, pair by pair, the integral and its six slopes are summed
in vectors over the chords.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from fenchel.kernels.cpu.disk.peak import enough, node, secular_root, spread
from fenchel.kernels.cpu.disk.window import closed, expansion
from fenchel.kernels.cpu.launch.compilation import Kernel, reducing, scalar, sequential
from fenchel.kernels.cpu.launch.memory import TENSORS, advance, integer_at, load, store
from fenchel.kernels.cpu.launch.sharing import for_each_row, matrix_row
from fenchel.kernels.cpu.launch.threads import launch
from fenchel.kernels.reference.paraboloid import CONSTANT, POWER, STRAIGHT
from fenchel.kernels.reference.window import NARROW

SLOPES = 6
PLAN = 6  # numbers that say where the chords of a pair are
BLOCK = 32  # pairs planned at once
TINY = 1e-300


@scalar
def _look(a, b, c, d, x, y):
    """cos and sin of the chords' frame, and where the chords are, for G = [[a, b], [c, d]]."""
    overlap, difference = 2.0 * (a * b + c * d), (a * a + c * c) - (b * b + d * d)
    size = math.sqrt(overlap * overlap + difference * difference) + TINY
    larger = math.sqrt(0.5 + 0.5 * (abs(difference) + TINY) / size)  # of half the angle
    smaller = 0.5 * overlap / (size * larger)
    cos = larger if difference >= 0.0 else abs(smaller)
    sin = smaller if difference >= 0.0 else (larger if overlap >= 0.0 else -larger)
    long1, long2 = cos * a + sin * b, cos * c + sin * d
    short1, short2 = cos * b - sin * a, cos * d - sin * c
    g1, g2 = math.sqrt(long1 * long1 + long2 * long2), math.sqrt(short1 * short1 + short2 * short2)
    e1, e2 = (long1 * x + long2 * y) / g1, (short1 * x + short2 * y) / g2
    nu = secular_root(g1, e1, g2, e2)
    square1, square2 = g1 * g1, g2 * g2
    u1, u2 = g1 * e1 / (square1 + nu), g2 * e2 / (square2 + nu)
    along1, along2 = u1 / square1, u2 / square2
    size = math.sqrt(along1 * along1 + along2 * along2)
    straight = square2 >= STRAIGHT * g1 and size > 0.0
    inverse = 1.0 / (size if straight else 1.0)
    lean_c = along2 * inverse if straight else 1.0
    lean_s = -along1 * inverse if straight else 0.0
    bend = nu * nu / POWER
    h11, h22 = square1 + nu + bend * u1 * u1, square2 + nu + bend * u2 * u2
    h12 = bend * u1 * u2
    inner = lean_s * lean_s * h11 - 2.0 * lean_s * lean_c * h12 + lean_c * lean_c * h22
    curvature = (h11 * h22 - h12 * h12) / inner
    gaussian = square1 * square2 / (lean_s * lean_s * square1 + lean_c * lean_c * square2)
    outside = abs(e2) - g2
    edge = g2 * (outside if outside > 0.0 else 0.0)
    edge = 0.7 * curvature - gaussian if lean_s != 0.0 else edge
    concavity = gaussian + 2.0 * POWER + edge
    concavity = concavity if concavity > gaussian else gaussian
    middle, scale, first, last = spread(lean_c * u1 + lean_s * u2, curvature, concavity)
    return cos * lean_c - sin * lean_s, sin * lean_c + cos * lean_s, middle, scale, first, last


@reducing
def _look_at_block(linear, offset, count, plan):
    """Plan the chords of `count` pairs at once, in vectors; PLAN numbers a pair, BLOCK apart."""
    for i in range(count):
        a, b = load(linear, 4 * i), load(linear, 4 * i + 1)
        c, d = load(linear, 4 * i + 2), load(linear, 4 * i + 3)
        x, y = load(offset, 2 * i), load(offset, 2 * i + 1)
        cos, sin, middle, scale, first, last = _look(a, b, c, d, x, y)
        store(plan, i, cos)
        store(plan, BLOCK + i, sin)
        store(plan, 2 * BLOCK + i, middle)
        store(plan, 3 * BLOCK + i, scale)
        store(plan, 4 * BLOCK + i, first)
        store(plan, 5 * BLOCK + i, last)


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
    _look_at_block(linear, offset, count, plan)
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


def _run(arguments):
    for_each_row(arguments, _block)


_kernel = Kernel(_run)


def paraboloid(linear: Tensor, offset: Tensor, angles: int) -> tuple[Tensor, Tensor]:
    """The integral (…) and its slopes (…, 6); see the reference."""
    shape, dtype = offset.shape[:-1], offset.dtype
    linear, offset = (
        tensor.to(torch.float64).reshape(-1, size).contiguous()
        for tensor, size in ((linear.flatten(-2), 4), (offset, 2))
    )
    pairs = len(offset)
    value, slopes = offset.new_empty(pairs), offset.new_empty(pairs, SLOPES)
    blocks = offset.new_empty(1).expand(-(-pairs // BLOCK), BLOCK * angles)  # nodes, a row a block
    scratch = 3 * angles + PLAN * BLOCK
    launch(_kernel, blocks, 0.0, scratch, linear, offset, value, slopes, pairs, angles)
    return value.view(shape).to(dtype), slopes.view(*shape, SLOPES).to(dtype)
