"""The scores of every row in falling order, as float32; what is not there comes last.

Rows that fit on chip are sorted there, without their places: an entry finds its rank again by its
score. Longer ones are left to PyTorch.
"""

from __future__ import annotations

# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
# pyright: reportCallIssue=false
import torch
import triton.language as tl
from torch import Tensor

from fenchel.kernels.triton.launch.addressing import Rows, Strides, row_offset
from fenchel.kernels.triton.launch.kernel import kernel
from fenchel.kernels.triton.launch.whole_numbers import ceiling, power_of_two
from fenchel.kernels.triton.tiles.memory import load_scores

LONGEST_SORT = 2048
ENTRIES_A_WARP = 512


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


def falling(
    scores: Tensor, mask: Tensor | None, rows: Rows, steps: Strides, mask_steps: Strides, dim: int
) -> Tensor:
    """The sorted rows, as a contiguous matrix."""
    if rows.columns > LONGEST_SORT:
        present = scores if mask is None else scores.masked_fill(~mask, float("-inf"))
        wide = present.float().movedim(dim, -1).reshape(rows.count, rows.columns)
        return wide.contiguous().sort(dim=-1, descending=True).values  # which lie as what is sorted
    ordered = torch.empty((rows.count, rows.columns), dtype=torch.float32, device=scores.device)
    width = power_of_two(rows.columns)
    height = max(1, min(ENTRIES_A_WARP // width, power_of_two(rows.count)))
    sort_rows[(ceiling(rows.count, height),)](
        scores, mask, ordered, rows.count, rows.columns, rows.middle, rows.inner, steps, mask_steps,
        LEVELS=rows.levels, R=height, K=width, num_warps=max(1, width // 1024),
    )  # fmt: skip
    return ordered
