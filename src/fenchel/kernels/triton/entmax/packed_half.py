"""entmax of long rows in half precision for alpha = 2 and 3/2, with two scores per register.

Scores are widened again in every visit. A row takes half the registers of its float32, so two programs
run on a multiprocessor: while one solves its row, the other loads or stores. A row is a tuple of slabs,
which are tiles of one row with J = 1 (`tiles/layout`); its columns are neighbours in memory.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
# pyright: reportGeneralTypeIssues=false
# ruff: noqa: RET505, RUF005 (what is known when a kernel is compiled needs if, else and +)
from typing import Any

import triton
import triton.language as tl

from fenchel.kernels.triton.arithmetic.elementary import (
    INTERPRETED,
    saturate,
    two_sum,
)
from fenchel.kernels.triton.arithmetic.entries import (
    HUGE,
)
from fenchel.kernels.triton.launch.addressing import (
    Rows,
    Strides,
    row_offset,
)
from fenchel.kernels.triton.launch.kernel import (
    kernel,
)
from fenchel.kernels.triton.launch.parameters import (
    ENTMAX15,
)
from fenchel.kernels.triton.launch.tile_shapes import (
    packed_tile,
)
from fenchel.kernels.triton.solver.newton import (
    find_root,
    guess_halfway,
    newton_step,
)
from fenchel.kernels.triton.solver.normalizer import (
    FINE_TOLERANCE,
    SUBSET_TOLERANCE,
    below_peak,
    entry_below_peak,
)
from fenchel.kernels.triton.tiles.layout import (
    finite_peak,
    store_tile,
    tile_rows,
)
from fenchel.kernels.triton.tiles.reductions import (
    nan_max,
    row_max,
    row_sums,
)

HALF_TOLERANCE: tl.constexpr = tl.constexpr(
    2e-5
)  # excess at which a step is the last if p is rounded


def launch_packed_half(
    tensors: list[Any], kind: int, eps: float, rows: Rows, steps: list[Strides]
) -> None:
    tile = packed_tile(rows)
    entmax_packed_half[(rows.count,)](
        *tensors[:2], eps, rows.columns, rows.middle, rows.inner, *steps[:2],
        LEVELS=rows.levels, KIND=kind, EVEN=tile.divides(rows), J=tile.slabs, K=tile.width,
        num_warps=tile.warps, maxnreg=tile.registers,
    )  # fmt: skip


@triton.jit
def widen(x, zero):
    """Scores in float32; `zero` is a zero that the compiler cannot see.

    With another zero, the compiler does not reuse the float32 of an earlier visit, which would take
    registers for all scores.
    """
    if INTERPRETED or x.dtype == tl.float32:
        return x.to(tl.float32)
    elif x.dtype == tl.bfloat16:
        return tl.inline_asm_elementwise(
            "{.reg .b32 s; add.s32 s, $3, 0x1044; prmt.b32 $0, $2, 0, s;"
            " add.s32 s, $4, 0x3244; prmt.b32 $1, $2, 0, s;}",
            "=r,=r,r,r,r",
            [x, zero],
            dtype=tl.float32,
            is_pure=False,
            pack=2,
        )
    else:
        return tl.inline_asm_elementwise(
            "{.reg .b32 s; .reg .b16 a, b; xor.b32 s, $2, $3; mov.b32 {a, b}, s;"
            " cvt.f32.f16 $0, a; cvt.f32.f16 $1, b;}",
            "=f,=f,r,r,r",
            [x, zero],
            dtype=tl.float32,
            is_pure=False,
            pack=2,
        )


@triton.jit
def _larger_halves(a, b):
    """The larger scores, two at a time; NaN counts as largest."""
    if a.dtype == tl.bfloat16:
        return tl.inline_asm_elementwise(
            "max.NaN.bf16x2 $0, $1, $2;", "=r,r,r", [a, b], dtype=tl.bfloat16, is_pure=True, pack=2
        )
    else:
        return tl.inline_asm_elementwise(
            "max.NaN.f16x2 $0, $1, $2;", "=r,r,r", [a, b], dtype=tl.float16, is_pure=True, pack=2
        )


@triton.jit
def _largest(slabs, zero):
    """The largest scores of the slabs, in float32."""
    if INTERPRETED:
        largest = widen(slabs[0], zero)
        for j in tl.static_range(1, len(slabs)):
            largest = nan_max(largest, widen(slabs[j], zero))
        return largest
    else:
        held = slabs[0]
        for j in tl.static_range(1, len(slabs)):
            held = _larger_halves(held, slabs[j])
        return widen(held, zero)


@triton.jit
def _unknown_zero(point):
    """0, because no point is above the largest score."""
    return (point > 1.0).to(tl.int32)


@triton.jit
def _terms(x, peak, point, KIND: tl.constexpr):
    """What every score adds to F and to its slope."""
    z = below_peak(widen(x, _unknown_zero(point)), peak, KIND)
    if KIND == ENTMAX15:
        t = saturate(z - point * 0.5)
        return t * t, t
    else:
        t = saturate(z - point)
        return t, saturate(t * HUGE)


@triton.jit
def _visit(data, point, e, KIND: tl.constexpr):
    """F and Newton's step; `data` = (slabs, peak)."""
    slabs, peak = data
    mass, slope = _terms(slabs[0], peak, point, KIND)
    for j in tl.static_range(1, len(slabs)):
        more, steeper = _terms(slabs[j], peak, point, KIND)
        mass += more
        slope += steeper
    mass, slope = row_sums(mass, slope)
    return mass, newton_step(mass, slope, e, KIND)


@kernel
def entmax_packed_half(
    scores, out, eps, columns, middle, inner, steps, out_steps,
    LEVELS: tl.constexpr, KIND: tl.constexpr, EVEN: tl.constexpr,
    J: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    row = tile_rows(tl.program_id(0), 1)
    e = eps + 0.0
    scores += row_offset(row, middle, inner, steps, LEVELS)
    out += row_offset(row, middle, inner, out_steps, LEVELS)
    slabs = ()
    for j in tl.static_range(J):
        column = j * K + tl.arange(0, K)[None, None, :]
        if EVEN:
            slab = tl.load(scores + column)
        else:
            slab = tl.load(scores + column, mask=column < columns, other=float("-inf"))
        slabs = slabs + (slab,)
    largest = _largest(slabs, _unknown_zero(-e))
    peak = finite_peak(row_max(largest))
    point = guess_halfway(_visit, ((largest,), peak), e, KIND)
    point, step = find_root(
        _visit, ((largest,), peak), point, e, columns, SUBSET_TOLERANCE, 0.0, 1, KIND
    )
    ROUNDED: tl.constexpr = KIND == ENTMAX15 and out.dtype.element_ty.primitive_bitwidth < 32
    loose: tl.constexpr = HALF_TOLERANCE if ROUNDED else FINE_TOLERANCE
    point, low = find_root(_visit, (slabs, peak), point + step, e, columns, loose, 0.0, 1, KIND)
    point, low = two_sum(point, low)
    for j in tl.static_range(J):
        z = below_peak(widen(slabs[j], _unknown_zero(point)), peak, KIND)
        p = entry_below_peak(z, point, 0.0 if ROUNDED else low, e, KIND)
        p += peak - peak  # NaN if there is one
        column = j * K + tl.arange(0, K)[None, None, :]
        store_tile(out, column, p, column < columns, EVEN)
