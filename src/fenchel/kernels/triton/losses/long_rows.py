"""The loss of long rows that `solve_groups` has solved, and g (p - q) in place of their scores.

There the largest score of every group of columns is left, and (peak, point, low) of every row. A group
whose largest score has p = 0 has p = 0 throughout: it is written without being read, so that a sparse row
costs one read (its maxima) and one write.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false
import triton
import triton.language as tl

from fenchel.kernels.triton.arithmetic.entries import entry, steep_entry
from fenchel.kernels.triton.launch.addressing import row_offset
from fenchel.kernels.triton.launch.alpha import EACH_ROW, GENERAL, STEEP
from fenchel.kernels.triton.launch.kernel import kernel
from fenchel.kernels.triton.losses.class_loss import (
    class_slope,
    finish_rows,
    normalizer_of,
    own_score,
)
from fenchel.kernels.triton.losses.kept import keep_support
from fenchel.kernels.triton.rows.groups import STATE, listed_shape, listed_tile, listed_zeros
from fenchel.kernels.triton.tiles.across_threads import row_sum
from fenchel.kernels.triton.tiles.axes import SLAB_AXIS
from fenchel.kernels.triton.tiles.memory import load_scores, row_epsilon, tile_rows


@triton.jit
def _listed_class_loss(data, target, point, low, e, KIND: tl.constexpr):
    total = listed_zeros(data)
    for start in range(0, data[3], data[8].shape[SLAB_AXIS]):
        x, column = listed_tile(data, start)
        if KIND == STEEP:
            p, _, t = steep_entry(x, point, low, e)
        else:
            p, _, t = entry(x - data[7], point, low, e, KIND)
        total += tl.where(column == target, 0.0, t * p)
    return row_sum(total)


@kernel
def loss_groups(
    scores, target, alpha, listed, state, loss, normalizers, support, eps, ignore,
    count, columns, groups, middle, inner, steps, target_steps, alpha_steps,
    LEVELS: tl.constexpr, KIND: tl.constexpr, CLASSES: tl.constexpr,
    GROUP: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """`loss_tile` for rows that `solve_groups` has solved."""
    row = tile_rows(tl.program_id(0), 1)
    e = row_epsilon(eps, alpha, alpha_steps, row, count, middle, inner, LEVELS, KIND, 1)
    scores += row_offset(row, middle, inner, steps, LEVELS)
    listed += row * (groups + 1)
    found = tl.load(listed + groups)
    peak = tl.load(state + row * STATE)
    point = tl.load(state + row * STATE + 1)
    low = tl.load(state + row * STATE + 2)
    places, within = listed_shape(GROUP, BLOCK)
    data = (scores, None, listed, found, columns, steps[3], 0, peak, places, within)
    wanted = row * 0 - 1
    if CLASSES:
        place = row_offset(row, middle, inner, target_steps, LEVELS)
        wanted = tl.load(target + place).to(tl.int64)
    own = own_score(scores, wanted, row < count, columns, steps[3])
    others = peak * 0.0
    if KIND == EACH_ROW:
        if e > 1.0:
            a = normalizer_of(peak, point, low, e, STEEP)
            if CLASSES:
                others = _listed_class_loss(data, wanted, point, low, e, STEEP)
        else:
            a = normalizer_of(peak, point, low, e, GENERAL)
            if CLASSES:
                others = _listed_class_loss(data, wanted, point, low, e, GENERAL)
    else:
        a = normalizer_of(peak, point, low, e, KIND)
        if CLASSES:
            others = _listed_class_loss(data, wanted, point, low, e, KIND)
    dead = (found == 0) & (peak == peak)
    if support is not None:
        keep_support(support, row, point, tl.load(state + row * STATE + 3), row < count)
    if CLASSES:
        finish_rows(
            loss, normalizers, row, own, others, peak, dead, a, e, wanted != ignore, row < count,
            KIND, 1,
        )  # fmt: skip
    else:
        a = tl.where(dead, float("-inf"), a + (peak - peak).to(tl.float64))
        tl.store(normalizers + row, a)


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
