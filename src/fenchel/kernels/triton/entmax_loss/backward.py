"""g (p - q), the gradient of the loss in the scores, from what is saved of a row, without a new search.

loss_gradient_tile           any rows
loss_gradient_listed_groups  long rows whose groups that can be in the support are listed
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

# A kernel is launched with options that its parameters do not name.
# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false
# pyright: reportCallIssue=false
from torch import Tensor

from fenchel.kernels.triton.entmax_loss.forward import (
    saved_or_new_support,
)
from fenchel.kernels.triton.entmax_loss.long_rows import (
    GRADIENT_BLOCKS,
    GRADIENT_WARPS,
)
from fenchel.kernels.triton.entmax_loss.saved_for_backward import (
    load_support,
    saved_probability,
)
from fenchel.kernels.triton.launch.addressing import (
    address,
    row_offset,
)
from fenchel.kernels.triton.launch.kernel import (
    kernel,
)
from fenchel.kernels.triton.launch.parameters import (
    ABOVE_2,
    ALPHA_PER_ROW,
    GENERAL,
    kind_of,
)
from fenchel.kernels.triton.launch.replay import (
    replayed,
)
from fenchel.kernels.triton.launch.tile_shapes import (
    ceil_div,
    gradient_tile,
    groups_shape,
)
from fenchel.kernels.triton.tiles.layout import (
    load_scores,
    row_epsilon,
    tile_columns,
    tile_inside,
    tile_places,
    tile_rows,
)


@replayed
def entmax_loss_backward(
    grad: Tensor,
    scores: Tensor,
    target: Tensor,
    alpha: float | Tensor,
    normalizer: Tensor,
    ignore_index: int,
    smoothing: float,
    listed: Tensor | None = None,
    support: Tensor | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """g (p − q); zero for an ignored or empty row. `out` may be the scores.

    With the groups that the forward pass has `listed`, the others are not read if they are many; `out` is
    the scores then. Without its `support`, rows with α > 2 are solved again.
    """
    if out is None:
        out = torch.empty_like(scores, memory_format=torch.contiguous_format)
    if scores.numel() == 0:
        return out
    classes = not target.dtype.is_floating_point
    kind, eps, alphas = kind_of(alpha)
    support = saved_or_new_support(scores, target, alpha, ignore_index, support)
    rows, tensors, steps = address(
        -1, scores, target.unsqueeze(-1) if classes else target, alphas,
        normalizer.unsqueeze(-1), grad.unsqueeze(-1), out,
    )  # fmt: skip
    if classes and listed is not None and listed.numel() > 0:
        shape = groups_shape(rows.columns)
        loss_gradient_listed_groups[(rows.count,)](
            *tensors, support, listed, eps, ignore_index, smoothing,
            rows.count, rows.columns, shape.groups, rows.middle, rows.inner, *steps,
            LEVELS=rows.levels, KIND=kind, GROUP=shape.size, BLOCK=GRADIENT_BLOCKS * shape.listed,
            num_warps=GRADIENT_WARPS,
        )  # fmt: skip
        return out
    tile = gradient_tile(rows)
    loss_gradient_tile[(ceil_div(rows.count, tile.rows), ceil_div(rows.columns, tile.width))](
        *tensors, support, eps, ignore_index, smoothing,
        rows.count, rows.columns, rows.middle, rows.inner, *steps,
        LEVELS=rows.levels, KIND=kind, CLASSES=classes, R=tile.rows, K=tile.width,
        num_warps=tile.warps,
    )  # fmt: skip
    return out


@kernel
def loss_gradient_tile(
    scores, target, alpha, normalizers, grad, out, support, eps, ignore, smoothing,
    count, columns, middle, inner,
    steps, target_steps, alpha_steps, normalizer_steps, grad_steps, out_steps,
    LEVELS: tl.constexpr, KIND: tl.constexpr, CLASSES: tl.constexpr,
    R: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    row = tile_rows(tl.program_id(0), R)
    column = tl.program_id(1) * K + tile_columns(1, K)
    present = row < count
    inside = tile_inside(row, column, count, columns, R)
    places = tile_places(row, column, middle, inner, steps, LEVELS)
    x = load_scores(scores, None, places, places, inside)
    e = row_epsilon(eps, alpha, alpha_steps, row, count, middle, inner, LEVELS, KIND, R)
    place = row_offset(row, middle, inner, normalizer_steps, LEVELS)
    a = tl.load(normalizers + place, mask=present, other=0.0)
    place = row_offset(row, middle, inner, grad_steps, LEVELS)
    g = tl.load(grad + place, mask=present, other=0.0).to(tl.float32)
    counts = a != float("-inf")
    place = row_offset(row, middle, inner, target_steps, LEVELS)
    if CLASSES:
        wanted = tl.load(target + place, mask=present, other=0)
        counts = counts & (wanted != ignore)
        q = tl.where(column == wanted, 1.0 - smoothing, 0.0) + smoothing / columns
    else:
        target_places = tile_places(row, column, middle, inner, target_steps, LEVELS)
        q = tl.load(target + target_places, mask=inside, other=0.0).to(tl.float32)
    bottom, least = load_support(support, row, present)
    p = saved_probability(x, tl.where(counts, a, 0.0), bottom, least, e, KIND, R)
    g = tl.where(counts, g + (a - a).to(tl.float32), 0.0)  # NaN in a row that has NaN
    slope = tl.where(counts, g * (p - q), 0.0)
    out_places = tile_places(row, column, middle, inner, out_steps, LEVELS)
    tl.store(out + out_places, slope, mask=inside)


@triton.jit
def _fill(out, value, columns, step, SIZE: tl.constexpr):
    for start in range(0, columns, SIZE):
        column = start + tl.arange(0, SIZE)
        places = out + column.to(tl.int64) * step
        tl.store(places, tl.zeros([SIZE], tl.float32) + value, mask=column < columns)
    tl.debug_barrier()  # what one thread has filled, another one overwrites


@triton.jit
def _write_gradient(
    scores, out, listed, found, most, a, bottom, least, g, uniform, e, columns, step, out_step,
    KIND: tl.constexpr, GROUP: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    for start in range(0, found, BLOCK):
        place = start + tl.arange(0, BLOCK)[:, None]
        here = place < found
        group = tl.where(most, place, tl.load(listed + place, mask=here, other=0))
        column = group * GROUP + tl.arange(0, GROUP)[None, :]
        inside = here & (column < columns)
        wide = column.to(tl.int64)
        x = load_scores(scores, None, wide * step, wide, inside)
        p = saved_probability(x, a, bottom, least, e, KIND, 1)
        tl.store(out + wide * out_step, g * (p - uniform), mask=inside)


@kernel
def loss_gradient_listed_groups(
    scores, target, alpha, normalizers, grad, out, support, listed, eps, ignore, smoothing,
    count, columns, groups, middle, inner,
    steps, target_steps, alpha_steps, normalizer_steps, grad_steps, out_steps,
    LEVELS: tl.constexpr, KIND: tl.constexpr, GROUP: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The same for class indices, one program per row: p = 0 in every group that is not listed.

    If most groups are listed, it visits all of them instead of filling the row first.
    """
    row = tile_rows(tl.program_id(0), 1)
    e = row_epsilon(eps, alpha, alpha_steps, row, count, middle, inner, LEVELS, KIND, 1)
    a = tl.load(normalizers + row_offset(row, middle, inner, normalizer_steps, LEVELS))
    g = tl.load(grad + row_offset(row, middle, inner, grad_steps, LEVELS)).to(tl.float32)
    wanted = tl.load(target + row_offset(row, middle, inner, target_steps, LEVELS)).to(tl.int64)
    scores += row_offset(row, middle, inner, steps, LEVELS)
    out += row_offset(row, middle, inner, out_steps, LEVELS)
    listed += row * (groups + 1)
    counts = (a != float("-inf")) & (wanted != ignore)
    a = tl.where(counts, a, 0.0)
    bottom, least = load_support(support, row, row < count)
    g = tl.where(counts, g + (a - a).to(tl.float32), 0.0)  # NaN in a row that has NaN
    found = tl.where(counts, tl.load(listed + groups), 0)
    most = 2 * found > groups
    uniform = smoothing / columns
    if most:
        found = groups
    else:
        _fill(out, g * (0.0 - uniform), columns, out_steps[3], BLOCK * GROUP)
    if KIND == ALPHA_PER_ROW:
        if e > 1.0:
            _write_gradient(
                scores, out, listed, found, most, a, bottom, least, g, uniform, e, columns,
                steps[3], out_steps[3], ABOVE_2, GROUP, BLOCK,
            )  # fmt: skip
        else:
            _write_gradient(
                scores, out, listed, found, most, a, bottom, least, g, uniform, e, columns,
                steps[3], out_steps[3], GENERAL, GROUP, BLOCK,
            )  # fmt: skip
    else:
        _write_gradient(
            scores, out, listed, found, most, a, bottom, least, g, uniform, e, columns, steps[3],
            out_steps[3], KIND, GROUP, BLOCK,
        )  # fmt: skip
    known = (wanted >= 0) & (wanted < columns)
    x = load_scores(scores, None, wanted * steps[3], wanted, known & counts)
    p = saved_probability(x, a, bottom, least, e, KIND, 1)
    tl.debug_barrier()  # what was written at the target is not its slope
    slope = g * (p - ((1.0 - smoothing) + uniform))
    tl.store(out + wanted * out_steps[3], slope, mask=known & counts)
