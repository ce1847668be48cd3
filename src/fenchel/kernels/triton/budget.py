"""budget and its derivatives along any dimension of a CUDA tensor: a row a program, in float64.

    budget              argmax_p <p, x> - ||p||^2 / 2 over 0 <= p <= 1 with the sum k
    budget_backward     its Jacobian times a vector, from p alone
    budget_backward_k   the same, and the gradient in k

k is a number, or a tensor with one value a row. As in the reference the threshold is sought around the
m-th largest score, m the next whole number from k on. That score is found by counting, not by sorting:
floats are ordered as the integers that their bits are, and the bracket of those is halved until it
holds one score. Nothing waits for the device, so CUDA graphs can capture every call.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
import torch
import triton
import triton.language as tl
from torch import Tensor

from fenchel.kernels.triton.addressing import copy_back, row_offset
from fenchel.kernels.triton.candidates import load_block
from fenchel.kernels.triton.kernel import kernel
from fenchel.kernels.triton.reductions import shared_sum
from fenchel.kernels.triton.row_programs import (
    ROUNDING,
    held,
    launch,
    load_where,
    load_wide,
    newton_step,
    one_a_row,
    row_block,
    row_peak,
    store_block,
)
from fenchel.kernels.triton.strength import row_strength, strength_parts

LOWEST: tl.constexpr = tl.constexpr(-0x7F800000)  # the order of the score after -inf
NEAR: tl.constexpr = tl.constexpr(2.0)  # what is farther from the m-th score is 0 or 1


@triton.jit
def _order(x):
    """An int32 that is larger for a larger float32."""
    bits = x.to(tl.int32, bitcast=True)
    return tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)


@triton.jit
def _count(row, level, HELD: tl.constexpr, K: tl.constexpr):
    """How many scores have at least this order."""
    found = tl.zeros([K], tl.int32)
    for start in range(0, K if HELD else row[3], K):
        found += (_order(row_block(row, start, HELD, K)) >= level).to(tl.int32)
    return tl.sum(found, axis=0)


@triton.jit
def _largest_below(row, level, HELD: tl.constexpr, K: tl.constexpr):
    """The largest score of a lower order, -inf if there is none."""
    below = tl.full([K], float("-inf"), tl.float32)
    for start in range(0, K if HELD else row[3], K):
        x = row_block(row, start, HELD, K)
        below = tl.maximum(below, tl.where(_order(x) < level, x, float("-inf")))
    return tl.max(below, axis=0)


@triton.jit
def _ranked(row, rank, available, peak, HELD: tl.constexpr, K: tl.constexpr):
    """The score of this rank, 1 that of the largest."""
    lower = tl.full([], LOWEST, tl.int64)  # `rank` scores or more have this order
    upper = _order(peak).to(tl.int64) + 1  # fewer have this one
    from_lower = available
    from_upper = available * 0
    while (from_lower - from_upper > 1) & (upper - lower > 1):
        middle = (lower + upper) >> 1
        found = _count(row, middle.to(tl.int32), HELD, K)
        enough = found >= rank
        lower = tl.where(enough, middle, lower)
        upper = tl.where(enough, upper, middle)
        from_lower = tl.where(enough, found, from_lower)
        from_upper = tl.where(enough, from_upper, found)
    return _largest_below(row, upper.to(tl.int32), HELD, K)


@triton.jit
def _clip(x, low, high):
    """NaN stays."""
    return tl.where(x < low, low, tl.where(x > high, high, x))


@triton.jit
def _shares(x, anchor, tau):
    """p before it is known whether there are k scores."""
    return _clip(_clip(x.to(tl.float64) - anchor, -NEAR, NEAR) - tau, 0.0, 1.0)


@triton.jit
def _evaluate(row, anchor, tau, HELD: tl.constexpr, K: tl.constexpr):
    """The sum of p, and how many entries lie between 0 and 1."""
    total = tl.zeros([K], tl.float64)
    between = tl.zeros([K], tl.int32)
    for start in range(0, K if HELD else row[3], K):
        p = _shares(row_block(row, start, HELD, K), anchor, tau)
        total += p
        between += ((p > 0.0) & (p < 1.0)).to(tl.int32)
    return shared_sum(total), tl.sum(between, axis=0)


@triton.jit
def _solve(row, anchor, k, HELD: tl.constexpr, K: tl.constexpr):
    """tau in [-1, 0], relative to the anchor."""
    lower = k * 0.0 - 1.0
    upper = k * 0.0
    point = lower
    previous = upper + float("inf")
    rounding = ROUNDING * tl.maximum(k, 1.0)
    active = k >= 0.0
    while active:
        total, between = _evaluate(row, anchor, point, HELD, K)
        lower, upper, point, previous, active = newton_step(
            total - k, -between.to(tl.float64), point, lower, upper, previous, rounding
        )
    return point


@kernel
def budget_rows(
    scores, out, mask, ks, high, low, columns, middle, inner, steps, out_steps, mask_steps, k_steps,
    LEVELS: tl.constexpr, HELD: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    number = tl.program_id(0).to(tl.int64)
    k = row_strength(high, low, ks, number, number >= 0, middle, inner, k_steps, LEVELS)
    scores += row_offset(number, middle, inner, steps, LEVELS)
    if mask is not None:
        mask += row_offset(number, middle, inner, mask_steps, LEVELS)
    first = load_block(scores, mask, 0, columns, steps[3], mask_steps[3], K)
    row = first, scores, mask, columns, steps[3], mask_steps[3]
    peak = row_peak(row, HELD, K)
    available = _count(row, LOWEST, HELD, K)
    rank = tl.minimum(tl.maximum(tl.ceil(k), 1.0), tl.maximum(available, 1).to(tl.float64))
    anchor = _ranked(row, rank.to(tl.int32), available, peak, HELD, K)
    anchor = tl.where(anchor == float("-inf"), 0.0, anchor).to(tl.float64)
    tau = _solve(row, anchor, k, HELD, K)
    out += row_offset(number, middle, inner, out_steps, LEVELS)
    for start in range(0, K if HELD else columns, K):
        x = row_block(row, start, HELD, K)
        p = tl.where(available.to(tl.float64) <= k, 1.0, _shares(x, anchor, tau))
        p = tl.where(x == float("-inf"), 0.0, p)
        p = tl.where(peak < float("inf"), p, float("nan"))
        store_block(out, p, start, columns, out_steps[3], K)


@kernel
def budget_pull_back(
    probabilities, grad, out, in_k, columns, middle, inner, steps, grad_steps, out_steps, in_steps,
    LEVELS: tl.constexpr, HELD: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """g less its mean, and in k that mean, both over the entries strictly between 0 and 1."""
    row = tl.program_id(0).to(tl.int64)
    probabilities += row_offset(row, middle, inner, steps, LEVELS)
    grad += row_offset(row, middle, inner, grad_steps, LEVELS)
    out += row_offset(row, middle, inner, out_steps, LEVELS)
    total = tl.zeros([K], tl.float64)
    size = tl.zeros([K], tl.int32)
    for start in range(0, K if HELD else columns, K):
        p = load_wide(probabilities, start, columns, steps[3], K)
        between = (p > 0.0) & (p < 1.0)
        total += load_where(grad, between, start, columns, grad_steps[3], K)
        total += p - p  # NaN in a row that is NaN
        size += between.to(tl.int32)
    mean = shared_sum(total) / tl.maximum(tl.sum(size, axis=0), 1).to(tl.float64)
    for start in range(0, K if HELD else columns, K):
        p = load_wide(probabilities, start, columns, steps[3], K)
        between = (p > 0.0) & (p < 1.0)
        g = load_where(grad, between, start, columns, grad_steps[3], K)
        by_scores = tl.where(between | (p != p), g - mean, 0.0)
        store_block(out, by_scores, start, columns, out_steps[3], K)
    if in_k is not None:
        tl.store(in_k + row_offset(row, middle, inner, in_steps, LEVELS), mean)


def budget(scores: Tensor, k: float | Tensor, mask: Tensor | None = None, dim: int = -1) -> Tensor:
    """argmax ⟨p, x⟩ − ½‖p‖² over 0 ≤ p ≤ 1, Σp = k; fewer than k entries are all taken."""
    out = torch.empty_like(scores)
    high, low, ks = strength_parts(k)
    tensors = launch(
        budget_rows, dim, scores, out, mask, ks, numbers=(high, low), HELD=held(scores, dim)
    )
    return copy_back(out, tensors[1])


def budget_backward(grad: Tensor, p: Tensor, k: float | Tensor, dim: int = -1) -> Tensor:
    """J g = s∘(g − mean of g over s), s the entries strictly between 0 and 1; J is symmetric."""
    return _pull_back(grad, p, None, dim)


def budget_backward_k(grad: Tensor, p: Tensor, k: Tensor, dim: int = -1) -> tuple[Tensor, Tensor]:
    """The gradients in the scores and in k, the latter one a row (size 1 along `dim`)."""
    in_k = one_a_row(p, dim)
    return _pull_back(grad, p, in_k, dim), in_k


def _pull_back(grad: Tensor, p: Tensor, in_k: Tensor | None, dim: int) -> Tensor:
    out = torch.empty_like(p)
    tensors = launch(budget_pull_back, dim, p, grad, out, in_k, HELD=held(p, dim))
    if in_k is not None:
        copy_back(in_k, tensors[3])
    return copy_back(out, tensors[2])
