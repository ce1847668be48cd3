"""oscarmax and its derivatives along any dimension of a CUDA tensor: the kernels and their tiles.

    oscarmax                     sort, shift, pool adjacent violators, project onto the simplex
    oscarmax_backward            its Jacobian times a vector, from p and the first ranks of the groups
    oscarmax_backward_strength   the same, and the gradient in the strength

`strength` is a number, or a tensor with one value per row (size 1 along `dim`, broadcast elsewhere);
`mask` is boolean and broadcasts. No call waits for the device, so CUDA graphs can capture all of them.

Rows that fit on chip are sorted there, without their indices: an entry finds its rank again by its score.
PyTorch sorts longer rows. Absent entries come last.
"""

from __future__ import annotations

from typing import Any

import torch
import triton.language as tl

# A kernel is launched with options that its parameters do not name.
# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
# pyright: reportCallIssue=false
# pyright: reportCallIssue=false, reportArgumentType=false
from torch import Tensor

from fenchel.kernels.triton.launch.addressing import (
    Rows,
    Strides,
    address,
    copy_back,
    row_offset,
)
from fenchel.kernels.triton.launch.kernel import (
    kernel,
)
from fenchel.kernels.triton.launch.parameters import (
    parameter_parts,
)
from fenchel.kernels.triton.launch.tile_shapes import (
    ceil_div,
    next_power_of_two,
    walk_shape,
)
from fenchel.kernels.triton.oscarmax.clusters import (
    write_clusters,
)
from fenchel.kernels.triton.oscarmax.pooling import (
    find_oscar_support,
    pool_lanes,
)
from fenchel.kernels.triton.shared.group_backward import (
    RANKS,
    group_backward,
)
from fenchel.kernels.triton.tiles.layout import (
    load_scores,
)

LANES = 32
MAX_SORT_COLUMNS = 2048
ENTRIES_PER_WARP = 512


def oscarmax(
    scores: Tensor, strength: float | Tensor, mask: Tensor | None = None, dim: int = -1
) -> tuple[Tensor, Tensor]:
    """(p, first ranks): entries of the support move together if their first ranks (int32) are equal."""
    out, first = torch.empty_like(scores), torch.empty_like(scores, dtype=torch.int32)
    if scores.numel() == 0:
        return out, first
    high, low, strengths = parameter_parts(strength)
    rows, tensors, steps = address(dim, scores, out, first, mask, strengths)
    written: list[Any] = tensors[:3]
    mask, strengths = tensors[3:]
    ordered = sort_descending(written[0], mask, rows, steps[0], steps[3], dim)
    sums = torch.empty_like(ordered, dtype=torch.float64)
    starts = torch.empty_like(ordered, dtype=torch.int32)
    supports, groups = torch.empty((2, rows.count), dtype=torch.int32, device=scores.device)
    taus = torch.empty(rows.count, dtype=torch.float64, device=scores.device)
    block, warps = walk_shape(rows.columns)
    shape = {"LEVELS": rows.levels, "K": block, "num_warps": warps}
    find_oscar_support[(rows.count,)](
        ordered, strengths, sums, starts, supports, groups, taus, high, low,
        rows.columns, rows.middle, rows.inner, steps[4], **shape,
    )  # fmt: skip
    pool_lanes[(ceil_div(rows.count, LANES),)](
        sums, starts, supports, groups, rows.count, rows.columns, LANES=LANES, num_warps=1
    )
    write_clusters[(rows.count,)](
        *written, mask, strengths, ordered, sums, starts, supports, groups, taus, high, low,
        rows.columns, rows.middle, rows.inner, *steps, **shape,
    )  # fmt: skip
    return copy_back(out, written[1]), copy_back(first, written[2])


def oscarmax_backward(grad: Tensor, p: Tensor, first: Tensor, dim: int = -1) -> Tensor:
    """J g = mean of g over the entry's group − mean over the support; J is symmetric."""
    return group_backward(RANKS, grad, p, first, dim, with_strength=False)[0]


def oscarmax_backward_strength(
    grad: Tensor, p: Tensor, first: Tensor, dim: int = -1
) -> tuple[Tensor, Tensor]:
    """The gradients in the scores and in the strength, one per row (size 1 along `dim`)."""
    return group_backward(RANKS, grad, p, first, dim, with_strength=True)


@kernel
def sort_rows(
    scores, mask, ordered, count, columns, middle, inner, steps, mask_steps,
    LEVELS: tl.constexpr, R: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """A row with NaN or +inf becomes NaN."""
    row = tl.program_id(0).to(tl.int64) * R + tl.arange(0, R)[:, None]
    column = tl.arange(0, K)[None, :]
    inside = (row < count) & (column < columns)
    places = row_offset(row, middle, inner, steps, LEVELS) + column.to(tl.int64) * steps[3]
    mask_places = row_offset(row, middle, inner, mask_steps, LEVELS)
    mask_places += column.to(tl.int64) * mask_steps[3]
    x = load_scores(scores, mask, places, mask_places, inside)
    broken = tl.max(tl.where(x < float("inf"), 0, 1), axis=1, keep_dims=True) > 0
    x = tl.where(broken, float("nan"), tl.sort(x, descending=True))
    tl.store(ordered + row * columns + column, x, mask=inside)


def sort_descending(
    scores: Tensor, mask: Tensor | None, rows: Rows, steps: Strides, mask_steps: Strides, dim: int
) -> Tensor:
    """The sorted rows, as a contiguous matrix."""
    if rows.columns > MAX_SORT_COLUMNS:
        present = scores if mask is None else scores.masked_fill(~mask, float("-inf"))
        wide = present.float().movedim(dim, -1).reshape(rows.count, rows.columns)
        return wide.contiguous().sort(dim=-1, descending=True).values  # which lie as what is sorted
    ordered = torch.empty((rows.count, rows.columns), dtype=torch.float32, device=scores.device)
    width = next_power_of_two(rows.columns)
    height = max(1, min(ENTRIES_PER_WARP // width, next_power_of_two(rows.count)))
    sort_rows[(ceil_div(rows.count, height),)](
        scores, mask, ordered, rows.count, rows.columns, rows.middle, rows.inner, steps, mask_steps,
        LEVELS=rows.levels, R=height, K=width, num_warps=max(1, width // 1024),
    )  # fmt: skip
    return ordered
