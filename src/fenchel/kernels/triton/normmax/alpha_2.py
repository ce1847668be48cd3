"""normmax at alpha = 2, argmax_p <p, x> - ||p||_2 over the simplex, in float32.

p is t / sum t with t = (x - tau)_+, where the squares of t sum to one: (N.34). These squares are the
entmax of 2 x at alpha = 3/2, with point = 2 tau relative to the largest score. Its solver finds tau
from the scores without doubling them.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
import triton
import triton.language as tl

from fenchel.kernels.triton.arithmetic.elementary import (
    saturate,
    split,
    two_sum,
)
from fenchel.kernels.triton.arithmetic.entries import (
    lowest_normalizer,
)
from fenchel.kernels.triton.launch.addressing import (
    row_offset,
)
from fenchel.kernels.triton.launch.kernel import (
    kernel,
)
from fenchel.kernels.triton.launch.parameters import (
    ENTMAX15,
    SPARSEMAX,
)
from fenchel.kernels.triton.shared.threshold_rows import (
    clipped_score,
    load_maxima,
    store_state,
)
from fenchel.kernels.triton.solver.groups import (
    MAXIMA_TOLERANCE,
    list_groups,
    listed_indices,
    load_listed_groups,
    min_support_score,
    zeros_like_listed,
)
from fenchel.kernels.triton.solver.newton import (
    find_root,
    newton_step,
)
from fenchel.kernels.triton.solver.normalizer import (
    FINE_TOLERANCE,
    MAX_FINAL_HALLEY_STEP,
    find_normalizer,
)
from fenchel.kernels.triton.tiles.layout import (
    SLAB_AXIS,
    finite_peak,
    load_rows,
    tile_rows,
    write_rows,
)
from fenchel.kernels.triton.tiles.reductions import (
    pairwise_slab_sum,
    row_max,
    row_sum,
    row_sums,
    slab_max,
)

MIN_ENTRY: tl.constexpr = tl.constexpr(2.0**-25)  # t is not known better: ties on the edge are 0


@triton.jit
def _inverse(total):
    """1/total of a float64 as the sum of two numbers; a row whose total is 0 is empty."""
    return split(1.0 / tl.where(total > 0.0, total, 1.0))


@kernel
def normmax_tile(
    scores, out, mask, count, columns, middle, inner, steps, out_steps, mask_steps,
    LEVELS: tl.constexpr, EVEN: tl.constexpr, J: tl.constexpr, R: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    row = tile_rows(tl.program_id(0), R)
    x = load_rows(
        scores, mask, row, count, columns, middle, inner, steps, mask_steps, LEVELS, EVEN, J, R, K,
    )  # fmt: skip
    slab = slab_max(x)
    peak = finite_peak(row_max(slab))
    z = x - peak
    e = (row * 0).to(tl.float32) + 0.5
    point, low = find_normalizer(z, slab - peak, e, columns, R, ENTMAX15)
    point, low = two_sum(point, low)
    t = clipped_score(z, 0.0, point * 0.5, low * 0.5)
    t = tl.where(t > MIN_ENTRY, t, 0.0)
    scale, rest = _inverse(row_sum(pairwise_slab_sum(t).to(tl.float64)))
    p = t * scale + (t * rest + (peak - peak))  # NaN in a row that has NaN
    write_rows(out, p, row, count, columns, middle, inner, out_steps, LEVELS, EVEN, J, R, K)


@triton.jit
def _visit_maxima(data, point, e, KIND: tl.constexpr):
    """The sum of t^2, and the step to where it is one; `data` = (tile,) minus the largest."""
    t = saturate(data[0] - point * 0.5)
    mass, slope = row_sums(t * t, t)
    return mass, newton_step(mass, slope, e, KIND)


@triton.jit
def _visit_listed(data, point, e, KIND: tl.constexpr):
    """The same over the listed groups. The next groups are prefetched."""
    BLOCK: tl.constexpr = data[8].shape[SLAB_AXIS]
    mass = zeros_like_listed(data)
    slope = zeros_like_listed(data)
    x = load_listed_groups(data, 0)[0]
    for start in range(BLOCK, data[3] + BLOCK, BLOCK):
        ahead = load_listed_groups(data, start)[0]
        t = clipped_score(x, data[7], point * 0.5, 0.0)
        mass += t * t
        slope += t
        x = ahead
    mass, slope = row_sums(mass, slope)
    return mass, newton_step(mass, slope, e, KIND)


@triton.jit
def _listed_total(data, edge, low):
    """The sum of t over the listed groups, in float64, because thousands may be equal."""
    total = zeros_like_listed(data).to(tl.float64)
    for start in range(0, data[3], data[8].shape[SLAB_AXIS]):
        t = clipped_score(load_listed_groups(data, start)[0], data[7], edge, low)
        total += t.to(tl.float64)
    return row_sum(total)


@kernel
def solve_normmax_groups(
    scores, mask, maxima, listed, state, columns, groups, middle, inner, steps, mask_steps,
    LEVELS: tl.constexpr, GROUP: tl.constexpr, BLOCK: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    row = tile_rows(tl.program_id(0), 1)
    scores += row_offset(row, middle, inner, steps, LEVELS)
    if mask is not None:
        mask += row_offset(row, middle, inner, mask_steps, LEVELS)
    held = load_maxima(maxima, row, groups, WIDTH)
    peak = finite_peak(row_max(held))
    e = (row * 0).to(tl.float32) + 0.5
    point, low = find_root(
        _visit_maxima, (held - peak,), lowest_normalizer(e, ENTMAX15), e, columns, MAXIMA_TOLERANCE,
        MAX_FINAL_HALLEY_STEP, 1, ENTMAX15,
    )  # fmt: skip
    point += low
    listed += row * groups
    begin = min_support_score(peak, point * 0.5, e, SPARSEMAX)
    found = list_groups(held, listed, begin, WIDTH)
    places, within = listed_indices(GROUP, BLOCK)
    data = (scores, mask, listed, found, columns, steps[3], mask_steps[3], peak, places, within)
    point, low = find_root(
        _visit_listed,
        data,
        point,
        e,
        columns,
        FINE_TOLERANCE,
        MAX_FINAL_HALLEY_STEP,
        1,
        ENTMAX15,
        False,
    )
    point, low = two_sum(point, low)
    total = _listed_total(data, point * 0.5, low * 0.5)
    store_state(state, row, peak, point * 0.5, low * 0.5, _inverse(total)[0])
