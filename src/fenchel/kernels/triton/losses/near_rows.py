"""The loss of rows too long for the chip, for alpha above 1 and so near to it that no score is left out.

A program walks along its row: once for the sums over softmax that `smooth` starts from, and once or
twice with exact powers for the last step to the normaliser A. That visit adds up, over the classes but
the target, p, p/t and p/t^2, and t p, of which the loss is made: the derivatives of its sum in A are
-alpha, alpha and -alpha (1 - e) times the other three. A thread takes J neighbours of a block, so that
it needs one register a sum.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
import triton
import triton.language as tl

from fenchel.kernels.triton.arithmetic.entries import FARTHEST, exact_entry
from fenchel.kernels.triton.arithmetic.two_floats import two_sum
from fenchel.kernels.triton.launch.addressing import row_offset
from fenchel.kernels.triton.launch.alpha import GENERAL, NEAR_POWERS
from fenchel.kernels.triton.launch.kernel import kernel
from fenchel.kernels.triton.losses.class_loss import finish_rows, normalizer_of, own_score
from fenchel.kernels.triton.search.smooth import last_step
from fenchel.kernels.triton.search.softmax_guess import (
    EMPTY,
    LOWEST,
    first_guess,
    seen_from,
    softmax_slabs,
)
from fenchel.kernels.triton.tiles.across_threads import row_max, row_sums, row_triples
from fenchel.kernels.triton.tiles.axes import along_slabs
from fenchel.kernels.triton.tiles.combining import larger
from fenchel.kernels.triton.tiles.memory import finite_peak, load_scores, tile_rows
from fenchel.kernels.triton.tiles.within_threads import even_slab_sum, slab_max, slab_sum


@triton.jit
def _load(scores, column, columns, step):
    wide = column.to(tl.int64)
    return load_scores(scores, None, wide * step, wide, column < columns)


@triton.jit
def _softmax_sums(scores, column, columns, step):
    """(the largest score, the three sums), every thread on its own until the end."""
    SIZE: tl.constexpr = column.shape[0] * column.shape[1] * column.shape[2]
    peak = slab_max(column).to(tl.float32) * 0.0 + LOWEST
    total, first, second = peak * 0.0, peak * 0.0, peak * 0.0
    for start in range(0, columns, SIZE):
        x = _load(scores, start + column, columns, step)
        top = larger(peak, slab_max(x))
        total, first, second = seen_from(total, first, second, peak - top)
        more = softmax_slabs(tl.maximum(x - top, FARTHEST))
        total, first, second = total + more[0], first + more[1], second + more[2]
        peak = top
    highest = finite_peak(row_max(peak))
    total, first, second = seen_from(total, first, second, peak - highest)
    total, first, second = row_triples(total, first, second)
    return highest, total, first, second


@triton.jit
def _visit(scores, target, peak, point, e, column, columns, step):
    """The sums of p, t p, p/t and p/t^2 over the classes but the target."""
    SIZE: tl.constexpr = column.shape[0] * column.shape[1] * column.shape[2]
    mass = slab_max(column).to(tl.float32) * 0.0
    low, power, slope, bend = mass, mass, mass, mass
    for start in range(0, columns, SIZE):
        here = start + column
        x = _load(scores, here, columns, step)
        t, p, r = exact_entry(tl.maximum(x - peak, FARTHEST), point, e, GENERAL)
        p = tl.where(here == target, 0.0, p)
        s = p * r
        mass, rounded_off = two_sum(mass, even_slab_sum(p))
        low += rounded_off
        power += slab_sum(p * t)
        slope += slab_sum(s)
        bend += slab_sum(s * r)
    mass, power = row_sums(mass + low, power)
    slope, bend = row_sums(slope, bend)
    return mass, power, slope, bend


@kernel
def loss_near_rows(
    scores, target, loss, normalizers, eps, ignore, columns, middle, inner, steps, target_steps,
    LEVELS: tl.constexpr, CLASSES: tl.constexpr, J: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """Loss and normaliser for class indices; without CLASSES the normaliser alone."""
    row = tile_rows(tl.program_id(0), 1)
    e = eps + 0.0
    inverse = 1.0 / e
    scores += row_offset(row, middle, inner, steps, LEVELS)
    wanted = row * 0 - 1
    if CLASSES:
        wanted = tl.load(target + row_offset(row, middle, inner, target_steps, LEVELS)).to(tl.int64)
    known = (wanted >= 0) & (wanted < columns)
    column = along_slabs(tl.arange(0, J)) + tl.arange(0, K)[None, None, :] * J
    peak, total, first, second = _softmax_sums(scores, column, columns, steps[3])
    own = own_score(scores, wanted, known, columns, steps[3])
    place = tl.where(known, wanted, -1).to(tl.int32)
    point = first_guess(total, first, second, e, NEAR_POWERS)[0]
    step, others, visits = e * 0.0, e * 0.0, 0
    solving = total > EMPTY
    while solving:
        point += step
        rest, power, slope, bend = _visit(scores, place, peak, point, e, column, columns, steps[3])
        _, p, r = exact_entry(tl.maximum(own - peak, FARTHEST), point, e, GENERAL)
        p = tl.where(known, p, 0.0)
        mass, slopes, bends = rest + p, slope + p * r, bend + p * r * r
        step, solving = last_step(mass, slopes, bends, point, e, inverse, visits, NEAR_POWERS)
        visits += 1
        curve = step * (0.5 * slope - (1.0 - e) * (1.0 / 6.0) * step * bend)
        others = power - (1.0 + e) * step * (rest - curve)
    point, low = two_sum(point, step)
    a = normalizer_of(peak, point, low, e, GENERAL)
    dead = (total == 0.0) & (peak == peak)
    if CLASSES:
        finish_rows(
            loss, normalizers, row, own, others, peak, dead, a, e, wanted != ignore, row >= 0,
            GENERAL, 1,
        )  # fmt: skip
    else:
        a = tl.where(dead, float("-inf"), a + (peak - peak).to(tl.float64))
        tl.store(normalizers + row, a)
