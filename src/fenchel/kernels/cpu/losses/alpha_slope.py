"""The derivative of the entmax loss in alpha: dOmega(q)/dalpha - dOmega(p)/dalpha.

With l = log p, e = alpha - 1 and z = e l, Omega(p) = sum p l phi1(z)/alpha, so
dOmega/dalpha = (sum p l^2 phi1'(z) - Omega)/alpha. Where p comes from scores, l phi1(z) is x - A;
above alpha = 2 a float64 A is not enough (see `search/steep`), and the row is solved again.
The two derivatives nearly cancel for a good fit, so everything is float64.
"""

from __future__ import annotations

import math

from numba import float64

from fenchel.kernels.cpu.arithmetic.divided_differences import phi1_slope
from fenchel.kernels.cpu.arithmetic.elementary import expm1_ratio
from fenchel.kernels.cpu.arithmetic.entries import exponent_of
from fenchel.kernels.cpu.launch.compilation import scalar, sequential
from fenchel.kernels.cpu.launch.memory import TENSORS, floats_at, load, store
from fenchel.kernels.cpu.launch.sharing import for_each_row, matrix_row
from fenchel.kernels.cpu.losses.targets import is_ignored, is_soft, smoothing_of
from fenchel.kernels.cpu.search.normalizer import solve
from fenchel.kernels.cpu.search.steep import steep_entry


@scalar
def _slope_term(p, length, ratio, t, e):
    """p l^2 phi1'(z) - p l phi1(z)/alpha, given l phi1(z) as `ratio` and t = e^z."""
    z = e * length
    curve = length * length * phi1_slope(z) if abs(z) <= 1.0 else (t * (z - 1.0) + 1.0) / (e * e)
    return p * (curve - ratio / (1.0 + e))


@sequential
def _of_scores(scores, columns, alpha, normalizer):
    """alpha times dOmega(p)/dalpha."""
    e = exponent_of(alpha)
    total = 0.0
    for i in range(columns):
        u = load(scores, i) - normalizer
        if e * u > -1.0 and u > -math.inf:
            length = math.log1p(e * u) / e
            total += _slope_term(math.exp(length), length, u, 1.0 + e * u, e)
    return total


@scalar
def _of_probability(q, e):
    if q <= 0.0:
        return 0.0
    length = math.log(q)
    t = math.exp(e * length)
    return _slope_term(q, length, length * expm1_ratio(e * length), t, e)


@sequential
def _of_steep_scores(scores, columns, alpha, workspace):
    """`_of_scores` for alpha > 2."""
    e = exponent_of(alpha)
    bottom, power, log_power = solve(scores, columns, alpha, workspace)
    total = 0.0
    for i in range(columns):
        x = float64(load(scores, i))
        p, _ = steep_entry(x, float64(bottom), power, log_power, e, 1.0 / e)
        total += _of_probability(p, e)
    return total


@sequential
def _of_probabilities(target, columns, alpha):
    """alpha times dOmega(q)/dalpha."""
    e = exponent_of(alpha)
    total = 0.0
    for i in range(columns):
        total += _of_probability(float64(load(target, i)), e)
    return total


@sequential
def _of_smoothed_class(smoothing, columns, alpha):
    e = exponent_of(alpha)
    uniform = smoothing / columns
    own = _of_probability(1.0 - smoothing + uniform, e)
    return own + (columns - 1) * _of_probability(uniform, e)


@sequential
def _alpha_row(arguments, row, alpha, columns, workspace):
    out = floats_at(arguments, TENSORS + 6)
    normalizer = load(floats_at(arguments, TENSORS + 5), row)
    if is_ignored(arguments, row) or normalizer == -math.inf:
        store(out, row, 0.0)
        return
    slope = math.nan
    if math.isfinite(normalizer):
        scores = matrix_row(arguments, 0, row, columns)
        if alpha > 2.0:
            slope = -_of_steep_scores(scores, columns, alpha, workspace)
        else:
            slope = -_of_scores(scores, columns, alpha, normalizer)
        if is_soft(arguments):
            target = matrix_row(arguments, 1, row, columns)
            slope += _of_probabilities(target, columns, alpha)
        elif smoothing_of(arguments) > 0.0:
            slope += _of_smoothed_class(smoothing_of(arguments), columns, alpha)
    store(out, row, slope / alpha)


def alpha_rows(arguments):
    """dL/dalpha of every row."""
    for_each_row(arguments, _alpha_row)
