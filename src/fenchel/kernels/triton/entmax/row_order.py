"""The order in which rows with their own alpha are solved: by kind of alpha, each kind in its own tiles.

A kernel with the code for every kind of alpha is far larger than the instruction cache, so programs
that run at the same time should have the same kind. Blocks of rows are counted first and then put in
place. Which rows share a tile, and so the last bit of a result, does not depend on the timing of the
programs.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

# A kernel is launched with options that its parameters do not name.
# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
# pyright: reportCallIssue=false
# pyright: reportGeneralTypeIssues=false
from torch import Tensor

from fenchel.kernels.triton.launch.addressing import (
    Rows,
    Strides,
)
from fenchel.kernels.triton.launch.kernel import (
    kernel,
)
from fenchel.kernels.triton.launch.parameters import (
    ALPHA_PER_ROW,
    HALLEY_MAX_EPS,
)
from fenchel.kernels.triton.launch.tile_shapes import (
    ceil_div,
    next_power_of_two,
)
from fenchel.kernels.triton.tiles.layout import (
    row_epsilon,
)

KINDS: tl.constexpr = tl.constexpr(3)  # alpha up to 1.45, up to 2, and above
SECOND_KIND_UNIT: tl.constexpr = tl.constexpr(
    65536
)  # counts a row of the second kind; 1, of the first
COUNTED_ROWS, COUNTING_WARPS = 1024, 4  # rows that are counted at once, and by how many warps
MAX_COUNTS_AT_ONCE = 1024  # that are added at once
START_NUMBERS = 4  # numbers kept before the order: three, and one to keep it aligned


@triton.jit
def kind_of_row(e):
    return tl.where(e > 1.0, 2, tl.where(e > HALLEY_MAX_EPS, 1, 0))


@triton.jit
def _kinds(
    alpha, alpha_steps, row, count, middle, inner,
    LEVELS: tl.constexpr, WIDE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The kinds of a block of rows; KINDS for absent rows."""
    row = row.to(tl.int64 if WIDE else tl.int32)
    e = row_epsilon(
        0.0, alpha, alpha_steps, row, count, middle, inner, LEVELS, ALPHA_PER_ROW, BLOCK
    )
    return tl.where(row < count, kind_of_row(e), KINDS)


@triton.jit
def _packed_counts(kinds):
    """Rows of the first and the second kind, as one number."""
    return tl.where(kinds == 0, 1, tl.where(kinds == 1, SECOND_KIND_UNIT, 0))


@triton.jit
def _unpack_counts(numbers):
    return numbers % SECOND_KIND_UNIT, numbers // SECOND_KIND_UNIT


@kernel
def count_kinds(
    alpha, counts, count, middle, inner, alpha_steps,
    LEVELS: tl.constexpr, WIDE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The numbers of rows of the first and of the second kind in a block."""
    block = tl.program_id(0)
    row = block * BLOCK + tl.arange(0, BLOCK)
    kinds = _kinds(alpha, alpha_steps, row, count, middle, inner, LEVELS, WIDE, BLOCK)
    tl.store(counts + block, tl.sum(_packed_counts(kinds), axis=0))


@triton.jit
def _add_fours(a, b, c, d, e, f, g, h):
    return a + e, b + f, c + g, d + h


@triton.jit
def _sums_of_blocks(counts, block, blocks, WIDTH: tl.constexpr):
    """The rows of the first and the second kind in the blocks before this one, and in all."""
    place = tl.arange(0, WIDTH)
    before, before_1, total, total_1 = place * 0, place * 0, place * 0, place * 0
    for start in range(0, blocks, WIDTH):
        numbers = tl.load(counts + start + place, mask=start + place < blocks, other=0)
        low, high = _unpack_counts(numbers)
        total += low
        total_1 += high
        before += tl.where(start + place < block, low, 0)
        before_1 += tl.where(start + place < block, high, 0)
    return tl.reduce((before, before_1, total, total_1), 0, _add_fours)


@triton.jit
def _choose_by_kind(kinds, first, second, third):
    return tl.where(kinds == 0, first, tl.where(kinds == 1, second, third))


@kernel
def sort_rows_by_kind(
    alpha, counts, starts, order, count, middle, inner, alpha_steps,
    LEVELS: tl.constexpr, WIDE: tl.constexpr,
    BLOCK: tl.constexpr, WIDTH: tl.constexpr, R: tl.constexpr,
):  # fmt: skip
    """Write the row numbers in order, and the tiles at which the second kind, the third kind and the end
    begin. The last row of a kind is repeated until its tile is full."""
    block, blocks = tl.program_id(0), tl.num_programs(0)
    place = tl.arange(0, BLOCK)
    row = block * BLOCK + place
    kinds = _kinds(alpha, alpha_steps, row, count, middle, inner, LEVELS, WIDE, BLOCK)
    low, high = _unpack_counts(tl.cumsum(_packed_counts(kinds), 0))
    before, before_1, total, total_1 = _sums_of_blocks(counts, block, blocks, WIDTH)
    begin_1 = tl.cdiv(total, R) * R
    begin_2 = begin_1 + tl.cdiv(total_1, R) * R
    total_2 = count - total - total_1
    rank = _choose_by_kind(
        kinds,
        before + low - 1,
        before_1 + high - 1,
        block * BLOCK - before - before_1 + place - low - high,
    )
    there = kinds < KINDS
    order += _choose_by_kind(kinds, 0, begin_1, begin_2) + rank
    tl.store(order, row, mask=there)
    last = there & (rank == _choose_by_kind(kinds, total, total_1, total_2) - 1)
    for i in tl.static_range(1, R):
        tl.store(order + i, row, mask=last & (rank % R + i < R))
    if block == 0:
        tl.store(starts, begin_1 // R)
        tl.store(starts + 1, begin_2 // R)
        tl.store(starts + 2, begin_2 // R + tl.cdiv(total_2, R))


def sort_by_kind(
    alpha: Tensor, rows: Rows, steps: Strides, height: int, *, wide: bool
) -> tuple[int, Tensor, Tensor]:
    """(number of tiles of `height` rows, first tile of each kind, row numbers).

    `wide`: an offset in alpha may not fit in int32.
    """
    blocks = ceil_div(rows.count, COUNTED_ROWS)
    tiles = ceil_div(rows.count, height) + (KINDS.value - 1 if height > 1 else 0)
    space = torch.empty(START_NUMBERS + tiles * height, dtype=torch.int32, device=alpha.device)
    counts = torch.empty(blocks, dtype=torch.int32, device=alpha.device)
    starts, order = space[:START_NUMBERS], space[START_NUMBERS:]
    shape = (rows.count, rows.middle, rows.inner, steps)
    options = {
        "LEVELS": rows.levels,
        "WIDE": wide,
        "BLOCK": COUNTED_ROWS,
        "num_warps": COUNTING_WARPS,
    }
    count_kinds[(blocks,)](alpha, counts, *shape, **options)
    width = min(next_power_of_two(blocks), MAX_COUNTS_AT_ONCE)
    sort_rows_by_kind[(blocks,)](
        alpha, counts, starts, order, *shape, WIDTH=width, R=height, **options
    )
    return tiles, starts, order
