"""Kernels of the entmax loss that need no search, for the normaliser A of a row is known, or for
alpha > 2 its support: each streams over the scores.

slope_tile    g (p - q), the gradient in the scores
slope_of_groups  the same for long rows, where groups of columns that may hold support are listed
terms_rows    the loss for targets that are probabilities
smooth_rows   what a smoothed class k adds to its loss: s (x_k - mean x) + Omega(q), with
              q = (1 - s) e_k + s/C
alpha_rows    the derivative in alpha, dOmega(q)/dalpha - dOmega(p)/dalpha (envelope theorem)
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
# ruff: noqa: RET505 (what is known when a kernel is compiled needs if and else)
import triton
import triton.language as tl

from fenchel.kernels.triton.arithmetic.divided_differences import expm1_ratio, expm1_ratio_slope
from fenchel.kernels.triton.arithmetic.elementary import LN_2, log2
from fenchel.kernels.triton.launch.addressing import row_offset
from fenchel.kernels.triton.launch.alpha import EACH_ROW, GENERAL, STEEP
from fenchel.kernels.triton.launch.kernel import kernel
from fenchel.kernels.triton.losses.class_loss import entry_at, entry_of_rows, score_less
from fenchel.kernels.triton.search.steep import support_entry
from fenchel.kernels.triton.tiles.across_threads import any_row, row_sum
from fenchel.kernels.triton.tiles.memory import (
    load_scores,
    row_epsilon,
    tile_columns,
    tile_inside,
    tile_places,
    tile_rows,
)


@triton.jit
def _kept_support(support, row, present):
    """(bottom, least) of every row, where they were kept."""
    if support is None:
        return 0.0, 0.0
    else:
        bottom = tl.load(support + 2 * row, mask=present, other=0.0)
        return bottom, tl.load(support + 2 * row + 1, mask=present, other=0.0)


@triton.jit
def _probability(x, normalizer, bottom, least, e, KIND: tl.constexpr, R: tl.constexpr):
    """p of scores: from A in float64, or from bottom and least for alpha > 2."""
    if KIND == STEEP:
        return support_entry(x, bottom, least, e)
    elif KIND == EACH_ROW:
        p = tl.zeros_like(x)
        if any_row(e <= 1.0, R):
            p, _, _ = entry_at(x, normalizer, tl.minimum(e, 1.0), GENERAL)
        if any_row(e > 1.0, R):
            steep = support_entry(x, bottom, least, tl.maximum(e, 1.0))
            p = tl.where(e > 1.0, steep, p)
        return p
    else:
        p, _, _ = entry_at(x, normalizer, e, KIND)
        return p


@kernel
def slope_tile(
    scores, target, alpha, normalizers, grad, out, support, eps, ignore, smoothing,
    count, columns, middle, inner,
    steps, target_steps, alpha_steps, normalizer_steps, grad_steps, out_steps,
    LEVELS: tl.constexpr, KIND: tl.constexpr, CLASSES: tl.constexpr,
    R: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    row = tile_rows(tl.program_id(0) * R, R)
    column = tl.program_id(1) * K + tile_columns(1, K)
    present = row < count
    inside = tile_inside(row, column, count, columns, R)
    places = tile_places(row, column, middle, inner, steps, LEVELS)
    x = load_scores(scores, None, places, places, inside)
    e = row_epsilon(eps, alpha, alpha_steps, row, count, middle, inner, LEVELS, KIND, R)
    place = row_offset(row, middle, inner, normalizer_steps, LEVELS)
    a = tl.load(normalizers + place, mask=present, other=0.0)
    place = row_offset(row, middle, inner, grad_steps, LEVELS)
    g = tl.load(grad + place, mask=present, other=0.0).to(tl.float32)
    counts = a != float("-inf")
    place = row_offset(row, middle, inner, target_steps, LEVELS)
    if CLASSES:
        wanted = tl.load(target + place, mask=present, other=0)
        counts = counts & (wanted != ignore)
        q = tl.where(column == wanted, 1.0 - smoothing, 0.0) + smoothing / columns
    else:
        target_places = tile_places(row, column, middle, inner, target_steps, LEVELS)
        q = tl.load(target + target_places, mask=inside, other=0.0).to(tl.float32)
    bottom, least = _kept_support(support, row, present)
    p = _probability(x, tl.where(counts, a, 0.0), bottom, least, e, KIND, R)
    g = tl.where(counts, g + (a - a).to(tl.float32), 0.0)  # NaN in a row that holds one
    slope = tl.where(counts, g * (p - q), 0.0)
    out_places = tile_places(row, column, middle, inner, out_steps, LEVELS)
    tl.store(out + out_places, slope, mask=inside)


@triton.jit
def _fill(out, value, columns, step, SIZE: tl.constexpr):
    for start in range(0, columns, SIZE):
        column = start + tl.arange(0, SIZE)
        places = out + column.to(tl.int64) * step
        tl.store(places, tl.zeros([SIZE], tl.float32) + value, mask=column < columns)
    tl.debug_barrier()  # what one thread has filled, another one overwrites


@triton.jit
def _write_slopes(
    scores, out, listed, found, most, a, bottom, least, g, uniform, e, columns, step, out_step,
    KIND: tl.constexpr, GROUP: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    for start in range(0, found, BLOCK):
        place = start + tl.arange(0, BLOCK)[:, None]
        here = place < found
        group = tl.where(most, place, tl.load(listed + place, mask=here, other=0))
        column = group * GROUP + tl.arange(0, GROUP)[None, :]
        inside = here & (column < columns)
        wide = column.to(tl.int64)
        x = load_scores(scores, None, wide * step, wide, inside)
        p = _probability(x, a, bottom, least, e, KIND, 1)
        tl.store(out + wide * out_step, g * (p - uniform), mask=inside)


@kernel
def slope_of_groups(
    scores, target, alpha, normalizers, grad, out, support, listed, eps, ignore, smoothing,
    count, columns, groups, middle, inner,
    steps, target_steps, alpha_steps, normalizer_steps, grad_steps, out_steps,
    LEVELS: tl.constexpr, KIND: tl.constexpr, GROUP: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The same for class indices, a program a row: p = 0 in every group of columns that is not listed.

    Where most groups are, it goes through all of them instead of filling the row first.
    """
    row = tile_rows(tl.program_id(0), 1)
    e = row_epsilon(eps, alpha, alpha_steps, row, count, middle, inner, LEVELS, KIND, 1)
    a = tl.load(normalizers + row_offset(row, middle, inner, normalizer_steps, LEVELS))
    g = tl.load(grad + row_offset(row, middle, inner, grad_steps, LEVELS)).to(tl.float32)
    wanted = tl.load(target + row_offset(row, middle, inner, target_steps, LEVELS)).to(tl.int64)
    scores += row_offset(row, middle, inner, steps, LEVELS)
    out += row_offset(row, middle, inner, out_steps, LEVELS)
    listed += row * (groups + 1)
    counts = (a != float("-inf")) & (wanted != ignore)
    a = tl.where(counts, a, 0.0)
    bottom, least = _kept_support(support, row, row < count)
    g = tl.where(counts, g + (a - a).to(tl.float32), 0.0)  # NaN in a row that holds one
    found = tl.where(counts, tl.load(listed + groups), 0)
    most = 2 * found > groups
    uniform = smoothing / columns
    if most:
        found = groups
    else:
        _fill(out, g * (0.0 - uniform), columns, out_steps[3], BLOCK * GROUP)
    if KIND == EACH_ROW:
        if e > 1.0:
            _write_slopes(scores, out, listed, found, most, a, bottom, least, g, uniform, e, columns,
                          steps[3], out_steps[3], STEEP, GROUP, BLOCK)  # fmt: skip
        else:
            _write_slopes(scores, out, listed, found, most, a, bottom, least, g, uniform, e, columns,
                          steps[3], out_steps[3], GENERAL, GROUP, BLOCK)  # fmt: skip
    else:
        _write_slopes(scores, out, listed, found, most, a, bottom, least, g, uniform, e, columns,
                      steps[3], out_steps[3], KIND, GROUP, BLOCK)  # fmt: skip
    known = (wanted >= 0) & (wanted < columns)
    x = load_scores(scores, None, wanted * steps[3], wanted, known & counts)
    p = _probability(x, a, bottom, least, e, KIND, 1)
    tl.debug_barrier()  # what was written at the target is not its slope
    slope = g * (p - ((1.0 - smoothing) + uniform))
    tl.store(out + wanted * out_steps[3], slope, mask=known & counts)


