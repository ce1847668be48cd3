"""entmax of rows too long for the chip, in three kernels.

1. `group_maxima`: the largest score of every GROUP neighbouring columns; reads the row once.
2. `solve_groups`, one program per row: by (N.8), the root of the maxima alone is a lower bound, so only
   groups whose maximum is above its edge can be in the support. They are listed, and Newton's method (the
   bracket, for alpha > 2) visits the columns of the listed groups.
3. `write_groups`: p, reading only the groups that can be in the support; writes the row once.
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
    two_sum,
)
from fenchel.kernels.triton.arithmetic.entries import (
    FINITE_MINUS_INF,
    entry,
    lowest_normalizer,
)
from fenchel.kernels.triton.launch.addressing import (
    Rows,
    Strides,
    row_offset,
)
from fenchel.kernels.triton.launch.kernel import (
    kernel,
)
from fenchel.kernels.triton.launch.parameters import (
    ABOVE_1_45,
    ABOVE_2,
    ALPHA_PER_ROW,
    FAST_POWERS,
    FAST_STEPS,
    GENERAL,
    HALLEY_MAX_EPS,
    NEAR_SOFTMAX_EPS,
)
from fenchel.kernels.triton.launch.tile_shapes import (
    ceil_div,
    groups_shape,
    solve_limits,
)
from fenchel.kernels.triton.solver.alpha_above_2 import (
    edge_below_bottom,
    find_support,
    probability_above_2,
)
from fenchel.kernels.triton.solver.groups import (
    MAXIMA_TOLERANCE,
    STATE_NUMBERS,
    group_maxima,
    list_groups,
    listed_indices,
    min_support_score,
    visit_listed_groups,
    visit_listed_groups_above_2,
    visit_listed_groups_roughly,
)
from fenchel.kernels.triton.solver.guesses import (
    guess_edge,
)
from fenchel.kernels.triton.solver.newton import (
    find_root,
    max_rough_step,
)
from fenchel.kernels.triton.solver.normalizer import (
    FINE_TOLERANCE,
    MAX_FINAL_HALLEY_STEP,
    ROUGH_TOLERANCE,
    tile_visit,
)
from fenchel.kernels.triton.tiles.layout import (
    finite_peak,
    load_scores,
    peak_if_valid,
    row_epsilon,
    tile_rows,
)
from fenchel.kernels.triton.tiles.reductions import (
    row_max,
)


def launch_long_rows(
    tensors: list[Any], kind: int, eps: float, rows: Rows, steps: list[Strides]
) -> None:
    scores, out, mask, alphas = tensors
    own = steps[0], steps[2], steps[3]
    shape, maxima, _, state = solve_long_rows(scores, mask, alphas, kind, eps, rows, *own)
    write_groups[(rows.count, ceil_div(shape.groups, shape.block))](
        scores, out, mask, alphas, maxima, state, eps,
        rows.count, rows.columns, shape.groups, rows.middle, rows.inner, *steps,
        LEVELS=rows.levels, KIND=kind, GROUP=shape.size, BLOCK=shape.block, num_warps=shape.warps,
    )  # fmt: skip


@triton.jit
def _solve_listed(
    scores, mask, listed, maxima, peak, e, columns, step, mask_step,
    KIND: tl.constexpr, GROUP: tl.constexpr, BLOCK: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """(point, low, least, number of listed groups) of one row."""
    if KIND == ABOVE_2:
        guess = guess_edge((maxima,), peak, e, 1, ABOVE_2)
        lower = peak - 1.0 / e
    else:
        lower, low = find_root(
            tile_visit,
            (tl.maximum(maxima - peak, FINITE_MINUS_INF),),
            lowest_normalizer(e, KIND),
            e,
            columns,
            MAXIMA_TOLERANCE,
            MAX_FINAL_HALLEY_STEP,
            1,
            KIND,
        )
        lower += low
    begin = min_support_score(peak, lower, e, KIND)
    found = list_groups(maxima, listed, begin, WIDTH)
    places, within = listed_indices(GROUP, BLOCK)
    data = (scores, mask, listed, found, columns, step, mask_step, peak, places, within)
    if KIND == ABOVE_2:
        point, least = find_support(visit_listed_groups_above_2, data, guess, peak, e, 1, False)
        low = edge_below_bottom(least, e)
    else:
        point = lower
        if KIND >= GENERAL:
            point, low = find_root(
                visit_listed_groups_roughly,
                data,
                point,
                e,
                columns,
                ROUGH_TOLERANCE,
                max_rough_step(e),
                1,
                KIND,
                False,
            )
            point += low
        point, low = find_root(
            visit_listed_groups,
            data,
            point,
            e,
            columns,
            FINE_TOLERANCE,
            MAX_FINAL_HALLEY_STEP,
            1,
            KIND,
            False,
        )
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
    if KIND == ALPHA_PER_ROW:
        peak = peak_if_valid(peak, e)
        if e > 1.0:
            point, low, least, found = _solve_listed(
                scores, mask, listed, held, peak, e, columns, steps[3], mask_steps[3],
                ABOVE_2, GROUP, BLOCK, WIDTH,
            )  # fmt: skip
        elif e > HALLEY_MAX_EPS:
            point, low, least, found = _solve_listed(
                scores, mask, listed, held, peak, e, columns, steps[3], mask_steps[3],
                ABOVE_1_45, GROUP, BLOCK, WIDTH,
            )  # fmt: skip
        elif e < NEAR_SOFTMAX_EPS:
            point, low, least, found = _solve_listed(
                scores, mask, listed, held, peak, e, columns, steps[3], mask_steps[3],
                GENERAL, GROUP, BLOCK, WIDTH,
            )  # fmt: skip
        else:
            point, low, least, found = _solve_listed(
                scores, mask, listed, held, peak, e, columns, steps[3], mask_steps[3],
                FAST_STEPS, GROUP, BLOCK, WIDTH,
            )  # fmt: skip
    else:
        point, low, least, found = _solve_listed(
            scores, mask, listed, held, peak, e, columns, steps[3], mask_steps[3],
            KIND, GROUP, BLOCK, WIDTH,
        )  # fmt: skip
    tl.store(state + row * STATE_NUMBERS, peak)
    tl.store(state + row * STATE_NUMBERS + 1, point)
    tl.store(state + row * STATE_NUMBERS + 2, low)
    tl.store(state + row * STATE_NUMBERS + 3, least)
    tl.store(listed + groups, found)


@triton.jit
def _write_block(
    scores, out, mask, held, column, inside, peak, point, least, e, step, out_step, mask_step,
    KIND: tl.constexpr,
):  # fmt: skip
    lives = (held >= min_support_score(peak, point, e, KIND)) & (held > float("-inf"))
    wide = column.to(tl.int64)
    x = load_scores(scores, mask, wide * step, wide * mask_step, inside & lives[:, None])
    if KIND == ABOVE_2:
        p = probability_above_2(x, point, least, e)
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
    peak = tl.load(state + row * STATE_NUMBERS)
    point = tl.load(state + row * STATE_NUMBERS + 1)
    least = tl.load(state + row * STATE_NUMBERS + 3)
    group = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    held = tl.load(maxima + row * groups + group, mask=group < groups, other=float("-inf"))
    column = group[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    inside = column < columns
    MIDDLE: tl.constexpr = (
        FAST_POWERS if out.dtype.element_ty.primitive_bitwidth < 32 else FAST_STEPS
    )
    if KIND == ALPHA_PER_ROW:
        if e > 1.0:
            _write_block(
                scores, out, mask, held, column, inside, peak, point, least, e, steps[3],
                out_steps[3], mask_steps[3], ABOVE_2,
            )  # fmt: skip
        elif e > HALLEY_MAX_EPS:
            _write_block(
                scores, out, mask, held, column, inside, peak, point, least, e, steps[3],
                out_steps[3], mask_steps[3], ABOVE_1_45,
            )  # fmt: skip
        elif tl.abs(e) < NEAR_SOFTMAX_EPS:
            _write_block(
                scores, out, mask, held, column, inside, peak, point, least, e, steps[3],
                out_steps[3], mask_steps[3], GENERAL,
            )  # fmt: skip
        else:
            _write_block(
                scores, out, mask, held, column, inside, peak, point, least, e, steps[3],
                out_steps[3], mask_steps[3], MIDDLE,
            )  # fmt: skip
    else:
        _write_block(
            scores, out, mask, held, column, inside, peak, point, least, e, steps[3], out_steps[3],
            mask_steps[3], KIND,
        )  # fmt: skip


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
    state = torch.empty(
        (rows.count, STATE_NUMBERS.value), dtype=torch.float32, device=scores.device
    )
    group_maxima[(rows.count, ceil_div(shape.groups, shape.block))](
        scores, mask, maxima, rows.columns, shape.groups, rows.middle, rows.inner,
        steps, mask_steps,
        LEVELS=rows.levels, GROUP=shape.size, BLOCK=shape.block, num_warps=shape.warps,
    )  # fmt: skip
    if kind == FAST_STEPS.value and eps < 0:
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
