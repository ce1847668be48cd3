"""entmax of rows that fit on chip, each with an alpha of its own.

A row is solved as it would be if its alpha were a number: which way is a branch that a whole program
takes. Where a program holds several rows it takes a block of them, sorted by alpha, tile by tile: few
tiles then hold alphas of two kinds, and only these are gone through twice. Scores are read before the
kind of alpha is known, so that one need not wait for the other.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
import triton
import triton.language as tl

from fenchel.kernels.triton.entries import EACH_ROW, GENERAL, SHARP, STEEP
from fenchel.kernels.triton.forward import load_rows, solve_scores
from fenchel.kernels.triton.kernel import kernel
from fenchel.kernels.triton.normalizer import TAME
from fenchel.kernels.triton.reductions import along_rows, row_max, slab_max
from fenchel.kernels.triton.small_support import by_threads, largest_of_threads, write_listed
from fenchel.kernels.triton.tiles import finite_peak, row_epsilon, tile_rows

KINDS: tl.constexpr = tl.constexpr(3)  # up to TAME, up to alpha = 2, and above


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
                     LEVELS, KIND, KIND == GENERAL, EVEN, J, R, K)  # fmt: skip


@triton.jit
def _solve_kind(
    x, peak, scores, out, mask, row, e, kind, count, columns, middle, inner, steps, out_steps, mask_steps,
    LEVELS: tl.constexpr, LIST_SHARP: tl.constexpr, LIST_STEEP: tl.constexpr, EVEN: tl.constexpr,
    J: tl.constexpr, R: tl.constexpr, K: tl.constexpr, V: tl.constexpr,
):  # fmt: skip
    """Solve and write a tile of rows of one kind, a scalar."""
    if kind == 0:
        _solve_as(x, peak, scores, out, mask, row, e, count, columns, middle, inner, steps, out_steps,
                  mask_steps, LEVELS, GENERAL, False, EVEN, J, R, K, V)  # fmt: skip
    elif kind == 1:
        _solve_as(x, peak, scores, out, mask, row, e, count, columns, middle, inner, steps, out_steps,
                  mask_steps, LEVELS, SHARP, LIST_SHARP, EVEN, J, R, K, V)  # fmt: skip
    else:
        _solve_as(x, peak, scores, out, mask, row, e, count, columns, middle, inner, steps, out_steps,
                  mask_steps, LEVELS, STEEP, LIST_STEEP, EVEN, J, R, K, V)  # fmt: skip


@triton.jit
def _kind_of(e):
    return tl.where(e > 1.0, 2, tl.where(e > TAME, 1, 0))


@triton.jit
def _some_rows(
    scores, out, mask, alpha, row, count, columns, middle, inner,
    steps, out_steps, mask_steps, alpha_steps,
    LEVELS: tl.constexpr, LIST_STEEP: tl.constexpr, EVEN: tl.constexpr,
    J: tl.constexpr, R: tl.constexpr, K: tl.constexpr, V: tl.constexpr,
):  # fmt: skip
    """Solve a tile, kind by kind; the rows of the others count as not there, and are read again."""
    x = load_rows(scores, mask, row, count, columns, middle, inner, steps, mask_steps,
                  LEVELS, EVEN, J, R, K)  # fmt: skip
    peak = finite_peak(row_max(slab_max(x)))  # what waits for scores may not wait for alpha first
    e = row_epsilon(0.0, alpha, alpha_steps, row, count, middle, inner, LEVELS, EACH_ROW, R)
    kinds = tl.where(row < count, _kind_of(e), KINDS)
    kind = tl.min(tl.reshape(kinds, [R]), axis=0)
    while kind < KINDS:
        own = kinds == kind
        _solve_kind(tl.where(own, x, float("-inf")), peak, scores, out, mask,
                    tl.where(own, row, count), e, kind, count, columns, middle, inner,
                    steps, out_steps, mask_steps, LEVELS, False, LIST_STEEP, False,
                    J, R, K, V)  # fmt: skip
        kinds = tl.where(own, KINDS, kinds)
        kind = tl.min(tl.reshape(kinds, [R]), axis=0)
        rest = tl.where(kinds < KINDS, row, count)
        x = load_rows(scores, mask, rest, count, columns, middle, inner, steps, mask_steps,
                      LEVELS, False, J, R, K)  # fmt: skip


@triton.jit
def _by_alpha(alpha, alpha_steps, first, count, middle, inner, LEVELS: tl.constexpr,
              TILES: tl.constexpr, R: tl.constexpr):  # fmt: skip
    """The places of TILES * R rows in their block, sorted by alpha, as a matrix of tiles."""
    SIZE: tl.constexpr = TILES * R
    place = tl.arange(0, SIZE)
    e = row_epsilon(
        0.0, alpha, alpha_steps, first + place, count, middle, inner, LEVELS, EACH_ROW, SIZE
    )
    # A positive float32 sorts as an integer; its last bits make room for the place.
    key = tl.maximum(e.to(tl.int32, bitcast=True), 0) & -SIZE
    return tl.reshape(tl.sort(key | place) & (SIZE - 1), [TILES, R])


@kernel
def entmax_each_row(
    scores, out, mask, alpha, count, columns, middle, inner,
    steps, out_steps, mask_steps, alpha_steps,
    LEVELS: tl.constexpr, EVEN: tl.constexpr, LIST_SHARP: tl.constexpr, LIST_STEEP: tl.constexpr,
    J: tl.constexpr, R: tl.constexpr, K: tl.constexpr, V: tl.constexpr, TILES: tl.constexpr,
):  # fmt: skip
    first = (tl.program_id(0) * (TILES * R)).to(tl.int64)
    if R == 1:
        x = load_rows(scores, mask, first, count, columns, middle, inner, steps, mask_steps,
                      LEVELS, EVEN, J, 1, K)  # fmt: skip
        peak = finite_peak(row_max(slab_max(x)))
        e = row_epsilon(0.0, alpha, alpha_steps, first, count, middle, inner, LEVELS, EACH_ROW, 1)
        _solve_kind(x, peak, scores, out, mask, first, e, _kind_of(e), count, columns, middle, inner,
                    steps, out_steps, mask_steps, LEVELS, LIST_SHARP, LIST_STEEP, EVEN,
                    J, 1, K, V)  # fmt: skip
    elif TILES == 1:
        _some_rows(scores, out, mask, alpha, tile_rows(first, R), count, columns, middle, inner,
                   steps, out_steps, mask_steps, alpha_steps,
                   LEVELS, LIST_STEEP, EVEN, J, R, K, V)  # fmt: skip
    else:
        order = _by_alpha(alpha, alpha_steps, first, count, middle, inner, LEVELS, TILES, R)
        for i in range(TILES):
            chosen = tl.where(tl.arange(0, TILES)[:, None] == i, order, 0)
            row = first + along_rows(tl.sum(chosen, axis=0))
            _some_rows(scores, out, mask, alpha, row, count, columns, middle, inner,
                       steps, out_steps, mask_steps, alpha_steps,
                       LEVELS, LIST_STEEP, EVEN, J, R, K, V)  # fmt: skip
