"""The Jacobian of pnormmax times a vector, and its derivative in the exponent s.

With N = ||p||_s and w = p^(2-s) on the support, the inverse Hessian of ||p||_s^2/2 is
K = [N^(s-2) diag(w) - (2-s) N^-2 p p']/(s-1), and J g = K (g - level) with level = <1, K g>/<1, K 1>.
As x - tau = N^(2-s) p^(s-1) there, <g, dp/ds> = -<J g, d(N^(2-s) p^(s-1))/ds>.
"""

from __future__ import annotations

import math

from numba import float64

from fenchel.kernels.cpu.columns.selection import list_nonzero
from fenchel.kernels.cpu.columns.whole_vectors import fill
from fenchel.kernels.cpu.launch.compilation import sequential
from fenchel.kernels.cpu.launch.memory import TENSORS, as_indices, floats_at, load, store
from fenchel.kernels.cpu.launch.sharing import for_each_row, gradient_rows
from fenchel.kernels.cpu.thresholds.norm import norm_derivative_of, norm_of


@sequential
def _backward(grad, p, out, places, count, s):
    """Write J g on the support; returns its product with the derivative of N^(2-s) p^(s-1) in s."""
    size = norm_of(p, places, count, s)
    by_exponent = norm_derivative_of(p, places, count, s, size)
    weight, weighted, total, along = 0.0, 0.0, 0.0, 0.0
    for i in range(count):
        q, g = float64(load(p, load(places, i))), float64(load(grad, load(places, i)))
        w = math.pow(q, 2.0 - s)
        weight += w
        weighted += w * g
        total += q
        along += q * g
    first, second = math.pow(size, s - 2.0), (2.0 - s) / (size * size)
    level = (first * weighted - second * total * along) / (first * weight - second * total * total)
    rest = second * (along - level * total)
    shift = (2.0 - s) * by_exponent / size - math.log(size)
    result = 0.0
    for i in range(count):
        place = load(places, i)
        q = float64(load(p, place))
        w = math.pow(q, 2.0 - s)
        value = (first * w * (load(grad, place) - level) - rest * q) / (s - 1.0)
        store(out, place, value)
        result += value * (q / w) * (math.log(q) + shift)
    return result / first


@sequential
def _backward_row(arguments, row, s, columns, workspace):
    grad, p, out = gradient_rows(arguments, row, columns)
    places = as_indices(workspace)
    fill(out, columns, 0.0)
    count = list_nonzero(p, columns, places)
    result = _backward(grad, p, out, places, count, s) if count > 0 else 0.0
    store(floats_at(arguments, TENSORS + 3), row, -result)


def pnormmax_backward_rows(arguments):
    """The gradients in the scores, and in the exponent of every row."""
    for_each_row(arguments, _backward_row)
