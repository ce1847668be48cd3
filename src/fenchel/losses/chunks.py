"""An output layer and its loss in chunks of rows: the scores of one chunk exist at a time.

The chunk's scores are overwritten by their gradient, which is then multiplied into the gradients that
are wanted. All of this happens when the loss is computed, so the scores are made only once.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor

from fenchel.kernels.rows import HALF
from fenchel.losses.operator import check_loss_values, entmax_row_loss_in_place
from fenchel.losses.reduction import smooth_probabilities

CHUNKS = 20  # so many by default: each rounds the gradient of half-precision weights once
LEAST_ROWS = 256  # matrix products of fewer rows are slow
ROWS_STEP = 64


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
    if count == 0 or classes == 0:
        for result in results:
            result.zero_()
        return results
    by_class = torch.zeros(classes if ahead[2] else 0, dtype=losses.dtype, device=hidden.device)
    with _autocast_off(hidden):
        narrow, matrix = hidden.to(dtype or hidden.dtype), weight.to(dtype or hidden.dtype)
        constant = None if bias is None else bias.to(matrix.dtype)
        rows = min(chunk_rows or default_rows(count), count)
        memory = narrow.new_empty(rows, classes)
        for start in range(0, count, rows):
            part = slice(start, min(start + rows, count))
            scores = memory[: part.stop - start]
            exponent = _part_of_alpha(alpha, part)
            check_loss_values(target[part], exponent, classes, ignore_index)
            _scores_into(scores, narrow[part], matrix, constant)
            losses[part], slopes = entmax_row_loss_in_place(
                row_weight[part] if any(ahead) else None,
                scores,
                _part_of_target(target, part, smoothing),
                exponent,
                ignore_index,
                smoothing,
                ahead[3],
            )
            if ahead[0]:
                _product_into(by_hidden[part], scores, matrix)
            if ahead[1]:
                _add_product(by_weight, scores.t(), narrow[part], first=start == 0)
            if ahead[2]:
                by_class += scores.sum(0, dtype=by_class.dtype)
            if slopes is not None:
                by_alpha[part] = row_weight[part] * slopes
    if ahead[2]:
        by_bias.copy_(by_class)
    total.copy_((row_weight * losses).sum())
    return results


def _autocast_off(tensor: Tensor) -> AbstractContextManager[object]:
    kind = tensor.device.type
    if torch.amp.is_autocast_available(kind):
        return torch.autocast(kind, enabled=False)
    return nullcontext()


def _part_of_target(target: Tensor, part: slice, smoothing: float) -> Tensor:
    if target.dtype.is_floating_point:
        return smooth_probabilities(target[part], smoothing)
    return target[part]


def _part_of_alpha(alpha: float | Tensor, part: slice) -> float | Tensor:
    return alpha[part] if isinstance(alpha, Tensor) and alpha.shape[0] > 1 else alpha


def _scores_into(out: Tensor, hidden: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    if bias is None:
        torch.mm(hidden, weight.t(), out=out)
    else:
        torch.addmm(bias, hidden, weight.t(), out=out)


def _product_into(out: Tensor, left: Tensor, right: Tensor) -> None:
    if out.dtype == left.dtype:
        torch.mm(left, right, out=out)
    else:
        out.copy_(torch.mm(left, right))


def _add_product(total: Tensor, left: Tensor, right: Tensor, *, first: bool) -> None:
    """Add left @ right to a total that has no value yet when this is the first; it is rounded once."""
    beta = 0 if first else 1
    if total.dtype == left.dtype:
        total.addmm_(left, right, beta=beta)
    elif left.is_cuda and left.dtype in HALF and total.dtype == torch.float32:
        torch.addmm(total, left, right, beta=beta, out_dtype=total.dtype, out=total)
    else:
        total.addmm_(left.to(total.dtype), right.to(total.dtype), beta=beta)
