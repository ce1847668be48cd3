"""Tiles and warps by the shape of the problem, chosen from measurements on an H200."""

from __future__ import annotations

from typing import NamedTuple

from fenchel.kernels.triton.arithmetic.entries import (
    COARSE,
    EACH_ROW,
    ENTMAX15,
    GENERAL,
    POWER,
    SHARP,
    SOFTMAX,
    SPARSEMAX,
    STEEP,
)
from fenchel.kernels.triton.launch.addressing import Rows
from fenchel.kernels.triton.rows.small_support import LISTED

WARP = 32
VECTOR_BYTES = 16
LONGEST_TILE = 32768  # columns a program holds in registers, for alpha = 1, 3/2 and 2
LONGEST_POWER_TILE = 8192  # the same where powers are needed
LONGEST_LOSS_TILE = 8192
LONGEST_BACKWARD = 8192
BACKWARD_BLOCK = 8192
SOFTMAX_BLOCK = 8192  # columns of a longer row that a program adds up for alpha = 1
MOST_PARTS = 1024  # sums that a program adds at once
MOST_GROUPS = 32768
# Fewer registers a thread than it could use let more programs hide each other's waiting.
SHORT_REGISTERS = {
    GENERAL.value: 80,
    POWER.value: 80,
    COARSE.value: 96,
    SHARP.value: 128,
    STEEP.value: 64,
}  # where a warp holds some rows
MEDIUM_REGISTERS = {POWER.value: 128, COARSE.value: 128, STEEP.value: 80}  # in longer ones
SOLVE_REGISTERS = {POWER.value: 128, COARSE.value: 96}  # of what solves a row from its groups,
MOST_SOLVE_REGISTERS = 64  # and if there are many
FEW_ROWS, FEW_COLUMNS, FEW_ENTRIES = 4096, 64, 2  # one step of a decoder's attention
HALF_BYTES = 2  # of such scores, two share a register
HALVES = (SPARSEMAX.value, ENTMAX15.value)  # for these alphas,
HALVES_ROWS, HALVES_COLUMNS = 1024, 8192  # from so many rows and columns on,
HALVES_ENTRIES, HALVES_REGISTERS = 128, 128  # with so many scores and registers a thread
STREAMED_ROWS = 2048  # from so many rows on, for the same alphas, a program takes a whole row
STREAMED_COLUMNS = range(65537, 131073)  # of so many columns,
STREAMED_REGISTERS = 80  # with so many registers a thread
STREAMED_LOSSES = 256  # from so many rows on the same is done for losses, in half precision,
STREAMED_WARPS, STREAMED_ENTRIES = 32, 16  # by so many warps, with so many scores
STREAMED_LOSS_REGISTERS = 64  # and registers a thread
NEAR_ENTRIES, NEAR_REGISTERS = 16, 64  # a thread, of long rows with alpha near 1
NEAR_LOSS_WARPS, NEAR_LOSS_ENTRIES, NEAR_LOSS_REGISTERS = 8, 8, 64  # the same for losses
LONGEST_SHARED_WARP = 512  # columns up to which a warp may hold several rows
HOLD_MUCH = (GENERAL.value, POWER.value, EACH_ROW.value, STEEP.value)  # beside the scores


class Tile(NamedTuple):
    """`rows` rows of `slabs` × `width` columns, held by `warps` warps.

    A thread takes `vector` neighbouring columns of a slab, and at most `registers` registers.
    """

    slabs: int
    rows: int
    width: int
    warps: int
    vector: int = 1
    registers: int | None = None

    def divides(self, rows: Rows) -> bool:
        """Whether no tile reaches beyond the rows and columns that there are."""
        return rows.columns == self.slabs * self.width and rows.count % self.rows == 0


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


