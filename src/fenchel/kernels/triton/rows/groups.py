"""Groups of neighbouring columns of long rows: their maxima, and lists of those that may hold support.

A maximum below the edge of the support means zeros throughout its group, which need not be read again.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false
import triton
import triton.language as tl

from fenchel.kernels.triton.launch.addressing import row_offset
from fenchel.kernels.triton.launch.alpha import GENERAL, STEEP
from fenchel.kernels.triton.launch.kernel import kernel
from fenchel.kernels.triton.tiles.axes import along_slabs
from fenchel.kernels.triton.tiles.combining import larger
from fenchel.kernels.triton.tiles.memory import load_scores, tile_rows

CLOSE: tl.constexpr = tl.constexpr(1e-3)  # excess at which the maxima are left
MARGIN: tl.constexpr = tl.constexpr(4e-5)  # what a rough or rounded edge may hide
STATE: tl.constexpr = tl.constexpr(4)  # numbers kept of a row: its largest score, point, low, least


@triton.jit
def largest_of(scores, mask, group, columns, step, mask_step, GROUP: tl.constexpr):
    """The largest score of each of these groups of a row; NaN wins."""
    column = group[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    place = column.to(tl.int64)
    x = load_scores(scores, mask, place * step, place * mask_step, column < columns)
    return tl.reduce(x, 1, larger)


@kernel
def group_maxima(
    scores, mask, maxima, columns, groups, middle, inner, steps, mask_steps,
    LEVELS: tl.constexpr, GROUP: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tile_rows(tl.program_id(0), 1)
    group = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    scores += row_offset(row, middle, inner, steps, LEVELS)
    if mask is not None:
        mask += row_offset(row, middle, inner, mask_steps, LEVELS)
    largest = largest_of(scores, mask, group, columns, steps[3], mask_steps[3], GROUP)
    tl.store(maxima + row * groups + group, largest, mask=group < groups)


@triton.jit
def support_begins(peak, point, e, KIND: tl.constexpr):
    """A score below which p = 0 whatever was rounded; -inf if there is none."""
    if KIND == STEEP:
        edge = point
    elif KIND >= GENERAL:
        edge = tl.where(e > 0.0, peak + (point - 1.0 / e), float("-inf"))
    else:
        edge = peak + point
    return edge - MARGIN * (1.0 + tl.abs(edge))


@triton.jit
def listed_tile(data, start):
    """The scores of the next BLOCK listed groups, as a tile with J = BLOCK and K = GROUP."""
    scores, mask, listed, found, columns, step, mask_step, _, places, within = data
    place = start + places
    group = tl.load(listed + place, mask=place < found, other=0)
    column = group * within.shape[2] + within
    inside = (place < found) & (column < columns)
    wide = column.to(tl.int64)
    return load_scores(scores, mask, wide * step, wide * mask_step, inside), column


@triton.jit
def listed_zeros(data):
    return (data[8] + data[9]).to(tl.float32) * 0.0


@triton.jit
def listed_shape(GROUP: tl.constexpr, BLOCK: tl.constexpr):
    """Two index tiles that tell `listed_tile` how many groups to take, and their size."""
    return along_slabs(tl.arange(0, BLOCK)), tl.arange(0, GROUP)[None, None, :]


@triton.jit
def list_groups(maxima, listed, begin, WIDTH: tl.constexpr):
    """Write the numbers of the groups that reach `begin`, and count them."""
    maxima = tl.reshape(maxima, [WIDTH])
    reaches = ((maxima >= begin) & (maxima > float("-inf"))).to(tl.int32)
    place = tl.cumsum(reaches, 0) - reaches
    tl.store(listed + place, tl.arange(0, WIDTH), mask=reaches != 0)
    tl.debug_barrier()  # what one thread has listed, another one reads
    return tl.sum(reaches, axis=0)
