"""The axes of a tile of rows in registers, its loads and stores.

A tile has J * K columns of R rows, in three axes: J is inside a thread, K across threads, and R takes
the threads that K leaves. The order of J and R decides that, and Triton 3.6 and 3.9 decide differently.
Row values keep the axes, with J = K = 1; in a tile of one row they are plain scalars, which every
thread has.
"""

from __future__ import annotations

# ruff: noqa: RET505 (what is known when a kernel is compiled needs if and else)
import triton
import triton.language as tl

from fenchel.kernels.triton.launch.addressing import (
    row_offset,
)
from fenchel.kernels.triton.launch.parameters import (
    ALPHA_PER_ROW,
    epsilon,
)

_VERSION = tuple(int(part) for part in triton.__version__.split(".")[:2])
ROW_AXIS: tl.constexpr = tl.constexpr(0 if _VERSION < (3, 7) else 1)
SLAB_AXIS: tl.constexpr = tl.constexpr(1 if _VERSION < (3, 7) else 0)


@triton.jit
def along_slabs(vector):
    """A vector as a tile whose only long axis is J."""
    if SLAB_AXIS == 0:
        return vector[:, None, None]
    else:
        return vector[None, :, None]


@triton.jit
def along_rows(vector):
    """A vector with one value per row as a row value."""
    if ROW_AXIS == 0:
        return vector[:, None, None]
    else:
        return vector[None, :, None]


@triton.jit
def tile_rows(tile, R: tl.constexpr):
    """The numbers of the R rows of a tile, as int64 so that neither they nor an offset overflow."""
    if R == 1:
        return tile.to(tl.int64)
    else:
        return tile.to(tl.int64) * R + along_rows(tl.arange(0, R))


@triton.jit
def tile_places(row, column, middle, inner, steps, LEVELS: tl.constexpr):
    """The offsets of the entries of a tile in a tensor with these strides."""
    offset = row_offset(row, middle, inner, steps, LEVELS)
    return offset + column.to(tl.int64) * steps[3]


@triton.jit
def tile_columns(J: tl.constexpr, K: tl.constexpr):
    return along_slabs(tl.arange(0, J)) * K + tl.arange(0, K)[None, None, :]


@triton.jit
def tile_inside(row, column, count, columns, R: tl.constexpr):
    """Which entries of the tile exist; a tile of one row is only launched for existing rows."""
    if R == 1:
        return column < columns
    else:
        return (column < columns) & (row < count)


@triton.jit
def load_scores(scores, mask, places, mask_places, inside):
    """Scores in float32, -inf beyond the row or where the mask is False."""
    if mask is not None:
        inside = inside & (tl.load(mask + mask_places, mask=inside, other=0) != 0)
    return tl.load(scores + places, mask=inside, other=float("-inf")).to(tl.float32)


@triton.jit
def load_tile(scores, mask, places, mask_places, inside, EVEN: tl.constexpr):
    """The same for a tile; EVEN: every entry exists."""
    if EVEN and mask is None:
        return tl.load(scores + places).to(tl.float32)
    else:
        return load_scores(scores, mask, places, mask_places, inside)


@triton.jit
def store_tile(out, places, p, inside, EVEN: tl.constexpr):
    if EVEN:
        tl.store(out + places, p)
    else:
        tl.store(out + places, p, mask=inside)


@triton.jit
def row_epsilon(
    eps, alpha, alpha_steps, row, count, middle, inner, LEVELS: tl.constexpr, KIND: tl.constexpr,
    R: tl.constexpr,
):  # fmt: skip
    """alpha - 1 of every row: the number `eps`, or read from `alpha`."""
    if KIND == ALPHA_PER_ROW:
        place = row_offset(row, middle, inner, alpha_steps, LEVELS)
        return epsilon(tl.load(alpha + place, mask=row < count, other=2.0))
    elif R == 1:
        return eps + 0.0
    else:
        return eps + along_rows(tl.zeros([R], tl.float32))


@triton.jit
def finite_peak(peak):
    """The largest score, NaN instead of +inf, and 0 for an empty row."""
    peak = tl.where(peak == float("inf"), float("nan"), peak)
    return tl.where(peak == float("-inf"), 0.0, peak)


@triton.jit
def peak_if_valid(peak, e):
    """The largest score, NaN where alpha is NaN or negative, which nothing else checks."""
    return tl.where(e >= -1.0, peak, float("nan"))


@triton.jit
def load_rows(
    scores, mask, row, count, columns, middle, inner, steps, mask_steps,
    LEVELS: tl.constexpr, EVEN: tl.constexpr, J: tl.constexpr, R: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """The scores of a tile of rows, from their first column on."""
    column = tile_columns(J, K)
    inside = tile_inside(row, column, count, columns, R)
    places = tile_places(row, column, middle, inner, steps, LEVELS)
    mask_places = tile_places(row, column, middle, inner, mask_steps, LEVELS)
    return load_tile(scores, mask, places, mask_places, inside, EVEN)


@triton.jit
def load_block(scores, mask, start, columns, step, mask_step, K: tl.constexpr):
    """K scores of a row from column `start`, -inf beyond the row."""
    column = start + tl.arange(0, K)
    place = column.to(tl.int64)
    inside = (column >= 0) & (column < columns)
    return load_scores(scores, mask, place * step, place * mask_step, inside)


@triton.jit
def write_rows(
    out, p, row, count, columns, middle, inner, steps,
    LEVELS: tl.constexpr, EVEN: tl.constexpr, J: tl.constexpr, R: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """Write p of a tile of rows."""
    column = tile_columns(J, K)
    places = tile_places(row, column, middle, inner, steps, LEVELS)
    store_tile(out, places, p, tile_inside(row, column, count, columns, R), EVEN)
