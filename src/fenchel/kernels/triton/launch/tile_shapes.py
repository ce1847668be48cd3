"""Tiles and warps by the shape of the problem, chosen from measurements on an H200.

Rows that fit on chip are tiles in registers. Longer rows are divided into groups or parts, or into
blocks that one program visits in order.
"""

from __future__ import annotations

from typing import NamedTuple

import triton.language as tl
from torch import Tensor

from fenchel.kernels.triton.launch.addressing import (
    Rows,
)
from fenchel.kernels.triton.launch.parameters import (
    ABOVE_1_45,
    ABOVE_2,
    ALPHA_PER_ROW,
    ENTMAX15,
    FAST_POWERS,
    FAST_STEPS,
    GENERAL,
    SPARSEMAX,
    needs_no_powers,
)

WARP_THREADS = 32
VECTOR_BYTES = 16
MAX_TILE_COLUMNS = 32768  # longest rows in the registers of a program, for alpha = 1, 3/2 and 2
MAX_POWER_TILE_COLUMNS = 8192  # the same where powers are needed
MAX_LOSS_TILE_COLUMNS = 8192  # the same for losses
MAX_BACKWARD_TILE_COLUMNS = 8192  # the same for gradients
BACKWARD_BLOCK_COLUMNS = 8192  # columns of a longer row that a program has in registers at a time
# Registers per thread. Fewer than a thread could use let more programs run at the same time, which hides
# latency. SHORT is for rows of which a warp has several, MEDIUM for longer ones.
SHORT_REGISTERS = {
    GENERAL.value: 80,
    FAST_STEPS.value: 80,
    FAST_POWERS.value: 96,
    ABOVE_1_45.value: 128,
    ABOVE_2.value: 64,
}
MEDIUM_REGISTERS = {
    FAST_STEPS.value: 128,
    FAST_POWERS.value: 128,
    ABOVE_2.value: 80,
}
# Small problems, such as one step of a decoder's attention: scores per thread up to these numbers of
# rows and columns
SMALL_PROBLEM_ROWS, SMALL_PROBLEM_COLUMNS, SMALL_PROBLEM_ENTRIES = 4096, 64, 2
HALF_BYTES = 2
# Packed half precision, two scores per register: alpha = 2 and 3/2, rows >= 1024, tiles of >= 8192
# columns; scores and registers per thread
PACKED_KINDS = (SPARSEMAX.value, ENTMAX15.value)
PACKED_MIN_ROWS, PACKED_MIN_COLUMNS = 1024, 8192
PACKED_ENTRIES, PACKED_REGISTERS = 128, 128
MAX_SHARED_WARP_COLUMNS = 512  # longest rows of which a warp may have several
# Kinds that need many registers besides the scores
REGISTER_HUNGRY_KINDS = (GENERAL.value, FAST_STEPS.value, ALPHA_PER_ROW.value, ABOVE_2.value)
# Largest scores of each thread among which a small support is searched
LISTED_PER_THREAD: tl.constexpr = tl.constexpr(4)
MAX_GRID_Y = 65535  # programs along the second axis of a grid
SOFTMAX_PART_COLUMNS = 8192  # columns of a long row that a program adds up, for alpha = 1
MAX_PARTS_AT_ONCE = 1024  # partial sums that a program adds at a time
MAX_GROUPS = 32768
# Registers per thread of the program that solves a row from its groups, and if there are many groups
SOLVE_REGISTERS = {FAST_STEPS.value: 128, FAST_POWERS.value: 96}
MANY_GROUPS_REGISTERS = 64
# One program per long row, for alpha = 2 and 3/2: least rows, columns, registers per thread
STREAMED_MIN_ROWS, STREAMED_COLUMNS, STREAMED_REGISTERS = 2048, range(65537, 131073), 80
# The same for losses in half precision: least rows; warps; scores and registers per thread
STREAMED_LOSS_MIN_ROWS, STREAMED_LOSS_WARPS = 256, 32
STREAMED_LOSS_ENTRIES, STREAMED_LOSS_REGISTERS = 16, 64
# Long rows with alpha near 1: scores and registers per thread
NEAR_SOFTMAX_ENTRIES, NEAR_SOFTMAX_REGISTERS = 16, 64
NEAR_LOSS_WARPS, NEAR_LOSS_ENTRIES, NEAR_LOSS_REGISTERS = 8, 8, 64  # the same for losses


