"""The loss of rows that fit on chip.

With IN_PLACE, the kernel overwrites the scores of a row with g (p - q) as soon as it has the loss.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false
# ruff: noqa: SIM109 (what is known when a kernel is compiled needs if and else)
import triton
import triton.language as tl

from fenchel.kernels.triton.arithmetic.elementary import (
    two_sum,
)
from fenchel.kernels.triton.arithmetic.entries import (
    entry,
    entry_above_2,
)
from fenchel.kernels.triton.entmax.softmax import (
    softmax_and_log_sum,
)
from fenchel.kernels.triton.entmax_loss.class_loss import (
    class_gradient,
    normalizer_float64,
    store_class_loss,
    target_score,
)
from fenchel.kernels.triton.entmax_loss.saved_for_backward import (
    save_support,
)
from fenchel.kernels.triton.launch.addressing import (
    row_offset,
)
from fenchel.kernels.triton.launch.kernel import (
    kernel,
)
from fenchel.kernels.triton.launch.parameters import (
    ABOVE_2,
    ALPHA_PER_ROW,
    GENERAL,
    SOFTMAX,
)
from fenchel.kernels.triton.solver.alpha_above_2 import (
    edge_below_bottom,
    find_support,
    visit_tile_above_2,
)
from fenchel.kernels.triton.solver.guesses import (
    guess_edge,
)
from fenchel.kernels.triton.solver.normalizer import (
    below_peak,
    find_normalizer,
)
from fenchel.kernels.triton.tiles.layout import (
    finite_peak,
    load_scores,
    peak_if_valid,
    row_epsilon,
    tile_columns,
    tile_inside,
    tile_places,
    tile_rows,
)
from fenchel.kernels.triton.tiles.reductions import (
    any_row,
    row_max,
    row_sum,
    slab_max,
)


@triton.jit
def _tile_class_loss(x, target, column, peak, point, low, e, KIND: tl.constexpr):
    """The sum of t p over the other classes, and p."""
    if KIND == ABOVE_2:
        p, _, t = entry_above_2(x, point, low, e)
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
    """Loss and normalizer for class indices; only the normalizer without CLASSES."""
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
    if KIND == ALPHA_PER_ROW:
        peak = peak_if_valid(peak, e)
    wanted = row * 0 - 1
    if CLASSES:
        place = row_offset(row, middle, inner, target_steps, LEVELS)
        wanted = tl.load(target + place, mask=present, other=0).to(tl.int64)
    others = peak * 0.0
    a = others.to(tl.float64)
    p = tl.zeros_like(x)
    if KIND == SOFTMAX:
        p, a = softmax_and_log_sum(x, column, wanted, peak)
    elif KIND != ABOVE_2:
        NARROW: tl.constexpr = GENERAL if KIND == ALPHA_PER_ROW else KIND
        capped = tl.minimum(e, 1.0)
        point, low = find_normalizer(
            below_peak(x, peak, NARROW), below_peak(slab, peak, NARROW), capped, columns, R, NARROW
        )
        point, low = two_sum(point, low)
        a = normalizer_float64(peak, point, low, capped, NARROW)
        if CLASSES:
            others, p = _tile_class_loss(x, wanted, column, peak, point, low, capped, NARROW)
    if KIND == ABOVE_2 or KIND == ALPHA_PER_ROW:
        bottom, least = peak, peak * 0.0
        if any_row(e > 1.0, R):
            above = tl.maximum(e, 1.0)
            guess = guess_edge((x,), peak, above, R, ABOVE_2)
            bottom, least = find_support(visit_tile_above_2, (x,), guess, peak, above, R)
            low = edge_below_bottom(least, above)
            a = tl.where(e > 1.0, normalizer_float64(peak, bottom, low, above, ABOVE_2), a)
            if CLASSES:
                steep, q = _tile_class_loss(x, wanted, column, peak, bottom, low, above, ABOVE_2)
                others = tl.where(e > 1.0, steep, others)
                if IN_PLACE:
                    p = tl.where(e > 1.0, q, p)
        if support is not None:
            save_support(support, row, bottom, least, present)
    if CLASSES:
        counts = wanted != ignore
        own = target_score(scores + first, wanted, present, columns, steps[3])
        store_class_loss(
            loss, normalizers, row, own, others, peak, dead, a, e, counts, present, KIND, R
        )
        if IN_PLACE:
            place = row_offset(row, middle, inner, grad_steps, LEVELS)
            g = tl.load(grad + place, mask=present, other=0.0).to(tl.float32)
            slope = class_gradient(p, column, wanted, g, peak, counts & (dead == 0))
            tl.debug_barrier()  # one thread reads the target's score, another one overwrites it
            tl.store(scores + places, slope, mask=inside)
    else:
        a = tl.where(dead, float("-inf"), a + (peak - peak).to(tl.float64))
        tl.store(normalizers + row, a, mask=present)
