"""Regularizers defined by a Python function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import torch
from torch import Tensor

from fenchel.checks import canonical_dim, check_count, check_mask, check_number
from fenchel.errors import FenchelError
from fenchel.operators.derivatives import forward_mode
from fenchel.projected_gradient import gradient, jacobian_product, minimise, row_values
from fenchel.regularizers import Regularizer

LARGEST_TOLERANCE = 1e-12


@final
class Custom(Regularizer):
    r"""The regularizer Ω(p) = γ fn(p) of a smooth, strongly convex function `fn`.

    The map

        argmax_{p ∈ Δ} ⟨p, x⟩ − γ fn(p)

    is computed by accelerated projected gradient until a projected gradient step of size one moves no
    entry by more than `tolerance`; otherwise `FenchelError` is raised.

    Jacobian: the solution of the optimality conditions [γH 1; 1ᵀ 0] [J g; μ] = [g; 0] on the support S,
    with H the Hessian of `fn`. Cost: O(|S|³) per row for a backward pass.

    The map, the conjugate and the loss are differentiable in the scores as often as `fn` is. Tensors
    used by `fn` that require grad get first derivatives.

    Args:
        fn: Maps probabilities (…, d) to values (…), row by row, with differentiable PyTorch operations.
            It must be finite with finite gradients on the whole simplex.
        gamma: The temperature, above 0.
        tolerance: The largest residual. The default is 16 times the machine epsilon of the dtype of
            the scores, and at least 1e-12.
        max_iterations: The largest number of gradient steps.

    References: Niculae & Blondel (2017), *A Regularized Framework for Sparse and Structured Neural
    Attention*, Prop. 1; Beck & Teboulle (2009), *A Fast Iterative Shrinkage-Thresholding Algorithm*.

    >>> import torch, fenchel
    >>> omega = fenchel.Custom(lambda p: p.square().sum(-1) / 2)
    >>> omega.map(torch.tensor([1.0, 0.5, -1.0]))  # sparsemax
    tensor([0.7500, 0.2500, 0.0000])
    >>> chain = fenchel.Custom(lambda p: p.square().sum(-1) / 2 + p.diff(dim=-1).square().sum(-1))
    >>> chain.map(torch.tensor([1.0, 0.5, -1.0]))
    tensor([0.6250, 0.3750, 0.0000])
    """

    def __init__(
        self,
        fn: Callable[[Tensor], Tensor],
        gamma: float = 1.0,
        *,
        tolerance: float | None = None,
        max_iterations: int = 10_000,
    ) -> None:
        super().__init__(gamma)
        if not callable(fn):
            raise FenchelError(f"fn must be callable, got {type(fn).__name__}")
        if tolerance is not None:
            check_number(tolerance, name="tolerance", above=0)
        check_count(max_iterations, "max_iterations")
        self.fn, self.tolerance, self.max_iterations = fn, tolerance, max_iterations

    def __repr__(self) -> str:
        return f"Custom(fn={getattr(self.fn, '__name__', self.fn)}, gamma={self.gamma})"

    def solve(self, scores: Tensor) -> Tensor:
        """The map along the last dimension, without derivatives and at γ = 1."""
        tolerance = self.tolerance
        if tolerance is None:
            tolerance = max(LARGEST_TOLERANCE, 16 * torch.finfo(scores.dtype).eps)
        return minimise(self.fn, scores.detach(), tolerance, self.max_iterations)

    def _value(self, p: Tensor, dim: int) -> Tensor:
        return row_values(self.fn, p.movedim(dim, -1))

    def _map(self, scores: Tensor, dim: int, mask: Tensor | None) -> Tensor:
        p = _Argmax.apply(_rows(scores, dim, mask), self)
        return self._with_parameters(p).movedim(-1, dim)

    def _max(self, scores: Tensor, dim: int, mask: Tensor | None) -> Tensor:
        rows = _rows(scores, dim, mask)
        value = _Maximum.apply(rows, self)
        at = _Argmax.apply(rows, self).detach()
        own = row_values(self.fn, at) if torch.is_grad_enabled() else value
        if own.requires_grad:  # by the envelope theorem the derivative in parameters of fn is −∂fn
            value = value - (own - own.detach())
        return value

    def _with_parameters(self, p: Tensor) -> Tensor:
        """p, with the derivative −J ∂(∇fn) in whatever tensors `fn` uses."""
        at = p.detach()
        if not torch.is_grad_enabled() or not row_values(self.fn, at).requires_grad:
            return p
        slope = torch.where(at != 0, gradient(self.fn, at), 0.0)
        return p - jacobian_product(self.fn, at, slope - slope.detach())


def _rows(scores: Tensor, dim: int, mask: Tensor | None) -> Tensor:
    dim = canonical_dim(dim, scores.ndim)
    mask = check_mask(mask, scores)
    rows = scores if mask is None else scores.masked_fill(~mask, -torch.inf)
    return rows.movedim(dim, -1)


class _Argmax(torch.autograd.Function):
    """p* = ∇Ω*(x), differentiated through the optimality conditions."""

    @staticmethod
    def forward(scores: Tensor, omega: Custom) -> Tensor:
        return omega.solve(scores)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Custom], output: Tensor) -> None:
        scores, ctx.omega = inputs
        ctx.save_for_backward(output)
        ctx.save_for_forward(scores)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (p,) = ctx.saved_tensors
        return jacobian_product(ctx.omega.fn, p, grad), None

    @staticmethod
    @forward_mode
    def jvp(ctx: Any, saved: Any, by_scores: Any, _: Any) -> Tensor:
        p = _Argmax.apply(saved[0], ctx.omega)
        return jacobian_product(ctx.omega.fn, p, by_scores)

    @staticmethod
    def vmap(info: Any, in_dims: Any, scores: Tensor, omega: Custom) -> tuple[Any, int]:
        return _Argmax.apply(scores.movedim(in_dims[0], 0), omega), 0


class _Maximum(torch.autograd.Function):
    """Ω*(x), whose gradient is the map."""

    @staticmethod
    def forward(scores: Tensor, omega: Custom) -> Tensor:
        p = omega.solve(scores)
        attained = torch.where(p == 0, 0.0, p * scores).sum(-1)
        value = attained - row_values(omega.fn, p)
        return torch.where(scores.isneginf().all(-1), -torch.inf, value)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Custom], output: Tensor) -> None:
        scores, ctx.omega = inputs
        ctx.save_for_backward(scores)
        ctx.save_for_forward(scores)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return grad.unsqueeze(-1) * _Argmax.apply(ctx.saved_tensors[0], ctx.omega), None

    @staticmethod
    @forward_mode
    def jvp(ctx: Any, saved: Any, by_scores: Any, _: Any) -> Tensor:
        p = _Argmax.apply(saved[0], ctx.omega)
        return torch.where(p == 0, 0.0, p * by_scores).sum(-1)

    @staticmethod
    def vmap(info: Any, in_dims: Any, scores: Tensor, omega: Custom) -> tuple[Any, int]:
        return _Maximum.apply(scores.movedim(in_dims[0], 0), omega), 0
