"""One row a program, in float64: what the maps share that have one unknown threshold a row.

A program holds a row of up to `LONGEST` columns. A longer one is read again, block by block, whenever
it is needed.
"""

from __future__ import annotations

# A kernel is launched with options that its parameters do not name.
# pyright: reportCallIssue=false, reportArgumentType=false, reportOperatorIssue=false
# pyright: reportAssignmentType=false
# ruff: noqa: RET505 (what is known when a kernel is compiled needs if and else)
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from fenchel.kernels.triton.launch.addressing import address
from fenchel.kernels.triton.launch.whole_numbers import power_of_two
from fenchel.kernels.triton.tiles.combining import larger
from fenchel.kernels.triton.tiles.memory import load_block

LONGEST = 4096  # columns that a program holds
ENTRIES = 128  # columns a warp, at least
ROUNDING: tl.constexpr = tl.constexpr(4 * 2.0**-52)


@triton.jit
def row_block(row, start, HELD: tl.constexpr, K: tl.constexpr):
    """K scores from column `start` on in float32, -inf where there is none.

    `row` is (the first block, scores, mask, columns, step, mask_step) with pointers to the row.
    """
    if HELD:
        return row[0]
    else:
        return load_block(row[1], row[2], start, row[3], row[4], row[5], K)


@triton.jit
def row_peak(row, HELD: tl.constexpr, K: tl.constexpr):
    """The largest score as it is; NaN wins."""
    peak = row[0]
    for start in range(K, K if HELD else row[3], K):
        peak = larger(peak, row_block(row, start, HELD, K))
    return tl.reduce(peak, 0, larger)


@triton.jit
def load_where(values, wanted, start, columns, step, K: tl.constexpr):
    """K entries of a row in float64, 0 where they are not wanted."""
    column = start + tl.arange(0, K)
    place = column.to(tl.int64) * step
    return tl.load(values + place, mask=wanted & (column < columns), other=0.0).to(tl.float64)


@triton.jit
def load_wide(values, start, columns, step, K: tl.constexpr):
    """K entries of a row in float64, 0 beyond its end."""
    return load_where(values, True, start, columns, step, K)


@triton.jit
def store_block(out, values, start, columns, step, K: tl.constexpr):
    """By way of float32, from which half precision is rounded as everywhere else."""
    column = start + tl.arange(0, K)
    place = column.to(tl.int64) * step
    tl.store(out + place, values.to(tl.float32), mask=column < columns)


@triton.jit
def power(base, exponent):
    """base**exponent where it is positive, and 0 elsewhere."""
    positive = base > 0.0
    result = tl.exp(exponent * tl.log(tl.where(positive, base, 1.0)))
    return tl.where(positive, result, 0.0)


@triton.jit
def newton_step(value, slope, point, lower, upper, previous, rounding):
    """One step of the reference's solver: Newton's method in the bracket of a falling function.

    Returns the bracket, the next point, the size of the value, and whether to go on from there.
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


def launch(
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
    width = min(power_of_two(rows.columns), LONGEST)
    kernel[(rows.count,)](
        *tensors, *numbers, rows.columns, rows.middle, rows.inner, *steps,
        LEVELS=rows.levels, K=width, num_warps=max(1, min(32, width // ENTRIES)), **options,
    )  # fmt: skip
    return tensors


def held(tensor: Tensor, dim: int) -> bool:
    """Whether a program holds a row along `dim`."""
    return tensor.shape[dim] <= LONGEST


def one_a_row(tensor: Tensor, dim: int) -> Tensor:
    """Room for one float64 a row, with size 1 along `dim`."""
    shape = list(tensor.shape)
    shape[dim] = 1
    return torch.empty(shape, dtype=torch.float64, device=tensor.device)
