"""The Jacobian of normmax times a vector, and its derivative in alpha.

With N = ||p||_alpha, s = p^(2-alpha) on the support and h = g - <p, g>,

    J g = N^(alpha-1) (s h - p <s, h>)/(alpha - 1).

tau is the value of the problem, so it moves by -dN/dalpha, and

    <g, dp/dalpha> = (dN/dalpha N^(alpha-1) <s, h> - <p log p, h>)/(alpha - 1).
"""

from __future__ import annotations

import math

from numba import float64

from fenchel.kernels.cpu.arithmetic.elementary64 import power64
from fenchel.kernels.cpu.columns.selection import list_nonzero
from fenchel.kernels.cpu.columns.whole_vectors import fill
from fenchel.kernels.cpu.launch.compilation import sequential
from fenchel.kernels.cpu.launch.memory import (
    TENSORS,
    as_indices,
    floats_at,
    integer_at,
    load,
    store,
)
from fenchel.kernels.cpu.launch.sharing import for_each_row, gradient_rows
from fenchel.kernels.cpu.thresholds.norm import norm_derivative_of, norm_of


@sequential
def _pull_back(grad, p, out, places, count, alpha):
    """Write J g on the support; returns N, <p, g> and N^(alpha-1) <s, h>."""
    along, weighted = 0.0, 0.0
    for i in range(count):
        q, g = float64(load(p, load(places, i))), float64(load(grad, load(places, i)))
        along += q * g
    for i in range(count):
        q, g = float64(load(p, load(places, i))), float64(load(grad, load(places, i)))
        weighted += power64(q, 2.0 - alpha) * (g - along)
    size = norm_of(p, places, count, alpha)
    factor = power64(size, alpha - 1.0)
    for i in range(count):
        place = load(places, i)
        q = float64(load(p, place))
        moved = power64(q, 2.0 - alpha) * (load(grad, place) - along) - q * weighted
        store(out, place, factor * moved / (alpha - 1.0))
    return size, along, factor * weighted


@sequential
def _slope(grad, p, places, count, alpha, known):
    """<g, dp/dalpha>, with what is known from J g."""
    size, along, shift = known
    logs = 0.0
    for i in range(count):
        q, g = float64(load(p, load(places, i))), float64(load(grad, load(places, i)))
        logs += q * math.log(q) * (g - along)
    return (norm_derivative_of(p, places, count, alpha, size) * shift - logs) / (alpha - 1.0)


@sequential
def _backward_row(arguments, row, alpha, columns, workspace):
    grad, p, out = gradient_rows(arguments, row, columns)
    places = as_indices(workspace)
    fill(out, columns, 0.0)
    count = list_nonzero(p, columns, places)
    if count == 0:
        return
    known = _pull_back(grad, p, out, places, count, alpha)
    if integer_at(arguments, TENSORS + 4) == 1:
        by_alpha = floats_at(arguments, TENSORS + 3)
        store(by_alpha, row, _slope(grad, p, places, count, alpha, known))


def normmax_backward_rows(arguments):
    """The gradients in the scores, and if wanted in the alpha of every row."""
    for_each_row(arguments, _backward_row)
