"""Positions of rows in memory, for any strides, any `dim`, broadcast masks and alphas, without copies.

The dimensions other than `dim` are merged where all tensors allow it. At most three remain, and a row
number is divided into that many indices. The `Strides` of a tensor are the distances between neighbours
along each of them, and between columns.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import triton
import triton.language as tl
from torch import Tensor

LEVELS = 3
Layout = tuple[tuple[int, ...], tuple[int, ...]]  # sizes and strides of a tensor


class Strides(NamedTuple):
    """Elements from one row to the next, outermost first, and from one column to the next."""

    outer: int
    middle: int
    inner: int
    column: int


class Rows(NamedTuple):
    """`count` rows of `columns` entries; a row is (i, j, k) with j < middle and k < inner."""

    count: int
    columns: int
    middle: int
    inner: int
    levels: int


def address(
    dim: int, first: Tensor, *others: Tensor | None
) -> tuple[Rows, list[Tensor | None], list[Strides]]:
    """The rows along `dim` of the first tensor, to which the others broadcast.

    Also returns the tensors: unchanged, or contiguous copies of the shape of the first one if they would
    need more than LEVELS levels. `copy_back` copies results that were written to a copy.
    """
    tensors = [first, *others]
    layouts = [None if t is None else (t.shape, t.stride()) for t in tensors]
    plan = _plan(dim, *layouts)
    if plan is None:
        tensors = [None if t is None else _expand(t, first, dim).contiguous() for t in tensors]
        plan = _plan(dim, *(None if t is None else (t.shape, t.stride()) for t in tensors))
    rows, steps = plan  # pyright: ignore[reportGeneralTypeIssues] (contiguous rows are one level)
    return rows, tensors, list(steps)


def copy_back(out: Tensor, written: Tensor | None) -> Tensor:
    """Copy results to `out` if `address` has replaced it by a copy."""
    return out if written is None or written is out else out.copy_(written)


@lru_cache(maxsize=4096)
def _plan(
    dim: int, first: Layout, *others: Layout | None
) -> tuple[Rows, tuple[Strides, ...]] | None:
    """Rows and strides for tensors of these layouts; none if there would be too many levels."""
    shape = list(first[0])
    strides = [_row_strides(layout, shape, dim) for layout in (first, *others)]
    columns = shape.pop(dim)
    sizes, merged = _merge(shape, [each[:-1] for each in strides])
    missing = LEVELS - len(sizes)
    if missing < 0:
        return None
    outer, middle, inner = [1] * missing + sizes
    rows = Rows(outer * middle * inner, columns, middle, inner, max(len(sizes), 1))
    steps = [
        Strides._make((*[0] * missing, *each, along[-1]))
        for each, along in zip(merged, strides, strict=True)
    ]
    return rows, tuple(steps)


def _expand(tensor: Tensor, like: Tensor, dim: int) -> Tensor:
    """`tensor` broadcast to the rows of `like`; its own size along `dim` may be 1."""
    shape = list(like.shape)
    if tensor.shape[dim] == 1:
        shape[dim] = 1
    return tensor.expand(shape)


def _row_strides(layout: Layout | None, shape: list[int], dim: int) -> list[int]:
    """The strides along all dimensions except `dim`, then along `dim`; 0 where the tensor broadcasts."""
    if layout is None:
        return [0] * len(shape)
    sizes, strides = layout
    steps = [0 if have == 1 else step for have, step in zip(sizes, strides, strict=True)]
    steps = [0] * (len(shape) - len(sizes)) + steps
    steps.append(steps.pop(dim))
    return steps


def _merge(shape: list[int], strides: list[list[int]]) -> tuple[list[int], list[list[int]]]:
    """Remove dimensions of size 1, and merge neighbours whose strides allow it in every tensor."""
    sizes: list[int] = []
    merged: list[list[int]] = [[] for _ in strides]
    for position, size in enumerate(shape):
        if size == 1:
            continue
        steps = [each[position] for each in strides]
        if sizes and all(m[-1] == step * size for m, step in zip(merged, steps, strict=True)):
            sizes[-1] *= size
            for m, step in zip(merged, steps, strict=True):
                m[-1] = step
        else:
            sizes.append(size)
            for m, step in zip(merged, steps, strict=True):
                m.append(step)
    return sizes, merged


@triton.jit
def row_offset(row, middle, inner, strides, LEVELS: tl.constexpr):
    """The offset of the first column of a row (an int64) in a tensor with these strides."""
    if LEVELS == 1:
        offset = row * strides[2]
    elif LEVELS == 2:
        offset = (row // inner) * strides[1] + (row % inner) * strides[2]
    else:
        outer = row // (middle * inner)
        within = row % (middle * inner)
        offset = outer * strides[0] + (within // inner) * strides[1] + (within % inner) * strides[2]
    return offset
