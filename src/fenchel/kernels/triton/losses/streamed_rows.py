"""The loss of many long rows, and g (p - q) in place of their scores, for alpha = 2 and 3/2: a kernel.

A program takes a row. It reads it from memory once; what it visits again is still in the cache, since a
multiprocessor has one row at a time. Where few groups of columns can hold support their scores stay in
registers: zeros are written over the row while these are solved, and p - q over the zeros. Columns are
neighbours in memory.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
import triton
import triton.language as tl

from fenchel.kernels.triton.arithmetic.entries import entry
from fenchel.kernels.triton.arithmetic.two_floats import two_sum
from fenchel.kernels.triton.launch.addressing import row_offset
from fenchel.kernels.triton.launch.kernel import kernel
from fenchel.kernels.triton.losses.class_loss import class_loss, entry_at, normalizer_of
from fenchel.kernels.triton.rows.groups import (
    CLOSE,
    list_groups,
    listed_shape,
    listed_tile,
    support_begins,
)
from fenchel.kernels.triton.rows.half_rows import begin_halfway
from fenchel.kernels.triton.search.climbing import climb
from fenchel.kernels.triton.search.normalizer import FINE, tile_visit
from fenchel.kernels.triton.search.steps import newton_step
from fenchel.kernels.triton.tiles.across_threads import row_max, row_sum, row_sums
from fenchel.kernels.triton.tiles.combining import larger
from fenchel.kernels.triton.tiles.memory import finite_peak, load_scores, tile_columns, tile_rows
from fenchel.kernels.triton.tiles.within_threads import slab_sum


@triton.jit
def _load(scores, column, columns):
    return load_scores(scores, None, column, column, column < columns)


@triton.jit
def _keep_maxima(scores, maxima, columns, groups, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    """Store the largest score of every group."""
    group = tl.arange(0, BLOCK)
    column = group[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    x = _load(scores, column, columns)
    for start in range(0, groups, BLOCK):
        ahead = _load(scores, (start + BLOCK) * GROUP + column, columns)
        tl.store(maxima + start + group, tl.reduce(x, 1, larger), mask=start + group < groups)
        x = ahead
    tl.debug_barrier()  # what one thread has stored, another one reads


@triton.jit
def _row_visit(data, point, e, KIND: tl.constexpr):
    """F over the whole row, and the step from there. What comes next is loaded ahead."""
    scores, columns, peak, column = data
    BLOCK: tl.constexpr = column.shape[0] * column.shape[1] * column.shape[2]
    x = _load(scores, column, columns)
    mass = slab_sum(column.to(tl.float32) * 0.0)
    slope = mass
    for start in range(BLOCK, columns + BLOCK, BLOCK):
        ahead = _load(scores, start + column, columns)
        p, s, _ = entry(x - peak, point, 0.0, e, KIND)
        mass += slab_sum(p)
        slope += slab_sum(s)
        x = ahead
    mass, slope = row_sums(mass, slope)
    return mass, newton_step(mass, slope, e, KIND)


@triton.jit
def _write_row(row, wanted, g, point, low, e, KIND: tl.constexpr):
    """g p over all scores; returns the sum of t p over the classes but the target."""
    scores, columns, peak, column = row
    BLOCK: tl.constexpr = column.shape[0] * column.shape[1] * column.shape[2]
    x = _load(scores, column, columns)
    others = slab_sum(column.to(tl.float32) * 0.0)
    for start in range(0, columns, BLOCK):
        here = start + column
        ahead = _load(scores, here + BLOCK, columns)
        p, _, t = entry(x - peak, point, low, e, KIND)
        others += slab_sum(tl.where(here == wanted, 0.0, t * p))
        tl.store(scores + here, g * p, mask=here < columns)
        x = ahead
    return row_sum(others)


@triton.jit
def _fill(scores, value, column, columns):
    BLOCK: tl.constexpr = column.shape[0] * column.shape[1] * column.shape[2]
    for start in range(0, columns, BLOCK):
        here = start + column
        tl.store(scores + here, column.to(tl.float32) * 0.0 + value, mask=here < columns)


@triton.jit
def _solve_listed(
    data, column, wanted, g, point, e, KIND: tl.constexpr, SIZE: tl.constexpr
):  # fmt: skip
    """(point, low, what `_write_row` returns) of a row with few groups listed; g p is written."""
    scores, columns, peak = data[0], data[4], data[7]
    x = tl.reshape(listed_tile(data, 0)[0], [1, 1, SIZE])
    tl.debug_barrier()  # one thread reads a score, another one overwrites it
    _fill(scores, g * 0.0, column, columns)
    point, low = climb(tile_visit, (x - peak,), point, e, columns, FINE, 0.0, 1, KIND)
    point, low = two_sum(point, low)
    tl.debug_barrier()
    place = tl.reshape(listed_tile(data, 0)[1], [1, 1, SIZE])
    p, _, t = entry(x - peak, point, low, e, KIND)
    others = row_sum(tl.where(place == wanted, 0.0, t * p))
    tl.store(scores + place, g * p, mask=p > 0.0)
    return point, low, others


@kernel
def loss_streamed(
    scores, target, grad, maxima, listed, loss, eps, ignore, columns, groups, middle, inner,
    steps, target_steps, grad_steps,
    LEVELS: tl.constexpr, KIND: tl.constexpr, GROUP: tl.constexpr, BLOCK: tl.constexpr,
    WIDTH: tl.constexpr, J: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """At most BLOCK groups are held in registers; J slabs of K columns are read at once."""
    row = tile_rows(tl.program_id(0), 1)
    e = eps + 0.0
    scores += row_offset(row, middle, inner, steps, LEVELS)
    maxima += row * groups
    listed += row * (groups + 1)
    wanted = tl.load(target + row_offset(row, middle, inner, target_steps, LEVELS))
    counts = wanted != ignore
    known = (wanted >= 0) & (wanted < columns)
    wanted = tl.where(known, wanted, -1).to(tl.int32)
    own = tl.load(scores + wanted, mask=known, other=float("nan")).to(tl.float32)
    g = tl.load(grad + row_offset(row, middle, inner, grad_steps, LEVELS)).to(tl.float32)
    _keep_maxima(scores, maxima, columns, groups, GROUP, BLOCK)
    group = tl.arange(0, WIDTH)[None, None, :]
    held = tl.load(maxima + group, mask=group < groups, other=float("-inf")).to(tl.float32)
    peak = finite_peak(row_max(held))
    below = (held - peak,)
    point = begin_halfway(tile_visit, below, e, KIND)
    point, low = climb(tile_visit, below, point, e, columns, CLOSE, 0.0, 1, KIND)
    point += low
    found = list_groups(held, listed, support_begins(peak, point, e, KIND), WIDTH)
    tl.store(listed + groups, found)
    lives = counts & ((found != 0) | (peak != peak))
    g = tl.where(lives, g + (peak - peak), 0.0)
    column = tile_columns(J, K)
    if found <= BLOCK:
        places, within = listed_shape(GROUP, BLOCK)
        some = (scores, None, listed, found, columns, 1, 1, peak, places, within)
        point, low, others = _solve_listed(some, column, wanted, g, point, e, KIND, BLOCK * GROUP)
    else:
        whole = (scores, columns, peak, column)
        point, low = climb(_row_visit, whole, point, e, columns, FINE, 0.0, 1, KIND)
        point, low = two_sum(point, low)
        others = _write_row(whole, wanted, g, point, low, e, KIND)
    a = normalizer_of(peak, point, low, e, KIND)
    p, _, t = entry_at(own, a, e, KIND)
    value = class_loss(others, own, p, t, a, peak, e, KIND)
    tl.store(loss + row, tl.where(counts, value, 0.0))
    tl.debug_barrier()  # what was written at the target is not its slope
    tl.store(scores + wanted, g * (p - 1.0), mask=known & lives)
