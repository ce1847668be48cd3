"""The entmax loss of scores that may be overwritten, from kernels that compute its parts."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

InPlace = Callable[..., tuple[Tensor, Tensor | None]]


def loss_in_place(
    loss_of: Callable[..., tuple[Tensor, Tensor]],
    slope_in_alpha: Callable[..., Tensor],
    backward: Callable[..., Tensor],
) -> InPlace:
    """Loss, ∂L/∂α and gradient of a matrix as one kernel; `backward` can write over the scores."""

    def entmax_loss_in_place(
        grad: Tensor | None,
        scores: Tensor,
        target: Tensor,
        alpha: float | Tensor,
        ignore_index: int,
        smoothing: float,
        by_alpha: bool,
    ) -> tuple[Tensor, Tensor | None]:
        """The loss and, if wanted, ∂L/∂α, one a row; with g, g (p − q) overwrites the scores."""
        options = ignore_index, smoothing
        loss, normalizer = loss_of(scores, target, alpha, *options)
        slope = None
        if by_alpha and isinstance(alpha, Tensor):
            slope = slope_in_alpha(scores, target, alpha, normalizer, *options)
        if grad is not None:
            backward(grad, scores, target, alpha, normalizer, *options, out=scores)
        return loss, slope

    return entmax_loss_in_place
