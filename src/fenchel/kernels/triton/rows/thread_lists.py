"""The LISTED largest scores of every thread, and every score found again among them.

A thread holds V neighbouring columns of each of J slabs.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportGeneralTypeIssues=false
# ruff: noqa: RET505 (what is known when a kernel is compiled needs if and else)
import triton
import triton.language as tl

from fenchel.kernels.triton.launch.tile_shapes import LISTED
from fenchel.kernels.triton.tiles.axes import ROW_AXIS, SLAB_AXIS
from fenchel.kernels.triton.tiles.combining import larger, smaller
from fenchel.kernels.triton.tiles.memory import tile_columns

# A tile of several rows has the axes (threads, R, J, V) or (J, R, threads, V): whichever of them makes
# Triton spread the threads of a warp over a row first, then over rows (see `axes`).
THREADS_FIRST: tl.constexpr = tl.constexpr(ROW_AXIS.value == 0)
SLABS_OF_THREADS: tl.constexpr = tl.constexpr(2 if ROW_AXIS.value == 0 else 0)


@triton.jit
def _merge(a1, a2, a3, a4, b1, b2, b3, b4):
    """The four largest of two falling sequences of four, as a falling sequence; NaN wins."""
    c1, c2, c3, c4 = larger(a1, b4), larger(a2, b3), larger(a3, b2), larger(a4, b1)
    d1, d2, d3, d4 = larger(c1, c3), larger(c2, c4), smaller(c1, c3), smaller(c2, c4)
    return larger(d1, d2), smaller(d1, d2), larger(d3, d4), smaller(d3, d4)


@triton.jit
def _sorted_fours(tile, V: tl.constexpr):
    """Fours of neighbours as four tiles, falling; NaN wins."""
    shape: tl.constexpr = tile.shape
    left, right = tl.split(tl.reshape(tile, [shape[0], shape[1], shape[2], V // 4, 2, 2]))
    a, b = tl.split(larger(left, right))
    c, d = tl.split(smaller(left, right))
    middle, other = smaller(a, b), larger(c, d)
    return larger(a, b), larger(middle, other), smaller(middle, other), smaller(c, d)


@triton.jit
def largest_of_threads(x, R: tl.constexpr, V: tl.constexpr):
    """Four slabs, falling: the largest scores of every thread."""
    fours = _sorted_fours(_by_thread(x, R, V), V)
    if R == 1:
        listed = tl.reduce(fours, SLAB_AXIS, _merge, keep_dims=True)
        return tl.reduce(listed, 3, _merge)
    else:
        listed = tl.reduce(fours, SLABS_OF_THREADS, _merge)
        a, b, c, d = tl.reduce(listed, 2, _merge)
        return _as_slab(a), _as_slab(b), _as_slab(c), _as_slab(d)


@triton.jit
def _as_slab(listed):
    """One number a thread and row as a tile with J = 1."""
    if THREADS_FIRST:
        return tl.trans(listed)[:, None, :]
    else:
        return listed[None, :, :]


@triton.jit
def _over_columns(slab, R: tl.constexpr):
    """A slab with one number a thread, to be broadcast over J and V."""
    if R == 1:
        return slab[:, :, :, None]
    elif THREADS_FIRST:
        threads: tl.constexpr = slab.shape[2]
        return tl.trans(tl.reshape(slab, [R, threads]))[:, :, None, None]
    else:
        return slab[:, :, :, None]


@triton.jit
def row_over_tile(value, R: tl.constexpr):
    """A row value, to be broadcast over a tile."""
    if R == 1:
        return value
    else:
        return tl.reshape(value, [R])[None, :, None, None]


@triton.jit
def columns_of_threads(J: tl.constexpr, R: tl.constexpr, K: tl.constexpr, V: tl.constexpr):
    """The columns of a tile; with several rows the threads of a row have an axis of their own."""
    if R == 1:
        return tile_columns(J, K)
    else:
        slab = tl.arange(0, J) * K
        thread = tl.arange(0, K // V) * V
        neighbour = tl.arange(0, V)[None, None, None, :]
        if THREADS_FIRST:
            column = thread[:, None, None, None] + slab[None, None, :, None] + neighbour
        else:
            column = slab[:, None, None, None] + thread[None, None, :, None] + neighbour
        return column


@triton.jit
def _by_thread(tile, R: tl.constexpr, V: tl.constexpr):
    """A tile of one row with an axis for the columns that a thread holds."""
    if R == 1:
        shape: tl.constexpr = tile.shape
        return tl.reshape(tile, [shape[0], shape[1], shape[2] // V, V])
    else:
        return tile


@triton.jit
def by_threads(tile, J: tl.constexpr, R: tl.constexpr, K: tl.constexpr, V: tl.constexpr):
    """A tile as `columns_of_threads` orders it."""
    if R == 1:
        return tile
    elif THREADS_FIRST:
        return tl.permute(tl.reshape(tile, [R, J, K // V, V]), (2, 0, 1, 3))
    else:
        return tl.reshape(tile, [J, R, K // V, V])


@triton.jit
def look_up(x, listed, p, R: tl.constexpr, V: tl.constexpr):
    """p of every score that is listed, 0 for the others."""
    threads = _by_thread(x, R, V)
    found = tl.zeros(threads.shape, tl.float32)
    for i in tl.static_range(LISTED):
        found = tl.where(threads == _over_columns(listed[i], R), _over_columns(p[i], R), found)
    return tl.reshape(found, x.shape)
