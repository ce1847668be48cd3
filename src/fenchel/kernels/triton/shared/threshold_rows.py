"""What normmax and budget share: maps whose p is the scores minus a threshold, clipped and scaled.

Rows that fit on chip are a tile of rows per program. Of longer rows, the maxima of groups of columns
are found first. One program per row then solves it from the groups that can have p > 0 and stores its
`state`, and the row is written by reading those groups only.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false
from torch import Tensor

from fenchel.kernels.triton.arithmetic.elementary import (
    saturate,
)
from fenchel.kernels.triton.launch.addressing import (
    address,
    row_offset,
)
from fenchel.kernels.triton.launch.kernel import (
    kernel,
)
from fenchel.kernels.triton.launch.parameters import (
    SPARSEMAX,
)
from fenchel.kernels.triton.launch.tile_shapes import (
    MAX_TILE_COLUMNS,
    ceil_div,
    forward_tile,
    groups_shape,
    min_itemsize,
    next_power_of_two,
)
from fenchel.kernels.triton.solver.groups import (
    STATE_NUMBERS,
    group_maxima,
    min_support_score,
)
from fenchel.kernels.triton.tiles.layout import (
    load_scores,
    tile_rows,
)

MAX_TILE_COLUMNS_HELD = MAX_TILE_COLUMNS  # longest rows that a program has in registers


@triton.jit
def clipped_score(x, origin, edge, low):
    """x minus the threshold origin + edge + low, clipped to [0, 1]."""
    return saturate(((x - origin) - edge) - low)


@triton.jit
def load_maxima(maxima, row, groups, WIDTH: tl.constexpr):
    """The largest score of every group of a row, as a tile."""
    group = tl.arange(0, WIDTH)[None, None, :]
    return tl.load(maxima + row * groups + group, mask=group < groups, other=float("-inf"))


@triton.jit
def store_state(state, row, origin, edge, low, scale):
    """Store the state: p is the `clipped_score` times the scale; all are NaN in a row with NaN."""
    tl.store(state + row * STATE_NUMBERS, origin)
    tl.store(state + row * STATE_NUMBERS + 1, edge)
    tl.store(state + row * STATE_NUMBERS + 2, low)
    tl.store(state + row * STATE_NUMBERS + 3, scale)


@kernel
def write_clipped_scores(
    scores, out, mask, maxima, state, columns, groups, middle, inner, steps, out_steps, mask_steps,
    LEVELS: tl.constexpr, LEAST: tl.constexpr, GROUP: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """With LEAST, values not above it become 0."""
    row = tile_rows(tl.program_id(0), 1)
    scores += row_offset(row, middle, inner, steps, LEVELS)
    out += row_offset(row, middle, inner, out_steps, LEVELS)
    if mask is not None:
        mask += row_offset(row, middle, inner, mask_steps, LEVELS)
    origin = tl.load(state + row * STATE_NUMBERS)
    edge = tl.load(state + row * STATE_NUMBERS + 1)
    low = tl.load(state + row * STATE_NUMBERS + 2)
    scale = tl.load(state + row * STATE_NUMBERS + 3)
    group = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    held = tl.load(maxima + row * groups + group, mask=group < groups, other=float("-inf"))
    lives = (held >= min_support_score(origin, edge, 1.0, SPARSEMAX)) & (held > float("-inf"))
    column = group[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    place = column.to(tl.int64)
    inside = column < columns
    x = load_scores(scores, mask, place * steps[3], place * mask_steps[3], inside & lives[:, None])
    t = clipped_score(x, origin, edge, low)
    p = tl.where((x > float("-inf")) & (t > LEAST), t, 0.0) * scale
    tl.store(out + place * out_steps[3], p + (origin - origin), mask=inside)


def fits_tile_along(tensor: Tensor, dim: int) -> bool:
    """Whether a row along `dim` fits in the registers of a program."""
    return next_power_of_two(tensor.shape[dim]) <= MAX_TILE_COLUMNS_HELD


def launch_tiles(
    kernel: Any,
    dim: int,
    scores: Tensor,
    out: Tensor,
    mask: Tensor | None,
    *others: Tensor | None,
    numbers: tuple[float, ...] = (),
) -> Tensor | None:
    """Run the kernel on tiles of rows along `dim`; returns the outputs.

    It takes the tensors, the numbers, the shape of the rows and the strides of the tensors.
    """
    rows, tensors, steps = address(dim, scores, out, mask, *others)
    tile = forward_tile(rows, min_itemsize(scores, mask), SPARSEMAX.value, steps[0].column)
    kernel[(ceil_div(rows.count, tile.rows),)](
        *tensors, *numbers, rows.count, rows.columns, rows.middle, rows.inner, *steps,
        LEVELS=rows.levels, EVEN=tile.divides(rows), J=tile.slabs, R=tile.rows, K=tile.width,
        num_warps=tile.warps, maxnreg=tile.registers,
    )  # fmt: skip
    return tensors[1]


def launch_groups(
    solve: Any,
    dim: int,
    scores: Tensor,
    out: Tensor,
    mask: Tensor | None,
    *others: Tensor | None,
    numbers: tuple[float, ...] = (),
    least: float = 0.0,
) -> Tensor | None:
    """Solve long rows by a kernel that stores their state, and write them; returns as `launch_tiles`.

    It takes the scores, the mask, the others, the maxima, memory for a list of groups and the state, the
    numbers, the shape of the rows and of their groups, and the strides.
    """
    rows, tensors, steps = address(dim, scores, out, mask, *others)
    shape = groups_shape(rows.columns)
    sizes = {"LEVELS": rows.levels, "GROUP": shape.size}
    maxima = torch.empty((rows.count, shape.groups), dtype=torch.float32, device=scores.device)
    listed = torch.empty_like(maxima, dtype=torch.int32)
    state = torch.empty(
        (rows.count, STATE_NUMBERS.value), dtype=torch.float32, device=scores.device
    )
    numbers_of_rows = rows.columns, shape.groups, rows.middle, rows.inner
    blocks = rows.count, ceil_div(shape.groups, shape.block)
    given, written, masked = tensors[:3]
    group_maxima[blocks](
        given, masked, maxima, *numbers_of_rows, steps[0], steps[2],
        **sizes, BLOCK=shape.block, num_warps=shape.warps,
    )  # fmt: skip
    solve[(rows.count,)](
        given, masked, *tensors[3:], maxima, listed, state, *numbers, *numbers_of_rows,
        steps[0], *steps[2:],
        **sizes, BLOCK=shape.listed, WIDTH=shape.width, num_warps=shape.solve_warps,
    )  # fmt: skip
    write_clipped_scores[blocks](
        given, written, masked, maxima, state, *numbers_of_rows, *steps[:3],
        **sizes, LEAST=least, BLOCK=shape.block, num_warps=shape.warps,
    )  # fmt: skip
    return written
