"""The Jacobian of entmax times a vector: s g - s <s, g>/<s, 1>, with s = p^(2-alpha) where p > 0."""

from __future__ import annotations

from fenchel.kernels.cpu.arithmetic.weights import (
    entmax15_weight,
    entmax_weight,
    off_support,
    softmax_weight,
    sparsemax_weight,
)
from fenchel.kernels.cpu.columns.whole_vectors import LANES, copy, fill, load_tail
from fenchel.kernels.cpu.launch.compilation import reducing, scalar, sequential
from fenchel.kernels.cpu.launch.memory import advance, load, real, store
from fenchel.kernels.cpu.launch.sharing import for_each_row, gradient_rows

BLOCK = 2  # multiples of LANES that are skipped together where p is zero


@reducing
def mass_of(p, groups):
    """The sum of `groups` multiples of LANES probabilities: zero if all are, NaN if one is."""
    total = real(p, 0.0)
    for i in range(groups * LANES):
        total += load(p, i)
    return total


@reducing
def sum_block(weight, grad, p, groups, exponent, zero):
    """(<s, 1>, <s, g>) of `groups` multiples of LANES columns."""
    total, dot = zero, zero
    for i in range(groups * LANES):
        s = zero if off_support(load(p, i)) else real(zero, weight(load(p, i), exponent))
        total += s
        dot += zero if off_support(load(p, i)) else s * load(grad, i)
    return total, dot


@scalar
def _write_block(weight, grad, p, out, groups, exponent, mean):
    zero = real(mean, 0.0)
    for i in range(groups * LANES):
        value = weight(load(p, i), exponent) * (load(grad, i) - mean)
        store(out, i, zero if off_support(load(p, i)) else value)


@scalar
def sum_row(weight, grad, p, groups, exponent, zero, empty):
    """(<s, 1>, <s, g>) in float64, noting which blocks are empty on the way.

    A NaN among the probabilities makes <s, 1> NaN, though its s may be a number.
    """
    total, dot = 0.0, 0.0
    for start in range(0, groups, BLOCK):
        size, place = min(BLOCK, groups - start), start * LANES
        mass = mass_of(advance(p, place), size)
        store(empty, start // BLOCK, 1.0 if off_support(mass) else 0.0)
        if not off_support(mass):
            grads, ps = advance(grad, place), advance(p, place)
            s, sg = sum_block(weight, grads, ps, size, exponent, zero)
            total += s + (mass - mass)
            dot += sg
    return total, dot


@scalar
def _write_row(weight, grad, p, out, groups, exponent, mean, empty):
    for start in range(0, groups, BLOCK):
        size, place = min(BLOCK, groups - start), start * LANES
        grads, target = advance(grad, place), advance(out, place)
        if load(empty, start // BLOCK) > 0.0:
            fill(target, size * LANES, 0.0)
        else:
            _write_block(weight, grads, advance(p, place), target, size, exponent, mean)


# `zero` says in which precision to add: for alpha > 2 a small p has a huge weight, and g - mean
# nearly cancels there, so float32 rows need float64 sums.
@sequential
def _backward(weight, grad, p, out, columns, exponent, zero, workspace):
    groups = columns // LANES
    tail_grad, tail_p, empty = workspace, advance(workspace, LANES), advance(workspace, 2 * LANES)
    has_tail = load_tail(p, columns, tail_p, 0.0)
    load_tail(grad, columns, tail_grad, 0.0)
    total, dot = sum_row(weight, grad, p, groups, exponent, zero, empty)
    s, sg = sum_block(weight, tail_grad, tail_p, has_tail, exponent, zero)
    tail_mass = mass_of(tail_p, has_tail)
    total += s + (tail_mass - tail_mass)
    dot += sg
    mean = real(zero, 0.0 if total == 0.0 else dot / total)
    _write_row(weight, grad, p, out, groups, exponent, mean, empty)
    if has_tail:
        _write_block(weight, tail_grad, tail_p, tail_p, 1, exponent, mean)
        copy(tail_p, advance(out, groups * LANES), columns - groups * LANES)


@sequential
def _backward_row(arguments, row, alpha, columns, workspace):
    grad, p, out = gradient_rows(arguments, row, columns)
    exponent, zero = real(p, 2.0 - alpha), real(p, 0.0)
    if alpha == 2.0:
        _backward(sparsemax_weight, grad, p, out, columns, exponent, zero, workspace)
    elif alpha == 1.5:
        _backward(entmax15_weight, grad, p, out, columns, exponent, zero, workspace)
    elif alpha == 1.0:
        _backward(softmax_weight, grad, p, out, columns, exponent, zero, workspace)
    elif alpha < 2.0:
        _backward(entmax_weight, grad, p, out, columns, exponent, zero, workspace)
    else:
        _backward(entmax_weight, grad, p, out, columns, exponent, 0.0, workspace)


def backward_rows(arguments):
    """The gradient in the scores. Zero off the support."""
    for_each_row(arguments, _backward_row)


def backward_workspace(columns: int) -> int:
    """Numbers of scratch memory a thread needs: two tails, and one flag a block."""
    return columns // (BLOCK * LANES) + 3 * LANES
