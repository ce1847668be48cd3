"""The entmax loss as an operator: loss and normaliser forward, p − q backward from the scores and it.

Along the last dimension, with any batch shape; `target` holds class indices (…) or probabilities
(…, classes). Rows whose index is `ignore_index` cost nothing and pass no gradient. `smoothing` is the
share of a class index that is spread over all classes; probabilities are left as they are.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from fenchel import dispatch
from fenchel.checks import check_bound
from fenchel.kernels.operators import Overloads, forward_mode, keep_number, kept
from fenchel.kernels.reference.entmax_loss import counted, dense_target, loss_slope_alpha
from fenchel.kernels.rows import at_least_float32, over_batch, parameter_to_rows, to_rows
from fenchel.losses.target import check_target_values
from fenchel.maps.entmax import ENTMAX


def entmax_row_loss(
    scores: Tensor,
    target: Tensor,
    alpha: float | Tensor,
    ignore_index: int,
    smoothing: float = 0.0,
) -> Tensor:
    """L_α, one a row, differentiable in the scores and in α."""
    return _LOSS(scores, target, alpha, ignore_index, smoothing)[0]


def entmax_row_loss_in_place(
    grad: Tensor | None,
    scores: Tensor,
    target: Tensor,
    alpha: float | Tensor,
    ignore_index: int,
    smoothing: float,
    by_alpha: bool,
    listed: Tensor | None = None,
) -> tuple[Tensor, Tensor | None]:
    """The losses of a matrix and, if wanted, ∂L/∂α; with g, g (p − q) overwrites the scores.

    A kernel without derivatives; its arguments have been looked at by `check_loss_values`. A GPU
    writes to `listed` where the support may be (`kernels/triton/weight_gradient.py`).
    """
    solve, strided = dispatch.kernel("entmax_loss", "entmax_loss_in_place", scores)
    options = ignore_index, smoothing, by_alpha
    if strided:
        return solve(grad, scores, target, alpha, *options, listed)
    rows = _to_rows(scores, target, alpha)
    if grad is not None:
        grad = grad.to(rows[0].dtype).contiguous()
    loss, slope = solve(grad, *rows, *options)
    if grad is not None and rows[0].data_ptr() != scores.data_ptr():  # half precision was widened
        scores.copy_(rows[0])
    return loss, slope


def check_loss_values(
    target: Tensor, alpha: float | Tensor, classes: int, ignore_index: int
) -> None:
    """Look at the values of the targets and of α, except on a GPU: looking would stop it."""
    if target.is_cuda:
        return
    if isinstance(alpha, Tensor):
        check_bound(alpha, name="alpha", above=0)
    check_target_values(target, classes, ignore_index)


def _run(
    scores: Tensor, target: Tensor, alpha: float | Tensor, ignore_index: int, smoothing: float
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    if scores.numel() == 0:
        return _fake(scores, target, alpha)
    check_loss_values(target, alpha, scores.shape[-1], ignore_index)
    solve, strided = dispatch.kernel("entmax_loss", "entmax_loss", scores)
    found = _found(scores, target, alpha)
    if strided:
        return *solve(scores, target, alpha, ignore_index, smoothing, *found), *found
    rows = _to_rows(scores, target, alpha)
    loss, normalizer = solve(*rows, ignore_index, smoothing)
    batch = scores.shape[:-1]
    if loss.shape != batch or loss.dtype != scores.dtype:
        # No view: it may be changed in place.
        loss = scores.new_empty(batch).copy_(loss.view(batch))
    return loss, normalizer.view(batch), *found


def _found(scores: Tensor, target: Tensor, alpha: float | Tensor) -> tuple[Tensor, Tensor]:
    """Room for what the Triton kernels tell their gradients beside the normaliser, none elsewhere.

    The groups of columns that may hold support; the support's smallest score and its probability.
    """
    batch, groups, support = scores.shape[:-1], 0, 0
    if dispatch.chosen("entmax_loss", "entmax_loss", scores) == "triton":
        from fenchel.kernels.triton.entmax_loss import kept_numbers, support_numbers

        groups, support = kept_numbers(scores.shape[-1], target, alpha), support_numbers(alpha)
    listed = scores.new_empty((*batch, groups), dtype=torch.int32)
    return listed, scores.new_empty((*batch, support), dtype=torch.float32)


def _run_backward(
    grad: Tensor,
    scores: Tensor,
    target: Tensor,
    alpha: float | Tensor,
    normalizer: Tensor,
    listed: Tensor,
    support: Tensor,
    ignore_index: int,
    smoothing: float,
) -> Tensor:
    if scores.numel() == 0:
        return torch.empty_like(scores, memory_format=torch.contiguous_format)
    pull_back, strided = dispatch.kernel("entmax_loss", "entmax_loss_backward", scores)
    options = ignore_index, smoothing
    if strided:
        found = listed.contiguous(), support.contiguous()
        return pull_back(grad, scores, target, alpha, normalizer, *options, *found)
    rows = _to_rows(scores, target, alpha)
    grad = grad.to(rows[0].dtype).reshape(-1).contiguous()
    out = pull_back(grad, *rows, normalizer.reshape(-1), *options)
    return out.view(scores.shape).to(scores.dtype)


def _run_alpha(
    scores: Tensor,
    target: Tensor,
    alpha: Tensor,
    normalizer: Tensor,
    listed: Tensor,
    support: Tensor,
    ignore_index: int,
    smoothing: float,
) -> Tensor:
    if scores.numel() == 0:
        return torch.zeros_like(normalizer)
    slope, strided = dispatch.kernel("entmax_loss", "entmax_loss_alpha", scores)
    options = ignore_index, smoothing
    if strided:
        found = listed.contiguous(), support.contiguous()
        return slope(scores, target, alpha, normalizer, *options, *found).to(normalizer.dtype)
    rows = slope(*_to_rows(scores, target, alpha), normalizer.reshape(-1), *options)
    return rows.view(normalizer.shape).to(normalizer.dtype)


def _to_rows(scores: Tensor, target: Tensor, alpha: float | Tensor) -> tuple[Any, Any, Any]:
    rows = to_rows(scores, -1)
    if target.dtype.is_floating_point:
        target = target.to(rows.dtype).expand(scores.shape).reshape(rows.shape)
    else:
        target = target.expand(scores.shape[:-1]).reshape(-1)
    return rows, target.contiguous(), parameter_to_rows(alpha, scores, -1)


def _fake(
    scores: Tensor, target: Tensor, alpha: float | Tensor, *_: Any
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    wide = torch.float32 if scores.device.type == "mps" else torch.float64
    batch = scores.shape[:-1]
    loss, normalizer = scores.new_empty(batch), scores.new_empty(batch, dtype=wide)
    return loss, normalizer, *_found(scores, target, alpha)


def _fake_backward(grad: Tensor, scores: Tensor, *_: Any) -> Tensor:
    return torch.empty_like(scores, memory_format=torch.contiguous_format)


class _Rule(torch.autograd.Function):
    @staticmethod
    def forward(*args: Any) -> tuple[Tensor, ...]:
        return _LOSS.below_autograd(*args)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        scores, target, alpha, *ctx.options = inputs
        rows = keep_number(ctx, alpha)
        ctx.mark_non_differentiable(*output[1:])
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(scores, target, rows, *output[1:])
        ctx.save_for_forward(scores, target, rows)

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None, *_: Any) -> tuple[Any, ...]:
        if grad is None:
            return (None,) * 5
        scores, target, rows, *found = ctx.saved_tensors
        alpha = kept(ctx, rows)
        by_alpha = None
        if torch.is_grad_enabled():  # this derivative will be differentiated: plain torch
            by_scores, slope = loss_slopes(scores, target, alpha, *ctx.options)
            by_scores = grad.unsqueeze(-1) * by_scores
        else:
            by_scores = _BACKWARD(grad, scores, target, alpha, *found, *ctx.options)
            slope = None
            if ctx.needs_input_grad[2]:
                slope = _ALPHA(scores, target, alpha, *found, *ctx.options)
        if ctx.needs_input_grad[2] and slope is not None:
            by_alpha = (grad * slope).unsqueeze(-1).sum_to_size(alpha.shape).to(alpha.dtype)
        return by_scores.to(scores.dtype), None, by_alpha, None, None

    @staticmethod
    @forward_mode
    def jvp(ctx: Any, saved: Any, by_scores: Any, _: Any, by_alpha: Any, *__: Any) -> Any:
        scores, target, rows = saved
        slope, slope_alpha = loss_slopes(scores, target, kept(ctx, rows), *ctx.options)
        tangent = torch.zeros_like(slope[..., 0])
        if by_scores is not None:
            tangent = (by_scores * slope).sum(-1)
        if by_alpha is not None:
            tangent = tangent + by_alpha.squeeze(-1) * slope_alpha
        return tangent.to(scores.dtype), None, None, None

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> tuple[Any, Any]:
        return over_batch(_LOSS, info, in_dims, *args)


def loss_slopes(
    scores: Tensor,
    target: Tensor,
    alpha: float | Tensor,
    ignore_index: int,
    smoothing: float,
) -> tuple[Tensor, Tensor | None]:
    """∂L/∂x = p − q and, for a tensor α, ∂L/∂α, in plain torch over the differentiable map."""
    wide = at_least_float32(scores)
    q = dense_target(target, wide, ignore_index, smoothing)
    p = ENTMAX.apply(wide, alpha, None, -1)
    present = (wide > float("-inf")).any(-1) | wide.isnan().any(-1)
    counts = counted(target, ignore_index) & present
    by_scores = torch.where(counts.unsqueeze(-1), p - q, 0.0)
    if not isinstance(alpha, Tensor):
        return by_scores, None
    return by_scores, torch.where(counts, loss_slope_alpha(p, q, alpha), 0.0)


_LOSS = Overloads(
    "entmax_loss(Tensor scores, Tensor target, Parameter alpha, int ignore_index,"
    " float smoothing) -> (Tensor, Tensor, Tensor, Tensor)",
    _run,
    _fake,
)
_LOSS.differentiate(_Rule)
_BACKWARD = Overloads(
    "entmax_loss_backward(Tensor grad, Tensor scores, Tensor target, Parameter alpha,"
    " Tensor normalizer, Tensor listed, Tensor support, int ignore_index, float smoothing) -> Tensor",
    _run_backward,
    _fake_backward,
    vmap=over_batch,
)
_ALPHA = Overloads(
    "entmax_loss_alpha(Tensor scores, Tensor target, Tensor alpha, Tensor normalizer,"
    " Tensor listed, Tensor support, int ignore_index, float smoothing) -> Tensor",
    _run_alpha,
    lambda scores, target, alpha, normalizer, *options: torch.empty_like(normalizer),
    vmap=over_batch,
)
