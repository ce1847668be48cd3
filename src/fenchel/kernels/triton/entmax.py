"""entmax and its derivatives along any dimension of a CUDA tensor: what runs, and with which tiles.

    entmax                  argmax_p <p, x> - Omega_alpha(p) over the simplex
    entmax_backward         its Jacobian times a vector, from p alone
    entmax_backward_alpha   the same, and the gradient in alpha

`alpha` is a number, or a tensor with one value a row (size 1 along `dim`, broadcast elsewhere); `mask`
is boolean and broadcasts. Nothing waits for the device, so CUDA graphs can capture every call.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from fenchel.kernels.triton.launch.addressing import Rows, Strides, address, copy_back
from fenchel.kernels.triton.launch.alpha import (
    COARSE,
    EACH_ROW,
    GENERAL,
    POWER,
    SHARP,
    SOFTMAX,
    STEEP,
    kind_of,
    powers_of,
    with_hardware_logarithms,
)
from fenchel.kernels.triton.launch.long_row_shapes import (
    STREAMED_REGISTERS,
    near_rows_shape,
    streamed_shape,
    streams_rows,
)
from fenchel.kernels.triton.launch.replay import replayed
from fenchel.kernels.triton.launch.tile_shapes import (
    BACKWARD_BLOCK,
    LONGEST_BACKWARD,
    Tile,
    backward_tile_shape,
    fits_tile,
    forward_tile_shape,
    halves_tile_shape,
    holds_halves,
    least_itemsize,
    worth_listing,
)
from fenchel.kernels.triton.launch.whole_numbers import ceiling
from fenchel.kernels.triton.rows.backward import backward_blocks, backward_tile
from fenchel.kernels.triton.rows.each_row import entmax_each_row, entmax_ordered_rows
from fenchel.kernels.triton.rows.half_rows import entmax_halves
from fenchel.kernels.triton.rows.long_rows import solve_long_rows, write_groups
from fenchel.kernels.triton.rows.near_rows import entmax_near_rows
from fenchel.kernels.triton.rows.on_chip import entmax_tile
from fenchel.kernels.triton.rows.row_order import order_by_kind
from fenchel.kernels.triton.rows.small_support import entmax_listed
from fenchel.kernels.triton.rows.softmax import add_long_rows, write_softmax
from fenchel.kernels.triton.rows.streamed_rows import entmax_streamed
from fenchel.kernels.triton.search.softmax_guess import HEAVY

WALKED = 0.2  # alpha - 1 up to which a long row is walked along: few of its scores are left out
POWERS = (POWER.value, COARSE.value)
# With one alpha a row:
ORDERED_TILES, ORDERED_ROWS = 4096, 16384  # from so many on it pays to put them in order,
MOST_ORDERED = 2**30  # and up to so many, whose places are int32
WIDE = 2**31  # offsets from here on are no int32
TILE_REGISTERS, ORDERED_REGISTERS, ONE_ROW_REGISTERS = 80, 64, 128


@replayed
def entmax(
    scores: Tensor, alpha: float | Tensor, mask: Tensor | None = None, dim: int = -1
) -> Tensor:
    """argmax_{p ∈ Δ} ⟨p, x⟩ + H_α(p) along `dim`; −inf and what the mask leaves out get zero."""
    out = torch.empty_like(scores)
    if scores.numel() > 0:
        entmax_into(out, scores, alpha, mask, dim)
    return out


def entmax_into(
    out: Tensor, scores: Tensor, alpha: float | Tensor, mask: Tensor | None, dim: int
) -> None:
    """Write entmax into `out`, which may have another dtype and other strides than the scores."""
    kind, eps, alphas = kind_of(alpha)
    kind = with_hardware_logarithms(kind, eps, rounded=out.element_size() < 4)
    rows, tensors, steps = address(dim, scores, out, mask, alphas)
    dense = mask is None and steps[0][3] == steps[1][3] == 1
    if dense and holds_halves(kind, rows, scores.element_size()):
        _entmax_halves(tensors, kind, eps, rows, steps)
    elif fits_tile(kind, rows.columns):
        _entmax_tiles(tensors, kind, eps, rows, steps)
    elif kind == SOFTMAX.value:
        _softmax_parts(tensors, rows, steps)
    elif dense and streams_rows(kind, rows):
        _entmax_streamed(tensors, kind, eps, rows, steps)
    elif kind == GENERAL.value or eps < 0 or (kind in POWERS and eps < WALKED):
        _entmax_near_rows(tensors, eps, rows, steps)
    else:
        _entmax_groups(tensors, kind, eps, rows, steps)
    copy_back(out, tensors[1])


def _entmax_halves(
    tensors: list[Any], kind: int, eps: float, rows: Rows, steps: list[Strides]
) -> None:
    tile = halves_tile_shape(rows)
    entmax_halves[(rows.count,)](
        *tensors[:2], eps, rows.columns, rows.middle, rows.inner, *steps[:2],
        LEVELS=rows.levels, KIND=kind, EVEN=tile.divides(rows), J=tile.slabs, K=tile.width,
        num_warps=tile.warps, maxnreg=tile.registers,
    )  # fmt: skip


def _entmax_tiles(
    tensors: list[Any], kind: int, eps: float, rows: Rows, steps: list[Strides]
) -> None:
    scores, out, mask, _alphas = tensors
    tile = forward_tile_shape(rows, least_itemsize(scores, mask), kind, steps[0].column)
    if kind == EACH_ROW.value:
        _each_row(tensors, tile, rows, steps)
        return
    options = {"LEVELS": rows.levels, "KIND": kind, "EVEN": tile.divides(rows)}
    shape = {"J": tile.slabs, "R": tile.rows, "K": tile.width}
    limits = {"num_warps": tile.warps, "maxnreg": tile.registers}
    solve, more = entmax_tile, {"POWERS": powers_of(eps, rounded=out.element_size() < 4)}
    if worth_listing(kind, tile):
        solve, more = entmax_listed, {"V": tile.vector}
    solve[(ceiling(rows.count, tile.rows),)](
        *tensors, eps, rows.count, rows.columns, rows.middle, rows.inner, *steps,
        **options, **shape, **limits, **more,
    )  # fmt: skip


def _each_row(tensors: list[Any], tile: Tile, rows: Rows, steps: list[Strides]) -> None:
    tiles, order = ceiling(rows.count, tile.rows), ()
    solve, even = entmax_each_row, tile.divides(rows)
    wide = any(_reach(rows, each) >= WIDE for each in steps)
    if _worth_ordering(tiles, tile, steps[3]):
        tiles, *order = order_by_kind(tensors[3], rows, steps[3], tile.rows, wide=wide)
        solve, even = entmax_ordered_rows, rows.columns == tile.slabs * tile.width
    solve[(tiles,)](
        *tensors, *order, rows.count, rows.columns, rows.middle, rows.inner, *steps,
        LEVELS=rows.levels, WIDE=wide, EVEN=even,
        LIST_SHARP=worth_listing(SHARP.value, tile), LIST_STEEP=worth_listing(STEEP.value, tile),
        J=tile.slabs, R=tile.rows, K=tile.width, V=tile.vector,
        num_warps=tile.warps, maxnreg=_registers_of_rows(tile, ordered=bool(order)),
    )  # fmt: skip


def _worth_ordering(tiles: int, tile: Tile, alpha_steps: Strides) -> bool:
    """Whether there are so many rows that it pays to put them in order by the kinds of their alphas.

    Where an alpha is that of many neighbours, as of all queries of a head, long rows are in order.
    """
    if tile.rows > 1:
        return tiles >= ORDERED_TILES and tiles * tile.rows <= MOST_ORDERED
    return tiles >= ORDERED_ROWS and alpha_steps.inner != 0


def _reach(rows: Rows, steps: Strides) -> int:
    """A bound of the offsets in a tensor with these strides."""
    outer = rows.count // (rows.middle * rows.inner)
    sizes = outer, rows.middle, rows.inner, rows.columns
    return sum(size * step for size, step in zip(sizes, steps, strict=True))


def _registers_of_rows(tile: Tile, *, ordered: bool) -> int | None:
    """A kernel that knows every kind of alpha would take what the largest of them can use."""
    if tile.rows > 1:
        return ORDERED_REGISTERS if ordered else TILE_REGISTERS
    return ONE_ROW_REGISTERS if tile.warps == 1 else None


def _entmax_near_rows(tensors: list[Any], eps: float, rows: Rows, steps: list[Strides]) -> None:
    tile = near_rows_shape(rows, least_itemsize(tensors[0], tensors[2]))
    powers = powers_of(eps, rounded=tensors[1].element_size() < 4)
    entmax_near_rows[(rows.count,)](
        *tensors[:3], eps, rows.columns, rows.middle, rows.inner, *steps[:3],
        LEVELS=rows.levels, POWERS=powers, HEAVY=eps < HEAVY.value,
        EVEN=rows.columns % (tile.slabs * tile.width) == 0,
        J=tile.slabs, K=tile.width, V=tile.vector, num_warps=tile.warps, maxnreg=tile.registers,
    )  # fmt: skip


def _entmax_groups(
    tensors: list[Any], kind: int, eps: float, rows: Rows, steps: list[Strides]
) -> None:
    scores, out, mask, alphas = tensors
    own = steps[0], steps[2], steps[3]
    shape, maxima, _, state = solve_long_rows(scores, mask, alphas, kind, eps, rows, *own)
    write_groups[(rows.count, ceiling(shape.groups, shape.block))](
        scores, out, mask, alphas, maxima, state, eps,
        rows.count, rows.columns, shape.groups, rows.middle, rows.inner, *steps,
        LEVELS=rows.levels, KIND=kind, GROUP=shape.size, BLOCK=shape.block, num_warps=shape.warps,
    )  # fmt: skip


def _entmax_streamed(
    tensors: list[Any], kind: int, eps: float, rows: Rows, steps: list[Strides]
) -> None:
    scores, out, _mask, _alphas = tensors
    shape = streamed_shape(rows.columns, scores.element_size())
    maxima = torch.empty((rows.count, shape.groups), dtype=scores.dtype, device=scores.device)
    listed = torch.empty_like(maxima, dtype=torch.int32)
    entmax_streamed[(rows.count,)](
        scores, out, maxima, listed, eps, rows.columns, shape.groups, rows.middle, rows.inner,
        *steps[:2],
        LEVELS=rows.levels, KIND=kind, GROUP=shape.size, BLOCK=shape.block, LISTED=shape.listed,
        WIDTH=shape.width, num_warps=shape.warps, maxnreg=STREAMED_REGISTERS,
    )  # fmt: skip


def _softmax_parts(tensors: list[Any], rows: Rows, steps: list[Strides]) -> None:
    scores, out, mask, _alphas = tensors
    shape, parts = add_long_rows(scores, mask, None, rows, steps[0], steps[2], steps[2])
    write_softmax[(rows.count, shape.count)](
        scores, out, mask, parts, rows.columns, rows.middle, rows.inner, *steps[:3],
        LEVELS=rows.levels, K=shape.block, WIDTH=shape.width, num_warps=shape.warps,
    )  # fmt: skip


@replayed
def entmax_backward(grad: Tensor, p: Tensor, alpha: float | Tensor, dim: int = -1) -> Tensor:
    """J g = s∘g − s (s·g)/Σs with s = p^{2−α} on the support; J is symmetric, so jvp = vjp."""
    return _backward(grad, p, alpha, dim, in_alpha=None)


def entmax_backward_alpha(
    grad: Tensor, p: Tensor, alpha: Tensor, dim: int = -1
) -> tuple[Tensor, Tensor]:
    """The gradients in the scores and in α, the latter in float32 and one a row (size 1 along `dim`)."""
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
    if rows.columns > LONGEST_BACKWARD:
        backward_blocks[(rows.count,)](*arguments, **options, K=BACKWARD_BLOCK, num_warps=16)
        return copy_back(out, tensors[2])
    tile = backward_tile_shape(rows, p.element_size(), kind)
    backward_tile[(ceiling(rows.count, tile.rows),)](
        *arguments, **options, J=tile.slabs, R=tile.rows, K=tile.width, num_warps=tile.warps
    )
    return copy_back(out, tensors[2])
