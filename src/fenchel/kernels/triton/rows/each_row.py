"""entmax of rows that fit on chip, each with an alpha of its own.

A row is solved as it would be if its alpha were a number: which way is a branch that a whole program
takes. Many rows are put in order first, kind by kind (`row_order`). Of few, a tile may hold rows of two
kinds, and is then gone through twice; scores are read before the kind of alpha is known, so that one
need not wait for the other.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
import triton
import triton.language as tl

from fenchel.kernels.triton.launch.addressing import row_offset
from fenchel.kernels.triton.launch.alpha import (
    ANY_POWERS,
    COARSE_ABOVE,
    EACH_ROW,
    GENERAL,
    NEAR_POWERS,
    NEAR_SOFTMAX,
    POWERS_ABOVE,
    POWERS_BELOW,
    ROUGHLY_SOFTMAX,
    SERIES_ABOVE,
    SHARP,
    STEEP,
    epsilon,
)
from fenchel.kernels.triton.launch.kernel import kernel
from fenchel.kernels.triton.rows.on_chip import solve_scores
from fenchel.kernels.triton.rows.row_order import KINDS, kind_of_row
from fenchel.kernels.triton.rows.small_support import write_listed
from fenchel.kernels.triton.rows.thread_lists import by_threads, largest_of_threads
from fenchel.kernels.triton.tiles.across_threads import row_max
from fenchel.kernels.triton.tiles.axes import along_rows
from fenchel.kernels.triton.tiles.memory import (
    finite_peak,
    known_peak,
    load_rows,
    row_epsilon,
    tile_rows,
)
from fenchel.kernels.triton.tiles.within_threads import slab_max


@triton.jit
def _solve_as(
    x, peak, scores, out, mask, row, e, count, columns, middle, inner, steps, out_steps, mask_steps,
    LEVELS: tl.constexpr, KIND: tl.constexpr, LIST: tl.constexpr, EVEN: tl.constexpr,
    J: tl.constexpr, R: tl.constexpr, K: tl.constexpr, V: tl.constexpr,
):  # fmt: skip
    if LIST:
        threads = by_threads(x, J, R, K, V)
        write_listed(threads, largest_of_threads(threads, R, V), scores, out, mask, row, e,
                     count, columns, middle, inner, steps, out_steps, mask_steps,
                     LEVELS, KIND, EVEN, J, R, K, V)  # fmt: skip
    else:
        solve_scores(x, peak, out, row, e, count, columns, middle, inner, out_steps,
                     LEVELS, KIND, ANY_POWERS, EVEN, J, R, K)  # fmt: skip


@triton.jit
def _solve_smooth(
    x, peak, out, row, e, count, columns, middle, inner, out_steps,
    LEVELS: tl.constexpr, EVEN: tl.constexpr, J: tl.constexpr, R: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """The first kind: a row as it would be if alpha were a number, several as far as all allow."""
    least = e if R == 1 else tl.min(tl.reshape(e, [R]), axis=0)
    if out.dtype.element_ty.primitive_bitwidth < 32:
        if least >= ROUGHLY_SOFTMAX:
            solve_scores(x, peak, out, row, e, count, columns, middle, inner, out_steps,
                         LEVELS, GENERAL, COARSE_ABOVE, EVEN, J, R, K)  # fmt: skip
        else:
            solve_scores(x, peak, out, row, e, count, columns, middle, inner, out_steps,
                         LEVELS, GENERAL, ANY_POWERS, EVEN, J, R, K)  # fmt: skip
    elif R > 1:
        if least > 0.0:
            solve_scores(x, peak, out, row, e, count, columns, middle, inner, out_steps,
                         LEVELS, GENERAL, SERIES_ABOVE, EVEN, J, R, K)  # fmt: skip
        else:
            solve_scores(x, peak, out, row, e, count, columns, middle, inner, out_steps,
                         LEVELS, GENERAL, ANY_POWERS, EVEN, J, R, K)  # fmt: skip
    elif e >= NEAR_SOFTMAX:
        solve_scores(x, peak, out, row, e, count, columns, middle, inner, out_steps,
                     LEVELS, GENERAL, POWERS_ABOVE, EVEN, J, R, K)  # fmt: skip
    elif e > 0.0:
        solve_scores(x, peak, out, row, e, count, columns, middle, inner, out_steps,
                     LEVELS, GENERAL, NEAR_POWERS, EVEN, J, R, K)  # fmt: skip
    else:
        solve_scores(x, peak, out, row, e, count, columns, middle, inner, out_steps,
                     LEVELS, GENERAL, POWERS_BELOW, EVEN, J, R, K)  # fmt: skip


@triton.jit
def _solve_kind(
    x, peak, scores, out, mask, row, e, kind, count, columns, middle, inner, steps, out_steps, mask_steps,
    LEVELS: tl.constexpr, LIST_SHARP: tl.constexpr, LIST_STEEP: tl.constexpr, EVEN: tl.constexpr,
    J: tl.constexpr, R: tl.constexpr, K: tl.constexpr, V: tl.constexpr,
):  # fmt: skip
    """Solve and write a tile of rows of one kind, a scalar."""
    if kind == 0:
        _solve_smooth(x, peak, out, row, e, count, columns, middle, inner, out_steps,
                      LEVELS, EVEN, J, R, K)  # fmt: skip
    elif kind == 1:
        _solve_as(x, peak, scores, out, mask, row, e, count, columns, middle, inner, steps, out_steps,
                  mask_steps, LEVELS, SHARP, LIST_SHARP, EVEN, J, R, K, V)  # fmt: skip
    else:
        _solve_as(x, peak, scores, out, mask, row, e, count, columns, middle, inner, steps, out_steps,
                  mask_steps, LEVELS, STEEP, LIST_STEEP, EVEN, J, R, K, V)  # fmt: skip


@triton.jit
def _some_rows(
    scores, out, mask, alpha, row, count, columns, middle, inner,
    steps, out_steps, mask_steps, alpha_steps,
    LEVELS: tl.constexpr, LIST_STEEP: tl.constexpr, EVEN: tl.constexpr,
    J: tl.constexpr, R: tl.constexpr, K: tl.constexpr, V: tl.constexpr,
):  # fmt: skip
    """Solve a tile, kind by kind; the rows of the others count as not there, and are read again.

    They are given an alpha of that kind: with their own the search for a row that is not there is long.
    """
    x = load_rows(scores, mask, row, count, columns, middle, inner, steps, mask_steps,
                  LEVELS, EVEN, J, R, K)  # fmt: skip
    peak = finite_peak(row_max(slab_max(x)))  # what waits for scores may not wait for alpha first
    e = row_epsilon(0.0, alpha, alpha_steps, row, count, middle, inner, LEVELS, EACH_ROW, R)
    peak = known_peak(peak, e)
    kinds = tl.where(row < count, kind_of_row(e), KINDS)
    kind = tl.min(tl.reshape(kinds, [R]), axis=0)
    while kind < KINDS:
        own = kinds == kind
        usual = tl.where(kind == 0, 0.25, tl.where(kind == 1, 0.75, 2.0))
        _solve_kind(tl.where(own, x, float("-inf")), tl.where(own, peak, 0.0), scores, out, mask,
                    tl.where(own, row, count), tl.where(own, e, usual), kind, count, columns,
                    middle, inner, steps, out_steps, mask_steps, LEVELS, False, LIST_STEEP, False,
                    J, R, K, V)  # fmt: skip
        kinds = tl.where(own, KINDS, kinds)
        kind = tl.min(tl.reshape(kinds, [R]), axis=0)
        rest = tl.where(kinds < KINDS, row, count)
        x = load_rows(scores, mask, rest, count, columns, middle, inner, steps, mask_steps,
                      LEVELS, False, J, R, K)  # fmt: skip


@triton.jit
def _numbers_of_rows(order, tile, WIDE: tl.constexpr, R: tl.constexpr):
    """The rows of a tile, in their order if there is one; as int64 where offsets need it, since to
    divide an int64 takes long."""
    if order is None:
        row = tile_rows(tile, R)
    elif R == 1:
        row = tl.load(order + tile)
    else:
        row = along_rows(tl.load(order + tile * R + tl.arange(0, R)))
    return row.to(tl.int64 if WIDE else tl.int32)


@kernel
def entmax_each_row(
    scores, out, mask, alpha, count, columns, middle, inner,
    steps, out_steps, mask_steps, alpha_steps,
    LEVELS: tl.constexpr, WIDE: tl.constexpr, EVEN: tl.constexpr,
    LIST_SHARP: tl.constexpr, LIST_STEEP: tl.constexpr,
    J: tl.constexpr, R: tl.constexpr, K: tl.constexpr, V: tl.constexpr,
):  # fmt: skip
    row = _numbers_of_rows(None, tl.program_id(0), WIDE, R)
    if R == 1:
        x = load_rows(scores, mask, row, count, columns, middle, inner, steps, mask_steps,
                      LEVELS, EVEN, J, 1, K)  # fmt: skip
        peak = finite_peak(row_max(slab_max(x)))
        e = row_epsilon(0.0, alpha, alpha_steps, row, count, middle, inner, LEVELS, EACH_ROW, 1)
        peak = known_peak(peak, e)
        _solve_kind(x, peak, scores, out, mask, row, e, kind_of_row(e), count, columns, middle, inner,
                    steps, out_steps, mask_steps, LEVELS, LIST_SHARP, LIST_STEEP, EVEN,
                    J, 1, K, V)  # fmt: skip
    else:
        _some_rows(scores, out, mask, alpha, row, count, columns, middle, inner,
                   steps, out_steps, mask_steps, alpha_steps,
                   LEVELS, LIST_STEEP, EVEN, J, R, K, V)  # fmt: skip


@kernel
def entmax_ordered_rows(
    scores, out, mask, alpha, starts, order, count, columns, middle, inner,
    steps, out_steps, mask_steps, alpha_steps,
    LEVELS: tl.constexpr, WIDE: tl.constexpr, EVEN: tl.constexpr,
    LIST_SHARP: tl.constexpr, LIST_STEEP: tl.constexpr,
    J: tl.constexpr, R: tl.constexpr, K: tl.constexpr, V: tl.constexpr,
):  # fmt: skip
    """A tile of rows of one kind, which `row_order` has brought together; EVEN: no column is missing."""
    tile = tl.program_id(0)
    if tile < tl.load(starts + 2):
        row = _numbers_of_rows(order, tile, WIDE, R)
        kind = (tile >= tl.load(starts)).to(tl.int32) + (tile >= tl.load(starts + 1)).to(tl.int32)
        x = load_rows(scores, mask, row, count, columns, middle, inner, steps, mask_steps,
                      LEVELS, EVEN, J, R, K)  # fmt: skip
        e = epsilon(tl.load(alpha + row_offset(row, middle, inner, alpha_steps, LEVELS)))
        peak = known_peak(finite_peak(row_max(slab_max(x))), e)
        _solve_kind(x, peak, scores, out, mask, row, e, kind, count, columns, middle, inner,
                    steps, out_steps, mask_steps, LEVELS, LIST_SHARP, LIST_STEEP, EVEN,
                    J, R, K, V)  # fmt: skip
