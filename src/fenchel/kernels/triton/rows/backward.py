"""The Jacobian of entmax times a vector, from p alone: dx = s (g - m), m = <s, g>/<s, 1>.

s = p^(2 - alpha) where p > 0, and g is read only there. The gradient in alpha is <r, m - g> with
r = p l^2 phi2(-e l), l = log p. For alpha > 2 a small p has a huge weight and g - m nearly cancels,
so such rows add in float64. Rows that fit on chip are read once; longer ones twice, in blocks, as
are those of alpha > 2 beside others.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
import triton
import triton.language as tl

from fenchel.kernels.triton.arithmetic.divided_differences import phi2
from fenchel.kernels.triton.arithmetic.elementary import LN_2, log2
from fenchel.kernels.triton.arithmetic.powers import power, wide_power
from fenchel.kernels.triton.launch.addressing import row_offset
from fenchel.kernels.triton.launch.alpha import EACH_ROW, ENTMAX15, SOFTMAX, SPARSEMAX, STEEP
from fenchel.kernels.triton.launch.kernel import kernel
from fenchel.kernels.triton.tiles.across_threads import any_row, row_sum, row_sums
from fenchel.kernels.triton.tiles.axes import along_rows
from fenchel.kernels.triton.tiles.memory import (
    row_epsilon,
    tile_columns,
    tile_inside,
    tile_places,
    tile_rows,
)


@triton.jit
def weight(p, e, KIND: tl.constexpr):
    """s = p^(1 - e), 0 off the support; NaN counts as inside."""
    if KIND == SPARSEMAX:
        s = p * 0.0 + 1.0
    elif KIND == ENTMAX15:
        s = tl.sqrt(p)
    elif KIND == SOFTMAX:
        s = p
    else:
        s = power(p, 1.0 - e) + p * 0.0
    return tl.where(p == 0.0, 0.0, s)


@triton.jit
def wide_weight(p, e):
    """The same in float64, which alpha > 2 needs: p^(1 - e) may exceed every float32."""
    exponent = 1.0 - e
    s = wide_power(p, exponent, (1.0 - exponent) - e)
    zero = (e * 0.0).to(tl.float64)  # converted once, not for every entry
    return tl.where(p > 0.0, s, tl.where(p == 0.0, zero, float("nan")))


@triton.jit
def curve(p, s, e):
    """r = (s - p + e p l)/e^2, in the form that does not cancel where e l is small."""
    log_p = log2(p) * LN_2
    z = -e * log_p
    near = p * log_p * log_p * phi2(z)
    far = (s - p * (1.0 + z)) * (1.0 / (e * e))
    return tl.where(p == 0.0, 0.0, tl.where(tl.abs(z) <= 1.0, near, far))


@triton.jit
def mean_of(total, dot):
    return tl.where(total == 0.0, 0.0, dot / total)


@triton.jit
def _load(p, grad, p_places, grad_places, inside):
    """p and g in float32, with g = 0 where p = 0."""
    p_tile = tl.load(p + p_places, mask=inside, other=0.0).to(tl.float32)
    g_tile = tl.load(grad + grad_places, mask=inside & (p_tile != 0.0), other=0.0)
    return p_tile, g_tile.to(tl.float32)


@triton.jit
def _write_tile(
    p, g, out, in_alpha, row, column, e, count, columns, middle, inner, out_steps,
    LEVELS: tl.constexpr, KIND: tl.constexpr, ALPHA: tl.constexpr, R: tl.constexpr,
):  # fmt: skip
    """Write dx, and the gradient in alpha of every row."""
    s = wide_weight(p, e) if KIND == STEEP else weight(p, e, KIND)
    total, dot = row_sums(s, s * g)
    difference = g - mean_of(total, dot)
    places = tile_places(row, column, middle, inner, out_steps, LEVELS)
    inside = tile_inside(row, column, count, columns, R)
    tl.store(out + places, (s * difference).to(tl.float32), mask=inside)
    if ALPHA:
        slope = -row_sum(curve(p, s, e) * difference).to(tl.float32)
        tl.store(in_alpha + row, slope, mask=row < count)


@triton.jit
def _weighted_block(
    p, grad, row, start, e, count, columns, steps, grad_steps,
    KIND: tl.constexpr, WIDE: tl.constexpr, R: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """K columns of R rows: where they are, whether they exist, p, g and s."""
    column = start + tile_columns(1, K)
    place = column.to(tl.int64)
    inside = tile_inside(row, column, count, columns, R)
    p_tile, g_tile = _load(p, grad, place * steps[3], place * grad_steps[3], inside)
    s = wide_weight(p_tile, e) if WIDE else weight(p_tile, e, KIND)
    return place, inside, p_tile, g_tile, s


@triton.jit
def _stream_rows(
    p, grad, out, in_alpha, row, e, count, columns, middle, inner, steps, grad_steps, out_steps,
    LEVELS: tl.constexpr, KIND: tl.constexpr, WIDE: tl.constexpr, ALPHA: tl.constexpr,
    R: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """Read R rows twice, K columns at a time; WIDE: in float64."""
    p += row_offset(row, middle, inner, steps, LEVELS)
    grad += row_offset(row, middle, inner, grad_steps, LEVELS)
    out += row_offset(row, middle, inner, out_steps, LEVELS)
    SUM: tl.constexpr = tl.float64 if WIDE else tl.float32
    total = along_rows(tl.zeros([R], SUM)) + tl.zeros([1, 1, K], SUM)
    dot = along_rows(tl.zeros([R], SUM)) + tl.zeros([1, 1, K], SUM)
    for start in range(0, columns, K):
        place, inside, p_tile, g_tile, s = _weighted_block(
            p, grad, row, start, e, count, columns, steps, grad_steps, KIND, WIDE, R, K
        )
        total += s
        dot += s * g_tile
    total_sum, dot_sum = row_sums(total, dot)
    mean = mean_of(total_sum, dot_sum)
    slope = along_rows(tl.zeros([R], tl.float32)) + tl.zeros([1, 1, K], tl.float32)
    for start in range(0, columns, K):
        place, inside, p_tile, g_tile, s = _weighted_block(
            p, grad, row, start, e, count, columns, steps, grad_steps, KIND, WIDE, R, K
        )
        difference = g_tile - mean
        tl.store(out + place * out_steps[3], (s * difference).to(tl.float32), mask=inside)
        if ALPHA:
            slope -= (curve(p_tile, s, e) * difference).to(tl.float32)
    if ALPHA:
        tl.store(in_alpha + row, row_sum(slope), mask=row < count)


@kernel
def backward_tile(
    p, grad, out, alpha, in_alpha, eps, count, columns, middle, inner,
    steps, grad_steps, out_steps, alpha_steps,
    LEVELS: tl.constexpr, KIND: tl.constexpr, ALPHA: tl.constexpr,
    J: tl.constexpr, R: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    row = tile_rows(tl.program_id(0), R)
    column = tile_columns(J, K)
    inside = tile_inside(row, column, count, columns, R)
    p_tile, g_tile = _load(
        p,
        grad,
        tile_places(row, column, middle, inner, steps, LEVELS),
        tile_places(row, column, middle, inner, grad_steps, LEVELS),
        inside,
    )
    e = row_epsilon(eps, alpha, alpha_steps, row, count, middle, inner, LEVELS, KIND, R)
    if KIND == EACH_ROW:
        steep = e > 1.0
        if any_row(steep == 0, R):
            _write_tile(p_tile, g_tile, out, in_alpha, tl.where(steep, count, row), column, e, count,
                        columns, middle, inner, out_steps, LEVELS, KIND, ALPHA, R)  # fmt: skip
        if any_row(steep, R):
            # Slab by slab: whole tiles of float64 would cost every other row its registers.
            _stream_rows(p, grad, out, in_alpha, tl.where(steep, row, count), e, count, columns,
                         middle, inner, steps, grad_steps, out_steps,
                         LEVELS, KIND, True, ALPHA, R, K)  # fmt: skip
    else:
        _write_tile(p_tile, g_tile, out, in_alpha, row, column, e, count, columns, middle, inner,
                    out_steps, LEVELS, KIND, ALPHA, R)  # fmt: skip


@kernel
def backward_blocks(
    p, grad, out, alpha, in_alpha, eps, count, columns, middle, inner,
    steps, grad_steps, out_steps, alpha_steps,
    LEVELS: tl.constexpr, KIND: tl.constexpr, ALPHA: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    row = tile_rows(tl.program_id(0), 1)
    e = row_epsilon(eps, alpha, alpha_steps, row, count, middle, inner, LEVELS, KIND, 1)
    if KIND == EACH_ROW:
        if e > 1.0:
            _stream_rows(p, grad, out, in_alpha, row, e, count, columns, middle, inner,
                         steps, grad_steps, out_steps, LEVELS, KIND, True, ALPHA, 1, K // 4)  # fmt: skip
        else:
            _stream_rows(p, grad, out, in_alpha, row, e, count, columns, middle, inner,
                         steps, grad_steps, out_steps, LEVELS, KIND, False, ALPHA, 1, K)  # fmt: skip
    else:
        _stream_rows(p, grad, out, in_alpha, row, e, count, columns, middle, inner,
                     steps, grad_steps, out_steps, LEVELS, KIND, KIND == STEEP, ALPHA, 1, K)  # fmt: skip
