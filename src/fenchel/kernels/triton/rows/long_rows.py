"""entmax of rows too long for the chip, in three kernels that each stream.

1. `group_maxima`: the largest score of every GROUP neighbouring columns; reads the row once.
2. `solve_groups`, one program a row: the root of the maxima alone is a lower bound, so only groups
   whose maximum lies above its edge can hold support. Their numbers are listed, and Newton's
   method (the bracket, for alpha > 2) visits the columns of those groups alone.
3. `write_groups`: p, reading only the groups that hold support; writes the row once.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from fenchel.kernels.triton.arithmetic.entries import FARTHEST, entry, first_point
from fenchel.kernels.triton.arithmetic.two_floats import two_sum
from fenchel.kernels.triton.launch.addressing import Rows, Strides, row_offset
from fenchel.kernels.triton.launch.alpha import (
    COARSE,
    EACH_ROW,
    GENERAL,
    NEAR_SOFTMAX,
    POWER,
    SHARP,
    STEEP,
    TAME,
)
from fenchel.kernels.triton.launch.kernel import kernel
from fenchel.kernels.triton.launch.long_row_shapes import groups_shape, solve_limits
from fenchel.kernels.triton.launch.whole_numbers import ceiling
from fenchel.kernels.triton.rows.groups import (
    CLOSE,
    STATE,
    group_maxima,
    list_groups,
    listed_shape,
    support_begins,
)
from fenchel.kernels.triton.rows.listed_visits import (
    listed_visit,
    rough_listed_visit,
    steep_listed_visit,
)
from fenchel.kernels.triton.search.climbing import climb
from fenchel.kernels.triton.search.edge_guess import guess_edge
from fenchel.kernels.triton.search.normalizer import FINE, ROUGH, TOUCH, tile_visit
from fenchel.kernels.triton.search.steep import below_bottom, find_support, support_entry
from fenchel.kernels.triton.search.steps import leap_of
from fenchel.kernels.triton.tiles.across_threads import row_max
from fenchel.kernels.triton.tiles.memory import (
    finite_peak,
    known_peak,
    load_scores,
    row_epsilon,
    tile_rows,
)


@triton.jit
def _solve_listed(
    scores, mask, listed, maxima, peak, e, columns, step, mask_step,
    KIND: tl.constexpr, GROUP: tl.constexpr, BLOCK: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """(point, low, least, how many groups are listed) of one row."""
    if KIND == STEEP:
        guess = guess_edge((maxima,), peak, e, 1, STEEP)
        lower = peak - 1.0 / e
    else:
        lower, low = climb(
            tile_visit,
            (tl.maximum(maxima - peak, FARTHEST),),
            first_point(e, KIND),
            e,
            columns,
            CLOSE,
            TOUCH,
            1,
            KIND,
        )
        lower += low
    begin = support_begins(peak, lower, e, KIND)
    found = list_groups(maxima, listed, begin, WIDTH)
    places, within = listed_shape(GROUP, BLOCK)
    data = (scores, mask, listed, found, columns, step, mask_step, peak, places, within)
    if KIND == STEEP:
        point, least = find_support(steep_listed_visit, data, guess, peak, e, 1, False)
        low = below_bottom(least, e)
    else:
        point = lower
        if KIND >= GENERAL:
            point, low = climb(
                rough_listed_visit, data, point, e, columns, ROUGH, leap_of(e), 1, KIND, False
            )
            point += low
        point, low = climb(listed_visit, data, point, e, columns, FINE, TOUCH, 1, KIND, False)
        point, low = two_sum(point, low)
        least = low
    return point, low, least, found


@kernel
def solve_groups(
    scores, mask, alpha, maxima, listed, state, eps, count, columns, groups, middle, inner,
    steps, mask_steps, alpha_steps,
    LEVELS: tl.constexpr, KIND: tl.constexpr,
    GROUP: tl.constexpr, BLOCK: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    row = tile_rows(tl.program_id(0), 1)
    e = row_epsilon(eps, alpha, alpha_steps, row, count, middle, inner, LEVELS, KIND, 1)
    scores += row_offset(row, middle, inner, steps, LEVELS)
    if mask is not None:
        mask += row_offset(row, middle, inner, mask_steps, LEVELS)
    listed += row * (groups + 1)
    group = tl.arange(0, WIDTH)[None, None, :]
    held = tl.load(maxima + row * groups + group, mask=group < groups, other=float("-inf"))
    peak = finite_peak(row_max(held))
    if KIND == EACH_ROW:
        peak = known_peak(peak, e)
        if e > 1.0:
            point, low, least, found = _solve_listed(
                scores, mask, listed, held, peak, e, columns, steps[3], mask_steps[3],
                STEEP, GROUP, BLOCK, WIDTH,
            )  # fmt: skip
        elif e > TAME:
            point, low, least, found = _solve_listed(
                scores, mask, listed, held, peak, e, columns, steps[3], mask_steps[3],
                SHARP, GROUP, BLOCK, WIDTH,
            )  # fmt: skip
        elif e < NEAR_SOFTMAX:
            point, low, least, found = _solve_listed(
                scores, mask, listed, held, peak, e, columns, steps[3], mask_steps[3],
                GENERAL, GROUP, BLOCK, WIDTH,
            )  # fmt: skip
        else:
            point, low, least, found = _solve_listed(
                scores, mask, listed, held, peak, e, columns, steps[3], mask_steps[3],
                POWER, GROUP, BLOCK, WIDTH,
            )  # fmt: skip
    else:
        point, low, least, found = _solve_listed(
            scores, mask, listed, held, peak, e, columns, steps[3], mask_steps[3],
            KIND, GROUP, BLOCK, WIDTH,
        )  # fmt: skip
    tl.store(state + row * STATE, peak)
    tl.store(state + row * STATE + 1, point)
    tl.store(state + row * STATE + 2, low)
    tl.store(state + row * STATE + 3, least)
    tl.store(listed + groups, found)


@triton.jit
def _write_block(
    scores, out, mask, held, column, inside, peak, point, least, e, step, out_step, mask_step,
    KIND: tl.constexpr,
):  # fmt: skip
    lives = (held >= support_begins(peak, point, e, KIND)) & (held > float("-inf"))
    wide = column.to(tl.int64)
    x = load_scores(scores, mask, wide * step, wide * mask_step, inside & lives[:, None])
    if KIND == STEEP:
        p = support_entry(x, point, least, e)
    else:
        p, _, _ = entry(x - peak, point, least, e, KIND)
    tl.store(out + wide * out_step, p + (peak - peak), mask=inside)


@kernel
def write_groups(
    scores, out, mask, alpha, maxima, state, eps, count, columns, groups, middle, inner,
    steps, out_steps, mask_steps, alpha_steps,
    LEVELS: tl.constexpr, KIND: tl.constexpr, GROUP: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tile_rows(tl.program_id(0), 1)
    e = row_epsilon(eps, alpha, alpha_steps, row, count, middle, inner, LEVELS, KIND, 1)
    scores += row_offset(row, middle, inner, steps, LEVELS)
    out += row_offset(row, middle, inner, out_steps, LEVELS)
    if mask is not None:
        mask += row_offset(row, middle, inner, mask_steps, LEVELS)
    peak = tl.load(state + row * STATE)
    point = tl.load(state + row * STATE + 1)
    least = tl.load(state + row * STATE + 3)
    group = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    held = tl.load(maxima + row * groups + group, mask=group < groups, other=float("-inf"))
    column = group[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    inside = column < columns
    MIDDLE: tl.constexpr = COARSE if out.dtype.element_ty.primitive_bitwidth < 32 else POWER
    if KIND == EACH_ROW:
        if e > 1.0:
            _write_block(scores, out, mask, held, column, inside, peak, point, least, e,
                         steps[3], out_steps[3], mask_steps[3], STEEP)  # fmt: skip
        elif e > TAME:
            _write_block(scores, out, mask, held, column, inside, peak, point, least, e,
                         steps[3], out_steps[3], mask_steps[3], SHARP)  # fmt: skip
        elif tl.abs(e) < NEAR_SOFTMAX:
            _write_block(scores, out, mask, held, column, inside, peak, point, least, e,
                         steps[3], out_steps[3], mask_steps[3], GENERAL)  # fmt: skip
        else:
            _write_block(scores, out, mask, held, column, inside, peak, point, least, e,
                         steps[3], out_steps[3], mask_steps[3], MIDDLE)  # fmt: skip
    else:
        _write_block(scores, out, mask, held, column, inside, peak, point, least, e,
                     steps[3], out_steps[3], mask_steps[3], KIND)  # fmt: skip


def solve_long_rows(
    scores: Tensor, mask: Tensor | None, alphas: Tensor | None, kind: int, eps: float,
    rows: Rows, steps: Strides, mask_steps: Strides, alpha_steps: Strides,
    listed: Tensor | None = None,
) -> tuple[Any, Tensor, Tensor, Tensor]:  # fmt: skip
    """The group maxima, the lists of groups with support, and (peak, point, low) of every row."""
    shape = groups_shape(rows.columns)
    maxima = torch.empty((rows.count, shape.groups), dtype=torch.float32, device=scores.device)
    if listed is None:
        wide = (rows.count, shape.groups + 1)
        listed = torch.empty(wide, dtype=torch.int32, device=scores.device)
    state = torch.empty((rows.count, STATE.value), dtype=torch.float32, device=scores.device)
    group_maxima[(rows.count, ceiling(shape.groups, shape.block))](
        scores, mask, maxima, rows.columns, shape.groups, rows.middle, rows.inner,
        steps, mask_steps,
        LEVELS=rows.levels, GROUP=shape.size, BLOCK=shape.block, num_warps=shape.warps,
    )  # fmt: skip
    if kind == POWER.value and eps < 0:
        kind = GENERAL.value  # no slope of small entries hides their errors there
    warps, registers = solve_limits(shape, kind)
    solve_groups[(rows.count,)](
        scores, mask, alphas, maxima, listed, state, eps,
        rows.count, rows.columns, shape.groups, rows.middle, rows.inner,
        steps, mask_steps, alpha_steps,
        LEVELS=rows.levels, KIND=kind, GROUP=shape.size, BLOCK=shape.listed, WIDTH=shape.width,
        num_warps=warps, maxnreg=registers,
    )  # fmt: skip
    return shape, maxima, listed, state
