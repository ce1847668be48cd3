"""Reductions along J, and along the neighbours that a thread holds of K: no thread waits for another one.

The compiler may fuse the products that are added.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportGeneralTypeIssues=false
# ruff: noqa: RET505 (what is known when a kernel is compiled needs if and else)
import triton
import triton.language as tl

from fenchel.kernels.triton.arithmetic.elementary import INTERPRETED
from fenchel.kernels.triton.tiles.axes import ROW_AXIS, SLAB_AXIS
from fenchel.kernels.triton.tiles.combining import larger, plus

MOST_HALVES: tl.constexpr = tl.constexpr(6)  # until one slab is left of a tile


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
        return tl.reduce(fours, 3, plus)


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
