"""The Jacobian of budget times a vector, and its derivative in k.

With s the indicator of 0 < p < 1, J g = s (g - mean) and <g, dp/dk> = mean, the mean of g over s.
Where p is NaN so is the gradient.
"""

from __future__ import annotations

from numba import float64

from fenchel.kernels.cpu.launch.compilation import reducing, sequential
from fenchel.kernels.cpu.launch.memory import TENSORS, floats_at, load, real, store
from fenchel.kernels.cpu.launch.sharing import for_each_row, gradient_rows


@reducing
def _sums(grad, p, columns):
    """The sum of g over s, NaN if p is anywhere, and the size of s."""
    zero, one = real(p, 0.0), real(p, 1.0)
    total, size = 0.0, 0.0
    for i in range(columns):
        q, g = load(p, i), float64(load(grad, i))  # loads under a condition would make no vectors
        between = (q > zero) & (q < one)
        total += g if between else float64(q * zero)
        size += 1.0 if between else 0.0
    return total, size


@sequential
def _backward_row(arguments, row, k, columns, workspace):
    grad, p, out = gradient_rows(arguments, row, columns)
    zero, one = real(p, 0.0), real(p, 1.0)
    total, size = _sums(grad, p, columns)
    mean = total / max(size, 1.0)
    for i in range(columns):
        q, g = load(p, i), float64(load(grad, i))
        outside = (q <= zero) | (q >= one)
        store(out, i, 0.0 if outside else g - mean)
    store(floats_at(arguments, TENSORS + 3), row, mean)


def budget_backward_rows(arguments):
    """The gradients in the scores, and in the k of every row."""
    for_each_row(arguments, _backward_row)
