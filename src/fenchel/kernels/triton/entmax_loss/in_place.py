"""The loss, and g (p - q) in place of the scores.

For many long rows with alpha = 2 or 3/2 this is one kernel with one program per row. The row is read from
memory once; later visits find it in the cache, because a multiprocessor works on one row at a time. If
few groups of columns can be in the support, their scores stay in registers: the row is overwritten with
zeros while it is solved, and then the groups with p - q. Columns are neighbours in memory.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

# A kernel is launched with options that its parameters do not name.
# Device code: a constexpr parameter takes what is known when a kernel is compiled.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportOperatorIssue=false
# pyright: reportCallIssue=false
from torch import Tensor

from fenchel.kernels.triton.arithmetic.elementary import (
    two_sum,
)
from fenchel.kernels.triton.arithmetic.entries import (
    entry,
)
from fenchel.kernels.triton.entmax_loss.alpha_gradient import (
    entmax_loss_alpha,
)
from fenchel.kernels.triton.entmax_loss.backward import (
    entmax_loss_backward,
)
from fenchel.kernels.triton.entmax_loss.class_loss import (
    class_loss,
    entry_from_normalizer,
    normalizer_float64,
)
from fenchel.kernels.triton.entmax_loss.forward import (
    Exponent,
    is_near_softmax,
    launch_losses,
)
from fenchel.kernels.triton.entmax_loss.saved_for_backward import (
    empty_support,
    listed_numbers,
)
from fenchel.kernels.triton.launch.addressing import (
    address,
    row_offset,
)
from fenchel.kernels.triton.launch.kernel import (
    kernel,
)
from fenchel.kernels.triton.launch.parameters import (
    SOFTMAX,
    kind_of,
)
from fenchel.kernels.triton.launch.tile_shapes import (
    fits_loss_tile,
    groups_shape,
    streamed_loss_tile,
    streams_losses,
)
from fenchel.kernels.triton.solver.groups import (
    MAXIMA_TOLERANCE,
    list_groups,
    listed_indices,
    load_listed_groups,
    min_support_score,
)
from fenchel.kernels.triton.solver.newton import (
    find_root,
    guess_halfway,
    newton_step,
)
from fenchel.kernels.triton.solver.normalizer import (
    FINE_TOLERANCE,
    tile_visit,
)
from fenchel.kernels.triton.tiles.layout import (
    finite_peak,
    load_scores,
    tile_columns,
    tile_rows,
)
from fenchel.kernels.triton.tiles.reductions import (
    nan_max,
    row_max,
    row_sum,
    row_sums,
    slab_sum,
)


def entmax_loss_in_place(
    grad: Tensor | None,
    scores: Tensor,
    target: Tensor,
    alpha: float | Tensor,
    ignore_index: int,
    smoothing: float,
    by_alpha: bool,
    listed: Tensor | None = None,
) -> tuple[Tensor, Tensor | None]:
    """The loss and, if `by_alpha`, ∂L/∂α, one per row in float32; g (p − q) overwrites the scores.

    The scores are a matrix. For class indices without smoothing or ∂L/∂α it is one read and one write.
    Then `listed` is written as by `entmax_loss`.
    """
    options = ignore_index, smoothing
    kind, eps, _ = exponent = kind_of(alpha)
    loss = scores.new_empty(scores.shape[:-1], dtype=torch.float32)
    fused = not (by_alpha or smoothing or target.dtype.is_floating_point)
    dense = scores.stride(-1) == 1
    if (
        fused and grad is not None and dense
        and streams_losses(kind, *scores.shape, scores.element_size())
    ):  # fmt: skip
        launch_streamed_losses(loss, grad, scores, target, exponent, ignore_index, listed)
        return loss, None
    if not fits_loss_tile(scores.shape[-1]) and (
        kind == SOFTMAX.value or is_near_softmax(kind, eps)
    ):
        fused = False  # the gradient of such rows needs only the normalizer
    support = None if fused else empty_support(scores, alpha)
    if by_alpha and listed is None:
        numbers = listed_numbers(scores.shape[-1], target, alpha)
        listed = scores.new_empty((*scores.shape[:-1], numbers), dtype=torch.int32)
    normalizer = launch_losses(
        loss, grad if fused else None, scores, target, exponent, *options, listed, support
    )  # fmt: skip
    slope = None
    if by_alpha and isinstance(alpha, Tensor):
        slope = entmax_loss_alpha(
            scores, target, alpha, normalizer, *options, listed, support
        )  # fmt: skip
    if grad is not None and not fused:
        entmax_loss_backward(
            grad, scores, target, alpha, normalizer, *options, support=support, out=scores
        )  # fmt: skip
    return loss, slope


def launch_streamed_losses(
    loss: Tensor, grad: Tensor, scores: Tensor, target: Tensor, exponent: Exponent,
    ignore_index: int, listed: Tensor | None,
) -> None:  # fmt: skip
    """One program per row: the losses, and the gradient in place of the scores."""
    kind, eps, _ = exponent
    rows, tensors, steps = address(-1, scores, target.unsqueeze(-1), grad.unsqueeze(-1))
    shape = groups_shape(rows.columns)
    tile = streamed_loss_tile()
    if listed is None:
        listed = torch.empty(
            (rows.count, shape.groups + 1), dtype=torch.int32, device=scores.device
        )
    maxima = scores.new_empty(rows.count, shape.groups)
    loss_streamed[(rows.count,)](
        *tensors, maxima, listed, loss, eps, ignore_index, rows.columns, shape.groups, rows.middle,
        rows.inner, *steps,
        LEVELS=rows.levels, KIND=kind, GROUP=shape.size, WIDTH=shape.width,
        BLOCK=tile.slabs * tile.width // shape.size, J=tile.slabs, K=tile.width,
        num_warps=tile.warps, maxnreg=tile.registers,
    )  # fmt: skip


@triton.jit
def _load(scores, column, columns):
    return load_scores(scores, None, column, column, column < columns)


@triton.jit
def _keep_maxima(scores, maxima, columns, groups, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    """Store the largest score of every group."""
    group = tl.arange(0, BLOCK)
    column = group[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    x = _load(scores, column, columns)
    for start in range(0, groups, BLOCK):
        ahead = _load(scores, (start + BLOCK) * GROUP + column, columns)
        tl.store(maxima + start + group, tl.reduce(x, 1, nan_max), mask=start + group < groups)
        x = ahead
    tl.debug_barrier()  # what one thread has stored, another one reads


@triton.jit
def _row_visit(data, point, e, KIND: tl.constexpr):
    """F over the whole row, and the step from there. The next block is prefetched."""
    scores, columns, peak, column = data
    BLOCK: tl.constexpr = column.shape[0] * column.shape[1] * column.shape[2]
    x = _load(scores, column, columns)
    mass = slab_sum(column.to(tl.float32) * 0.0)
    slope = mass
    for start in range(BLOCK, columns + BLOCK, BLOCK):
        ahead = _load(scores, start + column, columns)
        p, s, _ = entry(x - peak, point, 0.0, e, KIND)
        mass += slab_sum(p)
        slope += slab_sum(s)
        x = ahead
    mass, slope = row_sums(mass, slope)
    return mass, newton_step(mass, slope, e, KIND)


@triton.jit
def _write_row(row, wanted, g, point, low, e, KIND: tl.constexpr):
    """g p over all scores; returns the sum of t p over the other classes."""
    scores, columns, peak, column = row
    BLOCK: tl.constexpr = column.shape[0] * column.shape[1] * column.shape[2]
    x = _load(scores, column, columns)
    others = slab_sum(column.to(tl.float32) * 0.0)
    for start in range(0, columns, BLOCK):
        here = start + column
        ahead = _load(scores, here + BLOCK, columns)
        p, _, t = entry(x - peak, point, low, e, KIND)
        others += slab_sum(tl.where(here == wanted, 0.0, t * p))
        tl.store(scores + here, g * p, mask=here < columns)
        x = ahead
    return row_sum(others)


@triton.jit
def _fill(scores, value, column, columns):
    BLOCK: tl.constexpr = column.shape[0] * column.shape[1] * column.shape[2]
    for start in range(0, columns, BLOCK):
        here = start + column
        tl.store(scores + here, column.to(tl.float32) * 0.0 + value, mask=here < columns)


@triton.jit
def _solve_listed(
    data, column, wanted, g, point, e, KIND: tl.constexpr, SIZE: tl.constexpr
):  # fmt: skip
    """(point, low, what `_write_row` returns) of a row with few groups listed; g p is written."""
    scores, columns, peak = data[0], data[4], data[7]
    x = tl.reshape(load_listed_groups(data, 0)[0], [1, 1, SIZE])
    tl.debug_barrier()  # one thread reads a score, another one overwrites it
    _fill(scores, g * 0.0, column, columns)
    point, low = find_root(tile_visit, (x - peak,), point, e, columns, FINE_TOLERANCE, 0.0, 1, KIND)
    point, low = two_sum(point, low)
    tl.debug_barrier()
    place = tl.reshape(load_listed_groups(data, 0)[1], [1, 1, SIZE])
    p, _, t = entry(x - peak, point, low, e, KIND)
    others = row_sum(tl.where(place == wanted, 0.0, t * p))
    tl.store(scores + place, g * p, mask=p > 0.0)
    return point, low, others


@kernel
def loss_streamed(
    scores, target, grad, maxima, listed, loss, eps, ignore, columns, groups, middle, inner,
    steps, target_steps, grad_steps,
    LEVELS: tl.constexpr, KIND: tl.constexpr, GROUP: tl.constexpr, BLOCK: tl.constexpr,
    WIDTH: tl.constexpr, J: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    """At most BLOCK groups are in registers; J slabs of K columns are read at a time."""
    row = tile_rows(tl.program_id(0), 1)
    e = eps + 0.0
    scores += row_offset(row, middle, inner, steps, LEVELS)
    maxima += row * groups
    listed += row * (groups + 1)
    wanted = tl.load(target + row_offset(row, middle, inner, target_steps, LEVELS))
    counts = wanted != ignore
    known = (wanted >= 0) & (wanted < columns)
    wanted = tl.where(known, wanted, -1).to(tl.int32)
    own = tl.load(scores + wanted, mask=known, other=float("nan")).to(tl.float32)
    g = tl.load(grad + row_offset(row, middle, inner, grad_steps, LEVELS)).to(tl.float32)
    _keep_maxima(scores, maxima, columns, groups, GROUP, BLOCK)
    group = tl.arange(0, WIDTH)[None, None, :]
    held = tl.load(maxima + group, mask=group < groups, other=float("-inf")).to(tl.float32)
    peak = finite_peak(row_max(held))
    below = (held - peak,)
    point = guess_halfway(tile_visit, below, e, KIND)
    point, low = find_root(tile_visit, below, point, e, columns, MAXIMA_TOLERANCE, 0.0, 1, KIND)
    point += low
    found = list_groups(held, listed, min_support_score(peak, point, e, KIND), WIDTH)
    tl.store(listed + groups, found)
    lives = counts & ((found != 0) | (peak != peak))
    g = tl.where(lives, g + (peak - peak), 0.0)
    column = tile_columns(J, K)
    if found <= BLOCK:
        places, within = listed_indices(GROUP, BLOCK)
        some = (scores, None, listed, found, columns, 1, 1, peak, places, within)
        point, low, others = _solve_listed(some, column, wanted, g, point, e, KIND, BLOCK * GROUP)
    else:
        whole = (scores, columns, peak, column)
        point, low = find_root(_row_visit, whole, point, e, columns, FINE_TOLERANCE, 0.0, 1, KIND)
        point, low = two_sum(point, low)
        others = _write_row(whole, wanted, g, point, low, e, KIND)
    a = normalizer_float64(peak, point, low, e, KIND)
    p, _, t = entry_from_normalizer(own, a, e, KIND)
    value = class_loss(others, own, p, t, a, peak, e, KIND)
    tl.store(loss + row, tl.where(counts, value, 0.0))
    tl.debug_barrier()  # what was written at the target is not its slope
    tl.store(scores + wanted, g * (p - 1.0), mask=known & lives)
