"""entmax of many rows too long for the chip, for alpha = 2 and 3/2: one kernel, one program per row.

While a program solves its row, the other programs of the multiprocessor read and write theirs. A
program writes zeros as it reads and, once the row is solved, p in the groups that can be in the
support. These are listed; if they are few, their scores stay in registers during the search. Columns
are neighbours in memory.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
from typing import Any

import torch
import triton
import triton.language as tl

from fenchel.kernels.triton.arithmetic.elementary import (
    two_sum,
)
from fenchel.kernels.triton.arithmetic.entries import (
    entry,
)
from fenchel.kernels.triton.launch.addressing import (
    Rows,
    Strides,
    row_offset,
)
from fenchel.kernels.triton.launch.kernel import (
    kernel,
)
from fenchel.kernels.triton.launch.tile_shapes import (
    STREAMED_REGISTERS,
    streamed_groups,
)
from fenchel.kernels.triton.solver.groups import (
    MAXIMA_TOLERANCE,
    list_groups,
    listed_indices,
    load_listed_groups,
    max_of_groups,
    min_support_score,
    visit_listed_groups,
)
from fenchel.kernels.triton.solver.newton import (
    find_root,
    guess_halfway,
)
from fenchel.kernels.triton.solver.normalizer import (
    FINE_TOLERANCE,
    tile_visit,
)
from fenchel.kernels.triton.tiles.layout import (
    SLAB_AXIS,
    finite_peak,
    tile_rows,
)
from fenchel.kernels.triton.tiles.reductions import (
    row_max,
)


def launch_streamed_rows(
    tensors: list[Any], kind: int, eps: float, rows: Rows, steps: list[Strides]
) -> None:
    scores, out, _mask, _alphas = tensors
    shape = streamed_groups(rows.columns, scores.element_size())
    maxima = torch.empty((rows.count, shape.groups), dtype=scores.dtype, device=scores.device)
    listed = torch.empty_like(maxima, dtype=torch.int32)
    entmax_streamed[(rows.count,)](
        scores, out, maxima, listed, eps, rows.columns, shape.groups, rows.middle, rows.inner,
        *steps[:2],
        LEVELS=rows.levels, KIND=kind, GROUP=shape.size, BLOCK=shape.block, LISTED=shape.listed,
        WIDTH=shape.width, num_warps=shape.warps, maxnreg=STREAMED_REGISTERS,
    )  # fmt: skip


@triton.jit
def _fill(out, value, start, columns, BLOCK: tl.constexpr):
    column = start + tl.arange(0, BLOCK)
    tl.store(out + column, tl.zeros([BLOCK], tl.float32) + value, mask=column < columns)


@triton.jit
def _read_row(scores, out, maxima, columns, groups, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    """Store the largest score of every group, and zeros."""
    for start in range(0, groups, BLOCK):
        group = start + tl.arange(0, BLOCK)
        largest = max_of_groups(scores, None, group, columns, 1, 1, GROUP)
        tl.store(maxima + group, largest, mask=group < groups)
        _fill(out, 0.0, start * GROUP, columns, BLOCK * GROUP)
    tl.debug_barrier()  # what one thread has stored, another one reads


@triton.jit
def _lower_bound(maxima, e, columns, KIND: tl.constexpr):
    """The root of the maxima alone, `maxima` = (tile,) minus the largest."""
    point = guess_halfway(tile_visit, maxima, e, KIND)
    point, step = find_root(tile_visit, maxima, point, e, columns, MAXIMA_TOLERANCE, 0.0, 1, KIND)
    return point + step


@triton.jit
def _solve(data, point, e, columns, KIND: tl.constexpr, SIZE: tl.constexpr):
    """(point, low) from the listed groups, SIZE scores at a time."""
    first = tl.reshape(load_listed_groups(data, 0)[0], [1, 1, SIZE]) - data[7]
    if data[3] <= data[8].shape[SLAB_AXIS]:
        point, low = find_root(
            tile_visit, (first,), point, e, columns, FINE_TOLERANCE, 0.0, 1, KIND
        )
    else:
        point, low = find_root(
            visit_listed_groups, data, point, e, columns, FINE_TOLERANCE, 0.0, 1, KIND
        )
    return two_sum(point, low)


@triton.jit
def _write_listed(data, out, point, low, e, KIND: tl.constexpr):
    found, columns, peak, places = data[3], data[4], data[7], data[8]
    for start in range(0, found, places.shape[SLAB_AXIS]):
        x, column = load_listed_groups(data, start)
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
    found = list_groups(held, listed, min_support_score(peak, point, e, KIND), WIDTH)
    places, within = listed_indices(GROUP, LISTED)
    data = (scores, None, listed, found, columns, 1, 1, peak, places, within)
    point, low = _solve(data, point, e, columns, KIND, GROUP * LISTED)
    if peak != peak:  # NaN, and then no group is listed
        for start in range(0, columns, GROUP * BLOCK):
            _fill(out, peak, start, columns, GROUP * BLOCK)
    _write_listed(data, out, point, low, e, KIND)