def ceiling(number: int, divisor: int) -> int:
    return -(-number // divisor)


def power_of_two(number: int) -> int:
    """The smallest power of two that is not below `number`."""
    return 1 << max(number - 1, 0).bit_length()


def needs_no_powers(kind: int) -> bool:
    return kind in (SPARSEMAX.value, ENTMAX15.value, SOFTMAX.value)


def fits_tile(kind: int, columns: int) -> bool:
    """Whether `entmax` holds such rows in registers."""
    return columns <= (LONGEST_TILE if needs_no_powers(kind) else LONGEST_POWER_TILE)


def forward_tile_shape(rows: Rows, itemsize: int, kind: int, step: int) -> Tile:
    """32 entries a thread, more in long rows; 16 in short ones where much else must be held, or where
    a list of the largest must hold the support; few in a small problem, so that many threads share it.

    Threads must not share a slab: they would round its sum each in its own way. So `itemsize` is that
    of the smallest entries read, of which a thread takes most at once. Where columns lie `step` > 1
    apart, threads take neighbouring rows and then what comes next, and a tile of such rows has no slabs.
    """
    columns = power_of_two(rows.columns)
    if columns <= LONGEST_SHARED_WARP:
        entries = 16 if kind in HOLD_MUCH else 32
        if columns <= FEW_COLUMNS and rows.count <= FEW_ROWS:
            entries = FEW_ENTRIES
        tile = _tile(columns, rows.count, itemsize, entries, SHORT_REGISTERS.get(kind))
        apart = step != 1 and tile.rows > 1
        return tile._replace(slabs=1, width=columns) if apart else tile
    if columns < 8192:
        return _tile(columns, rows.count, itemsize, 32, MEDIUM_REGISTERS.get(kind))
    entries = 128 if columns > 16384 and needs_no_powers(kind) else 64
    return _tile(columns, rows.count, itemsize, entries)


def holds_halves(kind: int, rows: Rows, itemsize: int) -> bool:
    """Whether two scores share a register: in long rows, if there are enough to fill the device."""
    fits = HALVES_COLUMNS <= power_of_two(rows.columns) <= LONGEST_TILE
    return kind in HALVES and itemsize == HALF_BYTES and fits and rows.count >= HALVES_ROWS


def halves_tile_shape(rows: Rows) -> Tile:
    columns = power_of_two(rows.columns)
    return _tile(columns, rows.count, HALF_BYTES, HALVES_ENTRIES, HALVES_REGISTERS)


def near_rows_shape(rows: Rows, itemsize: int) -> Tile:
    """A block of a long row that a program goes through, NEAR_ENTRIES columns a thread."""
    vector = VECTOR_BYTES // itemsize
    warps = 16 if rows.columns <= LONGEST_TILE else 32
    return Tile(NEAR_ENTRIES // vector, 1, warps * WARP * vector, warps, vector, NEAR_REGISTERS)


def near_loss_shape() -> Tile:
    """The same for the loss: a thread takes NEAR_LOSS_ENTRIES neighbours."""
    entries, warps = NEAR_LOSS_ENTRIES, NEAR_LOSS_WARPS
    return Tile(entries, 1, warps * WARP, warps, entries, NEAR_LOSS_REGISTERS)


def worth_listing(kind: int, tile: Tile) -> bool:
    """Whether the support is sought among the largest scores of every thread."""
    small = kind == STEEP.value or (kind == SHARP.value and tile.rows == 1)
    return small and tile.slabs * tile.vector > LISTED.value and tile.vector >= LISTED.value


def backward_tile_shape(rows: Rows, itemsize: int, kind: int) -> Tile:
    columns = power_of_two(rows.columns)
    entries = 32 if needs_no_powers(kind) and columns > 2048 else 16
    return _tile(columns, rows.count, itemsize, entries)


def _tile(
    columns: int, count: int, itemsize: int, entries: int, registers: int | None = None
) -> Tile:
    """About `entries` columns a thread; several rows a warp where they are short."""
    vector = VECTOR_BYTES // itemsize
    if columns > LONGEST_SHARED_WARP:
        warps = max(1, min(32, columns // (WARP * entries)))
        width = min(columns, warps * WARP * vector)
        return Tile(columns // width, 1, width, warps, min(vector, width), registers)
    height = max(1, min(WARP * entries // columns, power_of_two(count)))
    threads = max(4, columns // entries, WARP // height)  # of a row, so that none share a slab
    width = min(columns, threads * vector)
    return Tile(columns // width, height, width, 1, min(vector, width), registers)


def groups_shape(columns: int) -> Groups:
    """Groups of 32 columns: 128 bytes of float32, and few enough for one program to hold."""
    size = 32
    while ceiling(columns, size) > MOST_GROUPS:
        size *= 2
    groups = ceiling(columns, size)
    width = power_of_two(groups)
    return Groups(size, groups, width, 8192 // size, 8, 2048 // size, max(4, min(32, width // 512)))


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
    count = ceiling(columns, SOFTMAX_BLOCK)
    return Parts(SOFTMAX_BLOCK, count, min(power_of_two(count), MOST_PARTS), 8)


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


def slope_shape(rows: Rows) -> Tile:
    """For kernels that treat every entry alone: about 1024 entries a program."""
    width = min(power_of_two(rows.columns), 1024)
    height = max(1, min(1024 // width, power_of_two(rows.count)))
    return Tile(1, height, width, max(1, width * height // 512))
