"""The entmax loss as an operator along the last dimension, with any batch shape.

The backward pass computes p − q again from the scores and the normalizer, so nothing of the size of the
scores is saved. `target` holds class indices (…) or probabilities (…, classes). Rows whose index is
`ignore_index` have loss zero and no gradient. `smoothing` is the share of a class index that is spread
over all classes; probabilities are not smoothed here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from fenchel.checks import check_bound
from fenchel.kernels.reference.entmax_loss import counted, dense_target, loss_slope_alpha
from fenchel.operators import dispatch
from fenchel.operators.derivatives import (
    forward_mode,
    save_parameter,
    saved_parameter,
    vmap_over_batch,
)
from fenchel.operators.layout import at_least_float32, parameter_to_rows, to_rows
from fenchel.operators.loss_target import check_target_values
from fenchel.operators.maps import ENTMAX
from fenchel.operators.registration import define, differentiate

HOME = "entmax_loss"  # the module of every backend


class Solution(NamedTuple):
    """What the backward pass needs of the forward pass, beside its arguments.

    Only the Triton kernels write the last two; they have size 0 if there is nothing to write.
    """

    normalizer: Tensor  # (…), A in float64; −inf for an ignored or empty row
    support_groups: Tensor  # (…, groups + 1): groups of columns that may hold support, their number
    support_edge: Tensor  # (…, 2): the smallest score of the support, and its probability


def entmax_row_loss(
    scores: Tensor,
    target: Tensor,
    alpha: float | Tensor,
    ignore_index: int,
    smoothing: float = 0.0,
) -> Tensor:
    """L_α, one per row, differentiable in the scores and in α."""
    return _LOSS(scores, target, alpha, ignore_index, smoothing)[0]


def entmax_row_loss_in_place(
    grad: Tensor | None,
    scores: Tensor,
    target: Tensor,
    alpha: float | Tensor,
    ignore_index: int,
    smoothing: float,
    by_alpha: bool,
    support_groups: Tensor | None = None,
) -> tuple[Tensor, Tensor | None]:
    """The losses of a matrix and, if `by_alpha`, ∂L/∂α. With a `grad` g, g (p − q) overwrites the scores.

    It has no derivatives, and `check_loss_values` must have been called. On a GPU it writes to
    `support_groups`, if given, where the support may be.
    """
    solve = dispatch.kernel(HOME, "entmax_loss_in_place", scores, _adapt_in_place)
    return solve(grad, scores, target, alpha, ignore_index, smoothing, by_alpha, support_groups)


def check_loss_values(
    target: Tensor, alpha: float | Tensor, classes: int, ignore_index: int
) -> None:
    """Check the values of targets and of α, except on a GPU, where reading them would stop the device."""
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
    solve = dispatch.kernel(HOME, "entmax_loss", scores, _adapt_loss)
    loss, solution = solve(scores, target, alpha, ignore_index, smoothing)
    return loss, *solution


def _fake(
    scores: Tensor, target: Tensor, alpha: float | Tensor, *_: Any
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    wide = torch.float32 if scores.device.type == "mps" else torch.float64
    batch = scores.shape[:-1]
    loss, normalizer = scores.new_empty(batch), scores.new_empty(batch, dtype=wide)
    return loss, normalizer, *_empty_support(scores, target, alpha)


def _empty_support(scores: Tensor, target: Tensor, alpha: float | Tensor) -> tuple[Tensor, Tensor]:
    """Empty `support_groups` and `support_edge`, of the sizes that the backend writes."""
    sizes = dispatch.extension(HOME, "support_sizes", scores)
    groups, edge = (0, 0) if sizes is None else sizes(scores.shape[-1], target, alpha)
    batch = scores.shape[:-1]
    support_groups = scores.new_empty((*batch, groups), dtype=torch.int32)
    return support_groups, scores.new_empty((*batch, edge), dtype=torch.float32)


def _run_backward(
    grad: Tensor,
    scores: Tensor,
    target: Tensor,
    alpha: float | Tensor,
    normalizer: Tensor,
    support_groups: Tensor,
    support_edge: Tensor,
    ignore_index: int,
    smoothing: float,
) -> Tensor:
    if scores.numel() == 0:
        return torch.empty_like(scores, memory_format=torch.contiguous_format)
    gradient = dispatch.kernel(HOME, "entmax_loss_backward", scores, _adapt_backward)
    solution = Solution(normalizer, support_groups, support_edge)
    return gradient(grad, scores, target, alpha, solution, ignore_index, smoothing)


def _run_alpha(
    scores: Tensor,
    target: Tensor,
    alpha: Tensor,
    normalizer: Tensor,
    support_groups: Tensor,
    support_edge: Tensor,
    ignore_index: int,
    smoothing: float,
) -> Tensor:
    if scores.numel() == 0:
        return torch.zeros_like(normalizer)
    slope = dispatch.kernel(HOME, "entmax_loss_alpha", scores, _adapt_alpha)
    solution = Solution(normalizer, support_groups, support_edge)
    return slope(scores, target, alpha, solution, ignore_index, smoothing)


def _adapt_loss(solve: dispatch.Function, takes_rows: bool) -> dispatch.Function:
    def run_rows(
        scores: Tensor, target: Tensor, alpha: Any, *options: Any
    ) -> tuple[Tensor, Solution]:
        loss, normalizer = solve(*_to_rows(scores, target, alpha), *options)
        batch = scores.shape[:-1]
        if loss.shape != batch or loss.dtype != scores.dtype:
            # Not a view, which could not be modified in place.
            loss = scores.new_empty(batch).copy_(loss.view(batch))
        return loss, Solution(normalizer.view(batch), *_empty_support(scores, target, alpha))

    def run(scores: Tensor, target: Tensor, alpha: Any, *options: Any) -> tuple[Tensor, Solution]:
        support = _empty_support(scores, target, alpha)
        loss, normalizer = solve(scores, target, alpha, *options, *support)
        return loss, Solution(normalizer, *support)

    return run_rows if takes_rows else run


def _adapt_backward(gradient: dispatch.Function, takes_rows: bool) -> dispatch.Function:
    def run_rows(
        grad: Tensor, scores: Tensor, target: Tensor, alpha: Any, solution: Solution, *options: Any
    ) -> Tensor:
        rows = _to_rows(scores, target, alpha)
        grad = grad.to(rows[0].dtype).reshape(-1).contiguous()
        out = gradient(grad, *rows, solution.normalizer.reshape(-1), *options)
        return out.view(scores.shape).to(scores.dtype)

    def run(
        grad: Tensor, scores: Tensor, target: Tensor, alpha: Any, solution: Solution, *options: Any
    ) -> Tensor:
        normalizer, *support = solution
        support = [each.contiguous() for each in support]
        return gradient(grad, scores, target, alpha, normalizer, *options, *support)

    return run_rows if takes_rows else run


def _adapt_alpha(slope: dispatch.Function, takes_rows: bool) -> dispatch.Function:
    def run_rows(
        scores: Tensor, target: Tensor, alpha: Tensor, solution: Solution, *options: Any
    ) -> Tensor:
        rows, normalizer = _to_rows(scores, target, alpha), solution.normalizer
        return (
            slope(*rows, normalizer.reshape(-1), *options)
            .view(normalizer.shape)
            .to(normalizer.dtype)
        )

    def run(
        scores: Tensor, target: Tensor, alpha: Tensor, solution: Solution, *options: Any
    ) -> Tensor:
        normalizer, *support = solution
        support = [each.contiguous() for each in support]
        return slope(scores, target, alpha, normalizer, *options, *support).to(normalizer.dtype)

    return run_rows if takes_rows else run


def _adapt_in_place(solve: dispatch.Function, takes_rows: bool) -> dispatch.Function:
    if not takes_rows:
        return solve

    def run_rows(
        grad: Tensor | None, scores: Tensor, target: Tensor, alpha: Any, *options: Any
    ) -> tuple[Tensor, Tensor | None]:
        rows = _to_rows(scores, target, alpha)
        if grad is not None:
            grad = grad.to(rows[0].dtype).contiguous()
        loss, slope = solve(grad, *rows, *options[:-1])
        if grad is not None and rows[0].data_ptr() != scores.data_ptr():  # a copy was overwritten
            scores.copy_(rows[0])
        return loss, slope

    return run_rows


def _to_rows(scores: Tensor, target: Tensor, alpha: float | Tensor) -> tuple[Any, Any, Any]:
    rows = to_rows(scores, -1)
    if target.dtype.is_floating_point:
        target = target.to(rows.dtype).expand(scores.shape).reshape(rows.shape)
    else:
        target = target.expand(scores.shape[:-1]).reshape(-1)
    return rows, target.contiguous(), parameter_to_rows(alpha, scores, -1)


class _LossRule(torch.autograd.Function):
    @staticmethod
    def forward(*args: Any) -> tuple[Tensor, ...]:
        return _LOSS.below_autograd(*args)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        scores, target, alpha, *ctx.options = inputs
        tensor = save_parameter(ctx, alpha)
        ctx.mark_non_differentiable(*output[1:])
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(scores, target, tensor, *output[1:])
        ctx.save_for_forward(scores, target, tensor)

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None, *_: Any) -> tuple[Any, ...]:
        if grad is None:
            return (None,) * 5
        scores, target, tensor, *solution = ctx.saved_tensors
        alpha = saved_parameter(ctx, tensor)
        by_alpha = None
        if torch.is_grad_enabled():  # with create_graph: differentiable, in plain PyTorch
            by_scores, slope = loss_slopes(scores, target, alpha, *ctx.options)
            by_scores = grad.unsqueeze(-1) * by_scores
        else:
            by_scores = _BACKWARD(grad, scores, target, alpha, *solution, *ctx.options)
            slope = None
            if ctx.needs_input_grad[2]:
                slope = _ALPHA(scores, target, alpha, *solution, *ctx.options)
        if ctx.needs_input_grad[2] and slope is not None:
            by_alpha = (grad * slope).unsqueeze(-1).sum_to_size(alpha.shape).to(alpha.dtype)
        return by_scores.to(scores.dtype), None, by_alpha, None, None

    @staticmethod
    @forward_mode
    def jvp(ctx: Any, saved: Any, by_scores: Any, _: Any, by_alpha: Any, *__: Any) -> Any:
        scores, target, tensor = saved
        slope, slope_alpha = loss_slopes(scores, target, saved_parameter(ctx, tensor), *ctx.options)
        tangent = torch.zeros_like(slope[..., 0])
        if by_scores is not None:
            tangent = (by_scores * slope).sum(-1)
        if by_alpha is not None:
            tangent = tangent + by_alpha.squeeze(-1) * slope_alpha
        return tangent.to(scores.dtype), None, None, None

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> tuple[Any, Any]:
        return vmap_over_batch(_LOSS, info, in_dims, *args)


def loss_slopes(
    scores: Tensor,
    target: Tensor,
    alpha: float | Tensor,
    ignore_index: int,
    smoothing: float,
) -> tuple[Tensor, Tensor | None]:
    """∂L/∂x = p − q and, for a tensor α, ∂L/∂α, in plain PyTorch over the differentiable map."""
    wide = at_least_float32(scores)
    q = dense_target(target, wide, ignore_index, smoothing)
    p = ENTMAX.apply(wide, alpha, None, -1)
    present = (wide > float("-inf")).any(-1) | wide.isnan().any(-1)
    counts = counted(target, ignore_index) & present
    by_scores = torch.where(counts.unsqueeze(-1), p - q, 0.0)
    if not isinstance(alpha, Tensor):
        return by_scores, None
    return by_scores, torch.where(counts, loss_slope_alpha(p, q, alpha), 0.0)


_LOSS = define(
    "entmax_loss(Tensor scores, Tensor target, Parameter alpha, int ignore_index,"
    " float smoothing) -> (Tensor, Tensor, Tensor, Tensor)",
    _run,
    _fake,
)
differentiate(_LOSS, _LossRule)
_BACKWARD = define(
    "entmax_loss_backward(Tensor grad, Tensor scores, Tensor target, Parameter alpha,"
    " Tensor normalizer, Tensor support_groups, Tensor support_edge, int ignore_index,"
    " float smoothing) -> Tensor",
    _run_backward,
    lambda grad, scores, *_: torch.empty_like(scores, memory_format=torch.contiguous_format),
    vmap=vmap_over_batch,
)
_ALPHA = define(
    "entmax_loss_alpha(Tensor scores, Tensor target, Tensor alpha, Tensor normalizer,"
    " Tensor support_groups, Tensor support_edge, int ignore_index, float smoothing) -> Tensor",
    _run_alpha,
    lambda scores, target, alpha, normalizer, *_: torch.empty_like(normalizer),
    vmap=vmap_over_batch,
)
