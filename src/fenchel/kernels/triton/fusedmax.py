"""fusedmax and its derivatives along any dimension of a CUDA tensor: what runs, and how wide.

    fusedmax                     the projection onto the simplex of the prox of total variation
    fusedmax_backward            its Jacobian times a vector, from p and the jumps between groups
    fusedmax_backward_strength   the same, and the gradient in the strength

`strength` is a number, or a tensor with one value a row (size 1 along `dim`, broadcast elsewhere);
`mask` is boolean and broadcasts. Nothing waits for the device, so CUDA graphs can capture every call.
"""

from __future__ import annotations

# A kernel is launched with options that its parameters do not name.
# pyright: reportCallIssue=false, reportArgumentType=false
import torch
from torch import Tensor

from fenchel.kernels.triton.launch.addressing import Rows, Strides, address, copy_back
from fenchel.kernels.triton.launch.long_row_shapes import stream_shape
from fenchel.kernels.triton.launch.parameters import parameter_parts
from fenchel.kernels.triton.launch.whole_numbers import ceiling
from fenchel.kernels.triton.structured.candidates import list_candidates
from fenchel.kernels.triton.structured.expansion import write_fused
from fenchel.kernels.triton.structured.grouped_backward import JUMPS, grouped_backward
from fenchel.kernels.triton.structured.total_variation import prox_lanes
from fenchel.kernels.triton.structured.total_variation_by_knots import (
    NUMBERS_AN_ENTRY,
    prox_slow_rows,
)

LANES = 32
LISTED = 128  # listed entries that a program treats at a time
PATIENCE = 8  # visits an entry, after which the direct method gives up
SHORT = 256  # columns up to which it never does
SLOW_NUMBERS = 2**23  # float64 numbers that the lists of slow rows may take


def fusedmax(
    scores: Tensor, strength: float | Tensor, mask: Tensor | None = None, dim: int = -1
) -> tuple[Tensor, Tensor]:
    """(p, jumps): jumps (int8) is ±1 where p rises or falls to another group, 0 inside a group."""
    out, jumps = torch.empty_like(scores), torch.empty_like(scores, dtype=torch.int8)
    if scores.numel() == 0:
        return out, jumps
    high, low, strengths = parameter_parts(strength)
    rows, tensors, steps = address(dim, scores, out, jumps, mask, strengths)
    rows_in, p, groups, mask, strengths = tensors
    values = torch.empty((rows.count, rows.columns), dtype=torch.float64, device=scores.device)
    signs = torch.empty_like(values, dtype=torch.int8)
    places = torch.empty_like(values, dtype=torch.int32)
    listed = torch.empty(rows.count, dtype=torch.int32, device=scores.device)
    block, warps = stream_shape(rows.columns)
    shape = {"LEVELS": rows.levels, "K": block, "num_warps": warps}
    list_candidates[(rows.count,)](
        rows_in, mask, strengths, values, signs, places, listed, high, low,
        rows.columns, rows.middle, rows.inner, steps[0], *steps[3:], **shape,
    )  # fmt: skip
    _prox((strengths, values, signs, listed), (high, low), rows, steps[4])
    write_fused[(rows.count,)](
        p, groups, values, signs, places, listed, rows.columns, rows.middle, rows.inner,
        *steps[1:3], L=min(block, LISTED), **shape,
    )  # fmt: skip
    return copy_back(out, p), copy_back(jumps, groups)


def _prox(
    lists: tuple[Tensor | None, ...], strength: tuple[float, float], rows: Rows, steps: Strides
) -> None:
    """Replace the first entry of every group by its value, and note there the sign of the jump."""
    resumed = torch.empty_like(lists[-1])
    where = (rows.middle, rows.inner, steps)
    patience = PATIENCE if rows.columns > SHORT else rows.columns + 2
    prox_lanes[(ceiling(rows.count, LANES),)](
        *lists, resumed, *strength, rows.count, rows.columns, patience, *where,
        LEVELS=rows.levels, LANES=LANES, num_warps=1,
    )  # fmt: skip
    if rows.columns > SHORT:
        programs, lanes = _slow_shape(rows)
        numbers = programs * lanes * (NUMBERS_AN_ENTRY * rows.columns + 4)
        workspace = torch.empty(numbers, dtype=torch.float64, device=resumed.device)
        prox_slow_rows[(programs,)](
            *lists, resumed, workspace, *strength, rows.count, rows.columns, *where,
            LEVELS=rows.levels, LANES=lanes, num_warps=1,
        )  # fmt: skip


def _slow_shape(rows: Rows) -> tuple[int, int]:
    """Programs and lanes, as many as the memory for their lists allows."""
    at_once = max(1, SLOW_NUMBERS // (NUMBERS_AN_ENTRY * rows.columns + 4))
    lanes = min(LANES, 1 << (at_once.bit_length() - 1))
    return min(ceiling(rows.count, lanes), at_once // lanes), lanes


def fusedmax_backward(grad: Tensor, p: Tensor, jumps: Tensor, dim: int = -1) -> Tensor:
    """J g = mean of g over the entry's group − mean over the support; J is symmetric."""
    return grouped_backward(JUMPS, grad, p, jumps, dim, with_strength=False)[0]


def fusedmax_backward_strength(
    grad: Tensor, p: Tensor, jumps: Tensor, dim: int = -1
) -> tuple[Tensor, Tensor]:
    """The gradients in the scores and in the strength, the latter one a row (size 1 along `dim`)."""
    return grouped_backward(JUMPS, grad, p, jumps, dim, with_strength=True)
