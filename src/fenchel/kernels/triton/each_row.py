"""entmax of rows that fit on chip, each with an alpha of its own.

A row is solved as it would be if its alpha were a number: which way is a branch that a whole program
takes. Where a program holds several rows it takes a block of them, sorted by alpha, tile by tile: few
tiles then hold alphas of two kinds, and only these are gone through twice.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
import triton
import triton.language as tl

from fenchel.kernels.triton.entries import COARSE, EACH_ROW, GENERAL, POWER, SHARP, STEEP
from fenchel.kernels.triton.forward import solve_tile
from fenchel.kernels.triton.normalizer import NEAR_SOFTMAX, TAME
from fenchel.kernels.triton.reductions import along_rows, any_row
from fenchel.kernels.triton.small_support import solve_listed
from fenchel.kernels.triton.tiles import row_epsilon, tile_rows


@triton.jit
def _solve_as(
    scores, out, mask, row, e, count, columns, middle, inner, steps, out_steps, mask_steps,
    LEVELS: tl.constexpr, KIND: tl.constexpr, LIST: tl.constexpr, EVEN: tl.constexpr,
    J: tl.constexpr, R: tl.constexpr, K: tl.constexpr, V: tl.constexpr,
):  # fmt: skip
    if LIST:
        solve_listed(scores, out, mask, row, e, count, columns, middle, inner,
                     steps, out_steps, mask_steps, LEVELS, KIND, EVEN, J, R, K, V)  # fmt: skip
    else:
        solve_tile(scores, out, mask, row, e, count, columns, middle, inner,
                   steps, out_steps, mask_steps, LEVELS, KIND, EVEN, J, R, K)  # fmt: skip


@triton.jit
def _one_row(
    scores, out, mask, row, e, count, columns, middle, inner, steps, out_steps, mask_steps,
    LEVELS: tl.constexpr, MIDDLE: tl.constexpr, LIST_SHARP: tl.constexpr, LIST_STEEP: tl.constexpr,
    EVEN: tl.constexpr, J: tl.constexpr, K: tl.constexpr, V: tl.constexpr,
):  # fmt: skip
    if e > 1.0:
        _solve_as(scores, out, mask, row, e, count, columns, middle, inner, steps, out_steps,
                  mask_steps, LEVELS, STEEP, LIST_STEEP, EVEN, J, 1, K, V)  # fmt: skip
    elif e > TAME:
        _solve_as(scores, out, mask, row, e, count, columns, middle, inner, steps, out_steps,
                  mask_steps, LEVELS, SHARP, LIST_SHARP, EVEN, J, 1, K, V)  # fmt: skip
    elif tl.abs(e) < NEAR_SOFTMAX:
        _solve_as(scores, out, mask, row, e, count, columns, middle, inner, steps, out_steps,
                  mask_steps, LEVELS, GENERAL, False, EVEN, J, 1, K, V)  # fmt: skip
    else:
        _solve_as(scores, out, mask, row, e, count, columns, middle, inner, steps, out_steps,
                  mask_steps, LEVELS, MIDDLE, False, EVEN, J, 1, K, V)  # fmt: skip


@triton.jit
def _own_rows(
    scores, out, mask, row, e, own, count, columns, middle, inner, steps, out_steps, mask_steps,
    LEVELS: tl.constexpr, KIND: tl.constexpr, LIST: tl.constexpr,
    J: tl.constexpr, R: tl.constexpr, K: tl.constexpr, V: tl.constexpr,
):  # fmt: skip
    """Solve the rows of a tile whose alpha is of this kind, `own`; the others count as not there."""
    if any_row(own, R):
        _solve_as(scores, out, mask, tl.where(own, row, count), e, count, columns, middle, inner,
                  steps, out_steps, mask_steps, LEVELS, KIND, LIST, False, J, R, K, V)  # fmt: skip


@triton.jit
def _some_rows(
    scores, out, mask, row, e, count, columns, middle, inner, steps, out_steps, mask_steps,
    LEVELS: tl.constexpr, MIDDLE: tl.constexpr, LIST_SHARP: tl.constexpr, LIST_STEEP: tl.constexpr,
    J: tl.constexpr, R: tl.constexpr, K: tl.constexpr, V: tl.constexpr,
):  # fmt: skip
    near = tl.abs(e) < NEAR_SOFTMAX
    steep = e > 1.0
    sharp = (e > TAME) & (e <= 1.0)
    others = (near | sharp | steep) == 0
    _own_rows(scores, out, mask, row, e, others, count, columns, middle, inner, steps, out_steps,
              mask_steps, LEVELS, MIDDLE, False, J, R, K, V)  # fmt: skip
    _own_rows(scores, out, mask, row, e, sharp, count, columns, middle, inner, steps, out_steps,
              mask_steps, LEVELS, SHARP, LIST_SHARP, J, R, K, V)  # fmt: skip
    _own_rows(scores, out, mask, row, e, near, count, columns, middle, inner, steps, out_steps,
              mask_steps, LEVELS, GENERAL, False, J, R, K, V)  # fmt: skip
    _own_rows(scores, out, mask, row, e, steep, count, columns, middle, inner, steps, out_steps,
              mask_steps, LEVELS, STEEP, LIST_STEEP, J, R, K, V)  # fmt: skip


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


@triton.jit
def entmax_each_row(
    scores, out, mask, alpha, count, columns, middle, inner,
    steps, out_steps, mask_steps, alpha_steps,
    LEVELS: tl.constexpr, ROUNDED: tl.constexpr, EVEN: tl.constexpr,
    LIST_SHARP: tl.constexpr, LIST_STEEP: tl.constexpr,
    J: tl.constexpr, R: tl.constexpr, K: tl.constexpr, V: tl.constexpr, TILES: tl.constexpr,
):  # fmt: skip
    MIDDLE: tl.constexpr = COARSE if ROUNDED else POWER
    first = (tl.program_id(0) * (TILES * R)).to(tl.int64)
    if R == 1:
        e = row_epsilon(0.0, alpha, alpha_steps, first, count, middle, inner, LEVELS, EACH_ROW, 1)
        _one_row(scores, out, mask, first, e, count, columns, middle, inner, steps, out_steps,
                 mask_steps, LEVELS, MIDDLE, LIST_SHARP, LIST_STEEP, EVEN, J, K, V)  # fmt: skip
    elif TILES == 1:
        row = tile_rows(first, R)
        e = row_epsilon(0.0, alpha, alpha_steps, row, count, middle, inner, LEVELS, EACH_ROW, R)
        _some_rows(scores, out, mask, row, e, count, columns, middle, inner, steps, out_steps,
                   mask_steps, LEVELS, MIDDLE, LIST_SHARP, LIST_STEEP, J, R, K, V)  # fmt: skip
    else:
        order = _by_alpha(alpha, alpha_steps, first, count, middle, inner, LEVELS, TILES, R)
        for i in range(TILES):
            chosen = tl.where(tl.arange(0, TILES)[:, None] == i, order, 0)
            row = first + along_rows(tl.sum(chosen, axis=0))
            e = row_epsilon(0.0, alpha, alpha_steps, row, count, middle, inner, LEVELS, EACH_ROW, R)
            _some_rows(scores, out, mask, row, e, count, columns, middle, inner, steps, out_steps,
                       mask_steps, LEVELS, MIDDLE, LIST_SHARP, LIST_STEEP, J, R, K, V)  # fmt: skip
