"""pnormmax and its Jacobian along any dimension of a CUDA tensor: a row a program, in float64.

    pnormmax            argmax_p <p, x> - ||p||_s^2 / 2 over the simplex
    pnormmax_backward   its Jacobian times a vector, from p alone

s is a number, with which the kernels are compiled, or a tensor with one value a row. The solver is
that of the reference. Nothing waits for the device, so CUDA graphs can capture every call; rows
that are too long for one program run on the reference.
"""

from __future__ import annotations

# A kernel is launched with options that its parameters do not name.
# pyright: reportCallIssue=false, reportArgumentType=false, reportOperatorIssue=false
# pyright: reportAssignmentType=false
import torch
import triton
import triton.language as tl
from torch import Tensor

from fenchel.kernels.reference import pnormmax as reference
from fenchel.kernels.rows import from_rows, parameter_to_rows, to_rows
from fenchel.kernels.triton.addressing import address, copy_back, row_offset
from fenchel.kernels.triton.configuration import power_of_two
from fenchel.kernels.triton.reductions import larger, shared_sum
from fenchel.kernels.triton.tiles import finite_peak, load_scores

LONGEST = 4096  # columns that a program holds
ENTRIES = 128  # columns a warp, at least
ROUNDING: tl.constexpr = tl.constexpr(4 * 2.0**-52)


@triton.jit
def _exponent(s, NUMBER: tl.constexpr, steps, row, middle, inner, LEVELS: tl.constexpr):
    """s of the row, in float64: read from the tensor, or the number itself."""
    if s is None:
        return tl.full([], NUMBER, tl.float64)
    else:  # noqa: RET505 (what is known when a kernel is compiled needs if and else)
        return tl.load(s + row_offset(row, middle, inner, steps, LEVELS)).to(tl.float64)


@triton.jit
def _power(base, exponent):
    """base**exponent where it is positive, and 0 elsewhere."""
    positive = base > 0.0
    power = tl.exp(exponent * tl.log(tl.where(positive, base, 1.0)))
    return tl.where(positive, power, 0.0)


@triton.jit
def _weights(z, tau, s):
    """u^c and u, with u = (x - tau)_+ relative to that of the largest score."""
    relative = tl.maximum((z - tau) / -tau, 0.0)
    return _power(relative, 1.0 / (s - 1.0)), relative


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
        lower = tl.where(value > 0.0, point, lower)
        upper = tl.where(value < 0.0, point, upper)
        newton = point - value / slope
        middle = lower + (upper - lower) / 2.0
        trusted = (newton >= lower) & (newton <= upper) & (tl.abs(value) * 2.0 <= previous)
        ahead = tl.where(trusted, newton, middle)
        inside = (middle > lower) & (middle < upper)
        active = (tl.abs(value) > ROUNDING) & (ahead != point) & inside
        point = tl.where(active, ahead, point)
        previous = tl.abs(value)
    return point


@triton.jit
def pnormmax_rows(
    scores, out, mask, s, columns, middle, inner,
    steps, out_steps, mask_steps, s_steps, LEVELS: tl.constexpr, NUMBER: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, K)
    inside = column < columns
    places = row_offset(row, middle, inner, steps, LEVELS) + column.to(tl.int64) * steps[3]
    masked = (
        row_offset(row, middle, inner, mask_steps, LEVELS) + column.to(tl.int64) * mask_steps[3]
    )
    x = load_scores(scores, mask, places, masked, inside)
    peak = tl.reduce(x, 0, larger)
    z = (x - finite_peak(peak)).to(tl.float64)
    exponent = _exponent(s, NUMBER, s_steps, row, middle, inner, LEVELS)
    weights, _ = _weights(z, _solve(z, exponent), exponent)
    p = tl.where(peak == float("-inf"), 0.0, weights / shared_sum(weights))
    p += (finite_peak(peak) - finite_peak(peak)).to(tl.float64)  # NaN in a row that holds one
    own = row_offset(row, middle, inner, out_steps, LEVELS) + column.to(tl.int64) * out_steps[3]
    tl.store(out + own, p.to(out.dtype.element_ty), mask=inside)


