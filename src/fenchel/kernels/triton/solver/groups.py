"""Groups of neighbouring columns of long rows: their maxima, lists of those in the support, visits.

A group whose maximum is below the edge of the support has p = 0 and need not be read again. Visits to the
listed groups load their scores every time.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false
# ruff: noqa: RET505, SIM109 (what is known when a kernel is compiled needs if and else)
import triton
import triton.language as tl

from fenchel.kernels.triton.arithmetic.accurate_powers import (
    accurate_powers,
)
from fenchel.kernels.triton.arithmetic.elementary import (
    fast_reciprocal,
    two_sum,
)
from fenchel.kernels.triton.arithmetic.entries import (
    FINITE_MINUS_INF,
    entry,
    exact_powers,
    rough_powers,
)
from fenchel.kernels.triton.launch.addressing import (
    row_offset,
)
from fenchel.kernels.triton.launch.kernel import (
    kernel,
)
from fenchel.kernels.triton.launch.parameters import (
    ABOVE_1_45,
    ABOVE_2,
    FAST_POWERS,
    FAST_STEPS,
    GENERAL,
    SPARSEMAX,
)
from fenchel.kernels.triton.solver.alpha_above_2 import (
    combine,
    contribution,
    neutral_element,
    reduce_row,
)
from fenchel.kernels.triton.solver.newton import (
    halley_step,
    halley_step_may_miss,
    max_final_step_above_1_45,
    newton_step,
    newton_step_may_miss,
    newton_step_near_root,
    step_back_grows_support,
)
from fenchel.kernels.triton.solver.normalizer import (
    slab_sums,
    step_from_sums,
)
from fenchel.kernels.triton.tiles.layout import (
    SLAB_AXIS,
    along_slabs,
    load_scores,
    tile_rows,
)
from fenchel.kernels.triton.tiles.reductions import (
    nan_max,
    row_sums,
    row_sums3,
    slab_sum,
    sum_of_fours,
)

MAXIMA_TOLERANCE: tl.constexpr = tl.constexpr(1e-3)  # excess at which the maxima are left
EDGE_MARGIN: tl.constexpr = tl.constexpr(4e-5)  # what a rough or rounded edge may hide
STATE_NUMBERS: tl.constexpr = tl.constexpr(
    4
)  # numbers kept of a row: its largest score, point, low, least


@triton.jit
def max_of_groups(scores, mask, group, columns, step, mask_step, GROUP: tl.constexpr):
    """The largest score of each of these groups of a row; NaN counts as largest."""
    column = group[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    place = column.to(tl.int64)
    x = load_scores(scores, mask, place * step, place * mask_step, column < columns)
    return tl.reduce(x, 1, nan_max)


@kernel
def group_maxima(
    scores, mask, maxima, columns, groups, middle, inner, steps, mask_steps,
    LEVELS: tl.constexpr, GROUP: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tile_rows(tl.program_id(0), 1)
    group = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    scores += row_offset(row, middle, inner, steps, LEVELS)
    if mask is not None:
        mask += row_offset(row, middle, inner, mask_steps, LEVELS)
    largest = max_of_groups(scores, mask, group, columns, steps[3], mask_steps[3], GROUP)
    tl.store(maxima + row * groups + group, largest, mask=group < groups)


@triton.jit
def min_support_score(peak, point, e, KIND: tl.constexpr):
    """A score below which p = 0 in spite of rounding; -inf if there is none."""
    if KIND == ABOVE_2:
        edge = point
    elif KIND >= GENERAL:
        edge = tl.where(e > 0.0, peak + (point - 1.0 / e), float("-inf"))
    else:
        edge = peak + point
    return edge - EDGE_MARGIN * (1.0 + tl.abs(edge))


@triton.jit
def load_listed_groups(data, start):
    """The scores of the next BLOCK listed groups, as a tile with J = BLOCK and K = GROUP."""
    scores, mask, listed, found, columns, step, mask_step, _, places, within = data
    place = start + places
    group = tl.load(listed + place, mask=place < found, other=0)
    column = group * within.shape[2] + within
    inside = (place < found) & (column < columns)
    wide = column.to(tl.int64)
    return load_scores(scores, mask, wide * step, wide * mask_step, inside), column


@triton.jit
def zeros_like_listed(data):
    return (data[8] + data[9]).to(tl.float32) * 0.0


@triton.jit
def listed_indices(GROUP: tl.constexpr, BLOCK: tl.constexpr):
    """Two index tiles for `load_listed_groups`, which define the number of groups and their size."""
    return along_slabs(tl.arange(0, BLOCK)), tl.arange(0, GROUP)[None, None, :]


@triton.jit
def list_groups(maxima, listed, begin, WIDTH: tl.constexpr):
    """Write the numbers of the groups whose maximum is at least `begin`, and count them."""
    maxima = tl.reshape(maxima, [WIDTH])
    reaches = ((maxima >= begin) & (maxima > float("-inf"))).to(tl.int32)
    place = tl.cumsum(reaches, 0) - reaches
    tl.store(listed + place, tl.arange(0, WIDTH), mask=reaches != 0)
    tl.debug_barrier()  # what one thread has listed, another one reads
    return tl.sum(reaches, axis=0)


@triton.jit
def visit_listed_groups(data, point, e, KIND: tl.constexpr):
    """F over the listed groups, the step from there and, where powers are needed, whether that may miss
    the root. The next groups are prefetched.

    A large entry and many small ones are added as two numbers, unless the slope or half precision hides
    the rounding error.
    """
    BLOCK: tl.constexpr = data[8].shape[SLAB_AXIS]
    mass = sum_of_fours(zeros_like_listed(data))
    low, slope, bend = mass, mass, mass
    x = load_listed_groups(data, 0)[0]
    for start in range(BLOCK, data[3] + BLOCK, BLOCK):
        ahead = load_listed_groups(data, start)[0]
        z = x - data[7]
        if KIND == GENERAL or KIND == FAST_STEPS:
            p, s, q = accurate_powers(tl.maximum(z, FINITE_MINUS_INF), point, e, KIND)
        elif KIND >= GENERAL:
            t, p, s, q = exact_powers(tl.maximum(z, FINITE_MINUS_INF), point, e, KIND)
            if KIND == ABOVE_1_45:
                q = s * fast_reciprocal(tl.maximum(t, e * max_final_step_above_1_45(e)))
        else:
            p, s, _t = entry(z, point, 0.0, e, KIND)
        if KIND == SPARSEMAX or KIND == FAST_POWERS:
            mass += sum_of_fours(p)
        else:
            mass, rounded_off = two_sum(mass, sum_of_fours(p))
            low += rounded_off
        slope += sum_of_fours(s)
        if KIND >= GENERAL:
            bend += sum_of_fours(q)
        x = ahead
    if KIND != SPARSEMAX and KIND != FAST_POWERS:
        mass = mass.to(tl.float64) + low.to(tl.float64)
    if KIND >= GENERAL:
        return _final_step(mass, slope, bend, point, e, data[3] * data[9].shape[2], KIND)
    else:
        mass, slope = row_sums(mass, slope)
        mass = mass.to(tl.float32)
        return mass, newton_step(mass, slope, e, KIND)


@triton.jit
def _final_step(mass, slope, bend, point, e, count, KIND: tl.constexpr):
    """F, the step, and whether that may miss the root; `count` scores are listed."""
    mass, slope, bend = row_sums3(slab_sum(mass), slab_sum(slope), slab_sum(bend))
    mass = mass.to(tl.float32)
    if KIND == ABOVE_1_45:
        step = tl.where(mass > 0.0, newton_step_near_root(mass, e, fast_reciprocal(slope)), 0.0)
        misses = newton_step_may_miss(step, slope, bend, e)
    else:
        step = halley_step(mass, slope, bend, point, e, KIND)
        misses = halley_step_may_miss(step, slope, bend, e)
    return mass, step, misses | step_back_grows_support(step, slope, e, count)


@triton.jit
def visit_listed_groups_roughly(data, point, e, KIND: tl.constexpr):
    BLOCK: tl.constexpr = data[8].shape[SLAB_AXIS]
    mass = sum_of_fours(zeros_like_listed(data))
    slope, bend = mass, mass
    x = load_listed_groups(data, 0)[0]
    for start in range(BLOCK, data[3] + BLOCK, BLOCK):
        ahead = load_listed_groups(data, start)[0]
        p, s, q = rough_powers(tl.maximum(x - data[7], FINITE_MINUS_INF), point, e, KIND)
        mass += sum_of_fours(p)
        slope += sum_of_fours(s)
        bend += sum_of_fours(q)
        x = ahead
    mass, slope, bend = slab_sums(mass, slope, bend, KIND)
    return step_from_sums(mass, slope, bend, point, e, KIND)


@triton.jit
def visit_listed_groups_above_2(data, first, second, e, WHAT: tl.constexpr):
    a = zeros_like_listed(data) + neutral_element(WHAT)
    b = a
    for start in range(0, data[3], data[8].shape[SLAB_AXIS]):
        c, d = contribution(load_listed_groups(data, start)[0], first, second, e, WHAT)
        a, b = combine(a, b, c, d, WHAT)
    return reduce_row(a, b, WHAT)
