"""The gradients of entmax in the scores and in alpha: (N.19) and (N.20), from p alone.

The weights are s = p^(2-alpha) on the support. Blocks of columns where p is zero are skipped.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from fenchel.kernels.cpu.arithmetic.elementary import log, phi2, power
from fenchel.kernels.cpu.launch.compilation import Kernel, inlined, reducing
from fenchel.kernels.cpu.launch.memory import TENSORS, advance, floats_at, load, real, store
from fenchel.kernels.cpu.launch.threads import for_each_row, gradient_rows, launch
from fenchel.kernels.cpu.shared.columns import VECTOR, copy, fill, load_tail

SKIPPED_VECTORS = 2  # vectors of columns that are skipped together if p is zero there


@inlined
def off_support(p):
    """Whether p is zero. NaN is not, so that it propagates."""
    return p <= real(p, 0.0)


@inlined
def sparsemax_weight(p, exponent):
    """alpha = 2"""
    return real(p, 1.0)


@inlined
def entmax15_weight(p, exponent):
    """alpha = 1.5"""
    return math.sqrt(p)


@inlined
def softmax_weight(p, exponent):
    """alpha = 1"""
    return p


@inlined
def entmax_weight(p, exponent):
    """Any alpha"""
    return power(p, exponent)


@reducing
def _mass(p, vectors):
    """The sum of `vectors` vectors of probabilities: zero if all are, NaN if one is."""
    total = real(p, 0.0)
    for i in range(vectors * VECTOR):
        total += load(p, i)
    return total


@reducing
def _sum_block(weight, grad, p, vectors, exponent, zero):
    """(<s, 1>, <s, g>) of `vectors` vectors of columns."""
    total, dot = zero, zero
    for i in range(vectors * VECTOR):
        s = zero if off_support(load(p, i)) else real(zero, weight(load(p, i), exponent))
        total += s
        dot += zero if off_support(load(p, i)) else s * load(grad, i)
    return total, dot


@inlined
def _write_block(weight, grad, p, out, vectors, exponent, mean):
    zero = real(mean, 0.0)
    for i in range(vectors * VECTOR):
        value = weight(load(p, i), exponent) * (load(grad, i) - mean)
        store(out, i, zero if off_support(load(p, i)) else value)


@inlined
def _sum_row(weight, grad, p, vectors, exponent, zero, empty):
    """(<s, 1>, <s, g>) in float64; sets a flag for every empty block.

    A NaN in p makes <s, 1> NaN, even if its s is a number.
    """
    total, dot = 0.0, 0.0
    for start in range(0, vectors, SKIPPED_VECTORS):
        size, place = min(SKIPPED_VECTORS, vectors - start), start * VECTOR
        mass = _mass(advance(p, place), size)
        store(empty, start // SKIPPED_VECTORS, 1.0 if off_support(mass) else 0.0)
        if not off_support(mass):
            grads, ps = advance(grad, place), advance(p, place)
            s, sg = _sum_block(weight, grads, ps, size, exponent, zero)
            total += s + (mass - mass)
            dot += sg
    return total, dot


@inlined
def _write_row(weight, grad, p, out, vectors, exponent, mean, empty):
    for start in range(0, vectors, SKIPPED_VECTORS):
        size, place = min(SKIPPED_VECTORS, vectors - start), start * VECTOR
        grads, target = advance(grad, place), advance(out, place)
        if load(empty, start // SKIPPED_VECTORS) > 0.0:
            fill(target, size * VECTOR, 0.0)
        else:
            _write_block(weight, grads, advance(p, place), target, size, exponent, mean)


@inlined
def _tails_and_flags(workspace):
    """The memory for the last columns of the gradient and of p, and for the flags of empty blocks."""
    return workspace, advance(workspace, VECTOR), advance(workspace, 3 * VECTOR)


# The type of `zero` is that of the sums: for alpha > 2 a small p has a huge weight and g - mean nearly
# cancels there, so float32 rows need float64 sums.
@inlined
def _gradient(weight, grad, p, out, columns, exponent, zero, workspace):
    vectors = columns // VECTOR
    tail_grad, tail_p, empty = _tails_and_flags(workspace)
    has_tail = load_tail(p, columns, tail_p, 0.0)
    load_tail(grad, columns, tail_grad, 0.0)
    total, dot = _sum_row(weight, grad, p, vectors, exponent, zero, empty)
    s, sg = _sum_block(weight, tail_grad, tail_p, has_tail, exponent, zero)
    tail_mass = _mass(tail_p, has_tail)
    total += s + (tail_mass - tail_mass)
    dot += sg
    mean = real(zero, 0.0 if total == 0.0 else dot / total)
    _write_row(weight, grad, p, out, vectors, exponent, mean, empty)
    if has_tail:
        # Not in place: the compiler does not vectorize a loop whose output may overlap its input.
        tail_out = advance(workspace, 2 * VECTOR)
        _write_block(weight, tail_grad, tail_p, tail_out, 1, exponent, mean)
        copy(tail_out, advance(out, vectors * VECTOR), columns - vectors * VECTOR)
    return float(mean)


@inlined
def _backward_row(arguments, row, alpha, columns, workspace):
    """Write the gradient of a row; returns <s, g>/<s, 1>, or zero if the support is empty."""
    grad, p, out = gradient_rows(arguments, row, columns)
    exponent, zero = real(p, 2.0 - alpha), real(p, 0.0)
    if alpha == 2.0:
        mean = _gradient(sparsemax_weight, grad, p, out, columns, exponent, zero, workspace)
    elif alpha == 1.5:
        mean = _gradient(entmax15_weight, grad, p, out, columns, exponent, zero, workspace)
    elif alpha == 1.0:
        mean = _gradient(softmax_weight, grad, p, out, columns, exponent, zero, workspace)
    elif alpha < 2.0:
        mean = _gradient(entmax_weight, grad, p, out, columns, exponent, zero, workspace)
    else:
        mean = _gradient(entmax_weight, grad, p, out, columns, exponent, 0.0, workspace)
    return mean


@inlined
def _scores_row(arguments, row, alpha, columns, workspace):
    _backward_row(arguments, row, alpha, columns, workspace)


def _backward_rows(arguments):
    """The gradient in the scores. Zero off the support."""
    for_each_row(arguments, _scores_row)


def _workspace(columns: int) -> int:
    """Scratch memory of a thread, in numbers: three tails, and one flag per block."""
    return columns // (SKIPPED_VECTORS * VECTOR) + 4 * VECTOR


@inlined
def alpha_term(p, exponent):
    """r of (N.20) for one entry; `exponent` is 2 - alpha."""
    one = real(p, 1.0)
    e = one - exponent
    length = log(p)
    z = -e * length
    near = p * length * length * phi2(z)
    far = (entmax_weight(p, exponent) - p * (one + z)) / (e * e)
    return near if abs(z) <= one else far


@reducing
def _alpha_block(grad, p, vectors, exponent, mean):
    zero = real(mean, 0.0)
    total = zero
    for i in range(vectors * VECTOR):
        change = real(mean, alpha_term(load(p, i), exponent)) * (mean - load(grad, i))
        total += zero if off_support(load(p, i)) else change
    return total


@inlined
def _alpha_gradient(grad, p, columns, exponent, mean, workspace):
    """<r, mean - g>; uses the tails and flags that the gradient in the scores left in the workspace."""
    vectors = columns // VECTOR
    tail_grad, tail_p, empty = _tails_and_flags(workspace)
    result = 0.0
    if vectors * VECTOR < columns:
        result += _alpha_block(tail_grad, tail_p, 1, exponent, mean)
    for start in range(0, vectors, SKIPPED_VECTORS):
        size, place = min(SKIPPED_VECTORS, vectors - start), start * VECTOR
        if load(empty, start // SKIPPED_VECTORS) == 0.0:
            result += _alpha_block(advance(grad, place), advance(p, place), size, exponent, mean)
    return result


@inlined
def _alpha_row(arguments, row, alpha, columns, workspace):
    mean = _backward_row(arguments, row, alpha, columns, workspace)
    grad, p, _ = gradient_rows(arguments, row, columns)
    exponent = real(p, 2.0 - alpha)
    if alpha <= 2.0:
        result = _alpha_gradient(grad, p, columns, exponent, real(p, mean), workspace)
    else:
        result = _alpha_gradient(grad, p, columns, exponent, mean, workspace)
    store(floats_at(arguments, TENSORS + 3), row, result)


def _alpha_rows(arguments):
    """The gradients in the scores and in the alpha of every row."""
    for_each_row(arguments, _alpha_row)


_backward_kernel, _alpha_kernel = Kernel(_backward_rows), Kernel(_alpha_rows)


def entmax_backward(grad: Tensor, p: Tensor, alpha: float | Tensor) -> Tensor:
    """The gradient in the scores for the gradient `grad` in p. Zero off the support."""
    out = torch.empty_like(p)
    launch(_backward_kernel, p, alpha, _workspace(p.shape[1]), grad, p, out)
    return out


def entmax_backward_alpha(grad: Tensor, p: Tensor, alpha: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients in the scores, and in the alpha of every row (float64)."""
    out, in_alpha = torch.empty_like(p), torch.zeros(p.shape[0], dtype=torch.float64)
    launch(_alpha_kernel, p, alpha, _workspace(p.shape[1]), grad, p, out, in_alpha)
    return out, in_alpha
