"""How rows are cut that no program holds: into groups or parts, or into blocks that one walks along."""

from __future__ import annotations

from typing import NamedTuple

from fenchel.kernels.triton.launch.addressing import Rows
from fenchel.kernels.triton.launch.alpha import COARSE, POWER, SHARP, STEEP
from fenchel.kernels.triton.launch.tile_shapes import (
    HALF_BYTES,
    HALVES,
    LONGEST_TILE,
    VECTOR_BYTES,
    WARP,
    Tile,
    block_in_grid,
)
from fenchel.kernels.triton.launch.whole_numbers import ceiling, power_of_two

SOFTMAX_BLOCK = 8192  # columns of a longer row that a program adds up for alpha = 1
MOST_PARTS = 1024  # sums that a program adds at once
MOST_GROUPS = 32768
SOLVE_REGISTERS = {POWER.value: 128, COARSE.value: 96}  # of what solves a row from its groups,
MOST_SOLVE_REGISTERS = 64  # and if there are many
STREAMED_ROWS = 2048  # from so many rows on, for alpha = 2 and 3/2, a program takes a whole row
STREAMED_COLUMNS = range(65537, 131073)  # of so many columns,
STREAMED_REGISTERS = 80  # with so many registers a thread
STREAMED_LOSSES = 256  # from so many rows on the same is done for losses, in half precision,
STREAMED_WARPS, STREAMED_ENTRIES = 32, 16  # by so many warps, with so many scores
STREAMED_LOSS_REGISTERS = 64  # and registers a thread
NEAR_ENTRIES, NEAR_REGISTERS = 16, 64  # a thread, of long rows with alpha near 1
NEAR_LOSS_WARPS, NEAR_LOSS_ENTRIES, NEAR_LOSS_REGISTERS = 8, 8, 64  # the same for losses


class Parts(NamedTuple):
    """`count` parts of `block` columns of a row, of which `width` are added at once."""

    block: int
    count: int
    width: int
    warps: int


class Groups(NamedTuple):
    """`groups` groups of `size` columns; `width` of them in registers, `block` a program elsewhere."""

    size: int
    groups: int
    width: int
    block: int
    warps: int
    listed: int
    solve_warps: int


def near_rows_shape(rows: Rows, itemsize: int) -> Tile:
    """A block of a long row that a program goes through, NEAR_ENTRIES columns a thread."""
    vector = VECTOR_BYTES // itemsize
    warps = 16 if rows.columns <= LONGEST_TILE else 32
    return Tile(NEAR_ENTRIES // vector, 1, warps * WARP * vector, warps, vector, NEAR_REGISTERS)


def near_loss_shape() -> Tile:
    """The same for the loss: a thread takes NEAR_LOSS_ENTRIES neighbours."""
    entries, warps = NEAR_LOSS_ENTRIES, NEAR_LOSS_WARPS
    return Tile(entries, 1, warps * WARP, warps, entries, NEAR_LOSS_REGISTERS)


def groups_shape(columns: int) -> Groups:
    """Groups of 32 columns: 128 bytes of float32, and few enough for one program to hold."""
    size = 32
    while ceiling(columns, size) > MOST_GROUPS:
        size *= 2
    groups = ceiling(columns, size)
    width = power_of_two(groups)
    block, listed = max(8192 // size, 1), max(2048 // size, 1)
    return Groups(size, groups, width, block, 8, listed, max(4, min(32, width // 512)))


def streams_rows(kind: int, rows: Rows) -> bool:
    """Whether a program reads, solves and writes a row too long for the chip."""
    return kind in HALVES and rows.count >= STREAMED_ROWS and rows.columns in STREAMED_COLUMNS


def streamed_shape(columns: int, itemsize: int) -> Groups:
    """Groups of 128 bytes."""
    size = 128 // itemsize
    groups = ceiling(columns, size)
    return Groups(size, groups, power_of_two(groups), 8192 // size, 8, 4096 // size, 8)


def streams_losses(kind: int, rows: int, columns: int, itemsize: int) -> bool:
    """Whether a program reads, solves and overwrites a row of scores."""
    fits = itemsize == HALF_BYTES and columns in STREAMED_COLUMNS
    return kind in HALVES and fits and rows >= STREAMED_LOSSES


def streamed_loss_shape() -> Tile:
    """A block of a row, STREAMED_ENTRIES columns a thread."""
    vector = VECTOR_BYTES // HALF_BYTES
    width = STREAMED_WARPS * WARP * vector
    slabs = STREAMED_ENTRIES // vector
    return Tile(slabs, 1, width, STREAMED_WARPS, vector, STREAMED_LOSS_REGISTERS)


def parts_shape(columns: int) -> Parts:
    """Parts of a row that programs of their own add up for alpha = 1."""
    block = block_in_grid(columns, SOFTMAX_BLOCK)
    count = ceiling(columns, block)
    return Parts(block, count, min(power_of_two(count), MOST_PARTS), 8)


def solve_limits(shape: Groups, kind: int) -> tuple[int, int | None]:
    """Warps and registers of the program that solves a row from its groups."""
    many = shape.width >= 4096
    if kind in SOLVE_REGISTERS:
        return shape.solve_warps, MOST_SOLVE_REGISTERS if many else SOLVE_REGISTERS[kind]
    halved = many and kind in (SHARP.value, STEEP.value)
    return shape.solve_warps // 2 if halved else shape.solve_warps, None


def stream_shape(columns: int) -> tuple[int, int]:
    """Columns a step and warps, for one program a row that walks along it."""
    block = min(power_of_two(columns), 4096)
    return block, max(1, block // 512)
