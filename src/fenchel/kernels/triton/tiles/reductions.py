"""Reductions of a tile to its rows.

A tile has J * K columns of R rows, in three axes: J runs inside a thread, K across threads, and what
threads K leaves free go to R. Which of J and R comes first decides that, and Triton 3.6 and 3.9
decide differently. Row values keep the axes, with J = K = 1; a tile of one row has plain scalars,
which every thread holds.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false, reportAttributeAccessIssue=false
# pyright: reportGeneralTypeIssues=false
# ruff: noqa: RET505 (what is known when a kernel is compiled needs if and else)
import triton
import triton.language as tl

from fenchel.kernels.triton.arithmetic.elementary import INTERPRETED

_VERSION = tuple(int(part) for part in triton.__version__.split(".")[:2])
ROW_AXIS: tl.constexpr = tl.constexpr(0 if _VERSION < (3, 7) else 1)
SLAB_AXIS: tl.constexpr = tl.constexpr(1 if _VERSION < (3, 7) else 0)
MOST_HALVES: tl.constexpr = tl.constexpr(6)  # until one slab is left of a tile


@triton.jit
def along_slabs(vector):
    """A vector as a tile whose only long axis is J."""
    if SLAB_AXIS == 0:
        return vector[:, None, None]
    else:
        return vector[None, :, None]


@triton.jit
def along_rows(vector):
    """A vector with one value a row as a row value."""
    if ROW_AXIS == 0:
        return vector[:, None, None]
    else:
        return vector[None, :, None]


@triton.jit
def larger(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def smaller(a, b):
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def _plus(a, b):
    """a + b, rounded as it is in every other thread: each would fuse a product of its own."""
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
def shared_sum(vector):
    """The sum of a vector, to the last bit the same in all threads: a loop may end by it."""
    if INTERPRETED:
        return tl.sum(vector, axis=0)
    else:
        return tl.reduce(vector, 0, _plus)


@triton.jit
def _add_pairs(a, b, c, d):
    return _plus(a, c), _plus(b, d)


@triton.jit
def _add_triples(a, b, c, d, e, f):
    return _plus(a, d), _plus(b, e), _plus(c, f)


@triton.jit
def slab_sum(tile):
    """The sums over J, as a tile with J = 1."""
    return tl.sum(tile, axis=SLAB_AXIS, keep_dims=True)


@triton.jit
def _halved(tile):
    """The sums of neighbouring slabs."""
    a: tl.constexpr = tile.shape[0]
    b: tl.constexpr = tile.shape[1]
    if SLAB_AXIS == 0:
        pairs = tl.reshape(tile, [a // 2, 2, b, tile.shape[2]])
    else:
        pairs = tl.reshape(tile, [a, b // 2, 2, tile.shape[2]])
    return tl.sum(pairs, axis=SLAB_AXIS + 1)


@triton.jit
def even_slab_sum(tile):
    """`slab_sum`, in a tile of one row by halves.

    Added one by one, as Triton 3.6 does, to an entry far above them, equal ones round alike, and what is
    rounded off adds up. Tiles of several rows have few slabs.
    """
    if tile.shape[ROW_AXIS] == 1:
        for _ in tl.static_range(MOST_HALVES):
            if tile.shape[SLAB_AXIS] > 1:
                tile = _halved(tile)
        return tile
    else:
        return slab_sum(tile)


@triton.jit
def sum_of_fours(tile):
    """The sums of every four neighbours along K, which one thread mostly holds."""
    a: tl.constexpr = tile.shape[0]
    b: tl.constexpr = tile.shape[1]
    fours = tl.reshape(tile, [a, b, tile.shape[2] // 4, 4])
    if INTERPRETED:
        return tl.sum(fours, axis=3)
    else:
        return tl.reduce(fours, 3, _plus)


@triton.jit
def thread_sum(slab, V: tl.constexpr):
    """The sums of every V neighbours along K, those that one thread holds, by halves."""
    a: tl.constexpr = slab.shape[0]
    b: tl.constexpr = slab.shape[1]
    K: tl.constexpr = slab.shape[2] // V
    for _ in tl.static_range(MOST_HALVES):
        if slab.shape[2] > K:
            slab = tl.sum(tl.reshape(slab, [a, b, slab.shape[2] // 2, 2]), axis=3)
    return slab


@triton.jit
def thread_max(slab, V: tl.constexpr):
    """The largest of every V neighbours along K; NaN wins."""
    if V == 1:
        return slab
    else:
        a: tl.constexpr = slab.shape[0]
        b: tl.constexpr = slab.shape[1]
        return tl.reduce(tl.reshape(slab, [a, b, slab.shape[2] // V, V]), 3, larger)


@triton.jit
def of_threads(values, V: tl.constexpr):
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
    """The maxima over J, as a tile with J = 1; NaN wins."""
    return tl.reduce(tile, SLAB_AXIS, larger, keep_dims=True)


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
        return tl.reduce(slab, 2, _plus, keep_dims=True)


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
