"""The entmax loss of an output layer in chunks of rows: only the scores of one chunk exist at a time.

The scores of a chunk are overwritten by their gradient, which is then multiplied into the required
gradients. This happens when the loss is computed, so the scores are computed only once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from fenchel.autocast import without_autocast
from fenchel.operators.entmax_loss import check_loss_values, entmax_row_loss_in_place
from fenchel.operators.layout import HALF
from fenchel.operators.loss_target import smooth_probabilities
from fenchel.operators.weight_gradient import WeightGradient, product_into, weight_gradient

CHUNKS = 16  # by default; every chunk rounds the gradient of half-precision weight_sum once
MIN_CHUNK_ROWS = 256  # matrix products of fewer rows are slow
LOSS_ROWS = 512  # rows whose loss is computed at once, because it needs memory beside their scores
PRODUCT_ROWS = 128  # chunks are multiples of it, which matrix products process at once


def default_rows(count: int) -> int:
    """Rows of a chunk, a multiple of `PRODUCT_ROWS`."""
    rows = max(-(-count // CHUNKS), MIN_CHUNK_ROWS)
    return -(-rows // PRODUCT_ROWS) * PRODUCT_ROWS


def loss_dtype(dtype: torch.dtype) -> torch.dtype:
    return torch.float32 if dtype in HALF else dtype


def empty_results(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    dtype: torch.dtype | None,
    ahead: Sequence[bool],
) -> tuple[Tensor, ...]:
    """Σ w L, L per row, and the gradients in hidden, weight, bias and α; of size 0 if not required.

    The gradient in α has one value per row.
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
    """Losses, and the gradients of Σ w L for which `ahead` is true; products are computed in `dtype`."""
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
        weight_sum = None
        if ahead[1]:
            weight_sum = weight_gradient(by_weight, narrow, matrix, target, alpha, smoothing, rows)
        for part in _parts(0, count, rows):
            scores = narrow.new_empty(part.stop - part.start, classes)
            check_loss_values(target[part], _of_rows(alpha, part), classes, ignore_index)
            _scores_into(scores, narrow[part], matrix, constant)
            _overwrite(
                scores, part, losses, by_alpha, weight_sum, row_weight if any(ahead) else None,
                target, alpha, ignore_index, smoothing,
            )  # fmt: skip
            wanted = by_hidden[part] if ahead[0] else None
            if weight_sum is not None:
                weight_sum.add(scores, part.start, wanted, matrix)
            elif wanted is not None:
                product_into(wanted, scores, matrix)
            if ahead[2]:
                by_class += scores.sum(0, dtype=by_class.dtype)
            del scores  # frees their memory
            if weight_sum is not None:
                weight_sum.finish(part.stop)
    if ahead[2]:
        by_bias.copy_(by_class)
    total.copy_((row_weight * losses).sum())
    return results


def _overwrite(
    scores: Tensor, part: slice, losses: Tensor, by_alpha: Tensor, weight_sum: WeightGradient | None,
    row_weight: Tensor | None, target: Tensor, alpha: float | Tensor,
    ignore_index: int, smoothing: float,
) -> None:  # fmt: skip
    """Write the losses and ∂L/∂α of a chunk, and w (p − q) over its scores; a few rows at a time."""
    for few in _parts(part.start, part.stop, LOSS_ROWS):
        offset = few.start - part.start
        some = scores[offset : offset + LOSS_ROWS]
        support_groups = (
            None if weight_sum is None else weight_sum.empty_support_groups(some.shape[0])
        )
        losses[few], slopes = entmax_row_loss_in_place(
            None if row_weight is None else row_weight[few],
            some,
            _part_of_target(target, few, smoothing),
            _of_rows(alpha, few),
            ignore_index,
            smoothing,
            by_alpha.numel() > 0,
            support_groups,
        )
        if weight_sum is not None:
            weight_sum.list_part(some, support_groups, few.start, offset)
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
