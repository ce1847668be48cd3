"""The gradients of the entmax loss in the scores and in alpha, from the scores and the normalizer.

The gradient in the scores is g (p - q). The derivative in alpha is dOmega(q)/dalpha - dOmega(p)/dalpha,
with the terms of (N.31); where p comes from scores, l phi1(e l) is x - A. The two parts nearly cancel
for a good fit, so they are computed in float64. Above alpha = 2 a float64 A has too few digits, and the
row is solved again.
"""

from __future__ import annotations

import math

from numba import float64

from fenchel.kernels.cpu.arithmetic.elementary import expm1_ratio, phi1_derivative
from fenchel.kernels.cpu.entmax_loss.terms import class_of, is_ignored, is_soft, smoothing_of
from fenchel.kernels.cpu.launch.compilation import inlined
from fenchel.kernels.cpu.launch.memory import (
    TENSORS,
    advance,
    floats_at,
    load,
    real,
    rows_at,
    store,
)
from fenchel.kernels.cpu.launch.threads import for_each_row, matrix_row
from fenchel.kernels.cpu.shared.columns import VECTOR, copy, fill, largest_of_vectors, load_tail
from fenchel.kernels.cpu.solver.alpha_above_2 import entry_above_2
from fenchel.kernels.cpu.solver.entries import epsilon_of
from fenchel.kernels.cpu.solver.normalizer import (
    BLOCK_VECTORS,
    edge_of,
    find_normalizer,
    write_probabilities,
)


@inlined
def _write_row(scores, out, columns, pivot, offset, rest, alpha, grad, spare):
    edge = edge_of(offset, rest, alpha)
    vectors = columns // VECTOR
    for start in range(0, vectors, BLOCK_VECTORS):
        size = min(BLOCK_VECTORS, vectors - start)
        block, target = advance(scores, start * VECTOR), advance(out, start * VECTOR)
        if float64(largest_of_vectors(block, size)) - pivot >= edge:
            # `out` may be the scores, and a loop that overwrites its input is not vectorized.
            write_probabilities(block, spare, size, pivot, offset, rest, alpha, grad)
            copy(spare, target, size * VECTOR)
        else:
            fill(target, size * VECTOR, 0.0)
    if load_tail(scores, columns, spare, -math.inf):
        tail = advance(spare, VECTOR)
        write_probabilities(spare, tail, 1, pivot, offset, rest, alpha, grad)
        copy(tail, advance(out, vectors * VECTOR), columns - vectors * VECTOR)


@inlined
def _subtract_target(arguments, row, out, columns, grad):
    if is_soft(arguments):
        target = matrix_row(arguments, 1, row, columns)
        for i in range(columns):
            store(out, i, load(out, i) - grad * load(target, i))
    else:
        smoothing = smoothing_of(arguments)
        if smoothing > 0.0:
            uniform = real(out, grad * (smoothing / columns))
            for i in range(columns):
                store(out, i, load(out, i) - uniform)
        label = class_of(arguments, row)
        store(out, label, load(out, label) - grad * (1.0 - smoothing))


@inlined
def _gradient_row(arguments, row, alpha, columns, workspace):
    scores, out = matrix_row(arguments, 0, row, columns), matrix_row(arguments, 7, row, columns)
    grad = load(rows_at(arguments, TENSORS + 5), row)
    normalizer = load(floats_at(arguments, TENSORS + 6), row)
    if is_ignored(arguments, row) or normalizer == -math.inf:
        fill(out, columns, 0.0)
    elif not math.isfinite(normalizer):
        fill(out, columns, math.nan)
    else:
        pivot = real(scores, normalizer)
        offset, rest = normalizer - pivot, 0.0
        if alpha > 2.0:  # a float64 A has too few digits: see `solver/alpha_above_2`
            pivot, offset, rest = find_normalizer(scores, columns, alpha, workspace)
        _write_row(scores, out, columns, pivot, offset, rest, alpha, grad, workspace)
        _subtract_target(arguments, row, out, columns, grad)


def loss_backward_rows(arguments):
    """g (p - q); zero for an ignored row and for a row of -inf."""
    for_each_row(arguments, _gradient_row)


@inlined
def _omega_derivative_term(p, length, ratio, t, e):
    """p l^2 phi1'(z) - p l phi1(z)/alpha, given l phi1(z) as `ratio` and t = e^z."""
    z = e * length
    curve = (
        length * length * phi1_derivative(z) if abs(z) <= 1.0 else (t * (z - 1.0) + 1.0) / (e * e)
    )
    return p * (curve - ratio / (1.0 + e))


@inlined
def _omega_derivative_of_scores(scores, columns, alpha, normalizer):
    """alpha times dOmega(p)/dalpha."""
    e = epsilon_of(alpha)
    total = 0.0
    for i in range(columns):
        u = load(scores, i) - normalizer
        if e * u > -1.0 and u > -math.inf:
            length = math.log1p(e * u) / e
            total += _omega_derivative_term(math.exp(length), length, u, 1.0 + e * u, e)
    return total


@inlined
def _omega_derivative_of(q, e):
    if q <= 0.0:
        return 0.0
    length = math.log(q)
    t = math.exp(e * length)
    return _omega_derivative_term(q, length, length * expm1_ratio(e * length), t, e)


@inlined
def _omega_derivative_above_2(scores, columns, alpha, workspace):
    """The same for alpha > 2."""
    e = epsilon_of(alpha)
    bottom, power, log_power = find_normalizer(scores, columns, alpha, workspace)
    total = 0.0
    for i in range(columns):
        x = float64(load(scores, i))
        p, _ = entry_above_2(x, float64(bottom), power, log_power, e, 1.0 / e)
        total += _omega_derivative_of(p, e)
    return total


@inlined
def _omega_derivative_of_target(target, columns, alpha):
    """alpha times dOmega(q)/dalpha."""
    e = epsilon_of(alpha)
    total = 0.0
    for i in range(columns):
        total += _omega_derivative_of(float64(load(target, i)), e)
    return total


@inlined
def _omega_derivative_of_smoothed_class(smoothing, columns, alpha):
    e = epsilon_of(alpha)
    uniform = smoothing / columns
    own = _omega_derivative_of(1.0 - smoothing + uniform, e)
    return own + (columns - 1) * _omega_derivative_of(uniform, e)


@inlined
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
            slope = -_omega_derivative_above_2(scores, columns, alpha, workspace)
        else:
            slope = -_omega_derivative_of_scores(scores, columns, alpha, normalizer)
        if is_soft(arguments):
            target = matrix_row(arguments, 1, row, columns)
            slope += _omega_derivative_of_target(target, columns, alpha)
        elif smoothing_of(arguments) > 0.0:
            slope += _omega_derivative_of_smoothed_class(smoothing_of(arguments), columns, alpha)
    store(out, row, slope / alpha)


def loss_alpha_rows(arguments):
    """dL/dalpha of every row."""
    for_each_row(arguments, _alpha_row)
