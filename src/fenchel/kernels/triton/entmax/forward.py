"""entmax along any dimension: the choice of the kernel and its tiles."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from fenchel.kernels.triton.entmax.alpha_per_row import (
    launch_alpha_per_row,
)
from fenchel.kernels.triton.entmax.largest_scores import (
    entmax_largest_scores,
)
from fenchel.kernels.triton.entmax.long_rows import (
    launch_long_rows,
)
from fenchel.kernels.triton.entmax.near_softmax import (
    launch_near_softmax,
)
from fenchel.kernels.triton.entmax.on_chip import (
    entmax_tile,
)
from fenchel.kernels.triton.entmax.packed_half import (
    launch_packed_half,
)
from fenchel.kernels.triton.entmax.softmax import (
    launch_long_softmax,
)
from fenchel.kernels.triton.entmax.streamed_rows import (
    launch_streamed_rows,
)
from fenchel.kernels.triton.launch.addressing import (
    Rows,
    Strides,
    address,
    copy_back,
)
from fenchel.kernels.triton.launch.parameters import (
    ALPHA_PER_ROW,
    FAST_POWERS,
    FAST_STEPS,
    GENERAL,
    SOFTMAX,
    kind_of,
    powers_for,
    with_fast_logarithms,
)
from fenchel.kernels.triton.launch.replay import (
    replayed,
)
from fenchel.kernels.triton.launch.tile_shapes import (
    ceil_div,
    fits_packed_tile,
    fits_tile,
    forward_tile,
    lists_largest_scores,
    min_itemsize,
    streams_rows,
)

# Largest alpha - 1 for which one program visits a long row: few of its scores are left out.
MAX_NEAR_SOFTMAX_EPS = 0.2
FAST_KINDS = (FAST_STEPS.value, FAST_POWERS.value)


@replayed
def entmax(
    scores: Tensor, alpha: float | Tensor, mask: Tensor | None = None, dim: int = -1
) -> Tensor:
    """argmax_{p ∈ Δ} ⟨p, x⟩ + H_α(p) along `dim`; zero where a score is −inf or masked."""
    out = torch.empty_like(scores)
    if scores.numel() > 0:
        entmax_into(out, scores, alpha, mask, dim)
    return out


def entmax_into(
    out: Tensor, scores: Tensor, alpha: float | Tensor, mask: Tensor | None, dim: int
) -> None:
    """Write entmax into `out`, which may have another dtype and other strides than the scores."""
    kind, eps, alphas = kind_of(alpha)
    kind = with_fast_logarithms(kind, eps, rounded=out.element_size() < 4)
    rows, tensors, steps = address(dim, scores, out, mask, alphas)
    dense = mask is None and steps[0][3] == steps[1][3] == 1
    if dense and fits_packed_tile(kind, rows, scores.element_size()):
        launch_packed_half(tensors, kind, eps, rows, steps)
    elif fits_tile(kind, rows.columns):
        _launch_tiles(tensors, kind, eps, rows, steps)
    elif kind == SOFTMAX.value:
        launch_long_softmax(tensors, rows, steps)
    elif dense and streams_rows(kind, rows):
        launch_streamed_rows(tensors, kind, eps, rows, steps)
    elif kind == GENERAL.value or eps < 0 or (kind in FAST_KINDS and eps < MAX_NEAR_SOFTMAX_EPS):
        launch_near_softmax(tensors, eps, rows, steps)
    else:
        launch_long_rows(tensors, kind, eps, rows, steps)
    copy_back(out, tensors[1])


def _launch_tiles(
    tensors: list[Any], kind: int, eps: float, rows: Rows, steps: list[Strides]
) -> None:
    scores, out, mask, _alphas = tensors
    tile = forward_tile(rows, min_itemsize(scores, mask), kind, steps[0].column)
    if kind == ALPHA_PER_ROW.value:
        launch_alpha_per_row(tensors, tile, rows, steps)
        return
    options = {"LEVELS": rows.levels, "KIND": kind, "EVEN": tile.divides(rows)}
    shape = {"J": tile.slabs, "R": tile.rows, "K": tile.width}
    limits = {"num_warps": tile.warps, "maxnreg": tile.registers}
    solve, more = entmax_tile, {"POWERS": powers_for(eps, rounded=out.element_size() < 4)}
    if lists_largest_scores(kind, tile):
        solve, more = entmax_largest_scores, {"V": tile.vector}
    solve[(ceil_div(rows.count, tile.rows),)](
        *tensors, eps, rows.count, rows.columns, rows.middle, rows.inner, *steps,
        **options, **shape, **limits, **more,
    )  # fmt: skip
