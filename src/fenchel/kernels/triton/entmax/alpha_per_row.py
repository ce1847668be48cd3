"""entmax of rows that fit on chip, each with its own alpha.

A row is solved as if its alpha were a number; the method is a branch that a whole program takes. Many
rows are ordered by the kind of their alpha first (`row_order`). Otherwise a tile may have rows of two
kinds and is then solved twice. Scores are loaded before the kind of alpha is known, so that the loads
overlap.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
from typing import Any

import triton
import triton.language as tl

from fenchel.kernels.triton.entmax.largest_scores import (
    largest_of_threads,
    split_by_thread,
    write_listed,
)
from fenchel.kernels.triton.entmax.on_chip import (
    solve_and_write,
)
from fenchel.kernels.triton.entmax.row_order import (
    KINDS,
    kind_of_row,
    sort_by_kind,
)
from fenchel.kernels.triton.launch.addressing import (
    Rows,
    Strides,
    row_offset,
)
from fenchel.kernels.triton.launch.kernel import (
    kernel,
)
from fenchel.kernels.triton.launch.parameters import (
    ABOVE_1_45,
    ABOVE_2,
    ALPHA_PER_ROW,
    ANY_ABOVE_1,
    ANY_SIDE_OF_1,
    BELOW_1,
    FAR_ABOVE_1,
    FAST_ABOVE_1,
    FAST_POWERS_MIN_EPS,
    GENERAL,
    NEAR_1,
    NEAR_SOFTMAX_EPS,
    epsilon,
)
from fenchel.kernels.triton.launch.tile_shapes import (
    Tile,
    ceil_div,
    lists_largest_scores,
)
from fenchel.kernels.triton.tiles.layout import (
    along_rows,
    finite_peak,
    load_rows,
    peak_if_valid,
    row_epsilon,
    tile_rows,
)
from fenchel.kernels.triton.tiles.reductions import (
    row_max,
    slab_max,
)

# With one alpha per row, the least tiles or rows that are ordered, and the most rows, whose indices
# must fit in int32
MIN_SORTED_TILES, MIN_SORTED_ROWS = 4096, 16384
MAX_SORTED_ROWS = 2**30
MIN_INT64_OFFSET = 2**31  # offsets from here on do not fit in int32
TILE_REGISTERS, SORTED_REGISTERS, ONE_ROW_REGISTERS = 80, 64, 128


def launch_alpha_per_row(tensors: list[Any], tile: Tile, rows: Rows, steps: list[Strides]) -> None:
    tiles, order = ceil_div(rows.count, tile.rows), ()
    solve, even = entmax_alpha_per_row, tile.divides(rows)
    wide = any(_max_offset(rows, each) >= MIN_INT64_OFFSET for each in steps)
    if _worth_sorting(tiles, tile, steps[3]):
        tiles, *order = sort_by_kind(tensors[3], rows, steps[3], tile.rows, wide=wide)
        solve, even = entmax_sorted_rows, rows.columns == tile.slabs * tile.width
    solve[(tiles,)](
        *tensors, *order, rows.count, rows.columns, rows.middle, rows.inner, *steps,
        LEVELS=rows.levels, WIDE=wide, EVEN=even,
        LIST_ABOVE_1_45=lists_largest_scores(ABOVE_1_45.value, tile),
        LIST_ABOVE_2=lists_largest_scores(ABOVE_2.value, tile),
        J=tile.slabs, R=tile.rows, K=tile.width, V=tile.vector,
        num_warps=tile.warps, maxnreg=_max_registers(tile, ordered=bool(order)),
    )  # fmt: skip


def _worth_sorting(tiles: int, tile: Tile, alpha_steps: Strides) -> bool:
    """Whether there are enough rows for ordering them by the kind of their alpha to be worthwhile.

    If many neighbours share an alpha, as all queries of a head do, long rows are in order already.
    """
    if tile.rows > 1:
        return tiles >= MIN_SORTED_TILES and tiles * tile.rows <= MAX_SORTED_ROWS
    return tiles >= MIN_SORTED_ROWS and alpha_steps.inner != 0


def _max_offset(rows: Rows, steps: Strides) -> int:
    """A bound of the offsets in a tensor with these strides."""
    outer = rows.count // (rows.middle * rows.inner)
    sizes = outer, rows.middle, rows.inner, rows.columns
    return sum(size * step for size, step in zip(sizes, steps, strict=True))


def _max_registers(tile: Tile, *, ordered: bool) -> int | None:
    """A kernel for every kind of alpha would otherwise take the registers of the largest kind."""
    if tile.rows > 1:
        return SORTED_REGISTERS if ordered else TILE_REGISTERS
    return ONE_ROW_REGISTERS if tile.warps == 1 else None


@triton.jit
def _solve_listed_or_whole(
    x, peak, scores, out, mask, row, e, count, columns, middle, inner, steps, out_steps, mask_steps,
    LEVELS: tl.constexpr, KIND: tl.constexpr, LIST: tl.constexpr, EVEN: tl.constexpr,
    J: tl.constexpr, R: tl.constexpr, K: tl.constexpr, V: tl.constexpr,
):  # fmt: skip
    if LIST:
        threads = split_by_thread(x, J, R, K, V)
        write_listed(
            threads, largest_of_threads(threads, R, V), scores, out, mask, row, e, count, columns,
            middle, inner, steps, out_steps, mask_steps, LEVELS, KIND, EVEN, J, R, K, V,
        )  # fmt: skip
    else:
        solve_and_write(
            x, peak, out, row, e, count, columns, middle, inner, out_steps, LEVELS, KIND,
            ANY_SIDE_OF_1, EVEN, J, R, K,
        )  # fmt: skip


@triton.jit
def _solve_up_to_1_45(
    x, peak, out, row, e, count, columns, middle, inner, out_steps,
    LEVELS: tl.constexpr, EVEN: tl.constexpr, J: tl.constexpr, R: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """The first kind: one row with the powers for its alpha, several with powers for all of them."""
    least = e if R == 1 else tl.min(tl.reshape(e, [R]), axis=0)
    if out.dtype.element_ty.primitive_bitwidth < 32:
        if least >= FAST_POWERS_MIN_EPS:
            solve_and_write(
                x, peak, out, row, e, count, columns, middle, inner, out_steps, LEVELS, GENERAL,
                FAST_ABOVE_1, EVEN, J, R, K,
            )  # fmt: skip
        else:
            solve_and_write(
                x, peak, out, row, e, count, columns, middle, inner, out_steps, LEVELS, GENERAL,
                ANY_SIDE_OF_1, EVEN, J, R, K,
            )  # fmt: skip
    elif R > 1:
        if least > 0.0:
            solve_and_write(
                x, peak, out, row, e, count, columns, middle, inner, out_steps, LEVELS, GENERAL,
                ANY_ABOVE_1, EVEN, J, R, K,
            )  # fmt: skip
        else:
            solve_and_write(
                x, peak, out, row, e, count, columns, middle, inner, out_steps, LEVELS, GENERAL,
                ANY_SIDE_OF_1, EVEN, J, R, K,
            )  # fmt: skip
    elif e >= NEAR_SOFTMAX_EPS:
        solve_and_write(
            x, peak, out, row, e, count, columns, middle, inner, out_steps, LEVELS, GENERAL,
            FAR_ABOVE_1, EVEN, J, R, K,
        )  # fmt: skip
    elif e > 0.0:
        solve_and_write(
            x, peak, out, row, e, count, columns, middle, inner, out_steps, LEVELS, GENERAL, NEAR_1,
            EVEN, J, R, K,
        )  # fmt: skip
    else:
        solve_and_write(
            x, peak, out, row, e, count, columns, middle, inner, out_steps, LEVELS, GENERAL,
            BELOW_1, EVEN, J, R, K,
        )  # fmt: skip


@triton.jit
def _solve_kind(
    x, peak, scores, out, mask, row, e, kind, count, columns, middle, inner, steps, out_steps, mask_steps,
    LEVELS: tl.constexpr, LIST_ABOVE_1_45: tl.constexpr, LIST_ABOVE_2: tl.constexpr, EVEN: tl.constexpr,
    J: tl.constexpr, R: tl.constexpr, K: tl.constexpr, V: tl.constexpr,
):  # fmt: skip
    """Solve and write a tile of rows of one kind, a scalar."""
    if kind == 0:
        _solve_up_to_1_45(
            x, peak, out, row, e, count, columns, middle, inner, out_steps, LEVELS, EVEN, J, R, K,
        )  # fmt: skip
    elif kind == 1:
        _solve_listed_or_whole(
            x, peak, scores, out, mask, row, e, count, columns, middle, inner, steps, out_steps,
            mask_steps, LEVELS, ABOVE_1_45, LIST_ABOVE_1_45, EVEN, J, R, K, V,
        )  # fmt: skip
    else:
        _solve_listed_or_whole(
            x, peak, scores, out, mask, row, e, count, columns, middle, inner, steps, out_steps,
            mask_steps, LEVELS, ABOVE_2, LIST_ABOVE_2, EVEN, J, R, K, V,
        )  # fmt: skip


@triton.jit
def _solve_mixed_tile(
    scores, out, mask, alpha, row, count, columns, middle, inner,
    steps, out_steps, mask_steps, alpha_steps,
    LEVELS: tl.constexpr, LIST_ABOVE_2: tl.constexpr, EVEN: tl.constexpr,
    J: tl.constexpr, R: tl.constexpr, K: tl.constexpr, V: tl.constexpr,
):  # fmt: skip
    """Solve a tile, kind by kind; rows of other kinds count as absent, and are read again.

    They get an alpha of that kind, because the search for an absent row with another alpha is long.
    """
    x = load_rows(
        scores, mask, row, count, columns, middle, inner, steps, mask_steps, LEVELS, EVEN, J, R, K,
    )  # fmt: skip
    peak = finite_peak(row_max(slab_max(x)))  # before alpha, so that it waits only for scores
    e = row_epsilon(0.0, alpha, alpha_steps, row, count, middle, inner, LEVELS, ALPHA_PER_ROW, R)
    peak = peak_if_valid(peak, e)
    kinds = tl.where(row < count, kind_of_row(e), KINDS)
    kind = tl.min(tl.reshape(kinds, [R]), axis=0)
    while kind < KINDS:
        own = kinds == kind
        usual = tl.where(kind == 0, 0.25, tl.where(kind == 1, 0.75, 2.0))
        _solve_kind(
            tl.where(own, x, float("-inf")), tl.where(own, peak, 0.0), scores, out, mask,
            tl.where(own, row, count), tl.where(own, e, usual), kind, count, columns, middle, inner,
            steps, out_steps, mask_steps, LEVELS, False, LIST_ABOVE_2, False, J, R, K, V,
        )  # fmt: skip
        kinds = tl.where(own, KINDS, kinds)
        kind = tl.min(tl.reshape(kinds, [R]), axis=0)
        rest = tl.where(kinds < KINDS, row, count)
        x = load_rows(
            scores, mask, rest, count, columns, middle, inner, steps, mask_steps, LEVELS, False, J,
            R, K,
        )  # fmt: skip


@triton.jit
def _row_numbers(order, tile, WIDE: tl.constexpr, R: tl.constexpr):
    """The rows of a tile, in `order` if there is one; int64 only if offsets need it, because dividing
    int64 is slow."""
    if order is None:
        row = tile_rows(tile, R)
    elif R == 1:
        row = tl.load(order + tile)
    else:
        row = along_rows(tl.load(order + tile * R + tl.arange(0, R)))
    return row.to(tl.int64 if WIDE else tl.int32)


@kernel
def entmax_alpha_per_row(
    scores, out, mask, alpha, count, columns, middle, inner,
    steps, out_steps, mask_steps, alpha_steps,
    LEVELS: tl.constexpr, WIDE: tl.constexpr, EVEN: tl.constexpr,
    LIST_ABOVE_1_45: tl.constexpr, LIST_ABOVE_2: tl.constexpr,
    J: tl.constexpr, R: tl.constexpr, K: tl.constexpr, V: tl.constexpr,
):  # fmt: skip
    row = _row_numbers(None, tl.program_id(0), WIDE, R)
    if R == 1:
        x = load_rows(
            scores, mask, row, count, columns, middle, inner, steps, mask_steps, LEVELS, EVEN, J, 1,
            K,
        )  # fmt: skip
        peak = finite_peak(row_max(slab_max(x)))
        e = row_epsilon(
            0.0, alpha, alpha_steps, row, count, middle, inner, LEVELS, ALPHA_PER_ROW, 1
        )
        peak = peak_if_valid(peak, e)
        _solve_kind(
            x, peak, scores, out, mask, row, e, kind_of_row(e), count, columns, middle, inner,
            steps, out_steps, mask_steps, LEVELS, LIST_ABOVE_1_45, LIST_ABOVE_2, EVEN, J, 1, K, V,
        )  # fmt: skip
    else:
        _solve_mixed_tile(
            scores, out, mask, alpha, row, count, columns, middle, inner, steps, out_steps,
            mask_steps, alpha_steps, LEVELS, LIST_ABOVE_2, EVEN, J, R, K, V,
        )  # fmt: skip


@kernel
def entmax_sorted_rows(
    scores, out, mask, alpha, starts, order, count, columns, middle, inner,
    steps, out_steps, mask_steps, alpha_steps,
    LEVELS: tl.constexpr, WIDE: tl.constexpr, EVEN: tl.constexpr,
    LIST_ABOVE_1_45: tl.constexpr, LIST_ABOVE_2: tl.constexpr,
    J: tl.constexpr, R: tl.constexpr, K: tl.constexpr, V: tl.constexpr,
):  # fmt: skip
    """A tile of rows of one kind, in the order of `row_order`; EVEN: no column is missing."""
    tile = tl.program_id(0)
    if tile < tl.load(starts + 2):
        row = _row_numbers(order, tile, WIDE, R)
        kind = (tile >= tl.load(starts)).to(tl.int32) + (tile >= tl.load(starts + 1)).to(tl.int32)
        x = load_rows(
            scores, mask, row, count, columns, middle, inner, steps, mask_steps, LEVELS, EVEN, J, R,
            K,
        )  # fmt: skip
        e = epsilon(tl.load(alpha + row_offset(row, middle, inner, alpha_steps, LEVELS)))
        peak = peak_if_valid(finite_peak(row_max(slab_max(x))), e)
        _solve_kind(
            x, peak, scores, out, mask, row, e, kind, count, columns, middle, inner, steps,
            out_steps, mask_steps, LEVELS, LIST_ABOVE_1_45, LIST_ABOVE_2, EVEN, J, R, K, V,
        )  # fmt: skip
