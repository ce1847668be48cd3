"""The entmax loss along the last dimension of CUDA scores: one read forward, one read and write back.

`target` holds class indices (…) or probabilities (…, classes). Beside the scores the gradients need the
normaliser A of every row, in float64, and where alpha may be above 2 its `support` (…, 2): the smallest
score of it and the probability of that. Nothing waits for the device: an index that is neither a class
nor `ignore_index` gives a NaN loss.
"""

from __future__ import annotations

# A kernel is launched with options that its parameters do not name.
# pyright: reportCallIssue=false
import torch
from torch import Tensor

from fenchel.kernels.triton.launch.addressing import address
from fenchel.kernels.triton.launch.alpha import SOFTMAX, kind_of
from fenchel.kernels.triton.launch.long_row_shapes import groups_shape, stream_shape, streams_losses
from fenchel.kernels.triton.launch.replay import replayed
from fenchel.kernels.triton.launch.tile_shapes import fits_loss_tile, slope_shape
from fenchel.kernels.triton.launch.whole_numbers import ceiling
from fenchel.kernels.triton.losses.alpha_slope import alpha_rows
from fenchel.kernels.triton.losses.forward import (
    SLOPE_BLOCKS,
    SLOPE_WARPS,
    or_none,
    solve_losses,
    stream_losses,
    walks,
)
from fenchel.kernels.triton.losses.kept import kept_numbers, room_for_support, support_numbers
from fenchel.kernels.triton.losses.slopes import slope_of_groups, slope_tile


@replayed
def entmax_loss(
    scores: Tensor,
    target: Tensor,
    alpha: float | Tensor,
    ignore_index: int,
    smoothing: float,
    listed: Tensor | None = None,
    support: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The loss and the normaliser A, one a row; +inf if the target has a class at −inf.

    `listed` (…, kept_numbers) gets, of long rows, the groups of columns that may hold support and their
    number, `support` (…, support_numbers) its smallest score and the probability of that.
    """
    dtype = torch.float32 if smoothing else scores.dtype
    loss = scores.new_empty(scores.shape[:-1], dtype=dtype)
    normalizer = solve_losses(
        loss, None, scores, target, kind_of(alpha), ignore_index, smoothing, listed, support
    )  # fmt: skip
    return loss.to(scores.dtype), normalizer


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
    """The loss and, if wanted, ∂L/∂α, one a row and in float32; with g, g (p − q) overwrites the scores.

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
        stream_losses(loss, grad, scores, target, exponent, ignore_index, listed)
        return loss, None
    if not fits_loss_tile(scores.shape[-1]) and (kind == SOFTMAX.value or walks(kind, eps)):
        fused = False  # the gradient of such rows needs the normaliser alone
    support = None if fused else room_for_support(scores, alpha)
    if by_alpha and listed is None:
        numbers = kept_numbers(scores.shape[-1], target, alpha)
        listed = scores.new_empty((*scores.shape[:-1], numbers), dtype=torch.int32)
    normalizer = solve_losses(
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
    """g (p − q); zero for a row that is ignored or has nothing in it. `out` may be the scores.

    With what the forward pass has `listed`, groups of scores without support are not read where they
    are many; `out` is no other tensor then. Without its `support` rows with α > 2 are solved again.
    """
    if out is None:
        out = torch.empty_like(scores, memory_format=torch.contiguous_format)
    if scores.numel() == 0:
        return out
    classes = not target.dtype.is_floating_point
    kind, eps, alphas = kind_of(alpha)
    support = _support(scores, target, alpha, ignore_index, support)
    rows, tensors, steps = address(
        -1, scores, target.unsqueeze(-1) if classes else target, alphas,
        normalizer.unsqueeze(-1), grad.unsqueeze(-1), out,
    )  # fmt: skip
    if classes and listed is not None and listed.numel() > 0:
        shape = groups_shape(rows.columns)
        slope_of_groups[(rows.count,)](
            *tensors, support, listed, eps, ignore_index, smoothing,
            rows.count, rows.columns, shape.groups, rows.middle, rows.inner, *steps,
            LEVELS=rows.levels, KIND=kind, GROUP=shape.size, BLOCK=SLOPE_BLOCKS * shape.listed,
            num_warps=SLOPE_WARPS,
        )  # fmt: skip
        return out
    tile = slope_shape(rows)
    slope_tile[(ceiling(rows.count, tile.rows), ceiling(rows.columns, tile.width))](
        *tensors, support, eps, ignore_index, smoothing,
        rows.count, rows.columns, rows.middle, rows.inner, *steps,
        LEVELS=rows.levels, KIND=kind, CLASSES=classes, R=tile.rows, K=tile.width,
        num_warps=tile.warps,
    )  # fmt: skip
    return out


def _support(
    scores: Tensor, target: Tensor, alpha: float | Tensor, ignore_index: int,
    support: Tensor | None,
) -> Tensor | None:  # fmt: skip
    """What the forward pass has kept; if that was another implementation's, it is found again."""
    if support_numbers(alpha) == 0:
        return None
    if support is None or support.numel() == 0:
        support = room_for_support(scores, alpha)
        loss = scores.new_empty(scores.shape[:-1], dtype=torch.float32)
        solve_losses(loss, None, scores, target, kind_of(alpha), ignore_index, 0.0, None, support)
    return support


def entmax_loss_alpha(
    scores: Tensor,
    target: Tensor,
    alpha: Tensor,
    normalizer: Tensor,
    ignore_index: int,
    smoothing: float,
    listed: Tensor | None = None,
    support: Tensor | None = None,
) -> Tensor:
    """∂L/∂α = ∂Ω_α(q)/∂α − ∂Ω_α(p)/∂α, one a row and in float32, by the envelope theorem."""
    slopes = torch.zeros(normalizer.shape, dtype=torch.float32, device=scores.device)
    if scores.numel() == 0:
        return slopes
    classes = not target.dtype.is_floating_point
    kind, _, alphas = kind_of(alpha)
    rows, tensors, steps = address(
        -1, scores, target.unsqueeze(-1) if classes else target, alphas, normalizer.unsqueeze(-1)
    )  # fmt: skip
    shape = groups_shape(rows.columns)
    block, warps = stream_shape(rows.columns)
    alpha_rows[(rows.count,)](
        *tensors, _support(scores, target, alpha, ignore_index, support),
        or_none(listed) if classes else None, slopes, ignore_index, smoothing,
        rows.count, rows.columns, shape.groups, rows.middle, rows.inner, *steps,
        LEVELS=rows.levels, KIND=kind, CLASSES=classes, GROUP=shape.size,
        BLOCK=max(1, block // shape.size), num_warps=warps,
    )  # fmt: skip
    return slopes