@triton.jit
def _term(x, q, p, t, a, e):
    """One class's part of the loss; 0 where q = p = 0."""
    u = score_less(x, a)
    log_q = log2(tl.where(q > 0.0, q, 1.0)) * LN_2
    length = log_q * expm1_ratio(e * log_q)
    inside = (q * (length - u) + t * (p - q)) / (1.0 + e)
    outside = q * ((length + 1.0 / e) / (1.0 + e) - 1.0 / e - u)
    value = tl.where(t > 0.0, inside, outside)
    value = tl.where(q > 0.0, value, t * p / (1.0 + e))
    return tl.where((q > 0.0) & (x == float("-inf")), float("inf"), value)


@kernel
def terms_rows(
    scores, target, alpha, normalizers, loss, eps, count, columns, middle, inner,
    steps, target_steps, alpha_steps, normalizer_steps,
    LEVELS: tl.constexpr, KIND: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    row = tile_rows(tl.program_id(0), 1)
    e = row_epsilon(eps, alpha, alpha_steps, row, count, middle, inner, LEVELS, KIND, 1)
    scores += row_offset(row, middle, inner, steps, LEVELS)
    target += row_offset(row, middle, inner, target_steps, LEVELS)
    a = tl.load(normalizers + row_offset(row, middle, inner, normalizer_steps, LEVELS))
    finite = tl.where(a == float("-inf"), 0.0, a)
    total = tl.zeros([1, 1, K], tl.float32)
    for start in range(0, columns, K):
        column = start + tile_columns(1, K)
        wide = column.to(tl.int64)
        inside = column < columns
        x = load_scores(scores, None, wide * steps[3], wide, inside)
        q = tl.load(target + wide * target_steps[3], mask=inside, other=0.0).to(tl.float32)
        p, _, t = entry_of_rows(x, finite, e, KIND, 1)
        total += _term(x, q, p, t, finite, e)
    value = row_sum(total)
    value = tl.where(value < 0.0, 0.0, value)  # unlike maximum, this keeps NaN
    tl.store(loss + row, value + (finite - finite).to(tl.float32))


@triton.jit
def _omega(q, e):
    """One class's part of Omega(q): q l phi1(e l)/alpha, l = log q."""
    length = log2(tl.where(q > 0.0, q, 1.0)) * LN_2
    return q * length * expm1_ratio(e * length) / (1.0 + e)


@kernel
def smooth_rows(
    scores, target, alpha, loss, eps, ignore, smoothing, count, columns, middle, inner,
    steps, target_steps, alpha_steps,
    LEVELS: tl.constexpr, KIND: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    row = tile_rows(tl.program_id(0), 1)
    e = row_epsilon(eps, alpha, alpha_steps, row, count, middle, inner, LEVELS, KIND, 1)
    scores += row_offset(row, middle, inner, steps, LEVELS)
    wanted = tl.load(target + row_offset(row, middle, inner, target_steps, LEVELS)).to(tl.int64)
    known = (wanted >= 0) & (wanted < columns)
    own = tl.load(scores + wanted * steps[3], mask=known, other=float("nan")).to(tl.float32)
    total = tl.zeros([1, 1, K], tl.float32)
    for start in range(0, columns, K):
        column = start + tile_columns(1, K)
        wide = column.to(tl.int64)
        inside = column < columns
        x = load_scores(scores, None, wide * steps[3], wide, inside)
        total += tl.where(inside, own - x, 0.0)
    uniform = smoothing / columns
    value = tl.load(loss + row)
    omega = _omega(1.0 - smoothing + uniform, e) + (columns - 1) * _omega(uniform, e)
    smooth = value + uniform * row_sum(total) + omega
    smooth = tl.where(smooth < 0.0, 0.0, smooth)  # unlike maximum, this keeps NaN
    smooth = tl.where(value == float("inf"), value, smooth)
    tl.store(loss + row, tl.where(wanted == ignore, 0.0, smooth))


@triton.jit
def _omega_slope(p, e):
    """d/dalpha of p l phi1(e l)/alpha, l = log p: one class's part of dOmega(p)/dalpha."""
    length = log2(tl.where(p > 0.0, p, 1.0)) * LN_2
    z = e * length
    alpha = 1.0 + e
    return p * length * (length * expm1_ratio_slope(z) - expm1_ratio(z) / alpha) / alpha


@triton.jit
def _omega_slopes(
    scores, target, listed, found, a, bottom, least, e, columns, step, target_step,
    KIND: tl.constexpr, CLASSES: tl.constexpr, GROUP: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Of a row, -dOmega(p)/dalpha, and dOmega(q)/dalpha with it where q is read."""
    total = tl.zeros([BLOCK, GROUP], tl.float32)
    for start in range(0, found, BLOCK):
        group = start + tl.arange(0, BLOCK)[:, None]
        here = group < found
        if listed is not None:
            group = tl.load(listed + group, mask=here, other=0)
        column = group * GROUP + tl.arange(0, GROUP)[None, :]
        inside = here & (column < columns)
        wide = column.to(tl.int64)
        x = load_scores(scores, None, wide * step, wide, inside)
        total -= _omega_slope(_probability(x, a, bottom, least, e, KIND, 1), e)
        if not CLASSES:
            q = tl.load(target + wide * target_step, mask=inside, other=0.0)
            total += _omega_slope(q.to(tl.float32), e)
    return row_sum(tl.reshape(total, [1, 1, BLOCK * GROUP]))


@kernel
def alpha_rows(
    scores, target, alpha, normalizers, support, listed, slopes, ignore, smoothing,
    count, columns, groups, middle, inner, steps, target_steps, alpha_steps, normalizer_steps,
    LEVELS: tl.constexpr, KIND: tl.constexpr, CLASSES: tl.constexpr,
    GROUP: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """A program a row; `listed`, for class indices alone, says in which groups of columns to look."""
    row = tile_rows(tl.program_id(0), 1)
    e = row_epsilon(0.0, alpha, alpha_steps, row, count, middle, inner, LEVELS, KIND, 1)
    scores += row_offset(row, middle, inner, steps, LEVELS)
    target += row_offset(row, middle, inner, target_steps, LEVELS)
    a = tl.load(normalizers + row_offset(row, middle, inner, normalizer_steps, LEVELS))
    lives = a != float("-inf")
    finite = tl.where(lives, a, 0.0)
    bottom, least = _kept_support(support, row, row < count)
    found = groups
    if listed is not None:
        listed += row * (groups + 1)
        found = tl.load(listed + groups)
    if e > 1.0:
        slope = _omega_slopes(scores, target, listed, found, finite, bottom, least, e, columns,
                              steps[3], target_steps[3], STEEP, CLASSES, GROUP, BLOCK)  # fmt: skip
    else:
        slope = _omega_slopes(scores, target, listed, found, finite, bottom, least, e, columns,
                              steps[3], target_steps[3], GENERAL, CLASSES, GROUP, BLOCK)  # fmt: skip
    if CLASSES:
        uniform = smoothing / columns
        slope += _omega_slope(1.0 - smoothing + uniform, e)
        slope += (columns - 1) * _omega_slope(uniform, e)
        lives = lives & (tl.load(target) != ignore)
    slope = tl.where(a == a, slope, float("nan"))
    tl.store(slopes + row, tl.where(lives, slope, 0.0))
