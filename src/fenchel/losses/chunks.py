"""An output layer and its loss in chunks of rows: the scores of one chunk exist at a time.

The chunk's scores are overwritten by their gradient, which is then multiplied into the gradients that
are wanted. All of this happens when the loss is computed, so the scores are made only once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from fenchel.autocast import without_autocast
from fenchel.kernels.rows import HALF
from fenchel.losses.operator import check_loss_values, entmax_row_loss_in_place
from fenchel.losses.reduction import smooth_probabilities
from fenchel.losses.weight_sum import WeightSum, product_into, weight_sum

CHUNKS = 16  # so many by default: each rounds the gradient of half-precision weights once
LEAST_ROWS = 256  # matrix products of fewer rows are slow
LOSS_ROWS = 512  # the loss takes so many at once, for it needs memory beside their scores
ROWS_STEP = 128  # matrix products take so many rows at once


def default_rows(count: int) -> int:
    """Rows of a chunk, a multiple of `ROWS_STEP`."""
    rows = max(-(-count // CHUNKS), LEAST_ROWS)
    return -(-rows // ROWS_STEP) * ROWS_STEP


def loss_dtype(dtype: torch.dtype) -> torch.dtype:
    return torch.float32 if dtype in HALF else dtype


def empty_results(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    dtype: torch.dtype | None,
    ahead: Sequence[bool],
) -> tuple[Tensor, ...]:
    """Σ w L, L of every row, and the gradients in hidden, weight, bias and α; of size 0 if not wanted.

    The gradient in α has one value a row.
    """
    wide = loss_dtype(hidden.dtype if dtype is None else dtype)
    losses = hidden.new_empty(hidden.shape[0], dtype=wide)
    wanted = zip((hidden, weight, hidden if bias is None else bias, losses), ahead, strict=True)
    gradients = (like.new_empty(like.shape if needed else 0) for like, needed in wanted)
    return hidden.new_empty((), dtype=wide), losses, *gradients


def chunked_loss(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    target: Tensor,
    alpha: float | Tensor,
    row_weight: Tensor,
    ignore_index: int,
    smoothing: float,
    chunk_rows: int,
    dtype: torch.dtype | None,
    ahead: Sequence[bool],
) -> tuple[Tensor, ...]:
    """Losses, and the gradients of Σ w L that `ahead` asks for; products are taken in `dtype`."""
    results = empty_results(hidden, weight, bias, dtype, ahead)
    total, losses, by_hidden, by_weight, by_bias, by_alpha = results
    count, classes = hidden.shape[0], weight.shape[0]
    if count == 0:
        for result in results:
            result.zero_()
        return results
    by_class = torch.zeros(classes if ahead[2] else 0, dtype=losses.dtype, device=hidden.device)
    with without_autocast(hidden.device):
        narrow, matrix = hidden.to(dtype or hidden.dtype), weight.to(dtype or hidden.dtype)
        constant = None if bias is None else bias.to(matrix.dtype)
        rows = min(chunk_rows or default_rows(count), count)
        weights = None
        if ahead[1]:
            weights = weight_sum(by_weight, narrow, matrix, target, alpha, smoothing, rows)
        for part in _parts(0, count, rows):
            scores = narrow.new_empty(part.stop - part.start, classes)
            check_loss_values(target[part], _of_rows(alpha, part), classes, ignore_index)
            _scores_into(scores, narrow[part], matrix, constant)
            _overwrite(
                scores, part, losses, by_alpha, weights, row_weight if any(ahead) else None,
                target, alpha, ignore_index, smoothing,
            )  # fmt: skip
            wanted = by_hidden[part] if ahead[0] else None
            if weights is not None:
                weights.add(scores, part.start, wanted, matrix)
            elif wanted is not None:
                product_into(wanted, scores, matrix)
            if ahead[2]:
                by_class += scores.sum(0, dtype=by_class.dtype)
            del scores  # their memory serves what follows
            if weights is not None:
                weights.finish(part.stop)
    if ahead[2]:
        by_bias.copy_(by_class)
    total.copy_((row_weight * losses).sum())
    return results


def _overwrite(
    scores: Tensor, part: slice, losses: Tensor, by_alpha: Tensor, weights: WeightSum | None,
    row_weight: Tensor | None, target: Tensor, alpha: float | Tensor,
    ignore_index: int, smoothing: float,
) -> None:  # fmt: skip
    """Write the losses and ∂L/∂α of a chunk, and w (p − q) over its scores; a few rows at a time."""
    for few in _parts(part.start, part.stop, LOSS_ROWS):
        offset = few.start - part.start
        some = scores[offset : offset + LOSS_ROWS]
        listed = None if weights is None else weights.room(some.shape[0])
        losses[few], slopes = entmax_row_loss_in_place(
            None if row_weight is None else row_weight[few],
            some,
            _part_of_target(target, few, smoothing),
            _of_rows(alpha, few),
            ignore_index,
            smoothing,
            by_alpha.numel() > 0,
            listed,
        )
        if weights is not None:
            weights.list_part(some, listed, few.start, offset)
        if slopes is not None and row_weight is not None:
            by_alpha[few] = row_weight[few] * slopes


def _part_of_target(target: Tensor, part: slice, smoothing: float) -> Tensor:
    if target.dtype.is_floating_point:
        return smooth_probabilities(target[part], smoothing)
    return target[part]


def _parts(start: int, stop: int, rows: int) -> Iterator[slice]:
    for first in range(start, stop, rows):
        yield slice(first, min(first + rows, stop))


def _of_rows(alpha: float | Tensor, part: slice) -> float | Tensor:
    return alpha[part] if isinstance(alpha, Tensor) and alpha.shape[0] > 1 else alpha


def _scores_into(out: Tensor, hidden: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    if bias is None:
        torch.mm(hidden, weight.t(), out=out)
    else:
        torch.addmm(bias, hidden, weight.t(), out=out)
