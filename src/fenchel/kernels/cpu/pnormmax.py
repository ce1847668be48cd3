"""pnormmax and its derivatives on the CPU, in float64.

    pnormmax              argmax_q <q, x> - ||q||_s^2 / 2 over the simplex; sparsemax at s = 2
    pnormmax_backward     its Jacobian times a vector, from p alone
    pnormmax_backward_p   the same, and the gradient in s

s is a number, or a tensor with one float64 per row. With c = 1/(s - 1) and u = (x - tau)_+ the map is
u^c/sum u^c, where tau solves

    F(tau) = A B^(-(2-s)/s) = 1,   A = sum u^c,  B = sum u^(c+1),

which decreases with tau: see (N.35). The Jacobian is (N.24): J g = K (g - level) with
level = <1, K g>/<1, K 1>. As x - tau = N^(2-s) p^(s-1) on the support, the derivative in s is
<g, dp/ds> = -<J g, d(N^(2-s) p^(s-1))/ds>.
"""

from __future__ import annotations

import math

import torch
from numba import float64
from torch import Tensor

from fenchel.kernels.cpu.entmax.forward import entmax
from fenchel.kernels.cpu.launch.compilation import Kernel, inlined
from fenchel.kernels.cpu.launch.memory import TENSORS, as_indices, floats_at, load, store
from fenchel.kernels.cpu.launch.threads import for_each_row, gradient_rows, launch, matrix_row
from fenchel.kernels.cpu.shared.columns import fill, list_nonzero
from fenchel.kernels.cpu.shared.norm_maps import (
    list_near_largest,
    near_largest_workspace,
    norm_derivative_of,
    norm_of,
)

TOLERANCE = 1e-15


@inlined
def _evaluate(x, count, tau, s):
    """F - 1 and its slope at tau < 0, from powers of u/-tau, which cannot overflow."""
    c = 1.0 / (s - 1.0)
    total, powers, slopes = 0.0, 0.0, 0.0
    for i in range(count):
        u = (load(x, i) - tau) / -tau
        if u > 0.0:
            weight = u * u if c == 2.0 else math.pow(u, c)
            total += weight
            powers += weight * u
            slopes += weight / u
    value = -tau * total * math.pow(powers, -(2.0 - s) / s)
    rate = c * (slopes / total - (2.0 - s) * total / powers) / -tau
    return value - 1.0, -value * rate


@inlined
def _solve(x, count, s):
    """tau, by Newton's method in a bracket; a step that leaves it or does not halve F - 1 bisects.

    Ends when F - 1 is within the tolerance, or when the bracket has no number inside: rounding can keep
    |F - 1| above any tolerance at both of its ends.
    """
    low, high, tau, previous = -1.0, 0.0, -1.0, math.inf
    while True:
        value, slope = _evaluate(x, count, tau, s)
        low, high = (tau, high) if value > 0.0 else (low, tau)
        middle = 0.5 * (low + high)
        if abs(value) <= TOLERANCE or not low < middle < high:
            return tau
        step = tau - value / slope
        if not low <= step <= high or 2.0 * abs(value) > previous:
            step = middle
        if step == tau:
            return tau
        previous = abs(value)
        tau = step


@inlined
def _forward_row(arguments, row, s, columns, workspace):
    scores, out = matrix_row(arguments, 0, row, columns), matrix_row(arguments, 1, row, columns)
    places, x, count = list_near_largest(scores, out, columns, workspace)
    if count == 0:
        return
    tau, total, c = _solve(x, count, s), 0.0, 1.0 / (s - 1.0)
    for i in range(count):
        u = (load(x, i) - tau) / -tau
        weight = math.pow(u, c) if u > 0.0 else 0.0
        store(x, i, weight)
        total += weight
    for i in range(count):
        store(out, load(places, i), load(x, i) / total)


def _forward_rows(arguments):
    """p of every row."""
    for_each_row(arguments, _forward_row)


@inlined
def _gradient(grad, p, out, places, count, s):
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


@inlined
def _backward_row(arguments, row, s, columns, workspace):
    grad, p, out = gradient_rows(arguments, row, columns)
    places = as_indices(workspace)
    fill(out, columns, 0.0)
    count = list_nonzero(p, columns, places)
    result = _gradient(grad, p, out, places, count, s) if count > 0 else 0.0
    store(floats_at(arguments, TENSORS + 3), row, -result)


def _backward_rows(arguments):
    """The gradients in the scores, and in the exponent of every row."""
    for_each_row(arguments, _backward_row)


_forward_kernel, _backward_kernel = Kernel(_forward_rows), Kernel(_backward_rows)


def pnormmax(scores: Tensor, s: float | Tensor) -> Tensor:
    """Probabilities of every row."""
    if not isinstance(s, Tensor) and s == 2.0:
        return entmax(scores, s)
    out = torch.empty_like(scores)
    workspace = near_largest_workspace(scores.shape[1], scores.element_size())
    launch(_forward_kernel, scores, s, workspace, scores, out)
    return out


def pnormmax_backward(grad: Tensor, p: Tensor, s: float | Tensor) -> Tensor:
    """The gradient in the scores, given that in the probabilities p. Zero off the support."""
    return pnormmax_backward_p(grad, p, s)[0]


def pnormmax_backward_p(grad: Tensor, p: Tensor, s: float | Tensor) -> tuple[Tensor, Tensor]:
    """The gradients in the scores, and in the exponent of every row (float64)."""
    out, by_exponent = torch.empty_like(p), torch.zeros(p.shape[0], dtype=torch.float64)
    launch(_backward_kernel, p, s, p.shape[1], grad, p, out, by_exponent)
    return out, by_exponent
