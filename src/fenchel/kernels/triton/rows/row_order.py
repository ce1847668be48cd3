"""The order in which rows with an alpha of their own are solved: kind by kind, each in tiles of its own.

A kernel that knows every kind of alpha is far larger than the cache of instructions, so what runs at the
same time should be of one kind. Blocks of rows are counted first and then put in their places: which
rows share a tile, and with it the last bit of a result, does not depend on which program is faster.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
# pyright: reportGeneralTypeIssues=false
# A kernel is launched with options that its parameters do not name.
# pyright: reportCallIssue=false
import torch
import triton
import triton.language as tl
from torch import Tensor

from fenchel.kernels.triton.launch.addressing import Rows, Strides
from fenchel.kernels.triton.launch.alpha import EACH_ROW, TAME
from fenchel.kernels.triton.launch.kernel import kernel
from fenchel.kernels.triton.launch.whole_numbers import ceiling, power_of_two
from fenchel.kernels.triton.tiles.memory import row_epsilon

KINDS: tl.constexpr = tl.constexpr(3)  # up to TAME, up to alpha = 2, and above
HIGH: tl.constexpr = tl.constexpr(65536)  # counts a row of the second kind; 1, of the first
BLOCK, WARPS = 1024, 4  # rows that are counted at once, and by how many warps
MOST_COUNTS = 1024  # that are added at once
STARTS = 4  # numbers kept before the order: three, and one to keep it aligned


@triton.jit
def kind_of_row(e):
    return tl.where(e > 1.0, 2, tl.where(e > TAME, 1, 0))


@triton.jit
def _kinds(
    alpha, alpha_steps, row, count, middle, inner,
    LEVELS: tl.constexpr, WIDE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The kinds of a block of rows; KINDS where there is no row."""
    row = row.to(tl.int64 if WIDE else tl.int32)
    e = row_epsilon(0.0, alpha, alpha_steps, row, count, middle, inner, LEVELS, EACH_ROW, BLOCK)
    return tl.where(row < count, kind_of_row(e), KINDS)


@triton.jit
def _numbers(kinds):
    """Rows of the first and the second kind, as one number."""
    return tl.where(kinds == 0, 1, tl.where(kinds == 1, HIGH, 0))


@triton.jit
def _low_and_high(numbers):
    return numbers % HIGH, numbers // HIGH


@kernel
def count_kinds(
    alpha, counts, count, middle, inner, alpha_steps,
    LEVELS: tl.constexpr, WIDE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """How many rows of a block are of the first and of the second kind."""
    block = tl.program_id(0)
    row = block * BLOCK + tl.arange(0, BLOCK)
    kinds = _kinds(alpha, alpha_steps, row, count, middle, inner, LEVELS, WIDE, BLOCK)
    tl.store(counts + block, tl.sum(_numbers(kinds), axis=0))


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
        low, high = _low_and_high(numbers)
        total += low
        total_1 += high
        before += tl.where(start + place < block, low, 0)
        before_1 += tl.where(start + place < block, high, 0)
    return tl.reduce((before, before_1, total, total_1), 0, _add_fours)


@triton.jit
def _of_kind(kinds, first, second, third):
    return tl.where(kinds == 0, first, tl.where(kinds == 1, second, third))


@kernel
def order_rows(
    alpha, counts, starts, order, count, middle, inner, alpha_steps,
    LEVELS: tl.constexpr, WIDE: tl.constexpr,
    BLOCK: tl.constexpr, WIDTH: tl.constexpr, R: tl.constexpr,
):  # fmt: skip
    """Write the numbers of the rows in their order, and the tiles where the second and the third kind
    begin and where all end. The last row of a kind is repeated until its tile is full."""
    block, blocks = tl.program_id(0), tl.num_programs(0)
    place = tl.arange(0, BLOCK)
    row = block * BLOCK + place
    kinds = _kinds(alpha, alpha_steps, row, count, middle, inner, LEVELS, WIDE, BLOCK)
    low, high = _low_and_high(tl.cumsum(_numbers(kinds), 0))
    before, before_1, total, total_1 = _sums_of_blocks(counts, block, blocks, WIDTH)
    begin_1 = tl.cdiv(total, R) * R
    begin_2 = begin_1 + tl.cdiv(total_1, R) * R
    total_2 = count - total - total_1
    rank = _of_kind(
        kinds,
        before + low - 1,
        before_1 + high - 1,
        block * BLOCK - before - before_1 + place - low - high,
    )
    there = kinds < KINDS
    order += _of_kind(kinds, 0, begin_1, begin_2) + rank
    tl.store(order, row, mask=there)
    last = there & (rank == _of_kind(kinds, total, total_1, total_2) - 1)
    for i in tl.static_range(1, R):
        tl.store(order + i, row, mask=last & (rank % R + i < R))
    if block == 0:
        tl.store(starts, begin_1 // R)
        tl.store(starts + 1, begin_2 // R)
        tl.store(starts + 2, begin_2 // R + tl.cdiv(total_2, R))


def order_by_kind(
    alpha: Tensor, rows: Rows, steps: Strides, height: int, *, wide: bool
) -> tuple[int, Tensor, Tensor]:
    """(tiles of `height` rows at most, which of them begin a kind, the numbers of their rows).

    `wide`: an offset in alpha may be no int32.
    """
    blocks = ceiling(rows.count, BLOCK)
    tiles = ceiling(rows.count, height) + (KINDS.value - 1 if height > 1 else 0)
    space = torch.empty(STARTS + tiles * height, dtype=torch.int32, device=alpha.device)
    counts = torch.empty(blocks, dtype=torch.int32, device=alpha.device)
    starts, order = space[:STARTS], space[STARTS:]
    shape = (rows.count, rows.middle, rows.inner, steps)
    options = {"LEVELS": rows.levels, "WIDE": wide, "BLOCK": BLOCK, "num_warps": WARPS}
    count_kinds[(blocks,)](alpha, counts, *shape, **options)
    width = min(power_of_two(blocks), MOST_COUNTS)
    order_rows[(blocks,)](alpha, counts, starts, order, *shape, WIDTH=width, R=height, **options)
    return tiles, starts, order
