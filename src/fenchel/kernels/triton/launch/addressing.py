"""Where rows lie in memory: any strides, any `dim`, broadcast masks and alphas, without a copy.

The dimensions other than `dim` are merged wherever every tensor involved allows it. At most three
remain, and a row number is taken apart into that many indices; a tensor's `Strides` say how far each
of them, and a column, reaches.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import triton
import triton.language as tl
from torch import Tensor

LEVELS = 3


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


Layout = tuple[tuple[int, ...], tuple[int, ...]]  # sizes and strides of a tensor


def address(
    dim: int, first: Tensor, *others: Tensor | None
) -> tuple[Rows, list[Tensor | None], list[Strides]]:
    """The rows along `dim` of the first tensor, to which the others broadcast.

    Returns the tensors too: as they are, or copied (contiguous, of the first one's shape) if they
    would need more levels than there are. `copy_back` takes what was written to a copy.
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
    """`out`, with what was written to the tensor that `address` gave in its place."""
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
    """The steps along all dimensions but `dim`, then along `dim`; 0 where the tensor broadcasts."""
    if layout is None:
        return [0] * len(shape)
    sizes, strides = layout
    steps = [0 if have == 1 else step for have, step in zip(sizes, strides, strict=True)]
    steps = [0] * (len(shape) - len(sizes)) + steps
    steps.append(steps.pop(dim))
    return steps


def _merge(shape: list[int], strides: list[list[int]]) -> tuple[list[int], list[list[int]]]:
    """Leave out dimensions of size 1 and merge neighbours that every tensor steps through evenly."""
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
