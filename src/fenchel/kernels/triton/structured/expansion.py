"""From the groups of the prox to fusedmax: every entry its group's value, projected onto the simplex.

    p = [z - tau]_+ with tau such that the row sums to one

A program treats one row, in the list that `candidates` made of it.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
import triton
import triton.language as tl

from fenchel.kernels.triton.launch.addressing import row_offset
from fenchel.kernels.triton.launch.kernel import kernel


@triton.jit
def _larger_index(a, b):
    return tl.maximum(a, b)


@triton.jit
def _expand(values, signs, length, K: tl.constexpr):
    """Give every entry of the list the value of its group; returns the largest."""
    peak = tl.full([K], float("-inf"), tl.float64)
    first = 0
    for start in range(0, length, K):
        place = start + tl.arange(0, K)
        inside = place < length
        begins = tl.load(signs + place, mask=inside, other=0) != 0
        begin = tl.associative_scan(tl.where(begins, place, 0), 0, _larger_index)
        begin = tl.maximum(begin, first)
        z = tl.load(values + begin, mask=inside, other=float("-inf"))
        tl.store(values + place, z, mask=inside)
        first = tl.max(begin, axis=0)
        peak = tl.maximum(peak, z)
    return tl.max(peak, axis=0)


@triton.jit
def _threshold(values, length, peak, K: tl.constexpr):
    """tau, by Newton's method from the left, which never overshoots; in float64."""
    tau = peak - 1.0
    size_before = (length * 0 - 1).to(tl.float32)
    going_on = length > 0
    while going_on:
        total = tl.zeros([K], tl.float64)
        size = tl.zeros([K], tl.float32)
        for start in range(0, length, K):
            place = start + tl.arange(0, K)
            z = tl.load(values + place, mask=place < length, other=float("-inf"))
            above = tl.maximum(z - tau, 0.0)
            total += above
            size += tl.where(above > 0.0, 1.0, 0.0)
        row_size = tl.sum(size, axis=0)
        following = tau + (tl.sum(total, axis=0) - 1.0) / row_size
        going_on = (row_size != size_before) & (following > tau)
        tau = tl.where(going_on, following, tau)
        size_before = row_size
    return tau


@kernel
def write_fused(
    out, jumps, values, signs, places, listed, columns, middle, inner, out_steps, jump_steps,
    LEVELS: tl.constexpr, L: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """Write rows of zeros, K columns at a time, and over them what is listed, L entries at a time."""
    row = tl.program_id(0).to(tl.int64)
    values += row * columns
    signs += row * columns
    places += row * columns
    out += row_offset(row, middle, inner, out_steps, LEVELS)
    jumps += row_offset(row, middle, inner, jump_steps, LEVELS)
    length = tl.load(listed + row)
    empty = tl.zeros([K], tl.float32) + tl.where(length < 0, float("nan"), 0.0)
    for start in range(0, columns, K):
        column = start + tl.arange(0, K)
        inside = column < columns
        tl.store(out + column.to(tl.int64) * out_steps[3], empty, mask=inside)
        tl.store(jumps + column.to(tl.int64) * jump_steps[3], tl.zeros([K], tl.int8), mask=inside)
    peak = _expand(values, signs, length, L)
    tl.debug_barrier()
    tau = _threshold(values, length, peak, L)
    for start in range(0, length, L):
        place = start + tl.arange(0, L)
        inside = place < length
        z = tl.load(values + place, mask=inside, other=float("-inf"))
        before = inside & (place > 0)
        z_before = tl.load(values + place - 1, mask=before, other=float("-inf"))
        sign = tl.load(signs + place, mask=inside, other=0)
        column = tl.load(places + place, mask=inside, other=0).to(tl.int64)
        p = tl.maximum(z - tau, 0.0).to(tl.float32)
        tl.store(out + column * out_steps[3], p, mask=inside)
        near = (z > tau) | (z_before > tau)
        tl.store(jumps + column * jump_steps[3], sign, mask=inside & near)
