"""The gradient g (p - q) of long rows in place of their scores.

`solve_groups` leaves the largest score of every group of columns and (peak, point, low) of every row.
A group whose largest score has p = 0 has p = 0 throughout: it is written without being read, so that
a sparse row costs one read (its maxima) and one write.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
import triton
import triton.language as tl

from fenchel.kernels.triton.arithmetic.entries import entry, steep_entry
from fenchel.kernels.triton.launch.addressing import row_offset
from fenchel.kernels.triton.launch.alpha import EACH_ROW, GENERAL, STEEP
from fenchel.kernels.triton.launch.kernel import kernel
from fenchel.kernels.triton.losses.class_loss import class_slope
from fenchel.kernels.triton.rows.groups import STATE
from fenchel.kernels.triton.tiles.memory import load_scores, row_epsilon, tile_rows


@triton.jit
def _probability(x, peak, point, low, e, KIND: tl.constexpr):
    if KIND == STEEP:
        p, _, _ = steep_entry(x, point, low, e)
    else:
        p, _, _ = entry(x - peak, point, low, e, KIND)
    return p


@triton.jit
def _group_probabilities(
    scores, held, places, inside, peak, point, low, e, KIND: tl.constexpr
):  # fmt: skip
    lives = _probability(held, peak, point, low, e, KIND) > 0.0
    x = load_scores(scores, None, places, places, inside & lives[:, None])
    return _probability(x, peak, point, low, e, KIND)


@kernel
def slope_groups(
    scores, target, alpha, grad, maxima, state, listed, eps, ignore,
    count, columns, groups, middle, inner, steps, target_steps, alpha_steps, grad_steps,
    LEVELS: tl.constexpr, KIND: tl.constexpr, GROUP: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tile_rows(tl.program_id(0), 1)
    e = row_epsilon(eps, alpha, alpha_steps, row, count, middle, inner, LEVELS, KIND, 1)
    wanted = tl.load(target + row_offset(row, middle, inner, target_steps, LEVELS)).to(tl.int64)
    g = tl.load(grad + row_offset(row, middle, inner, grad_steps, LEVELS)).to(tl.float32)
    peak = tl.load(state + row * STATE)
    point = tl.load(state + row * STATE + 1)
    low = tl.load(state + row * STATE + 2)
    found = tl.load(listed + row * (groups + 1) + groups)
    group = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    held = tl.load(maxima + row * groups + group, mask=group < groups, other=float("-inf"))
    column = group[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    inside = column < columns
    places = row_offset(row, middle, inner, steps, LEVELS) + column.to(tl.int64) * steps[3]
    if KIND == EACH_ROW:
        if e > 1.0:
            p = _group_probabilities(scores, held, places, inside, peak, point, low, e, STEEP)
        else:
            p = _group_probabilities(scores, held, places, inside, peak, point, low, e, GENERAL)
    else:
        p = _group_probabilities(scores, held, places, inside, peak, point, low, e, KIND)
    lives = (wanted != ignore) & ((found != 0) | (peak != peak))
    slope = class_slope(p, column, wanted, g, peak, lives)
    tl.store(scores + places, slope, mask=inside)
