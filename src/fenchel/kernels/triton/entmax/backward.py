"""The gradients of entmax in the scores and in alpha, from p alone: (N.19) and (N.20).

g is read only where p > 0. For alpha > 2 a small p has a huge weight and g - m nearly cancels, so such
rows add in float64. Rows that fit on chip are read once; longer rows twice, in blocks, and so are rows
with alpha > 2 among others.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
from torch import Tensor

from fenchel.kernels.triton.arithmetic.elementary import (
    LN_2,
    log2,
    phi2,
)
from fenchel.kernels.triton.arithmetic.powers import (
    power,
    wide_power,
)
from fenchel.kernels.triton.launch.addressing import (
    address,
    copy_back,
    row_offset,
)
from fenchel.kernels.triton.launch.kernel import (
    kernel,
)
from fenchel.kernels.triton.launch.parameters import (
    ABOVE_2,
    ALPHA_PER_ROW,
    ENTMAX15,
    SOFTMAX,
    SPARSEMAX,
    kind_of,
)
from fenchel.kernels.triton.launch.replay import (
    replayed,
)
from fenchel.kernels.triton.launch.tile_shapes import (
    BACKWARD_BLOCK_COLUMNS,
    MAX_BACKWARD_TILE_COLUMNS,
    backward_tile_shape,
    ceil_div,
)
from fenchel.kernels.triton.tiles.layout import (
    along_rows,
    row_epsilon,
    tile_columns,
    tile_inside,
    tile_places,
    tile_rows,
)
from fenchel.kernels.triton.tiles.reductions import (
    any_row,
    row_sum,
    row_sums,
)


@replayed
def entmax_backward(grad: Tensor, p: Tensor, alpha: float | Tensor, dim: int = -1) -> Tensor:
    """J g = s∘g − s (s·g)/Σs with s = p^{2−α} on the support; J is symmetric, so jvp = vjp."""
    return _backward(grad, p, alpha, dim, in_alpha=None)


def entmax_backward_alpha(
    grad: Tensor, p: Tensor, alpha: Tensor, dim: int = -1
) -> tuple[Tensor, Tensor]:
    """The gradients in the scores and in α, the latter in float32, one per row (size 1 along `dim`)."""
    shape = list(p.shape)
    del shape[dim]
    in_alpha = torch.zeros(shape, dtype=torch.float32, device=p.device)
    by_scores = _backward(grad, p, alpha, dim, in_alpha)
    return by_scores, in_alpha.unsqueeze(dim)


def _backward(
    grad: Tensor, p: Tensor, alpha: float | Tensor, dim: int, in_alpha: Tensor | None
) -> Tensor:
    out = torch.empty_like(p)
    if p.numel() == 0:
        return out
    kind, eps, alphas = kind_of(alpha)
    rows, tensors, steps = address(dim, p, grad, out, alphas)
    arguments = (
        *tensors, in_alpha, eps, rows.count, rows.columns, rows.middle, rows.inner, *steps
    )  # fmt: skip
    options = {"LEVELS": rows.levels, "KIND": kind, "ALPHA": in_alpha is not None}
    if rows.columns > MAX_BACKWARD_TILE_COLUMNS:
        entmax_backward_blocks[(rows.count,)](
            *arguments, **options, K=BACKWARD_BLOCK_COLUMNS, num_warps=16
        )
        return copy_back(out, tensors[2])
    tile = backward_tile_shape(rows, p.element_size(), kind)
    entmax_backward_tile[(ceil_div(rows.count, tile.rows),)](
        *arguments, **options, J=tile.slabs, R=tile.rows, K=tile.width, num_warps=tile.warps
    )
    return copy_back(out, tensors[2])


@triton.jit
def power_weight(p, e, KIND: tl.constexpr):
    """s = p^(1 - e), 0 off the support; NaN where p is."""
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
def power_weight_float64(p, e):
    """The same in float64, which alpha > 2 needs: p^(1 - e) may exceed every float32."""
    exponent = 1.0 - e
    s = wide_power(p, exponent, (1.0 - exponent) - e)
    zero = (e * 0.0).to(tl.float64)  # converted once, not for every entry
    return tl.where(p > 0.0, s, tl.where(p == 0.0, zero, float("nan")))


@triton.jit
def alpha_curvature(p, s, e):
    """r = (s - p + e p l)/e^2, in the form that does not cancel where e l is small."""
    log_p = log2(p) * LN_2
    z = -e * log_p
    near = p * log_p * log_p * phi2(z)
    far = (s - p * (1.0 + z)) * (1.0 / (e * e))
    return tl.where(p == 0.0, 0.0, tl.where(tl.abs(z) <= 1.0, near, far))


@triton.jit
def weighted_mean(total, dot):
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
    s = power_weight_float64(p, e) if KIND == ABOVE_2 else power_weight(p, e, KIND)
    total, dot = row_sums(s, s * g)
    difference = g - weighted_mean(total, dot)
    places = tile_places(row, column, middle, inner, out_steps, LEVELS)
    inside = tile_inside(row, column, count, columns, R)
    tl.store(out + places, (s * difference).to(tl.float32), mask=inside)
    if ALPHA:
        slope = -row_sum(alpha_curvature(p, s, e) * difference).to(tl.float32)
        tl.store(in_alpha + row, slope, mask=row < count)


@triton.jit
def _weighted_block(
    p, grad, row, start, e, count, columns, steps, grad_steps,
    KIND: tl.constexpr, WIDE: tl.constexpr, R: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """K columns of R rows: offsets, mask, p, g and s."""
    column = start + tile_columns(1, K)
    place = column.to(tl.int64)
    inside = tile_inside(row, column, count, columns, R)
    p_tile, g_tile = _load(p, grad, place * steps[3], place * grad_steps[3], inside)
    s = power_weight_float64(p_tile, e) if WIDE else power_weight(p_tile, e, KIND)
    return place, inside, p_tile, g_tile, s


@triton.jit
def _walk_rows(
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
    mean = weighted_mean(total_sum, dot_sum)
    slope = along_rows(tl.zeros([R], tl.float32)) + tl.zeros([1, 1, K], tl.float32)
    for start in range(0, columns, K):
        place, inside, p_tile, g_tile, s = _weighted_block(
            p, grad, row, start, e, count, columns, steps, grad_steps, KIND, WIDE, R, K
        )
        difference = g_tile - mean
        tl.store(out + place * out_steps[3], (s * difference).to(tl.float32), mask=inside)
        if ALPHA:
            slope -= (alpha_curvature(p_tile, s, e) * difference).to(tl.float32)
    if ALPHA:
        tl.store(in_alpha + row, row_sum(slope), mask=row < count)


@kernel
def entmax_backward_tile(
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
    if KIND == ALPHA_PER_ROW:
        steep = e > 1.0
        if any_row(steep == 0, R):
            _write_tile(
                p_tile, g_tile, out, in_alpha, tl.where(steep, count, row), column, e, count,
                columns, middle, inner, out_steps, LEVELS, KIND, ALPHA, R,
            )  # fmt: skip
        if any_row(steep, R):
            # Slab by slab: whole tiles of float64 would cost every other row its registers.
            _walk_rows(
                p, grad, out, in_alpha, tl.where(steep, row, count), e, count, columns, middle,
                inner, steps, grad_steps, out_steps, LEVELS, KIND, True, ALPHA, R, K,
            )  # fmt: skip
    else:
        _write_tile(
            p_tile, g_tile, out, in_alpha, row, column, e, count, columns, middle, inner, out_steps,
            LEVELS, KIND, ALPHA, R,
        )  # fmt: skip


@kernel
def entmax_backward_blocks(
    p, grad, out, alpha, in_alpha, eps, count, columns, middle, inner,
    steps, grad_steps, out_steps, alpha_steps,
    LEVELS: tl.constexpr, KIND: tl.constexpr, ALPHA: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    row = tile_rows(tl.program_id(0), 1)
    e = row_epsilon(eps, alpha, alpha_steps, row, count, middle, inner, LEVELS, KIND, 1)
    if KIND == ALPHA_PER_ROW:
        if e > 1.0:
            _walk_rows(
                p, grad, out, in_alpha, row, e, count, columns, middle, inner, steps, grad_steps,
                out_steps, LEVELS, KIND, True, ALPHA, 1, K // 4,
            )  # fmt: skip
        else:
            _walk_rows(
                p, grad, out, in_alpha, row, e, count, columns, middle, inner, steps, grad_steps,
                out_steps, LEVELS, KIND, False, ALPHA, 1, K,
            )  # fmt: skip
    else:
        _walk_rows(
            p, grad, out, in_alpha, row, e, count, columns, middle, inner, steps, grad_steps,
            out_steps, LEVELS, KIND, KIND == ABOVE_2, ALPHA, 1, K,
        )  # fmt: skip
