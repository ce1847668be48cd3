"""The Fenchel–Young loss of entmax, row by row, and its derivatives.

With t = p^e, u = x - A and alpha = 1 + e, the loss is a sum of terms none of which is negative,

    alpha L = sum_i q_i (l(q_i) - u_i) + t_i (p_i - q_i),   l(q) = (q^e - 1)/e,

and q ((l + 1/e)/alpha - 1/e - u) instead where p = 0. For one class k this is
alpha L = sum_{i != k} t_i p_i - u_k - t_k (1 - p_k), or L = (sum t p - 1)/alpha - u_k off the support;
for alpha = 1 it is -u_k.
Its gradient p - q needs the normaliser A alone; a float64 holds enough of it up to alpha = 2. Above,
`support` keeps two numbers a row: the smallest score of the support and its probability. A kernel told
to work IN_PLACE writes g (p - q) over the scores of a row as soon as it has the loss.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
# ruff: noqa: RET505, SIM109 (what is known when a kernel is compiled needs if and else)
import triton
import triton.language as tl

from fenchel.kernels.triton.arithmetic.divided_differences import expm1_ratio
from fenchel.kernels.triton.arithmetic.elementary import LN_2, SMALLEST, log2_near_one
from fenchel.kernels.triton.arithmetic.entries import FARTHEST, entry, general_entry, steep_entry
from fenchel.kernels.triton.arithmetic.two_floats import split, two_sum
from fenchel.kernels.triton.launch.addressing import row_offset
from fenchel.kernels.triton.launch.alpha import (
    EACH_ROW,
    ENTMAX15,
    GENERAL,
    SOFTMAX,
    SPARSEMAX,
    STEEP,
)
from fenchel.kernels.triton.launch.kernel import kernel
from fenchel.kernels.triton.rows.groups import STATE, listed_shape, listed_tile, listed_zeros
from fenchel.kernels.triton.rows.softmax import softmax_and_log_sum
from fenchel.kernels.triton.search.edge_guess import guess_edge
from fenchel.kernels.triton.search.normalizer import below_peak, solve
from fenchel.kernels.triton.search.steep import below_bottom, find_support, steep_tile_visit
from fenchel.kernels.triton.tiles.across_threads import any_row, row_max, row_sum
from fenchel.kernels.triton.tiles.axes import SLAB_AXIS
from fenchel.kernels.triton.tiles.memory import (
    finite_peak,
    load_scores,
    row_epsilon,
    tile_columns,
    tile_inside,
    tile_places,
    tile_rows,
)
from fenchel.kernels.triton.tiles.within_threads import slab_max


@triton.jit
def normalizer_of(peak, point, low, e, KIND: tl.constexpr):
    """A in float64, from what the solvers return."""
    inverse = 1.0 / e.to(tl.float64)
    rest = point.to(tl.float64) + low.to(tl.float64)
    if KIND == STEEP:
        return rest + inverse
    elif KIND == GENERAL:
        return peak.to(tl.float64) + rest
    else:
        return peak.to(tl.float64) + rest + inverse


@triton.jit
def entry_at(x, normalizer, e, KIND: tl.constexpr):
    """(p, s, t) of scores that are not shifted, from A in float64."""
    if KIND == GENERAL:
        # x - A as a sum of two numbers: beside large scores, what a float32 cannot hold of A is large.
        point, low = split(normalizer)
        z, rest = two_sum(tl.maximum(x, FARTHEST), -point)
        z, rest = two_sum(z, rest - low)
        return general_entry(z, e * 0.0, -rest, e)
    elif KIND == SOFTMAX:
        point, low = split(normalizer)
        return entry(x, point, low, e, KIND)
    else:
        point, low = split(normalizer - 1.0 / e.to(tl.float64))
        return entry(x, point, low, e, KIND)


@triton.jit
def entry_of_rows(x, normalizer, e, KIND: tl.constexpr, R: tl.constexpr):
    if KIND == EACH_ROW:
        p, s, t = entry_at(x, normalizer, tl.minimum(e, 1.0), GENERAL)
        if any_row(e > 1.0, R):
            steep_p, steep_s, steep_t = entry_at(x, normalizer, tl.maximum(e, 1.0), STEEP)
            p = tl.where(e > 1.0, steep_p, p)
            s = tl.where(e > 1.0, steep_s, s)
            t = tl.where(e > 1.0, steep_t, t)
        return p, s, t
    else:
        return entry_at(x, normalizer, e, KIND)


@triton.jit
def score_less(x, normalizer):
    """u = x - A, rounded once."""
    high, low = split(normalizer)
    return (x - high) - low


@triton.jit
def _less_than_one(u, p, t, e, KIND: tl.constexpr):
    """1 - p from u, which is exact where p is rounded to one or next to it."""
    if KIND == SPARSEMAX:
        return -u
    elif KIND == ENTMAX15:
        return -u * (1.0 + 0.25 * u)
    elif KIND == GENERAL:
        log_p = log2_near_one(tl.maximum(t, SMALLEST), e * u) * (LN_2 / e)
        return -log_p * expm1_ratio(log_p)
    else:
        return 1.0 - p


@triton.jit
def class_loss(others, x, p, t, normalizer, peak, e, KIND: tl.constexpr):
    """The loss for one class with score x; `others` is the sum of t p over the other classes."""
    u = score_less(x, normalizer)
    if KIND == SOFTMAX:
        loss = -u
    else:
        inside = (others - u - t * _less_than_one(u, p, t, e, KIND)) / (1.0 + e)
        outside = (others - 1.0) / (1.0 + e) - u
        loss = tl.where(t > 0.0, inside, outside)
    loss = tl.where(loss < 0.0, 0.0, loss)  # unlike maximum, this keeps NaN
    loss = tl.where(x == float("-inf"), float("inf"), loss)
    return loss + (peak - peak)


@triton.jit
def _tile_class_loss(x, target, column, peak, point, low, e, KIND: tl.constexpr):
    """The sum of t p over the classes but the target, and p."""
    if KIND == STEEP:
        p, _, t = steep_entry(x, point, low, e)
    else:
        p, _, t = entry(x - peak, point, low, e, KIND)
    return row_sum(tl.where(column == target, 0.0, t * p)), p


@triton.jit
def class_slope(p, column, target, g, peak, lives):
    """g (p - q) for one class; 0 in a row that is ignored or has nothing in it, NaN if it holds one."""
    g = tl.where(lives, g + (peak - peak), 0.0)
    return tl.where(lives, g * (p - tl.where(column == target, 1.0, 0.0)), 0.0)


@triton.jit
def own_score(scores, target, present, columns, step):
    """The score of the target; NaN if it is no class."""
    known = (target >= 0) & (target < columns)
    return tl.load(scores + target * step, mask=known & present, other=float("nan")).to(tl.float32)


@triton.jit
def keep_support(support, row, bottom, least, present):
    tl.store(support + 2 * row, bottom, mask=present)
    tl.store(support + 2 * row + 1, least, mask=present)


@triton.jit
def finish_rows(
    loss, normalizers, row, x, others, peak, dead, a, e, counts, present,
    KIND: tl.constexpr, R: tl.constexpr,
):  # fmt: skip
    """Write the loss and the normaliser of every row whose target has score x."""
    p, _, t = entry_of_rows(x, a, e, KIND, R)
    value = class_loss(others, x, p, t, a, peak, e, KIND)
    tl.store(loss + row, tl.where(counts, value, 0.0), mask=present)
    a = tl.where(dead, float("-inf"), a + (peak - peak).to(tl.float64))
    tl.store(normalizers + row, a, mask=present)


@kernel
def loss_tile(
    scores, target, alpha, grad, loss, normalizers, support, eps, ignore,
    count, columns, middle, inner,
    steps, target_steps, alpha_steps, grad_steps,
    LEVELS: tl.constexpr, KIND: tl.constexpr, CLASSES: tl.constexpr, IN_PLACE: tl.constexpr,
    J: tl.constexpr, R: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """Loss and normaliser for class indices; without CLASSES the normaliser alone."""
    row = tile_rows(tl.program_id(0) * R, R)
    column = tile_columns(J, K)
    present = row < count
    first = row_offset(row, middle, inner, steps, LEVELS)
    places = tile_places(row, column, middle, inner, steps, LEVELS)
    inside = tile_inside(row, column, count, columns, R)
    x = load_scores(scores, None, places, places, inside)
    e = row_epsilon(eps, alpha, alpha_steps, row, count, middle, inner, LEVELS, KIND, R)
    slab = slab_max(x)
    peak = row_max(slab)
    dead = peak == float("-inf")
    peak = finite_peak(peak)
    wanted = row * 0 - 1
    if CLASSES:
        place = row_offset(row, middle, inner, target_steps, LEVELS)
        wanted = tl.load(target + place, mask=present, other=0).to(tl.int64)
    others = peak * 0.0
    a = others.to(tl.float64)
    p = tl.zeros_like(x)
    if KIND == SOFTMAX:
        p, a = softmax_and_log_sum(x, column, wanted, peak)
    elif KIND != STEEP:
        NARROW: tl.constexpr = GENERAL if KIND == EACH_ROW else KIND
        capped = tl.minimum(e, 1.0)
        point, low = solve(
            below_peak(x, peak, NARROW), below_peak(slab, peak, NARROW), capped, columns, R, NARROW
        )
        point, low = two_sum(point, low)
        a = normalizer_of(peak, point, low, capped, NARROW)
        if CLASSES:
            others, p = _tile_class_loss(x, wanted, column, peak, point, low, capped, NARROW)
    if KIND == STEEP or KIND == EACH_ROW:
        bottom, least = peak, peak * 0.0
        if any_row(e > 1.0, R):
            above = tl.maximum(e, 1.0)
            guess = guess_edge((x,), peak, above, R, STEEP)
            bottom, least = find_support(steep_tile_visit, (x,), guess, peak, above, R)
            low = below_bottom(least, above)
            a = tl.where(e > 1.0, normalizer_of(peak, bottom, low, above, STEEP), a)
            if CLASSES:
                steep, q = _tile_class_loss(x, wanted, column, peak, bottom, low, above, STEEP)
                others = tl.where(e > 1.0, steep, others)
                if IN_PLACE:
                    p = tl.where(e > 1.0, q, p)
        if support is not None:
            keep_support(support, row, bottom, least, present)
    if CLASSES:
        counts = wanted != ignore
        own = own_score(scores + first, wanted, present, columns, steps[3])
        finish_rows(loss, normalizers, row, own, others, peak, dead, a, e, counts, present, KIND, R)
        if IN_PLACE:
            place = row_offset(row, middle, inner, grad_steps, LEVELS)
            g = tl.load(grad + place, mask=present, other=0.0).to(tl.float32)
            slope = class_slope(p, column, wanted, g, peak, counts & (dead == 0))
            tl.debug_barrier()  # one thread reads the target's score, another one overwrites it
            tl.store(scores + places, slope, mask=inside)
    else:
        a = tl.where(dead, float("-inf"), a + (peak - peak).to(tl.float64))
        tl.store(normalizers + row, a, mask=present)


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
