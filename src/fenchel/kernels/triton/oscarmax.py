"""oscarmax and its derivatives along any dimension of a CUDA tensor: what runs, and how wide.

    oscarmax                     sort, shift, pool adjacent violators, project onto the simplex
    oscarmax_backward            its Jacobian times a vector, from p and the first ranks of the groups
    oscarmax_backward_strength   the same, and the gradient in the strength

`strength` is a number, or a tensor with one value a row (size 1 along `dim`, broadcast elsewhere);
`mask` is boolean and broadcasts. Nothing waits for the device, so CUDA graphs can capture every call.
"""

from __future__ import annotations

# A kernel is launched with options that its parameters do not name.
# pyright: reportCallIssue=false, reportArgumentType=false
from typing import Any

import torch
from torch import Tensor

from fenchel.kernels.triton.launch.addressing import address, copy_back
from fenchel.kernels.triton.launch.long_row_shapes import stream_shape
from fenchel.kernels.triton.launch.parameters import parameter_parts
from fenchel.kernels.triton.launch.whole_numbers import ceiling
from fenchel.kernels.triton.structured.clusters import write_clusters
from fenchel.kernels.triton.structured.grouped_backward import RANKS, grouped_backward
from fenchel.kernels.triton.structured.pooling import find_support, pool_lanes
from fenchel.kernels.triton.structured.sorting import falling

LANES = 32


def oscarmax(
    scores: Tensor, strength: float | Tensor, mask: Tensor | None = None, dim: int = -1
) -> tuple[Tensor, Tensor]:
    """(p, first ranks): two entries of the support move together if their first ranks (int32) agree."""
    out, first = torch.empty_like(scores), torch.empty_like(scores, dtype=torch.int32)
    if scores.numel() == 0:
        return out, first
    high, low, strengths = parameter_parts(strength)
    rows, tensors, steps = address(dim, scores, out, first, mask, strengths)
    written: list[Any] = tensors[:3]
    mask, strengths = tensors[3:]
    ordered = falling(written[0], mask, rows, steps[0], steps[3], dim)
    sums = torch.empty_like(ordered, dtype=torch.float64)
    starts = torch.empty_like(ordered, dtype=torch.int32)
    supports, groups = torch.empty((2, rows.count), dtype=torch.int32, device=scores.device)
    taus = torch.empty(rows.count, dtype=torch.float64, device=scores.device)
    block, warps = stream_shape(rows.columns)
    shape = {"LEVELS": rows.levels, "K": block, "num_warps": warps}
    find_support[(rows.count,)](
        ordered, strengths, sums, starts, supports, groups, taus, high, low,
        rows.columns, rows.middle, rows.inner, steps[4], **shape,
    )  # fmt: skip
    pool_lanes[(ceiling(rows.count, LANES),)](
        sums, starts, supports, groups, rows.count, rows.columns, LANES=LANES, num_warps=1
    )
    write_clusters[(rows.count,)](
        *written, mask, strengths, ordered, sums, starts, supports, groups, taus, high, low,
        rows.columns, rows.middle, rows.inner, *steps, **shape,
    )  # fmt: skip
    return copy_back(out, written[1]), copy_back(first, written[2])


def oscarmax_backward(grad: Tensor, p: Tensor, first: Tensor, dim: int = -1) -> Tensor:
    """J g = mean of g over the entry's group − mean over the support; J is symmetric."""
    return grouped_backward(RANKS, grad, p, first, dim, with_strength=False)[0]


def oscarmax_backward_strength(
    grad: Tensor, p: Tensor, first: Tensor, dim: int = -1
) -> tuple[Tensor, Tensor]:
    """The gradients in the scores and in the strength, the latter one a row (size 1 along `dim`)."""
    return grouped_backward(RANKS, grad, p, first, dim, with_strength=True)
