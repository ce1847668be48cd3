"""Maps with one unknown threshold per row, in float64, with one program per row.

A program has a row of up to MAX_HELD_COLUMNS columns in registers. A longer row is read again, block by
block, in every visit.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

# A kernel is launched with options that its parameters do not name.
# pyright: reportAssignmentType=false
# pyright: reportCallIssue=false, reportArgumentType=false, reportOperatorIssue=false
# ruff: noqa: RET505 (what is known when a kernel is compiled needs if and else)
from torch import Tensor

from fenchel.kernels.triton.launch.addressing import (
    address,
)
from fenchel.kernels.triton.launch.tile_shapes import (
    next_power_of_two,
)
from fenchel.kernels.triton.tiles.layout import (
    load_block,
)
from fenchel.kernels.triton.tiles.reductions import (
    nan_max,
)

MAX_HELD_COLUMNS = 4096  # longest rows that a program has in registers
COLUMNS_PER_WARP = 128  # at least
SUM_TOLERANCE: tl.constexpr = tl.constexpr(4 * 2.0**-52)


@triton.jit
def row_block(row, start, HELD: tl.constexpr, K: tl.constexpr):
    """K scores from column `start` in float32, -inf beyond the row.

    `row` is (the first block, scores, mask, columns, step, mask_step) with pointers to the row.
    """
    if HELD:
        return row[0]
    else:
        return load_block(row[1], row[2], start, row[3], row[4], row[5], K)


@triton.jit
def row_peak(row, HELD: tl.constexpr, K: tl.constexpr):
    """The largest score; NaN counts as largest."""
    peak = row[0]
    for start in range(K, K if HELD else row[3], K):
        peak = nan_max(peak, row_block(row, start, HELD, K))
    return tl.reduce(peak, 0, nan_max)


@triton.jit
def load_where(values, wanted, start, columns, step, K: tl.constexpr):
    """K entries of a row in float64, 0 where they are masked."""
    column = start + tl.arange(0, K)
    place = column.to(tl.int64) * step
    return tl.load(values + place, mask=wanted & (column < columns), other=0.0).to(tl.float64)


@triton.jit
def load_wide(values, start, columns, step, K: tl.constexpr):
    """K entries of a row in float64, 0 beyond its end."""
    return load_where(values, True, start, columns, step, K)


@triton.jit
def store_block(out, values, start, columns, step, K: tl.constexpr):
    """Store via float32, from which half precision is rounded as everywhere else."""
    column = start + tl.arange(0, K)
    place = column.to(tl.int64) * step
    tl.store(out + place, values.to(tl.float32), mask=column < columns)


@triton.jit
def positive_power(base, exponent):
    """base**exponent where it is positive, and 0 elsewhere."""
    positive = base > 0.0
    result = tl.exp(exponent * tl.log(tl.where(positive, base, 1.0)))
    return tl.where(positive, result, 0.0)


@triton.jit
def bracketed_newton_step(value, slope, point, lower, upper, previous, rounding):
    """One step of the solver of the reference: Newton's method in a bracket, for a decreasing function.

    Returns the bracket, the next point, |value|, and whether to continue.
    """
    lower = tl.where(value > 0.0, point, lower)
    upper = tl.where(value < 0.0, point, upper)
    newton = point - value / slope
    middle = lower + (upper - lower) / 2.0
    trusted = (newton >= lower) & (newton <= upper) & (tl.abs(value) * 2.0 <= previous)
    ahead = tl.where(trusted, newton, middle)
    inside = (middle > lower) & (middle < upper)
    active = (tl.abs(value) > rounding) & (ahead != point) & inside
    return lower, upper, tl.where(active, ahead, point), tl.abs(value), active


def launch_rows(
    kernel: Any,
    dim: int,
    first: Tensor,
    *others: Tensor | None,
    numbers: tuple[float, ...] = (),
    **options: Any,
) -> list[Any]:
    """Run the kernel on every row along `dim`; returns the tensors as `address` does.

    The kernel takes the tensors, the numbers, the shape of the rows and the strides of the tensors.
    """
    rows, tensors, steps = address(dim, first, *others)
    width = min(next_power_of_two(rows.columns), MAX_HELD_COLUMNS)
    kernel[(rows.count,)](
        *tensors, *numbers, rows.columns, rows.middle, rows.inner, *steps,
        LEVELS=rows.levels, K=width, num_warps=max(1, min(32, width // COLUMNS_PER_WARP)), **options,
    )  # fmt: skip
    return tensors


def fits_program(tensor: Tensor, dim: int) -> bool:
    """Whether a row along `dim` fits in the registers of a program."""
    return tensor.shape[dim] <= MAX_HELD_COLUMNS


def empty_per_row(tensor: Tensor, dim: int) -> Tensor:
    """An empty tensor with one float64 per row, of size 1 along `dim`."""
    shape = list(tensor.shape)
    shape[dim] = 1
    return torch.empty(shape, dtype=torch.float64, device=tensor.device)
