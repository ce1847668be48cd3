"""Reductions of a tile to its rows, by an exchange between threads.

Sums are rounded alike in all of them (`plus`), since what they control must end for all.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportOperatorIssue=false
# pyright: reportAttributeAccessIssue=false
# ruff: noqa: RET505 (what is known when a kernel is compiled needs if and else)
import triton
import triton.language as tl

from fenchel.kernels.triton.arithmetic.elementary import INTERPRETED
from fenchel.kernels.triton.tiles.axes import ROW_AXIS, SLAB_AXIS
from fenchel.kernels.triton.tiles.combining import larger, plus
from fenchel.kernels.triton.tiles.within_threads import slab_sum


@triton.jit
def shared_sum(vector):
    """The sum of a vector, to the last bit the same in all threads: a loop may end by it."""
    if INTERPRETED:
        return tl.sum(vector, axis=0)
    else:
        return tl.reduce(vector, 0, plus)


@triton.jit
def _add_pairs(a, b, c, d):
    return plus(a, c), plus(b, d)


@triton.jit
def _add_triples(a, b, c, d, e, f):
    return plus(a, d), plus(b, e), plus(c, f)


@triton.jit
def row_max(slab):
    """The largest of every row of a tile with J = 1; NaN wins."""
    if slab.shape[ROW_AXIS] == 1:
        return tl.reduce(tl.reshape(slab, [slab.shape[2]]), 0, larger)
    else:
        return tl.reduce(slab, 2, larger, keep_dims=True)


@triton.jit
def row_sum(tile):
    slab = slab_sum(tile)
    if slab.shape[ROW_AXIS] == 1:
        return shared_sum(tl.reshape(slab, [slab.shape[2]]))
    elif INTERPRETED:
        return tl.sum(slab, axis=2, keep_dims=True)
    else:
        return tl.reduce(slab, 2, plus, keep_dims=True)


@triton.jit
def row_sums(a, b):
    """Two sums at once, which costs one exchange between threads instead of two."""
    a = slab_sum(a)
    b = slab_sum(b)
    if INTERPRETED:  # which would add one by one
        return row_sum(a), row_sum(b)
    elif a.shape[ROW_AXIS] == 1:
        K: tl.constexpr = a.shape[2]
        return tl.reduce((tl.reshape(a, [K]), tl.reshape(b, [K])), 0, _add_pairs)
    else:
        return tl.reduce((a, b), 2, _add_pairs, keep_dims=True)


@triton.jit
def _max_pairs(a, b, c, d):
    return tl.maximum(a, c), tl.maximum(b, d)


@triton.jit
def row_max_pair(a, b):
    """Two maxima at once."""
    a = tl.max(a, axis=SLAB_AXIS, keep_dims=True)
    b = tl.max(b, axis=SLAB_AXIS, keep_dims=True)
    if a.shape[ROW_AXIS] == 1:
        K: tl.constexpr = a.shape[2]
        return tl.reduce((tl.reshape(a, [K]), tl.reshape(b, [K])), 0, _max_pairs)
    else:
        return tl.reduce((a, b), 2, _max_pairs, keep_dims=True)


@triton.jit
def row_triples(a, b, c):
    """Three sums at once, of tiles with J = 1."""
    if INTERPRETED:
        return row_sum(a), row_sum(b), row_sum(c)
    elif a.shape[ROW_AXIS] == 1:
        K: tl.constexpr = a.shape[2]
        flat = (tl.reshape(a, [K]), tl.reshape(b, [K]), tl.reshape(c, [K]))
        return tl.reduce(flat, 0, _add_triples)
    else:
        return tl.reduce((a, b, c), 2, _add_triples, keep_dims=True)


@triton.jit
def fine_triples(a, b, c):
    """`row_triples`, the first sum of a tile of one row in float64 until it is whole: a large entry
    would be rounded once for every thread that its own is added to."""
    if a.shape[ROW_AXIS] == 1:
        a, b, c = row_triples(a.to(tl.float64), b, c)
        return a.to(tl.float32), b, c
    else:
        return row_triples(a, b, c)


@triton.jit
def any_entry(slab):
    """Whether a condition holds somewhere in a tile."""
    SIZE: tl.constexpr = slab.shape[0] * slab.shape[1] * slab.shape[2]
    return tl.max(tl.reshape(slab.to(tl.int32), [SIZE]), axis=0) > 0


@triton.jit
def any_row(condition, R: tl.constexpr):
    """Whether a row value holds for some row of the tile."""
    if R == 1:
        return condition
    else:
        return tl.max(tl.reshape(condition.to(tl.int32), [R]), axis=0) > 0
