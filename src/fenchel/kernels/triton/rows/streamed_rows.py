"""entmax of many rows too long for the chip, for alpha = 2 and 3/2: one program a row, in one kernel.

What the kernels of `long_rows` do one after the other for all rows, a program does here for its own:
while it solves, the others of its multiprocessor read and write theirs. It writes zeros as it reads and,
once the row is solved, p over them in the groups that can hold support: the listed ones, whose scores
stay in registers while the row is solved if there are few. Columns are neighbours in memory.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
import triton
import triton.language as tl

from fenchel.kernels.triton.arithmetic.entries import entry
from fenchel.kernels.triton.arithmetic.two_floats import two_sum
from fenchel.kernels.triton.launch.addressing import row_offset
from fenchel.kernels.triton.launch.kernel import kernel
from fenchel.kernels.triton.rows.groups import (
    CLOSE,
    largest_of,
    list_groups,
    listed_shape,
    listed_tile,
    support_begins,
)
from fenchel.kernels.triton.rows.half_rows import begin_halfway
from fenchel.kernels.triton.rows.listed_visits import listed_visit
from fenchel.kernels.triton.search.climbing import climb
from fenchel.kernels.triton.search.normalizer import FINE, tile_visit
from fenchel.kernels.triton.tiles.across_threads import row_max
from fenchel.kernels.triton.tiles.axes import SLAB_AXIS
from fenchel.kernels.triton.tiles.memory import finite_peak, tile_rows


@triton.jit
def _fill(out, value, start, columns, BLOCK: tl.constexpr):
    column = start + tl.arange(0, BLOCK)
    tl.store(out + column, tl.zeros([BLOCK], tl.float32) + value, mask=column < columns)


@triton.jit
def _read_row(scores, out, maxima, columns, groups, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    """Store the largest score of every group, and zeros."""
    for start in range(0, groups, BLOCK):
        group = start + tl.arange(0, BLOCK)
        largest = largest_of(scores, None, group, columns, 1, 1, GROUP)
        tl.store(maxima + group, largest, mask=group < groups)
        _fill(out, 0.0, start * GROUP, columns, BLOCK * GROUP)
    tl.debug_barrier()  # what one thread has stored, another one reads


@triton.jit
def _lower_bound(maxima, e, columns, KIND: tl.constexpr):
    """The root of the maxima alone, `maxima` = (tile,) less the largest."""
    point = begin_halfway(tile_visit, maxima, e, KIND)
    point, step = climb(tile_visit, maxima, point, e, columns, CLOSE, 0.0, 1, KIND)
    return point + step


@triton.jit
def _solve(data, point, e, columns, KIND: tl.constexpr, SIZE: tl.constexpr):
    """(point, low) from the listed groups, SIZE scores at once."""
    first = tl.reshape(listed_tile(data, 0)[0], [1, 1, SIZE]) - data[7]
    if data[3] <= data[8].shape[SLAB_AXIS]:
        point, low = climb(tile_visit, (first,), point, e, columns, FINE, 0.0, 1, KIND)
    else:
        point, low = climb(listed_visit, data, point, e, columns, FINE, 0.0, 1, KIND)
    return two_sum(point, low)


@triton.jit
def _write_listed(data, out, point, low, e, KIND: tl.constexpr):
    found, columns, peak, places = data[3], data[4], data[7], data[8]
    for start in range(0, found, places.shape[SLAB_AXIS]):
        x, column = listed_tile(data, start)
        p, _, _ = entry(x - peak, point, low, e, KIND)
        tl.store(out + column, p, mask=(start + places < found) & (column < columns))


@kernel
def entmax_streamed(
    scores, out, maxima, listed, eps, columns, groups, middle, inner, steps, out_steps,
    LEVELS: tl.constexpr, KIND: tl.constexpr, GROUP: tl.constexpr, BLOCK: tl.constexpr,
    LISTED: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    row = tile_rows(tl.program_id(0), 1)
    e = eps + 0.0
    scores += row_offset(row, middle, inner, steps, LEVELS)
    out += row_offset(row, middle, inner, out_steps, LEVELS)
    maxima += row * groups
    listed += row * groups
    _read_row(scores, out, maxima, columns, groups, GROUP, BLOCK)
    group = tl.arange(0, WIDTH)[None, None, :]
    held = tl.load(maxima + group, mask=group < groups, other=float("-inf")).to(tl.float32)
    peak = finite_peak(row_max(held))
    point = _lower_bound((held - peak,), e, columns, KIND)
    found = list_groups(held, listed, support_begins(peak, point, e, KIND), WIDTH)
    places, within = listed_shape(GROUP, LISTED)
    data = (scores, None, listed, found, columns, 1, 1, peak, places, within)
    point, low = _solve(data, point, e, columns, KIND, GROUP * LISTED)
    if peak != peak:  # NaN, and then no group is listed
        for start in range(0, columns, GROUP * BLOCK):
            _fill(out, peak, start, columns, GROUP * BLOCK)
    _write_listed(data, out, point, low, e, KIND)
