"""entmax of rows too long for the chip, in three kernels that each stream.

1. `group_maxima`: the largest score of every GROUP neighbouring columns; reads the row once.
2. `solve_groups`, one program a row: the root of the maxima alone is a lower bound, so only groups
   whose maximum lies above its edge can hold support. Their numbers are listed, and Newton's
   method (the bracket, for alpha > 2) visits the columns of those groups alone.
3. `write_groups`: p, reading only the groups that hold support; writes the row once.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
# ruff: noqa: RET505, SIM109 (what is known when a kernel is compiled needs if and else)
import triton
import triton.language as tl

from fenchel.kernels.triton.arithmetic.elementary import fast_reciprocal
from fenchel.kernels.triton.arithmetic.entries import (
    FARTHEST,
    entry,
    exact_powers,
    first_point,
    rough_powers,
)
from fenchel.kernels.triton.arithmetic.fine_powers import summed_powers
from fenchel.kernels.triton.arithmetic.two_floats import two_sum
from fenchel.kernels.triton.launch.addressing import row_offset
from fenchel.kernels.triton.launch.alpha import (
    COARSE,
    EACH_ROW,
    GENERAL,
    NEAR_SOFTMAX,
    POWER,
    SHARP,
    SPARSEMAX,
    STEEP,
    TAME,
)
from fenchel.kernels.triton.launch.kernel import kernel
from fenchel.kernels.triton.search.climbing import climb, leap_of, sharp_touch
from fenchel.kernels.triton.search.edge_guess import guess_edge
from fenchel.kernels.triton.search.normalizer import (
    FINE,
    ROUGH,
    TOUCH,
    brings_in,
    halley_step,
    near_step,
    newton_step,
    sharp_strays,
    slab_sums,
    step_of_slabs,
    strays,
    tile_visit,
)
from fenchel.kernels.triton.search.steep import (
    below_bottom,
    contribution,
    find_support,
    fold,
    nothing,
    over_row,
    support_entry,
)
from fenchel.kernels.triton.tiles.across_threads import row_max, row_sums, row_triples
from fenchel.kernels.triton.tiles.axes import SLAB_AXIS, along_slabs
from fenchel.kernels.triton.tiles.combining import larger
from fenchel.kernels.triton.tiles.memory import finite_peak, load_scores, row_epsilon, tile_rows
from fenchel.kernels.triton.tiles.within_threads import slab_sum, sum_of_fours

CLOSE: tl.constexpr = tl.constexpr(1e-3)  # excess at which the maxima are left
MARGIN: tl.constexpr = tl.constexpr(4e-5)  # what a rough or rounded edge may hide
STATE: tl.constexpr = tl.constexpr(4)  # numbers kept of a row: its largest score, point, low, least


@triton.jit
def largest_of(scores, mask, group, columns, step, mask_step, GROUP: tl.constexpr):
    """The largest score of each of these groups of a row; NaN wins."""
    column = group[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    place = column.to(tl.int64)
    x = load_scores(scores, mask, place * step, place * mask_step, column < columns)
    return tl.reduce(x, 1, larger)


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
    largest = largest_of(scores, mask, group, columns, steps[3], mask_steps[3], GROUP)
    tl.store(maxima + row * groups + group, largest, mask=group < groups)


@triton.jit
def support_begins(peak, point, e, KIND: tl.constexpr):
    """A score below which p = 0 whatever was rounded; -inf if there is none."""
    if KIND == STEEP:
        edge = point
    elif KIND >= GENERAL:
        edge = tl.where(e > 0.0, peak + (point - 1.0 / e), float("-inf"))
    else:
        edge = peak + point
    return edge - MARGIN * (1.0 + tl.abs(edge))


@triton.jit
def listed_tile(data, start):
    """The scores of the next BLOCK listed groups, as a tile with J = BLOCK and K = GROUP."""
    scores, mask, listed, found, columns, step, mask_step, _, places, within = data
    place = start + places
    group = tl.load(listed + place, mask=place < found, other=0)
    column = group * within.shape[2] + within
    inside = (place < found) & (column < columns)
    wide = column.to(tl.int64)
    return load_scores(scores, mask, wide * step, wide * mask_step, inside), column


@triton.jit
def listed_zeros(data):
    return (data[8] + data[9]).to(tl.float32) * 0.0


@triton.jit
def listed_shape(GROUP: tl.constexpr, BLOCK: tl.constexpr):
    """Two index tiles that tell `listed_tile` how many groups to take, and their size."""
    return along_slabs(tl.arange(0, BLOCK)), tl.arange(0, GROUP)[None, None, :]


@triton.jit
def listed_visit(data, point, e, KIND: tl.constexpr):
    """F over the listed groups, the step from there and, where powers are needed, whether that may miss
    the root. What comes next is loaded ahead.

    A large entry and many small ones are added in two numbers, unless the slope or half precision hides
    what is rounded off.
    """
    BLOCK: tl.constexpr = data[8].shape[SLAB_AXIS]
    mass = sum_of_fours(listed_zeros(data))
    low, slope, bend = mass, mass, mass
    x = listed_tile(data, 0)[0]
    for start in range(BLOCK, data[3] + BLOCK, BLOCK):
        ahead = listed_tile(data, start)[0]
        z = x - data[7]
        if KIND == GENERAL or KIND == POWER:
            p, s, q = summed_powers(tl.maximum(z, FARTHEST), point, e, KIND)
        elif KIND >= GENERAL:
            t, p, s, q = exact_powers(tl.maximum(z, FARTHEST), point, e, KIND)
            if KIND == SHARP:
                q = s * fast_reciprocal(tl.maximum(t, e * sharp_touch(e)))
        else:
            p, s, _t = entry(z, point, 0.0, e, KIND)
        if KIND == SPARSEMAX or KIND == COARSE:
            mass += sum_of_fours(p)
        else:
            mass, rounded_off = two_sum(mass, sum_of_fours(p))
            low += rounded_off
        slope += sum_of_fours(s)
        if KIND >= GENERAL:
            bend += sum_of_fours(q)
        x = ahead
    if KIND != SPARSEMAX and KIND != COARSE:
        mass = mass.to(tl.float64) + low.to(tl.float64)
    if KIND >= GENERAL:
        return _last_step(mass, slope, bend, point, e, data[3] * data[9].shape[2], KIND)
    else:
        mass, slope = row_sums(mass, slope)
        mass = mass.to(tl.float32)
        return mass, newton_step(mass, slope, e, KIND)


@triton.jit
def _last_step(mass, slope, bend, point, e, count, KIND: tl.constexpr):
    """F, the step, and whether that may miss the root; `count` scores are listed."""
    mass, slope, bend = row_triples(slab_sum(mass), slab_sum(slope), slab_sum(bend))
    mass = mass.to(tl.float32)
    if KIND == SHARP:
        step = tl.where(mass > 0.0, near_step(mass, e, fast_reciprocal(slope)), 0.0)
        misses = sharp_strays(step, slope, bend, e)
    else:
        step = halley_step(mass, slope, bend, point, e, KIND)
        misses = strays(step, slope, bend, e)
    return mass, step, misses | brings_in(step, slope, e, count)


@triton.jit
def _rough_listed_visit(data, point, e, KIND: tl.constexpr):
    BLOCK: tl.constexpr = data[8].shape[SLAB_AXIS]
    mass = sum_of_fours(listed_zeros(data))
    slope, bend = mass, mass
    x = listed_tile(data, 0)[0]
    for start in range(BLOCK, data[3] + BLOCK, BLOCK):
        ahead = listed_tile(data, start)[0]
        p, s, q = rough_powers(tl.maximum(x - data[7], FARTHEST), point, e, KIND)
        mass += sum_of_fours(p)
        slope += sum_of_fours(s)
        bend += sum_of_fours(q)
        x = ahead
    mass, slope, bend = slab_sums(mass, slope, bend, KIND)
    return step_of_slabs(mass, slope, bend, point, e, KIND)


@triton.jit
def _steep_listed_visit(data, first, second, e, WHAT: tl.constexpr):
    a = listed_zeros(data) + nothing(WHAT)
    b = a
    for start in range(0, data[3], data[8].shape[SLAB_AXIS]):
        c, d = contribution(listed_tile(data, start)[0], first, second, e, WHAT)
        a, b = fold(a, b, c, d, WHAT)
    return over_row(a, b, WHAT)


@triton.jit
def list_groups(maxima, listed, begin, WIDTH: tl.constexpr):
    """Write the numbers of the groups that reach `begin`, and count them."""
    maxima = tl.reshape(maxima, [WIDTH])
    reaches = ((maxima >= begin) & (maxima > float("-inf"))).to(tl.int32)
    place = tl.cumsum(reaches, 0) - reaches
    tl.store(listed + place, tl.arange(0, WIDTH), mask=reaches != 0)
    tl.debug_barrier()  # what one thread has listed, another one reads
    return tl.sum(reaches, axis=0)


@triton.jit
def _solve_listed(
    scores, mask, listed, maxima, peak, e, columns, step, mask_step,
    KIND: tl.constexpr, GROUP: tl.constexpr, BLOCK: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """(point, low, least, how many groups are listed) of one row."""
    if KIND == STEEP:
        guess = guess_edge((maxima,), peak, e, 1, STEEP)
        lower = peak - 1.0 / e
    else:
        lower, low = climb(
            tile_visit,
            (tl.maximum(maxima - peak, FARTHEST),),
            first_point(e, KIND),
            e,
            columns,
            CLOSE,
            TOUCH,
            1,
            KIND,
        )
        lower += low
    begin = support_begins(peak, lower, e, KIND)
    found = list_groups(maxima, listed, begin, WIDTH)
    places, within = listed_shape(GROUP, BLOCK)
    data = (scores, mask, listed, found, columns, step, mask_step, peak, places, within)
    if KIND == STEEP:
        point, least = find_support(_steep_listed_visit, data, guess, peak, e, 1, False)
        low = below_bottom(least, e)
    else:
        point = lower
        if KIND >= GENERAL:
            point, low = climb(
                _rough_listed_visit, data, point, e, columns, ROUGH, leap_of(e), 1, KIND, False
            )
            point += low
        point, low = climb(listed_visit, data, point, e, columns, FINE, TOUCH, 1, KIND, False)
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
    if KIND == EACH_ROW:
        if e > 1.0:
            point, low, least, found = _solve_listed(
                scores, mask, listed, held, peak, e, columns, steps[3], mask_steps[3],
                STEEP, GROUP, BLOCK, WIDTH,
            )  # fmt: skip
        elif e > TAME:
            point, low, least, found = _solve_listed(
                scores, mask, listed, held, peak, e, columns, steps[3], mask_steps[3],
                SHARP, GROUP, BLOCK, WIDTH,
            )  # fmt: skip
        elif e < NEAR_SOFTMAX:
            point, low, least, found = _solve_listed(
                scores, mask, listed, held, peak, e, columns, steps[3], mask_steps[3],
                GENERAL, GROUP, BLOCK, WIDTH,
            )  # fmt: skip
        else:
            point, low, least, found = _solve_listed(
                scores, mask, listed, held, peak, e, columns, steps[3], mask_steps[3],
                POWER, GROUP, BLOCK, WIDTH,
            )  # fmt: skip
    else:
        point, low, least, found = _solve_listed(
            scores, mask, listed, held, peak, e, columns, steps[3], mask_steps[3],
            KIND, GROUP, BLOCK, WIDTH,
        )  # fmt: skip
    tl.store(state + row * STATE, peak)
    tl.store(state + row * STATE + 1, point)
    tl.store(state + row * STATE + 2, low)
    tl.store(state + row * STATE + 3, least)
    tl.store(listed + groups, found)


@triton.jit
def _write_block(
    scores, out, mask, held, column, inside, peak, point, least, e, step, out_step, mask_step,
    KIND: tl.constexpr,
):  # fmt: skip
    lives = (held >= support_begins(peak, point, e, KIND)) & (held > float("-inf"))
    wide = column.to(tl.int64)
    x = load_scores(scores, mask, wide * step, wide * mask_step, inside & lives[:, None])
    if KIND == STEEP:
        p = support_entry(x, point, least, e)
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
    peak = tl.load(state + row * STATE)
    point = tl.load(state + row * STATE + 1)
    least = tl.load(state + row * STATE + 3)
    group = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    held = tl.load(maxima + row * groups + group, mask=group < groups, other=float("-inf"))
    column = group[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    inside = column < columns
    MIDDLE: tl.constexpr = COARSE if out.dtype.element_ty.primitive_bitwidth < 32 else POWER
    if KIND == EACH_ROW:
        if e > 1.0:
            _write_block(scores, out, mask, held, column, inside, peak, point, least, e,
                         steps[3], out_steps[3], mask_steps[3], STEEP)  # fmt: skip
        elif e > TAME:
            _write_block(scores, out, mask, held, column, inside, peak, point, least, e,
                         steps[3], out_steps[3], mask_steps[3], SHARP)  # fmt: skip
        elif tl.abs(e) < NEAR_SOFTMAX:
            _write_block(scores, out, mask, held, column, inside, peak, point, least, e,
                         steps[3], out_steps[3], mask_steps[3], GENERAL)  # fmt: skip
        else:
            _write_block(scores, out, mask, held, column, inside, peak, point, least, e,
                         steps[3], out_steps[3], mask_steps[3], MIDDLE)  # fmt: skip
    else:
        _write_block(scores, out, mask, held, column, inside, peak, point, least, e,
                     steps[3], out_steps[3], mask_steps[3], KIND)  # fmt: skip