@triton.jit
def _inverse(p, g, diagonal, rest, s):
    """The inverse Hessian of the regularizer times g."""
    return (diagonal * g - rest * p * shared_sum(p * g)) / (s - 1.0)


@triton.jit
def pnormmax_pull_back(
    probabilities, grad, out, s, columns, middle, inner,
    steps, grad_steps, out_steps, s_steps, LEVELS: tl.constexpr, NUMBER: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, K)
    place = column.to(tl.int64)
    inside = column < columns
    places = row_offset(row, middle, inner, steps, LEVELS) + place * steps[3]
    p = tl.load(probabilities + places, mask=inside, other=0.0).to(tl.float64)
    places = row_offset(row, middle, inner, grad_steps, LEVELS) + place * grad_steps[3]
    g = tl.load(grad + places, mask=inside & (p != 0.0), other=0.0).to(tl.float64)
    exponent = _exponent(s, NUMBER, s_steps, row, middle, inner, LEVELS)
    total = shared_sum(_power(p, exponent))
    size = _power(total, 1.0 / exponent)
    diagonal = _power(size, exponent - 2.0) * _power(p, 2.0 - exponent)
    rest = tl.where(size > 0.0, (2.0 - exponent) / (size * size), 0.0)
    whole = shared_sum(_inverse(p, tl.where(p != 0.0, 1.0, 0.0), diagonal, rest, exponent))
    level = shared_sum(_inverse(p, g, diagonal, rest, exponent)) / whole
    level = tl.where(tl.max((p != 0.0).to(tl.int32), 0) > 0, level, 0.0)
    by_scores = _inverse(p, tl.where(p != 0.0, g - level, 0.0), diagonal, rest, exponent)
    places = row_offset(row, middle, inner, out_steps, LEVELS) + place * out_steps[3]
    tl.store(out + places, by_scores.to(out.dtype.element_ty), mask=inside)


def pnormmax(
    scores: Tensor, p: float | Tensor, mask: Tensor | None = None, dim: int = -1
) -> Tensor:
    """argmax_{q ∈ Δ} ⟨q, x⟩ − ½‖q‖_p² along `dim`; −inf and what the mask leaves out get zero."""
    if scores.shape[dim] > LONGEST:
        rows = to_rows(scores, dim, mask)
        return from_rows(reference.pnormmax(rows, parameter_to_rows(p, scores, dim)), scores, dim)
    out = torch.empty_like(scores)
    number, rows_of_s = _parameter(p)
    rows, tensors, steps = address(dim, scores, out, mask, rows_of_s)
    pnormmax_rows[(rows.count,)](
        *tensors, rows.columns, rows.middle, rows.inner, *steps,
        LEVELS=rows.levels, NUMBER=number, **_shape(rows.columns),
    )  # fmt: skip
    return copy_back(out, tensors[1])


def pnormmax_backward(grad: Tensor, q: Tensor, p: float | Tensor, dim: int = -1) -> Tensor:
    """J g = K h, h = g − (1ᵀK g)/(1ᵀK1), with K the inverse Hessian of ½‖q‖_p² on the support."""
    if q.shape[dim] > LONGEST:
        rows = to_rows(grad, dim), to_rows(q, dim), parameter_to_rows(p, q, dim)
        return from_rows(reference.pnormmax_backward(*rows), q, dim)
    out = torch.empty_like(q)
    number, rows_of_s = _parameter(p)
    rows, tensors, steps = address(dim, q, grad, out, rows_of_s)
    pnormmax_pull_back[(rows.count,)](
        *tensors, rows.columns, rows.middle, rows.inner, *steps,
        LEVELS=rows.levels, NUMBER=number, **_shape(rows.columns),
    )  # fmt: skip
    return copy_back(out, tensors[2])


def _parameter(p: float | Tensor) -> tuple[float, Tensor | None]:
    """The number with which to compile, and the tensor."""
    return (0.0, p) if isinstance(p, Tensor) else (float(p), None)


def _shape(columns: int) -> dict[str, int]:
    width = power_of_two(columns)
    return {"K": width, "num_warps": max(1, min(32, width // ENTRIES))}
