"""fusedmax and its derivatives along any dimension of a CUDA tensor: the kernels and their tiles.

    fusedmax                     the projection onto the simplex of the prox of total variation
    fusedmax_backward            its Jacobian times a vector, from p and the jumps between groups
    fusedmax_backward_strength   the same, and the gradient in the strength

`strength` is a number, or a tensor with one value per row (size 1 along `dim`, broadcast elsewhere);
`mask` is boolean and broadcasts. No call waits for the device, so CUDA graphs can capture all of them.
"""

from __future__ import annotations

import torch

# A kernel is launched with options that its parameters do not name.
# pyright: reportCallIssue=false, reportArgumentType=false
from torch import Tensor

from fenchel.kernels.triton.fusedmax.candidates import (
    list_candidates,
    write_fused,
)
from fenchel.kernels.triton.fusedmax.total_variation import (
    NUMBERS_PER_ENTRY,
    prox_by_knots,
    prox_lanes,
)
from fenchel.kernels.triton.launch.addressing import (
    Rows,
    Strides,
    address,
    copy_back,
)
from fenchel.kernels.triton.launch.parameters import (
    parameter_parts,
)
from fenchel.kernels.triton.launch.tile_shapes import (
    ceil_div,
    walk_shape,
)
from fenchel.kernels.triton.shared.group_backward import (
    JUMPS,
    group_backward,
)

LANES = 32
LISTED_AT_ONCE = 128  # listed entries that a program processes at a time
MAX_VISITS_PER_ENTRY = 8  # visits per entry after which the direct method gives up
SHORT_ROW_COLUMNS = 256  # up to this many columns it never gives up
MAX_WORKSPACE_NUMBERS = 2**23  # float64 numbers that the lists of slow rows may take


def fusedmax(
    scores: Tensor, strength: float | Tensor, mask: Tensor | None = None, dim: int = -1
) -> tuple[Tensor, Tensor]:
    """(p, jumps): jumps (int8) is ±1 where a higher or lower group begins, 0 inside a group."""
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
    block, warps = walk_shape(rows.columns)
    shape = {"LEVELS": rows.levels, "K": block, "num_warps": warps}
    list_candidates[(rows.count,)](
        rows_in, mask, strengths, values, signs, places, listed, high, low,
        rows.columns, rows.middle, rows.inner, steps[0], *steps[3:], **shape,
    )  # fmt: skip
    _prox((strengths, values, signs, listed), (high, low), rows, steps[4])
    write_fused[(rows.count,)](
        p, groups, values, signs, places, listed, rows.columns, rows.middle, rows.inner,
        *steps[1:3], L=min(block, LISTED_AT_ONCE), **shape,
    )  # fmt: skip
    return copy_back(out, p), copy_back(jumps, groups)


def _prox(
    lists: tuple[Tensor | None, ...], strength: tuple[float, float], rows: Rows, steps: Strides
) -> None:
    """Replace the first entry of every group by the group's value, and store the sign of its jump."""
    resumed = torch.empty_like(lists[-1])
    where = (rows.middle, rows.inner, steps)
    patience = MAX_VISITS_PER_ENTRY if rows.columns > SHORT_ROW_COLUMNS else rows.columns + 2
    prox_lanes[(ceil_div(rows.count, LANES),)](
        *lists, resumed, *strength, rows.count, rows.columns, patience, *where,
        LEVELS=rows.levels, LANES=LANES, num_warps=1,
    )  # fmt: skip
    if rows.columns > SHORT_ROW_COLUMNS:
        programs, lanes = _knots_shape(rows)
        numbers = programs * lanes * (NUMBERS_PER_ENTRY * rows.columns + 4)
        workspace = torch.empty(numbers, dtype=torch.float64, device=resumed.device)
        prox_by_knots[(programs,)](
            *lists, resumed, workspace, *strength, rows.count, rows.columns, *where,
            LEVELS=rows.levels, LANES=lanes, num_warps=1,
        )  # fmt: skip


def _knots_shape(rows: Rows) -> tuple[int, int]:
    """The numbers of programs and lanes that the memory for their lists allows."""
    at_once = max(1, MAX_WORKSPACE_NUMBERS // (NUMBERS_PER_ENTRY * rows.columns + 4))
    lanes = min(LANES, 1 << (at_once.bit_length() - 1))
    return min(ceil_div(rows.count, lanes), at_once // lanes), lanes


def fusedmax_backward(grad: Tensor, p: Tensor, jumps: Tensor, dim: int = -1) -> Tensor:
    """J g = mean of g over the entry's group − mean over the support; J is symmetric."""
    return group_backward(JUMPS, grad, p, jumps, dim, with_strength=False)[0]


def fusedmax_backward_strength(
    grad: Tensor, p: Tensor, jumps: Tensor, dim: int = -1
) -> tuple[Tensor, Tensor]:
    """The gradients in the scores and in the strength, one per row (size 1 along `dim`)."""
    return group_backward(JUMPS, grad, p, jumps, dim, with_strength=True)