def ceil_div(number: int, divisor: int) -> int:
    return -(-number // divisor)


def next_power_of_two(number: int) -> int:
    """The smallest power of two that is not below `number`."""
    return 1 << max(number - 1, 0).bit_length()


class Tile(NamedTuple):
    """`rows` rows of `slabs` × `width` columns in the registers of `warps` warps.

    A thread takes `vector` neighbouring columns of a slab, and at most `registers` registers.
    """

    slabs: int
    rows: int
    width: int
    warps: int
    vector: int = 1
    registers: int | None = None

    def divides(self, rows: Rows) -> bool:
        """Whether no tile extends beyond the rows and columns."""
        return rows.columns == self.slabs * self.width and rows.count % self.rows == 0


def fits_tile(kind: int, columns: int) -> bool:
    """Whether `entmax` has rows of this length in registers."""
    return columns <= (MAX_TILE_COLUMNS if needs_no_powers(kind) else MAX_POWER_TILE_COLUMNS)


def fits_loss_tile(columns: int) -> bool:
    """The same for `entmax_loss`."""
    return columns <= MAX_LOSS_TILE_COLUMNS


def forward_tile(rows: Rows, itemsize: int, kind: int, step: int) -> Tile:
    """The tile of a forward kernel for rows that fit on chip.

    A thread has 32 entries, more in long rows; 16 in short rows of kinds that need many registers, or
    where a list of the largest scores must contain the support; few in small problems, so that many
    threads share the work. Threads must not share a slab, because they would round its sum differently.
    Therefore `itemsize` is that of the smallest entries read, of which a thread loads most at a time.
    If columns are `step` > 1 apart, threads take neighbouring rows, and a tile of such rows has no
    slabs.
    """
    columns = next_power_of_two(rows.columns)
    if columns <= MAX_SHARED_WARP_COLUMNS:
        entries = 16 if kind in REGISTER_HUNGRY_KINDS else 32
        if columns <= SMALL_PROBLEM_COLUMNS and rows.count <= SMALL_PROBLEM_ROWS:
            entries = SMALL_PROBLEM_ENTRIES
        tile = _tile(columns, rows.count, itemsize, entries, SHORT_REGISTERS.get(kind))
        apart = step != 1 and tile.rows > 1
        return tile._replace(slabs=1, width=columns) if apart else tile
    if columns < 8192:
        return _tile(columns, rows.count, itemsize, 32, MEDIUM_REGISTERS.get(kind))
    entries = 128 if columns > 16384 and needs_no_powers(kind) else 64
    return _tile(columns, rows.count, itemsize, entries)


def fits_packed_tile(kind: int, rows: Rows, itemsize: int) -> bool:
    """Whether two scores share a register: long rows, and enough of them to fill the device."""
    fits = PACKED_MIN_COLUMNS <= next_power_of_two(rows.columns) <= MAX_TILE_COLUMNS
    return (
        kind in PACKED_KINDS and itemsize == HALF_BYTES and fits and rows.count >= PACKED_MIN_ROWS
    )


def packed_tile(rows: Rows) -> Tile:
    columns = next_power_of_two(rows.columns)
    return _tile(columns, rows.count, HALF_BYTES, PACKED_ENTRIES, PACKED_REGISTERS)


def lists_largest_scores(kind: int, tile: Tile) -> bool:
    """Whether the support is searched among the largest scores of every thread."""
    small = kind == ABOVE_2.value or (kind == ABOVE_1_45.value and tile.rows == 1)
    return (
        small
        and tile.slabs * tile.vector > LISTED_PER_THREAD.value
        and tile.vector >= LISTED_PER_THREAD.value
    )


def backward_tile_shape(rows: Rows, itemsize: int, kind: int) -> Tile:
    columns = next_power_of_two(rows.columns)
    entries = 32 if needs_no_powers(kind) and columns > 2048 else 16
    return _tile(columns, rows.count, itemsize, entries)


def _tile(
    columns: int, count: int, itemsize: int, entries: int, registers: int | None = None
) -> Tile:
    """About `entries` columns per thread; several rows per warp if they are short."""
    vector = VECTOR_BYTES // itemsize
    if columns > MAX_SHARED_WARP_COLUMNS:
        warps = max(1, min(32, columns // (WARP_THREADS * entries)))
        width = min(columns, warps * WARP_THREADS * vector)
        return Tile(columns // width, 1, width, warps, min(vector, width), registers)
    height = max(1, min(WARP_THREADS * entries // columns, next_power_of_two(count)))
    # Threads of a row, so that no two share a slab
    threads = max(4, columns // entries, WARP_THREADS // height)
    width = min(columns, threads * vector)
    return Tile(columns // width, height, width, 1, min(vector, width), registers)


def gradient_tile(rows: Rows) -> Tile:
    """For elementwise kernels: about 1024 entries per program."""
    width = block_columns(rows.columns, min(next_power_of_two(rows.columns), 1024))
    height = max(1, min(1024 // width, next_power_of_two(rows.count)))
    return Tile(1, height, width, max(1, width * height // 512))


def block_columns(columns: int, block: int) -> int:
    """Columns per program: `block`, or more if a row would have more blocks than the grid allows."""
    while ceil_div(columns, block) > MAX_GRID_Y:
        block *= 2
    return block


def min_itemsize(scores: Tensor, mask: Tensor | None) -> int:
    """The bytes of the smallest entries that a kernel reads."""
    return scores.element_size() if mask is None else mask.element_size()


class Parts(NamedTuple):
    """`count` parts of `block` columns of a row, of which `width` are added at a time."""

    block: int
    count: int
    width: int
    warps: int


class Groups(NamedTuple):
    """`groups` groups of `size` columns: the solver has `width` in registers, other programs `block`."""

    size: int
    groups: int
    width: int
    block: int
    warps: int
    listed: int
    solve_warps: int


def near_softmax_tile(rows: Rows, itemsize: int) -> Tile:
    """A block of a long row, NEAR_SOFTMAX_ENTRIES columns per thread."""
    vector = VECTOR_BYTES // itemsize
    warps = 16 if rows.columns <= MAX_TILE_COLUMNS else 32
    return Tile(
        NEAR_SOFTMAX_ENTRIES // vector,
        1,
        warps * WARP_THREADS * vector,
        warps,
        vector,
        NEAR_SOFTMAX_REGISTERS,
    )


def near_softmax_loss_tile() -> Tile:
    """The same for the loss: a thread has NEAR_LOSS_ENTRIES neighbours."""
    entries, warps = NEAR_LOSS_ENTRIES, NEAR_LOSS_WARPS
    return Tile(entries, 1, warps * WARP_THREADS, warps, entries, NEAR_LOSS_REGISTERS)


def groups_shape(columns: int) -> Groups:
    """Groups of 32 columns, 128 bytes of float32; larger ones if one program could not hold them all."""
    size = 32
    while ceil_div(columns, size) > MAX_GROUPS:
        size *= 2
    groups = ceil_div(columns, size)
    width = next_power_of_two(groups)
    block, listed = max(8192 // size, 1), max(2048 // size, 1)
    return Groups(size, groups, width, block, 8, listed, max(4, min(32, width // 512)))


def streams_rows(kind: int, rows: Rows) -> bool:
    """Whether one program reads, solves and writes a row that does not fit on chip."""
    return (
        kind in PACKED_KINDS
        and rows.count >= STREAMED_MIN_ROWS
        and rows.columns in STREAMED_COLUMNS
    )


def streamed_groups(columns: int, itemsize: int) -> Groups:
    """Groups of 128 bytes."""
    size = 128 // itemsize
    groups = ceil_div(columns, size)
    return Groups(size, groups, next_power_of_two(groups), 8192 // size, 8, 4096 // size, 8)


def streams_losses(kind: int, rows: int, columns: int, itemsize: int) -> bool:
    """Whether one program reads, solves and overwrites a row of scores."""
    fits = itemsize == HALF_BYTES and columns in STREAMED_COLUMNS
    return kind in PACKED_KINDS and fits and rows >= STREAMED_LOSS_MIN_ROWS


def streamed_loss_tile() -> Tile:
    """A block of a row, STREAMED_LOSS_ENTRIES columns per thread."""
    vector = VECTOR_BYTES // HALF_BYTES
    width = STREAMED_LOSS_WARPS * WARP_THREADS * vector
    slabs = STREAMED_LOSS_ENTRIES // vector
    return Tile(slabs, 1, width, STREAMED_LOSS_WARPS, vector, STREAMED_LOSS_REGISTERS)


def parts_shape(columns: int) -> Parts:
    """The parts of a row that separate programs add up for alpha = 1."""
    block = block_columns(columns, SOFTMAX_PART_COLUMNS)
    count = ceil_div(columns, block)
    return Parts(block, count, min(next_power_of_two(count), MAX_PARTS_AT_ONCE), 8)


def solve_limits(shape: Groups, kind: int) -> tuple[int, int | None]:
    """Warps and registers of the program that solves a row from its groups."""
    many = shape.width >= 4096
    if kind in SOLVE_REGISTERS:
        return shape.solve_warps, MANY_GROUPS_REGISTERS if many else SOLVE_REGISTERS[kind]
    halved = many and kind in (ABOVE_1_45.value, ABOVE_2.value)
    return shape.solve_warps // 2 if halved else shape.solve_warps, None


def walk_shape(columns: int) -> tuple[int, int]:
    """Columns per step and warps, for one program per row that visits it block by block."""
    block = min(next_power_of_two(columns), 4096)
    return block, max(1, block // 512)
