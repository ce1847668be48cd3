"""The Jacobian of a map with groups times a vector, (N.26).

Groups are known by `jumps` (fusedmax: a group begins where a jump is not zero) or by first ranks
(oscarmax: equal ranks are one group). Sums are integers, in units so small that nothing is lost and so
large that nothing overflows, so they do not depend on the order in which threads add. A program
processes blocks of R rows in sequence, K columns at a time, so that its sums need little memory.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
# pyright: reportCallIssue=false
# ruff: noqa: RET505 (what is known when a kernel is compiled needs if and else)
from torch import Tensor

from fenchel.kernels.triton.launch.addressing import (
    address,
    copy_back,
    row_offset,
)
from fenchel.kernels.triton.launch.kernel import (
    kernel,
)
from fenchel.kernels.triton.launch.tile_shapes import (
    ceil_div,
    next_power_of_two,
    walk_shape,
)

JUMPS: tl.constexpr = tl.constexpr(0)
RANKS: tl.constexpr = tl.constexpr(1)
MAX_PROGRAMS = 4096
ENTRIES_PER_PROGRAM = 512  # a program processes several short rows at once, with this many entries


@triton.jit
def _block(start, exists, columns, K: tl.constexpr):
    """K columns, as offsets and as a mask for the rows that exist."""
    column = start + tl.arange(0, K)[None, :]
    return column, column.to(tl.int64), exists & (column < columns)


@triton.jit
def _load_support(p, grad, inside):
    """p, where it is not zero, and g, zero off the support."""
    p = tl.load(p, mask=inside, other=0.0).to(tl.float32)
    g = tl.load(grad, mask=inside, other=0.0).to(tl.float32)
    return p, p != 0.0, tl.where(p != 0.0, g, 0.0)


@triton.jit
def _load_groups(groups, inside, before, KIND: tl.constexpr):
    """(what is stored, the number of the group, the largest number so far)."""
    stored = tl.load(groups, mask=inside, other=0).to(tl.int32)
    if KIND == JUMPS:
        begins = (stored != 0).to(tl.int32)
        number = before + tl.cumsum(begins, axis=1)
        return stored, number, before + tl.sum(begins, axis=1, keep_dims=True)
    else:
        number = tl.maximum(stored, 0)
        return stored, number, tl.maximum(before, tl.max(number, axis=1, keep_dims=True))


@triton.jit
def _fixed_point_units(most):
    """(units per one, size of a unit), both powers of two; `most` is below 2^61 units."""
    exponent = tl.maximum((most.to(tl.int32, bitcast=True) >> 23) & 255, 60)
    many = ((313 - exponent) << 23).to(tl.float32, bitcast=True)
    return many, ((exponent - 59) << 23).to(tl.float32, bitcast=True)


@triton.jit
def _mean(total, size, unit):
    """A mean in the precision of `unit`, equal in all threads for equal arguments."""
    return total.to(unit.dtype) * unit / tl.maximum(size, 1).to(unit.dtype)


@triton.jit
def _measure_support(
    p, grad, groups, exists, columns, steps, grad_steps, group_steps, KIND: tl.constexpr,
    R: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """The size of the support, the largest |g| there (NaN if there is one), and the last group."""
    size = tl.zeros([R, K], tl.int32)
    largest = tl.zeros([R, K], tl.float32)
    poison = tl.zeros([R, K], tl.float32)
    last = tl.zeros([R, 1], tl.int32)
    for start in range(0, columns, K):
        _, place, inside = _block(start, exists, columns, K)
        p_block, support, g = _load_support(
            p + place * steps[3], grad + place * grad_steps[3], inside
        )
        _, _, last = _load_groups(groups + place * group_steps[3], inside, last, KIND)
        size += support.to(tl.int32)
        largest = tl.maximum(largest, tl.abs(g))
        poison += (p_block + g) * 0.0
    return (
        tl.sum(size, axis=1, keep_dims=True),
        tl.max(largest, axis=1, keep_dims=True),
        tl.sum(poison, axis=1, keep_dims=True),
        last,
    )


@triton.jit
def _clear(sums, sizes, last, R: tl.constexpr, K: tl.constexpr):
    """Zero for the groups 1, ..., last."""
    for start in range(1, tl.max(last) + 1, K):
        place = start + tl.arange(0, K)[None, :]
        tl.store(sums + place, tl.zeros([R, K], tl.int64), mask=place <= last)
        tl.store(sizes + place, tl.zeros([R, K], tl.int32), mask=place <= last)


@triton.jit
def _sum_groups(
    p, grad, groups, sums, sizes, several, many, exists, columns, steps, grad_steps, group_steps,
    KIND: tl.constexpr, R: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """Add g to the sums of the groups; returns the sum of all, and sum and size of group 0.

    Group 0 is often the only one, and many threads that add to one number would wait for each other.
    """
    total = tl.zeros([R, K], tl.int64)
    total_zero = tl.zeros([R, K], tl.int64)
    size_zero = tl.zeros([R, K], tl.int32)
    last = tl.zeros([R, 1], tl.int32)
    for start in range(0, columns, K):
        _, place, inside = _block(start, exists, columns, K)
        _, support, g = _load_support(p + place * steps[3], grad + place * grad_steps[3], inside)
        _, number, last = _load_groups(groups + place * group_steps[3], inside, last, KIND)
        units = (g * many).to(tl.int64)
        zero = support & (number == 0)
        total += units
        total_zero += tl.where(zero, units, 0)
        size_zero += zero.to(tl.int32)
        if several:
            other = support & (number > 0)
            tl.atomic_add(sums + number, units, mask=other, sem="relaxed")
            tl.atomic_add(sizes + number, other.to(tl.int32), mask=other, sem="relaxed")
    return (
        tl.sum(total, axis=1, keep_dims=True),
        tl.sum(total_zero, axis=1, keep_dims=True),
        tl.sum(size_zero, axis=1, keep_dims=True),
    )


@triton.jit
def _strength_derivative(stored, groups, column, inside, columns, step, size, KIND: tl.constexpr):
    """The derivative of an entry of the prox in the strength, up to a constant per row."""
    if KIND == JUMPS:
        following = inside & (column + 1 < columns)
        after = tl.load(groups + (column + 1).to(tl.int64) * step, mask=following, other=0)
        return (after.to(tl.int32) - stored).to(tl.float64)
    else:
        return stored.to(tl.float64) + 0.5 * (size - 1).to(tl.float64)


@triton.jit
def _write_gradient(
    p, groups, out, sums, sizes, several, unit, shift, total_zero, size_zero, exists, columns,
    steps, group_steps, out_steps, STRENGTH: tl.constexpr, KIND: tl.constexpr, R: tl.constexpr,
    K: tl.constexpr,
):  # fmt: skip
    """Write J g; returns its product with the derivative of the prox in the strength."""
    by_strength = tl.zeros([R, K], tl.float64)
    last = tl.zeros([R, 1], tl.int32)
    for start in range(0, columns, K):
        column, place, inside = _block(start, exists, columns, K)
        support = tl.load(p + place * steps[3], mask=inside, other=0.0).to(tl.float32) != 0.0
        row_groups = groups + place * group_steps[3]
        stored, number, last = _load_groups(row_groups, inside, last, KIND)
        # A masked entry inside a group of fusedmax carries the jump behind it.
        wanted = inside if STRENGTH and KIND == JUMPS else support
        total = tl.zeros([R, K], tl.int64) + total_zero
        size = tl.zeros([R, K], tl.int32) + size_zero
        if several:
            other = wanted & (number > 0)
            others_total = tl.load(sums + number, mask=other, other=0, volatile=True)
            others_size = tl.load(sizes + number, mask=other, other=0, volatile=True)
            total = tl.where(number > 0, others_total, total)
            size = tl.where(number > 0, others_size, size)
        moved = tl.where(wanted & (size > 0), _mean(total, size, unit) - shift, 0.0)
        dx = tl.where(support, moved, 0.0).to(tl.float32)
        tl.store(out + place * out_steps[3], dx, mask=inside)
        if STRENGTH:
            slope = _strength_derivative(
                stored, groups, column, inside, columns, group_steps[3], size, KIND
            )
            by_strength += slope * moved
    return tl.sum(by_strength, axis=1, keep_dims=True)


@kernel
def group_backward_rows(
    p, grad, groups, out, in_strength, sums, sizes, count, columns, middle, inner,
    steps, grad_steps, group_steps, out_steps,
    LEVELS: tl.constexpr, KIND: tl.constexpr, R: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * R + tl.arange(0, R)[:, None]
    sums += row * columns
    sizes += row * columns
    STRENGTH: tl.constexpr = in_strength is not None
    block = tl.program_id(0).to(tl.int64)
    while block * R < count:
        row = block * R + tl.arange(0, R)[:, None]
        exists = row < count
        row_p = p + row_offset(row, middle, inner, steps, LEVELS)
        row_grad = grad + row_offset(row, middle, inner, grad_steps, LEVELS)
        row_groups = groups + row_offset(row, middle, inner, group_steps, LEVELS)
        row_out = out + row_offset(row, middle, inner, out_steps, LEVELS)
        size, largest, poison, last = _measure_support(
            row_p, row_grad, row_groups, exists, columns, steps, grad_steps, group_steps, KIND, R, K
        )
        many, unit = _fixed_point_units(largest * size.to(tl.float32))
        if STRENGTH:
            unit = unit.to(tl.float64)
        several = tl.max(last) > 0
        _clear(sums, sizes, last, R, K)
        tl.debug_barrier()
        total, total_zero, size_zero = _sum_groups(
            row_p, row_grad, row_groups, sums, sizes, several, many, exists, columns,
            steps, grad_steps, group_steps, KIND, R, K,
        )  # fmt: skip
        tl.debug_barrier()
        shift = _mean(total, size, unit) + poison
        by_strength = _write_gradient(
            row_p, row_groups, row_out, sums, sizes, several, unit, shift, total_zero, size_zero,
            exists, columns, steps, group_steps, out_steps, STRENGTH, KIND, R, K,
        )  # fmt: skip
        if STRENGTH:
            tl.store(in_strength + row, by_strength, mask=exists)
        tl.debug_barrier()
        block += tl.num_programs(0)


def group_backward(
    kind: tl.constexpr, grad: Tensor, p: Tensor, groups: Tensor, dim: int, *, with_strength: bool
) -> tuple[Tensor, Any]:
    """J g, and the gradient in the strength of every row (float64, size 1 along `dim`) if required."""
    out, in_strength = torch.empty_like(p), None
    if with_strength:
        shape = list(p.shape)
        del shape[dim]
        in_strength = torch.zeros(shape, dtype=torch.float64, device=p.device)
    if p.numel() == 0:
        return out, in_strength
    rows, tensors, steps = address(dim, p, grad, groups, out)
    width, warps = walk_shape(rows.columns)
    height = max(1, min(ENTRIES_PER_PROGRAM // width, next_power_of_two(rows.count)))
    programs = min(ceil_div(rows.count, height), MAX_PROGRAMS)
    shape = (programs * height, rows.columns)
    sums = torch.empty(shape, dtype=torch.int64, device=p.device)
    sizes = torch.empty(shape, dtype=torch.int32, device=p.device)
    group_backward_rows[(programs,)](
        *tensors, in_strength, sums, sizes, rows.count, rows.columns, rows.middle, rows.inner,
        *steps, LEVELS=rows.levels, KIND=kind.value, R=height, K=width, num_warps=warps,
    )  # fmt: skip
    by_strength = None if in_strength is None else in_strength.unsqueeze(dim)
    return copy_back(out, tensors[3]), by_strength
