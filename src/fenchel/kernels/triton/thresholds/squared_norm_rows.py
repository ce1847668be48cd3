"""pnormmax, argmax_p <p, x> - ||p||_s^2 / 2 over the simplex, and its Jacobian.

A row a program, in float64, as by the reference.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportOperatorIssue=false
import triton
import triton.language as tl

from fenchel.kernels.triton.launch.addressing import row_offset
from fenchel.kernels.triton.launch.kernel import kernel
from fenchel.kernels.triton.launch.parameters import row_parameter
from fenchel.kernels.triton.thresholds.row_programs import (
    ROUNDING,
    load_where,
    load_wide,
    newton_step,
    power,
    store_block,
)
from fenchel.kernels.triton.tiles.across_threads import shared_sum
from fenchel.kernels.triton.tiles.combining import larger
from fenchel.kernels.triton.tiles.memory import finite_peak, load_block


@triton.jit
def _weights(z, tau, s):
    """u^c and u, with u = (x - tau)_+ relative to that of the largest score."""
    relative = tl.maximum((z - tau) / -tau, 0.0)
    return power(relative, 1.0 / (s - 1.0)), relative


@triton.jit
def _evaluate(z, tau, s):
    """F - 1 and its derivative."""
    weights, relative = _weights(z, tau, s)
    total = shared_sum(weights)
    powers = shared_sum(weights * relative)
    slopes = shared_sum(
        tl.where(weights > 0.0, weights / tl.where(weights > 0.0, relative, 1.0), 0.0)
    )
    value = -tau * total * tl.exp(-(2.0 - s) / s * tl.log(powers))
    rate = (slopes / total - (2.0 - s) * total / powers) / ((s - 1.0) * -tau)
    return value - 1.0, -value * rate


@triton.jit
def _solve(z, s):
    """The root in [-1, 0]: Newton's method in a bracket, as the reference runs it."""
    lower = s * 0.0 - 1.0
    upper = s * 0.0
    point = lower
    previous = upper + float("inf")
    active = s > 1.0
    while active:
        value, slope = _evaluate(z, point, s)
        lower, upper, point, previous, active = newton_step(
            value, slope, point, lower, upper, previous, ROUNDING
        )
    return point


@kernel
def pnormmax_rows(
    scores, out, mask, exponents, high, low, columns, middle, inner,
    steps, out_steps, mask_steps, s_steps, LEVELS: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    s = row_parameter(high, low, exponents, row, row >= 0, middle, inner, s_steps, LEVELS)
    scores += row_offset(row, middle, inner, steps, LEVELS)
    if mask is not None:
        mask += row_offset(row, middle, inner, mask_steps, LEVELS)
    x = load_block(scores, mask, 0, columns, steps[3], mask_steps[3], K)
    peak = tl.reduce(x, 0, larger)
    top = finite_peak(peak).to(tl.float64)
    z = x.to(tl.float64) - top
    weights, _ = _weights(z, _solve(z, s), s)
    p = tl.where(peak == float("-inf"), 0.0, weights / shared_sum(weights))
    p += top - top  # NaN in a row that holds one
    out += row_offset(row, middle, inner, out_steps, LEVELS)
    store_block(out, p, 0, columns, out_steps[3], K)


@triton.jit
def _inverse(p, g, diagonal, rest, s):
    """The inverse Hessian of the regularizer times g."""
    return (diagonal * g - rest * p * shared_sum(p * g)) / (s - 1.0)


@kernel
def pnormmax_pull_back(
    probabilities, grad, out, exponents, high, low, columns, middle, inner,
    steps, grad_steps, out_steps, s_steps, LEVELS: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    s = row_parameter(high, low, exponents, row, row >= 0, middle, inner, s_steps, LEVELS)
    probabilities += row_offset(row, middle, inner, steps, LEVELS)
    grad += row_offset(row, middle, inner, grad_steps, LEVELS)
    out += row_offset(row, middle, inner, out_steps, LEVELS)
    p = load_wide(probabilities, 0, columns, steps[3], K)
    g = load_where(grad, p != 0.0, 0, columns, grad_steps[3], K)
    size = power(shared_sum(power(p, s)), 1.0 / s)
    diagonal = power(size, s - 2.0) * power(p, 2.0 - s)
    rest = tl.where(size > 0.0, (2.0 - s) / (size * size), 0.0)
    whole = shared_sum(_inverse(p, tl.where(p != 0.0, 1.0, 0.0), diagonal, rest, s))
    level = shared_sum(_inverse(p, g, diagonal, rest, s)) / whole
    level = tl.where(tl.max((p != 0.0).to(tl.int32), 0) > 0, level, 0.0)
    by_scores = _inverse(p, tl.where(p != 0.0, g - level, 0.0), diagonal, rest, s)
    store_block(out, by_scores, 0, columns, out_steps[3], K)
