"""The loss of rows that fit on chip.

IN_PLACE, the kernel writes g (p - q) over the scores of a row as soon as it has the loss.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false
# ruff: noqa: SIM109 (what is known when a kernel is compiled needs if and else)
import triton
import triton.language as tl

from fenchel.kernels.triton.arithmetic.entries import entry, steep_entry
from fenchel.kernels.triton.arithmetic.two_floats import two_sum
from fenchel.kernels.triton.launch.addressing import row_offset
from fenchel.kernels.triton.launch.alpha import EACH_ROW, GENERAL, SOFTMAX, STEEP
from fenchel.kernels.triton.launch.kernel import kernel
from fenchel.kernels.triton.losses.class_loss import (
    class_slope,
    finish_rows,
    normalizer_of,
    own_score,
)
from fenchel.kernels.triton.losses.kept import keep_support
from fenchel.kernels.triton.rows.softmax import softmax_and_log_sum
from fenchel.kernels.triton.search.edge_guess import guess_edge
from fenchel.kernels.triton.search.normalizer import below_peak, solve
from fenchel.kernels.triton.search.steep import below_bottom, find_support, steep_tile_visit
from fenchel.kernels.triton.tiles.across_threads import any_row, row_max, row_sum
from fenchel.kernels.triton.tiles.memory import (
    finite_peak,
    known_peak,
    load_scores,
    row_epsilon,
    tile_columns,
    tile_inside,
    tile_places,
    tile_rows,
)
from fenchel.kernels.triton.tiles.within_threads import slab_max


@triton.jit
def _tile_class_loss(x, target, column, peak, point, low, e, KIND: tl.constexpr):
    """The sum of t p over the classes but the target, and p."""
    if KIND == STEEP:
        p, _, t = steep_entry(x, point, low, e)
    else:
        p, _, t = entry(x - peak, point, low, e, KIND)
    return row_sum(tl.where(column == target, 0.0, t * p)), p


@kernel
def loss_tile(
    scores, target, alpha, grad, loss, normalizers, support, eps, ignore,
    count, columns, middle, inner,
    steps, target_steps, alpha_steps, grad_steps,
    LEVELS: tl.constexpr, KIND: tl.constexpr, CLASSES: tl.constexpr, IN_PLACE: tl.constexpr,
    J: tl.constexpr, R: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """Loss and normaliser for class indices; without CLASSES the normaliser alone."""
    row = tile_rows(tl.program_id(0), R)
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
    if KIND == EACH_ROW:
        peak = known_peak(peak, e)
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
