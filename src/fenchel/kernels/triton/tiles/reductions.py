"""Sums and maxima of a tile: along J, over the neighbours of a thread, and across threads.

Reductions inside a thread wait for no other thread, and the compiler may fuse the products that are
added. Reductions to rows exchange values between threads. Their sums are rounded equally in all threads
(`rounded_add`), because the loops that they control must end for all threads together. For maxima and
minima, NaN is both larger and smaller than any number.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportAttributeAccessIssue=false
# pyright: reportGeneralTypeIssues=false
# pyright: reportOperatorIssue=false
# ruff: noqa: RET505 (what is known when a kernel is compiled needs if and else)
import triton
import triton.language as tl

from fenchel.kernels.triton.arithmetic.elementary import (
    INTERPRETED,
)
from fenchel.kernels.triton.tiles.layout import (
    ROW_AXIS,
    SLAB_AXIS,
)

MAX_HALVINGS: tl.constexpr = tl.constexpr(6)  # until one slab is left of a tile


@triton.jit
def nan_max(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def nan_min(a, b):
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def rounded_add(a, b):
    """a + b with the same rounding in every thread; otherwise each thread would fuse its own product."""
    if a.dtype == tl.float32:
        return tl.inline_asm_elementwise(
            "add.rn.f32 $0, $1, $2;", "=f,f,f", [a, b], dtype=tl.float32, is_pure=True, pack=1
        )
    elif a.dtype == tl.float64:
        return tl.inline_asm_elementwise(
            "add.rn.f64 $0, $1, $2;", "=d,d,d", [a, b], dtype=tl.float64, is_pure=True, pack=1
        )
    else:
        return a + b


@triton.jit
def slab_sum(tile):
    """The sums over J, as a tile with J = 1."""
    return tl.sum(tile, axis=SLAB_AXIS, keep_dims=True)


@triton.jit
def _add_slab_pairs(tile):
    """The sums of neighbouring slabs."""
    a: tl.constexpr = tile.shape[0]
    b: tl.constexpr = tile.shape[1]
    if SLAB_AXIS == 0:
        pairs = tl.reshape(tile, [a // 2, 2, b, tile.shape[2]])
    else:
        pairs = tl.reshape(tile, [a, b // 2, 2, tile.shape[2]])
    return tl.sum(pairs, axis=SLAB_AXIS + 1)


@triton.jit
def pairwise_slab_sum(tile):
    """`slab_sum`, in a tile of one row by halves.

    If equal small entries are added one by one to a large one, as Triton 3.6 does, their equal rounding
    errors add up. Tiles of several rows have few slabs.
    """
    if tile.shape[ROW_AXIS] == 1:
        for _ in tl.static_range(MAX_HALVINGS):
            if tile.shape[SLAB_AXIS] > 1:
                tile = _add_slab_pairs(tile)
        return tile
    else:
        return slab_sum(tile)


@triton.jit
def sum_of_fours(tile):
    """The sums of every four neighbours along K, which are mostly in one thread."""
    a: tl.constexpr = tile.shape[0]
    b: tl.constexpr = tile.shape[1]
    fours = tl.reshape(tile, [a, b, tile.shape[2] // 4, 4])
    if INTERPRETED:
        return tl.sum(fours, axis=3)
    else:
        return tl.reduce(fours, 3, rounded_add)


@triton.jit
def thread_sum(slab, V: tl.constexpr):
    """The sums of every V neighbours along K, which are in one thread, by halves."""
    a: tl.constexpr = slab.shape[0]
    b: tl.constexpr = slab.shape[1]
    K: tl.constexpr = slab.shape[2] // V
    for _ in tl.static_range(MAX_HALVINGS):
        if slab.shape[2] > K:
            slab = tl.sum(tl.reshape(slab, [a, b, slab.shape[2] // 2, 2]), axis=3)
    return slab


@triton.jit
def thread_max(slab, V: tl.constexpr):
    """The largest of every V neighbours along K; NaN counts as largest."""
    if V == 1:
        return slab
    else:
        a: tl.constexpr = slab.shape[0]
        b: tl.constexpr = slab.shape[1]
        return tl.reduce(tl.reshape(slab, [a, b, slab.shape[2] // V, V]), 3, nan_max)


@triton.jit
def repeat_in_thread(values, V: tl.constexpr):
    """A value for every V neighbours along K, as a slab."""
    if V == 1:
        return values
    else:
        a: tl.constexpr = values.shape[0]
        b: tl.constexpr = values.shape[1]
        K: tl.constexpr = values.shape[2]
        wide = tl.broadcast_to(tl.expand_dims(values, 3), [a, b, K, V])
        return tl.reshape(wide, [a, b, K * V])


@triton.jit
def slab_max(tile):
    """The maxima over J, as a tile with J = 1; NaN counts as largest."""
    return tl.reduce(tile, SLAB_AXIS, nan_max, keep_dims=True)


@triton.jit
def vector_sum(vector):
    """The sum of a vector, equal to the last bit in all threads, because loops depend on it."""
    if INTERPRETED:
        return tl.sum(vector, axis=0)
    else:
        return tl.reduce(vector, 0, rounded_add)


@triton.jit
def _add_pairs(a, b, c, d):
    return rounded_add(a, c), rounded_add(b, d)


@triton.jit
def _add_triples(a, b, c, d, e, f):
    return rounded_add(a, d), rounded_add(b, e), rounded_add(c, f)


@triton.jit
def row_max(slab):
    """The largest of every row of a tile with J = 1; NaN counts as largest."""
    if slab.shape[ROW_AXIS] == 1:
        return tl.reduce(tl.reshape(slab, [slab.shape[2]]), 0, nan_max)
    else:
        return tl.reduce(slab, 2, nan_max, keep_dims=True)


@triton.jit
def row_sum(tile):
    slab = slab_sum(tile)
    if slab.shape[ROW_AXIS] == 1:
        return vector_sum(tl.reshape(slab, [slab.shape[2]]))
    elif INTERPRETED:
        return tl.sum(slab, axis=2, keep_dims=True)
    else:
        return tl.reduce(slab, 2, rounded_add, keep_dims=True)


@triton.jit
def row_sums(a, b):
    """Two sums with one exchange between threads instead of two."""
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
    """Two maxima with one exchange."""
    a = tl.max(a, axis=SLAB_AXIS, keep_dims=True)
    b = tl.max(b, axis=SLAB_AXIS, keep_dims=True)
    if a.shape[ROW_AXIS] == 1:
        K: tl.constexpr = a.shape[2]
        return tl.reduce((tl.reshape(a, [K]), tl.reshape(b, [K])), 0, _max_pairs)
    else:
        return tl.reduce((a, b), 2, _max_pairs, keep_dims=True)


@triton.jit
def row_sums3(a, b, c):
    """Three sums of tiles with J = 1, with one exchange."""
    if INTERPRETED:
        return row_sum(a), row_sum(b), row_sum(c)
    elif a.shape[ROW_AXIS] == 1:
        K: tl.constexpr = a.shape[2]
        flat = (tl.reshape(a, [K]), tl.reshape(b, [K]), tl.reshape(c, [K]))
        return tl.reduce(flat, 0, _add_triples)
    else:
        return tl.reduce((a, b, c), 2, _add_triples, keep_dims=True)


@triton.jit
def row_sums3_float64(a, b, c):
    """`row_sums3`, with the first sum of a tile of one row in float64: in float32, a large entry would be
    rounded once for every thread whose sum is added to it."""
    if a.shape[ROW_AXIS] == 1:
        a, b, c = row_sums3(a.to(tl.float64), b, c)
        return a.to(tl.float32), b, c
    else:
        return row_sums3(a, b, c)


@triton.jit
def any_entry(slab):
    """Whether a condition is true somewhere in a tile."""
    SIZE: tl.constexpr = slab.shape[0] * slab.shape[1] * slab.shape[2]
    return tl.max(tl.reshape(slab.to(tl.int32), [SIZE]), axis=0) > 0


@triton.jit
def any_row(condition, R: tl.constexpr):
    """Whether a row value is true for some row of the tile."""
    if R == 1:
        return condition
    else:
        return tl.max(tl.reshape(condition.to(tl.int32), [R]), axis=0) > 0
