"""The derivative of entmax in alpha: dp/dalpha = s <r, 1>/<s, 1> - r.

With l = log p and e = alpha - 1, r = p l^2 phi2(-e l) = (s - p + e p l)/e^2, which the first form
gives without cancellation through alpha = 1. Against a gradient g this is <r, mean - g>, where
mean = <s, g>/<s, 1>.
"""

from __future__ import annotations

from fenchel.kernels.cpu.arithmetic.divided_differences import phi2
from fenchel.kernels.cpu.arithmetic.elementary import log
from fenchel.kernels.cpu.arithmetic.weights import entmax_weight, off_support
from fenchel.kernels.cpu.columns.whole_vectors import LANES, load_tail
from fenchel.kernels.cpu.launch.compilation import reducing, scalar, sequential
from fenchel.kernels.cpu.launch.memory import TENSORS, advance, floats_at, load, real, store
from fenchel.kernels.cpu.launch.sharing import for_each_row, matrix_row
from fenchel.kernels.cpu.rows.backward import (
    BLOCK,
    mass_of,
    sum_block,
    sum_row,
)


@scalar
def _curve(p, exponent):
    """r of one entry; `exponent` is 2 - alpha."""
    one = real(p, 1.0)
    e = one - exponent
    length = log(p)
    z = -e * length
    near = p * length * length * phi2(z)
    far = (entmax_weight(p, exponent) - p * (one + z)) / (e * e)
    return near if abs(z) <= one else far


@reducing
def _dot_block(grad, p, groups, exponent, mean):
    zero = real(mean, 0.0)
    total = zero
    for i in range(groups * LANES):
        change = real(mean, _curve(load(p, i), exponent)) * (mean - load(grad, i))
        total += zero if off_support(load(p, i)) else change
    return total


@scalar
def _alpha_gradient(grad, p, columns, exponent, zero, workspace):
    groups = columns // LANES
    tail_grad, tail_p, empty = workspace, advance(workspace, LANES), advance(workspace, 2 * LANES)
    load_tail(grad, columns, tail_grad, 0.0)
    has_tail = load_tail(p, columns, tail_p, 0.0)
    total, dot = sum_row(entmax_weight, grad, p, groups, exponent, zero, empty)
    s, sg = sum_block(entmax_weight, tail_grad, tail_p, has_tail, exponent, zero)
    tail_mass = mass_of(tail_p, has_tail)
    total += s + (tail_mass - tail_mass)
    if total == 0.0:
        return 0.0
    mean = real(zero, (dot + sg) / total)
    result = float(_dot_block(tail_grad, tail_p, has_tail, exponent, mean))
    for start in range(0, groups, BLOCK):
        size, place = min(BLOCK, groups - start), start * LANES
        if load(empty, start // BLOCK) == 0.0:
            result += _dot_block(advance(grad, place), advance(p, place), size, exponent, mean)
    return result


@sequential
def _alpha_row(arguments, row, alpha, columns, workspace):
    grad, p = matrix_row(arguments, 0, row, columns), matrix_row(arguments, 1, row, columns)
    exponent = real(p, 2.0 - alpha)
    if alpha <= 2.0:
        result = _alpha_gradient(grad, p, columns, exponent, real(p, 0.0), workspace)
    else:
        result = _alpha_gradient(grad, p, columns, exponent, 0.0, workspace)
    store(floats_at(arguments, TENSORS + 2), row, result)


def alpha_rows(arguments):
    """The gradient in the alpha of every row."""
    for_each_row(arguments, _alpha_row)
