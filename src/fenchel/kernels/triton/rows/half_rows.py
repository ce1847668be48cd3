"""entmax of long rows in half precision, for alpha = 2 and 3/2: held in registers as they were read.

Two scores share a register and are widened anew in every visit. So a row takes half the registers
of its float32, and two programs run on a multiprocessor: while one of them solves, the other moves
its row. A row is a tuple of slabs, tiles of one row (`axes`) with J = 1; its columns are neighbours in
memory.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
# pyright: reportGeneralTypeIssues=false
# ruff: noqa: RET505, RUF005 (what is known when a kernel is compiled needs if, else and +)
import triton
import triton.language as tl

from fenchel.kernels.triton.arithmetic.elementary import INTERPRETED, saturate
from fenchel.kernels.triton.arithmetic.entries import HUGE, first_point
from fenchel.kernels.triton.arithmetic.two_floats import two_sum
from fenchel.kernels.triton.launch.addressing import row_offset
from fenchel.kernels.triton.launch.alpha import ENTMAX15
from fenchel.kernels.triton.launch.kernel import kernel
from fenchel.kernels.triton.search.climbing import climb
from fenchel.kernels.triton.search.normalizer import FINE, SUBSET, below_peak, entry_below_peak
from fenchel.kernels.triton.search.steps import newton_step
from fenchel.kernels.triton.tiles.across_threads import row_max, row_sums
from fenchel.kernels.triton.tiles.combining import larger
from fenchel.kernels.triton.tiles.memory import finite_peak, store_tile, tile_rows

HALFWAY: tl.constexpr = tl.constexpr(0.5)  # where the edge is first sought, in 1/e below the peak
HALF_FINE: tl.constexpr = tl.constexpr(2e-5)  # excess at which a step is the last if p is rounded


@triton.jit
def widen(x, zero):
    """Scores in float32; `zero` is one that the compiler does not know.

    A score widened with another zero is another score to the compiler, which would otherwise keep
    the float32 of all of them from one visit to the next.
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
    """The larger scores, two at once; NaN wins."""
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
            largest = larger(largest, widen(slabs[j], zero))
        return largest
    else:
        held = slabs[0]
        for j in tl.static_range(1, len(slabs)):
            held = _larger_halves(held, slabs[j])
        return widen(held, zero)


@triton.jit
def _zero(point):
    """0, since no point lies above the largest score."""
    return (point > 1.0).to(tl.int32)


@triton.jit
def _terms(x, peak, point, KIND: tl.constexpr):
    """What every score adds to F and to its slope."""
    z = below_peak(widen(x, _zero(point)), peak, KIND)
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


@triton.jit
def begin_halfway(visit: tl.constexpr, data, e, KIND: tl.constexpr):
    """A point at or to the left of the root, nearer to it than the first one in most rows."""
    lowest = first_point(e, KIND)
    _, step = visit(data, lowest * HALFWAY, e, KIND)
    return tl.maximum(lowest * HALFWAY + step, lowest)


@kernel
def entmax_halves(
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
    largest = _largest(slabs, _zero(-e))
    peak = finite_peak(row_max(largest))
    point = begin_halfway(_visit, ((largest,), peak), e, KIND)
    point, step = climb(_visit, ((largest,), peak), point, e, columns, SUBSET, 0.0, 1, KIND)
    ROUNDED: tl.constexpr = KIND == ENTMAX15 and out.dtype.element_ty.primitive_bitwidth < 32
    loose: tl.constexpr = HALF_FINE if ROUNDED else FINE
    point, low = climb(_visit, (slabs, peak), point + step, e, columns, loose, 0.0, 1, KIND)
    point, low = two_sum(point, low)
    for j in tl.static_range(J):
        z = below_peak(widen(slabs[j], _zero(point)), peak, KIND)
        p = entry_below_peak(z, point, 0.0 if ROUNDED else low, e, KIND)
        p += peak - peak  # NaN if there is one
        column = j * K + tl.arange(0, K)[None, None, :]
        store_tile(out, column, p, column < columns, EVEN)
