"""pnormmax and its Jacobian along any dimension of a CUDA tensor, with one program per row, in float64.

    pnormmax            argmax_p <p, x> - ||p||_s^2 / 2 over the simplex
    pnormmax_backward   its Jacobian times a vector, from p alone

s is a number, or a tensor with one value per row. The method is that of the reference, (N.35) and (N.24);
rows too long for one program run on the reference. No call waits for the device, so CUDA graphs can
capture all of them.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import triton
import triton.language as tl
from torch import Tensor

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportOperatorIssue=false
from fenchel.kernels.reference import pnormmax as reference
from fenchel.kernels.triton.launch.addressing import (
    copy_back,
    row_offset,
)
from fenchel.kernels.triton.launch.kernel import (
    kernel,
)
from fenchel.kernels.triton.launch.parameters import (
    parameter_parts,
    row_parameter,
)
from fenchel.kernels.triton.shared.float64_rows import (
    SUM_TOLERANCE,
    bracketed_newton_step,
    fits_program,
    launch_rows,
    load_where,
    load_wide,
    positive_power,
    store_block,
)
from fenchel.kernels.triton.tiles.layout import (
    finite_peak,
    load_block,
)
from fenchel.kernels.triton.tiles.reductions import (
    nan_max,
    vector_sum,
)


def pnormmax(
    scores: Tensor, p: float | Tensor, mask: Tensor | None = None, dim: int = -1
) -> Tensor:
    """argmax_{q ∈ Δ} ⟨q, x⟩ − ½‖q‖_p² along `dim`; zero where a score is −inf or masked."""
    if not fits_program(scores, dim):
        rows = scores if mask is None else scores.masked_fill(~mask, float("-inf"))
        return _on_reference(reference.pnormmax, (rows,), p, dim)
    out = torch.empty_like(scores)
    high, low, exponents = parameter_parts(p)
    tensors = launch_rows(pnormmax_rows, dim, scores, out, mask, exponents, numbers=(high, low))
    return copy_back(out, tensors[1])


def pnormmax_backward(grad: Tensor, q: Tensor, p: float | Tensor, dim: int = -1) -> Tensor:
    """J g = K h, h = g − (1ᵀK g)/(1ᵀK1), with K the inverse Hessian of ½‖q‖_p² on the support."""
    if not fits_program(q, dim):
        return _on_reference(reference.pnormmax_backward, (grad, q), p, dim)
    out = torch.empty_like(q)
    high, low, exponents = parameter_parts(p)
    tensors = launch_rows(pnormmax_backward_rows, dim, q, grad, out, exponents, numbers=(high, low))
    return copy_back(out, tensors[2])


def _on_reference(
    function: Callable[..., Tensor], tensors: tuple[Tensor, ...], p: float | Tensor, dim: int
) -> Tensor:
    """The reference, for rows that are too long; at least in float32, like the kernels."""
    dtype = torch.promote_types(tensors[-1].dtype, torch.float32)
    rows = [tensor.to(dtype).movedim(dim, -1).contiguous() for tensor in tensors]
    if isinstance(p, Tensor):
        p = p.double().movedim(dim, -1)
    result = function(*rows, p).movedim(-1, dim)
    return torch.empty_like(tensors[-1]).copy_(result)


@triton.jit
def _weights(z, tau, s):
    """u^c and u, with u = (x - tau)_+ relative to that of the largest score."""
    relative = tl.maximum((z - tau) / -tau, 0.0)
    return positive_power(relative, 1.0 / (s - 1.0)), relative


@triton.jit
def _evaluate(z, tau, s):
    """F - 1 and its derivative."""
    weights, relative = _weights(z, tau, s)
    total = vector_sum(weights)
    powers = vector_sum(weights * relative)
    slopes = vector_sum(
        tl.where(weights > 0.0, weights / tl.where(weights > 0.0, relative, 1.0), 0.0)
    )
    value = -tau * total * tl.exp(-(2.0 - s) / s * tl.log(powers))
    rate = (slopes / total - (2.0 - s) * total / powers) / ((s - 1.0) * -tau)
    return value - 1.0, -value * rate


@triton.jit
def _solve(z, s):
    """The root in [-1, 0], by Newton's method in a bracket, as in the reference."""
    lower = s * 0.0 - 1.0
    upper = s * 0.0
    point = lower
    previous = upper + float("inf")
    active = s > 1.0
    while active:
        value, slope = _evaluate(z, point, s)
        lower, upper, point, previous, active = bracketed_newton_step(
            value, slope, point, lower, upper, previous, SUM_TOLERANCE
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
    peak = tl.reduce(x, 0, nan_max)
    top = finite_peak(peak).to(tl.float64)
    z = x.to(tl.float64) - top
    weights, _ = _weights(z, _solve(z, s), s)
    p = tl.where(peak == float("-inf"), 0.0, weights / vector_sum(weights))
    p += top - top  # NaN in a row that holds one
    out += row_offset(row, middle, inner, out_steps, LEVELS)
    store_block(out, p, 0, columns, out_steps[3], K)


@triton.jit
def _inverse(p, g, diagonal, rest, s):
    """The inverse Hessian of the regularizer times g."""
    return (diagonal * g - rest * p * vector_sum(p * g)) / (s - 1.0)


@kernel
def pnormmax_backward_rows(
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
    size = positive_power(vector_sum(positive_power(p, s)), 1.0 / s)
    diagonal = positive_power(size, s - 2.0) * positive_power(p, 2.0 - s)
    rest = tl.where(size > 0.0, (2.0 - s) / (size * size), 0.0)
    whole = vector_sum(_inverse(p, tl.where(p != 0.0, 1.0, 0.0), diagonal, rest, s))
    level = vector_sum(_inverse(p, g, diagonal, rest, s)) / whole
    level = tl.where(tl.max((p != 0.0).to(tl.int32), 0) > 0, level, 0.0)
    by_scores = _inverse(p, tl.where(p != 0.0, g - level, 0.0), diagonal, rest, s)
    store_block(out, by_scores, 0, columns, out_steps[3], K)
