"""Tiles and warps for rows that a program holds, by the shape of the problem.

Chosen from measurements on an H200, as are those of `long_row_shapes`.
"""

from __future__ import annotations

from typing import NamedTuple

import triton.language as tl
from torch import Tensor

from fenchel.kernels.triton.launch.addressing import Rows
from fenchel.kernels.triton.launch.alpha import (
    COARSE,
    EACH_ROW,
    ENTMAX15,
    GENERAL,
    POWER,
    SHARP,
    SPARSEMAX,
    STEEP,
    needs_no_powers,
)
from fenchel.kernels.triton.launch.whole_numbers import ceiling, power_of_two

WARP = 32
VECTOR_BYTES = 16
LONGEST_TILE = 32768  # columns a program holds in registers, for alpha = 1, 3/2 and 2
LONGEST_POWER_TILE = 8192  # the same where powers are needed
LONGEST_LOSS_TILE = 8192  # the same for losses
LONGEST_BACKWARD = 8192  # and for gradients; of a longer row a program
BACKWARD_BLOCK = 8192  # takes so many at a time
# Fewer registers a thread than it could use let more programs hide each other's waiting.
SHORT_REGISTERS = {
    GENERAL.value: 80,
    POWER.value: 80,
    COARSE.value: 96,
    SHARP.value: 128,
    STEEP.value: 64,
}  # where a warp holds some rows
MEDIUM_REGISTERS = {POWER.value: 128, COARSE.value: 128, STEEP.value: 80}  # in longer ones
FEW_ROWS, FEW_COLUMNS, FEW_ENTRIES = 4096, 64, 2  # one step of a decoder's attention
HALF_BYTES = 2  # of such scores, two share a register
HALVES = (SPARSEMAX.value, ENTMAX15.value)  # for these alphas,
HALVES_ROWS, HALVES_COLUMNS = 1024, 8192  # from so many rows and columns on,
HALVES_ENTRIES, HALVES_REGISTERS = 128, 128  # with so many scores and registers a thread
LONGEST_SHARED_WARP = 512  # columns up to which a warp may hold several rows
HOLD_MUCH = (GENERAL.value, POWER.value, EACH_ROW.value, STEEP.value)  # beside the scores
LISTED: tl.constexpr = tl.constexpr(4)  # scores of a thread among which a small support is sought
MOST_BLOCKS = 65535  # programs along the second axis of a grid


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


def fits_tile(kind: int, columns: int) -> bool:
    """Whether `entmax` holds such rows in registers."""
    return columns <= (LONGEST_TILE if needs_no_powers(kind) else LONGEST_POWER_TILE)


def fits_loss_tile(columns: int) -> bool:
    """Whether `entmax_loss` does."""
    return columns <= LONGEST_LOSS_TILE


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


def slope_shape(rows: Rows) -> Tile:
    """For kernels that treat every entry alone: about 1024 entries a program."""
    width = block_in_grid(rows.columns, min(power_of_two(rows.columns), 1024))
    height = max(1, min(1024 // width, power_of_two(rows.count)))
    return Tile(1, height, width, max(1, width * height // 512))


def block_in_grid(columns: int, block: int) -> int:
    """So many columns a program, or more if the blocks of a row would be more than a grid has."""
    while ceiling(columns, block) > MOST_BLOCKS:
        block *= 2
    return block


def least_itemsize(scores: Tensor, mask: Tensor | None) -> int:
    """The bytes of the smallest entries that a kernel reads."""
    return scores.element_size() if mask is None else mask.element_size()
