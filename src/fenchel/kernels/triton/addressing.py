"""Where rows lie in memory: any strides, any `dim`, broadcast masks and alphas, without a copy.

The dimensions other than `dim` are merged wherever every tensor involved allows it. At most three
remain, and a row number is taken apart into that many indices; a tensor's `Strides` say how far each
of them, and a column, reaches.
"""

from __future__ import annotations

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


def address(
    dim: int, first: Tensor, *others: Tensor | None
) -> tuple[Rows, list[Tensor | None], list[Strides]]:
    """The rows along `dim` of the first tensor, to which the others broadcast.

    Returns the tensors too: they are copied if they would need more levels than there are.
    """
    shape = list(first.shape)
    columns = shape.pop(dim)
    expanded = [None if t is None else _expand(t, first, dim) for t in (first, *others)]
    sizes, strides = _merge(shape, [_row_strides(t, dim) for t in expanded])
    if len(sizes) > LEVELS:
        expanded = [None if t is None else t.contiguous() for t in expanded]
        sizes, strides = _merge(shape, [_row_strides(t, dim) for t in expanded])
    levels = max(len(sizes), 1)
    padding = [0] * (LEVELS - len(sizes))
    sizes = [1] * (LEVELS - len(sizes)) + sizes
    rows = Rows(sizes[0] * sizes[1] * sizes[2], columns, sizes[1], sizes[2], levels)
    steps = [
        Strides._make((*padding, *each, 0 if t is None or t.shape[dim] == 1 else t.stride(dim)))
        for t, each in zip(expanded, strides, strict=True)
    ]
    return rows, expanded, steps


def _expand(tensor: Tensor, like: Tensor, dim: int) -> Tensor:
    """`tensor` broadcast to the rows of `like`; its own size along `dim` may be 1."""
    shape = list(like.shape)
    if tensor.shape[dim] == 1:
        shape[dim] = 1
    return tensor.expand(shape)


def _row_strides(tensor: Tensor | None, dim: int) -> list[int] | None:
    if tensor is None:
        return None
    strides = list(tensor.stride())
    del strides[dim]
    return strides


def _merge(shape: list[int], strides: list[list[int] | None]) -> tuple[list[int], list[list[int]]]:
    """Leave out dimensions of size 1 and merge neighbours that every tensor steps through evenly."""
    sizes: list[int] = []
    merged: list[list[int]] = [[] for _ in strides]
    for position, size in enumerate(shape):
        if size == 1:
            continue
        steps = [0 if each is None else each[position] for each in strides]
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
