"""The entmax loss of a matrix of scores that its gradient may overwrite.

The gradient p − q overwrites the scores when the loss is computed, and the backward pass scales it in
place, so it needs no memory of its own. The version of the scores is incremented: autograd raises an
error if another operation has saved them for its derivative.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch._C._functorch import peek_interpreter_stack
from torch.autograd.graph import increment_version

from fenchel.autocast import rounded_like
from fenchel.errors import FenchelError
from fenchel.operators.entmax_loss import check_loss_values, entmax_row_loss_in_place


def may_overwrite(scores: Tensor) -> bool:
    """Whether p − q can overwrite the scores: a matrix that requires grad, without shared memory,
    and not traced or transformed."""
    if scores.ndim != 2 or not (torch.is_grad_enabled() and scores.requires_grad):
        return False
    owner = scores if scores._base is None else scores._base
    if owner.is_leaf and owner.requires_grad:
        raise FenchelError(
            "inplace=True cannot overwrite a leaf tensor that requires grad: pass inplace=False"
        )
    if torch.compiler.is_compiling() or peek_interpreter_stack() is not None:
        return False
    return _apart(scores)


def _apart(matrix: Tensor) -> bool:
    """Whether no two entries share memory, as they do in expanded or unfolded tensors."""
    extent = 1
    for stride, size in sorted(zip(matrix.stride(), matrix.shape, strict=True)):
        if size > 1:
            if stride < extent:
                return False
            extent += (size - 1) * stride
    return True


def overwriting_row_loss(
    scores: Tensor, target: Tensor, alpha: float | Tensor, ignore_index: int, smoothing: float
) -> Tensor:
    """L_α, one per row; p − q overwrites the scores."""
    return _Overwrite.apply(scores, target, alpha, ignore_index, smoothing)


class _Overwrite(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        scores: Tensor,
        target: Tensor,
        alpha: float | Tensor,
        ignore_index: int,
        smoothing: float,
    ) -> Tensor:
        check_loss_values(target, alpha, scores.shape[-1], ignore_index)
        by_alpha = isinstance(alpha, Tensor) and alpha.requires_grad
        one = torch.ones((), dtype=scores.dtype, device=scores.device)
        loss, ctx.by_alpha = entmax_row_loss_in_place(
            one.expand(scores.shape[0]), scores, target, alpha, ignore_index, smoothing, by_alpha
        )
        increment_version(scores)
        ctx.slope, ctx.version, ctx.alpha = scores.detach(), scores._version, alpha
        return rounded_like(scores, loss)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        if torch.is_grad_enabled():
            raise FenchelError(
                "a loss with inplace=True cannot be differentiated with create_graph=True:"
                " pass inplace=False"
            )
        if ctx.slope is None or ctx.slope._version != ctx.version:
            got = "a second one" if ctx.slope is None else "scores that were modified"
            raise FenchelError(
                "a loss with inplace=True must have one backward pass, before its scores are"
                f" modified, got {got}: pass inplace=False"
            )
        by_scores, ctx.slope = ctx.slope.mul_(grad.unsqueeze(-1)), None
        by_alpha = None
        if ctx.by_alpha is not None:
            slope = (grad * ctx.by_alpha).unsqueeze(-1)
            by_alpha = slope.sum_to_size(ctx.alpha.shape).to(ctx.alpha.dtype)
        return by_scores, None, by_alpha, None, None
