"""normmax at any alpha, argmax_p <p, x> - ||p||_alpha over the simplex, and its Jacobian.

One program per row, in float64, with the method of the reference.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportOperatorIssue=false
import triton
import triton.language as tl

from fenchel.kernels.triton.launch.addressing import (
    row_offset,
)
from fenchel.kernels.triton.launch.kernel import (
    kernel,
)
from fenchel.kernels.triton.launch.parameters import (
    row_parameter,
)
from fenchel.kernels.triton.shared.float64_rows import (
    SUM_TOLERANCE,
    bracketed_newton_step,
    load_where,
    load_wide,
    positive_power,
    row_block,
    row_peak,
    store_block,
)
from fenchel.kernels.triton.tiles.layout import (
    finite_peak,
    load_block,
)
from fenchel.kernels.triton.tiles.reductions import (
    vector_sum,
)


@triton.jit
def _weights(x, top, tau, alpha):
    """u^c and u, with u = (x - top - tau)_+ and c = 1/(alpha - 1)."""
    above = tl.maximum(x.to(tl.float64) - top - tau, 0.0)
    return positive_power(above, 1.0 / (alpha - 1.0)), above


@triton.jit
def _sums(row, top, tau, alpha, HELD: tl.constexpr, K: tl.constexpr):
    """The sums of u^c and of u^(c + 1)."""
    total = tl.zeros([K], tl.float64)
    powers = tl.zeros([K], tl.float64)
    for start in range(0, K if HELD else row[3], K):
        weights, above = _weights(row_block(row, start, HELD, K), top, tau, alpha)
        total += weights
        powers += weights * above
    return vector_sum(total), vector_sum(powers)


@triton.jit
def _solve(row, top, alpha, HELD: tl.constexpr, K: tl.constexpr):
    """tau in [-1, 0], relative to the largest score."""
    lower = alpha * 0.0 - 1.0
    upper = alpha * 0.0
    point = lower
    previous = upper + float("inf")
    active = alpha > 1.0
    while active:
        total, powers = _sums(row, top, point, alpha, HELD, K)
        slope = -(1.0 + 1.0 / (alpha - 1.0)) * total
        lower, upper, point, previous, active = bracketed_newton_step(
            powers - 1.0, slope, point, lower, upper, previous, SUM_TOLERANCE
        )
    return point


@kernel
def normmax_rows(
    scores, out, mask, alphas, high, low, columns, middle, inner,
    steps, out_steps, mask_steps, alpha_steps,
    LEVELS: tl.constexpr, HELD: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    number = tl.program_id(0).to(tl.int64)
    alpha = row_parameter(
        high, low, alphas, number, number >= 0, middle, inner, alpha_steps, LEVELS
    )
    scores += row_offset(number, middle, inner, steps, LEVELS)
    if mask is not None:
        mask += row_offset(number, middle, inner, mask_steps, LEVELS)
    first = load_block(scores, mask, 0, columns, steps[3], mask_steps[3], K)
    row = first, scores, mask, columns, steps[3], mask_steps[3]
    peak = row_peak(row, HELD, K)
    top = finite_peak(peak).to(tl.float64)
    tau = _solve(row, top, alpha, HELD, K)
    total = _sums(row, top, tau, alpha, HELD, K)[0]
    out += row_offset(number, middle, inner, out_steps, LEVELS)
    for start in range(0, K if HELD else columns, K):
        weights = _weights(row_block(row, start, HELD, K), top, tau, alpha)[0]
        p = tl.where(peak == float("-inf"), 0.0, weights / total)
        p += top - top  # NaN in a row that has NaN
        store_block(out, p, start, columns, out_steps[3], K)


@triton.jit
def _log(p):
    """log p on the support, 0 elsewhere."""
    return tl.log(tl.where(p > 0.0, p, 1.0))


@triton.jit
def _norm(probabilities, columns, step, alpha, HELD: tl.constexpr, K: tl.constexpr):
    """log N, dN/dalpha and the sum of p log p, where N = ||p||_alpha; a row of zeros has N = 1.

    Computed from q = p / max p, so that a large alpha does not underflow.
    """
    largest = tl.zeros([K], tl.float64)
    for start in range(0, K if HELD else columns, K):
        largest = tl.maximum(largest, load_wide(probabilities, start, columns, step, K))
    peak = tl.max(largest, 0)
    peak = tl.where(peak > 0.0, peak, 1.0)
    powers = tl.zeros([K], tl.float64)
    logs = tl.zeros([K], tl.float64)
    products = tl.zeros([K], tl.float64)
    for start in range(0, K if HELD else columns, K):
        p = load_wide(probabilities, start, columns, step, K)
        log_q = _log(p) - tl.log(peak)
        q_alpha = tl.where(p > 0.0, tl.exp(alpha * log_q), 0.0)
        powers += q_alpha
        logs += q_alpha * log_q
        products += p * _log(p)
    total = vector_sum(powers)
    total = tl.where(total > 0.0, total, 1.0)
    log_norm = tl.log(peak) + tl.log(total) / alpha
    slope = tl.exp(log_norm) / alpha * (vector_sum(logs) / total - tl.log(total) / alpha)
    return log_norm, slope, vector_sum(products)


@triton.jit
def _diagonal(p, log_norm, alpha):
    """s = p^(2 - alpha) N^(alpha - 1) / (alpha - 1) on the support; single factors may overflow."""
    s = tl.exp((2.0 - alpha) * _log(p) + (alpha - 1.0) * log_norm) / (alpha - 1.0)
    return tl.where(p > 0.0, s, 0.0)


@kernel
def normmax_backward_rows(
    probabilities, grad, out, in_alpha, alphas, high, low, columns, middle, inner,
    steps, grad_steps, out_steps, in_steps, alpha_steps,
    LEVELS: tl.constexpr, HELD: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """s h - p (s.h) with h = g - p.g, and in alpha
    dN/dalpha (s.h) - (p g).(log p - p.log p)/(alpha - 1)."""
    row = tl.program_id(0).to(tl.int64)
    alpha = row_parameter(high, low, alphas, row, row >= 0, middle, inner, alpha_steps, LEVELS)
    probabilities += row_offset(row, middle, inner, steps, LEVELS)
    grad += row_offset(row, middle, inner, grad_steps, LEVELS)
    out += row_offset(row, middle, inner, out_steps, LEVELS)
    log_norm, norm_slope, products = _norm(probabilities, columns, steps[3], alpha, HELD, K)
    in_p = tl.zeros([K], tl.float64)
    in_s = tl.zeros([K], tl.float64)
    in_log = tl.zeros([K], tl.float64)
    diagonal = tl.zeros([K], tl.float64)
    for start in range(0, K if HELD else columns, K):
        p = load_wide(probabilities, start, columns, steps[3], K)
        g = load_where(grad, p != 0.0, start, columns, grad_steps[3], K)
        s = _diagonal(p, log_norm, alpha)
        in_p += p * g
        in_s += s * g
        diagonal += s
        if in_alpha is not None:
            in_log += p * g * _log(p)
    mean = vector_sum(in_p)
    along = vector_sum(in_s) - mean * vector_sum(diagonal)
    for start in range(0, K if HELD else columns, K):
        p = load_wide(probabilities, start, columns, steps[3], K)
        g = load_where(grad, p != 0.0, start, columns, grad_steps[3], K)
        by_scores = _diagonal(p, log_norm, alpha) * (g - mean) - p * along
        store_block(out, by_scores, start, columns, out_steps[3], K)
    if in_alpha is not None:
        by_power = (vector_sum(in_log) - products * mean) / (alpha - 1.0)
        place = row_offset(row, middle, inner, in_steps, LEVELS)
        tl.store(in_alpha + place, norm_slope * along - by_power)
