"""Accelerated projected gradient on the simplex, batched over rows, and the Jacobian of its solution.

    p* = argmin_{p ∈ Δ} f(p) − ⟨p, x⟩,    f smooth and strongly convex.

FISTA with the projection onto the simplex (sparsemax). Every row has its own step size, halved until it
fits the curvature of f along the step, and restarts its momentum when that points uphill (O'Donoghue &
Candès 2015), which makes the convergence linear. Once the support is found, a Newton step on it is nearly
exact, so one is tried every PATIENCE iterations. The solution is the fixed point p = P_Δ(p − ∇f(p) + x);
a row has converged when its residual r is below the tolerance. If f is μ-strongly convex and L-smooth,
the distance to the solution is at most r (1 + L)/μ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from torch._C import _autograd
from torch._C._functorch import is_functorch_wrapped_tensor
from torch.func import grad, vjp, vmap

from fenchel.errors import FenchelError
from fenchel.operators.maps import ENTMAX

Function = Callable[[Tensor], Tensor]

GROWTH = 1.2  # growth of the step size per iteration, before halving
SMALLEST_STEP = 1e-12
PATIENCE = 8  # iterations between two Newton steps


def minimise(fn: Function, scores: Tensor, tolerance: float, max_iterations: int) -> Tensor:
    """p* along the last dimension. Entries of −inf are excluded; a row of −inf gives zeros."""
    if torch.is_inference_mode_enabled():  # the search needs gradients
        with torch.inference_mode(False), torch.no_grad():
            return minimise(fn, scores.clone(), tolerance, max_iterations)
    absent = scores.isneginf()
    empty, broken = absent.all(-1, keepdim=True), ~(scores < torch.inf).all(-1, keepdim=True)
    x = torch.where(empty | broken, 0.0, scores)
    if x.numel():
        p = _Search(fn, x, tolerance).run(max_iterations)
        return torch.where(broken, torch.nan, torch.where(empty, 0.0, p))
    return x


class _Search:
    """The state of one minimisation."""

    def __init__(self, fn: Function, x: Tensor, tolerance: float) -> None:
        self.fn, self.x, self.tolerance = fn, x, tolerance
        self.absent = x.isneginf()
        self.direction = torch.where(self.absent, 0.0, x)

    def run(self, max_iterations: int) -> Tensor:
        p = ahead = self._project(self.x)
        step, momentum = torch.ones_like(p[..., :1]), torch.ones_like(p[..., :1])
        residual = torch.full_like(step, torch.inf)
        for iteration in range(max_iterations):
            if iteration % PATIENCE == PATIENCE - 1:
                ahead = self._newton(p, ahead)
            slope = self._slope(ahead)
            fixed = self._project(ahead - slope)
            residual = (fixed - ahead).abs().amax(-1, keepdim=True)
            if bool((residual <= self.tolerance).all()):
                return fixed
            following, step = self._descend(ahead, slope, step)
            uphill = ((ahead - following) * (following - p)).sum(-1, keepdim=True) > 0
            momentum = torch.where(uphill, 1.0, momentum)
            next_momentum = (1 + torch.sqrt(1 + 4 * momentum.square())) / 2
            # fn need not be defined outside the simplex, so the extrapolated point is projected too.
            moved = self._project(following + (momentum - 1) / next_momentum * (following - p))
            # Rows that have converged do not move.
            ahead = torch.where(residual <= self.tolerance, ahead, moved)
            p, momentum = following, next_momentum
        left = int((residual > self.tolerance).sum())
        raise FenchelError(
            f"the map of fn must converge to a residual of {self.tolerance:.3g} within"
            f" {max_iterations} steps, got {residual.max().item():.3g} ({left} rows left);"
            " fn must be smooth and strongly convex"
        )

    def _newton(self, p: Tensor, ahead: Tensor) -> Tensor:
        """A Newton step from p on its support, kept for the rows whose residual it decreases."""
        move = jacobian_product(self.fn, p, -self._slope(p))
        there = self._project(p + torch.where(move.isfinite(), move, 0.0))
        return torch.where(self._residual(there) < self._residual(ahead), there, ahead)

    def _residual(self, p: Tensor) -> Tensor:
        return (self._project(p - self._slope(p)) - p).abs().amax(-1, keepdim=True)

    def _descend(self, point: Tensor, slope: Tensor, step: Tensor) -> tuple[Tensor, Tensor]:
        """A projected gradient step from `point`, as long as the curvature along it allows.

        The curvature is computed from gradients; differences of values would be lost in rounding.
        """
        step = GROWTH * step
        while bool((step > SMALLEST_STEP).all()):
            following = self._project(point - step * slope)
            move = following - point
            bend = ((self._slope(following) - slope) * move).sum(-1, keepdim=True)
            steep = bend * step > move.square().sum(-1, keepdim=True)
            if not bool(steep.any()):
                return following, step
            step = torch.where(steep, step / 2, step)
        raise FenchelError(
            f"fn must have bounded curvature on the simplex, got step sizes below {SMALLEST_STEP}"
        )

    def _project(self, point: Tensor) -> Tensor:
        return ENTMAX.below_autograd(point.masked_fill(self.absent, -torch.inf), 2.0, None, -1)

    def _slope(self, p: Tensor) -> Tensor:
        """∇f(p) − x"""
        with torch.enable_grad():
            leaf = p.detach().requires_grad_()
            (slope,) = torch.autograd.grad(row_values(self.fn, leaf).sum(), leaf)
        slope = torch.where(self.absent, 0.0, slope)
        if not bool(slope.isfinite().all()):
            raise FenchelError(
                "fn must have finite gradients on the simplex and its faces, got inf or nan"
            )
        return slope - self.direction


def row_values(fn: Function, p: Tensor) -> Tensor:
    """fn(p), one value per row."""
    values = fn(p)
    if not isinstance(values, Tensor) or values.shape != p.shape[:-1]:
        got = tuple(values.shape) if isinstance(values, Tensor) else type(values).__name__
        raise FenchelError(
            f"fn must return shape {tuple(p.shape[:-1])} for probabilities of shape"
            f" {tuple(p.shape)}, got {got}"
        )
    return values


def gradient(fn: Function, p: Tensor) -> Tensor:
    """∇fn, row by row."""
    with _without_hooks():
        return grad(lambda q: row_values(fn, q).sum())(p)


def jacobian_product(fn: Function, p: Tensor, g: Tensor) -> Tensor:
    """J g for the Jacobian of p* in x: with S the support and H the Hessian of f there,

        [H 1; 1ᵀ 0] [J g; μ] = [g; 0] on S,    zero off it.

    J is symmetric; this is Prop. 1 of Niculae & Blondel (2017) restricted to the support. All systems
    have the size of the largest support.
    """
    if p.numel() == 0:
        return g * p
    columns = p.shape[-1]
    inside = p != 0
    # Under a transform such as vmap, the sizes of supports cannot be read.
    size = columns if is_functorch_wrapped_tensor(p) else int(inside.sum(-1).max().clamp(min=1))
    # For rows without a support, the Hessian is evaluated at the uniform distribution.
    alive = inside.any(-1, keepdim=True)
    point = torch.where(alive, p, 1 / columns)
    index = p.detach().topk(size, dim=-1).indices
    chosen = inside.gather(-1, index)
    hessian = _hessian_on(fn, point, index)
    pairs = chosen.unsqueeze(-1) & chosen.unsqueeze(-2)
    unit = torch.eye(size, dtype=p.dtype, device=p.device)
    border = chosen.to(p.dtype).unsqueeze(-1)
    corner = (~alive).to(p.dtype).unsqueeze(-1)
    system = torch.cat(
        (
            torch.cat((torch.where(pairs, hessian, unit), border), -1),
            torch.cat((border.mT, corner), -1),
        ),
        -2,
    )
    right = torch.where(chosen, g.gather(-1, index), 0.0)
    right = torch.cat((right, torch.zeros_like(right[..., :1])), -1)
    solution = torch.linalg.solve_ex(system, right.unsqueeze(-1))[0].squeeze(-1)[..., :-1]
    moved = torch.zeros_like(g).scatter(-1, index, torch.where(chosen, solution, 0.0))
    return moved + (p - p)


def _hessian_on(fn: Function, p: Tensor, index: Tensor) -> Tensor:
    """The Hessian of fn at every row of p, restricted to the entries in `index` (…, k): (…, k, k)."""

    def column(place: Tensor) -> Tensor:
        direction = torch.zeros_like(p).scatter(-1, place, 1.0)
        return pull_back(direction)[0].gather(-1, index)

    with _without_hooks():
        pull_back = vjp(lambda q: gradient(fn, q), p)[1]
        return vmap(column, in_dims=-2)(index.unsqueeze(-1)).movedim(0, -1)


@contextmanager
def _without_hooks() -> Iterator[None]:
    """Disable saved-tensor hooks (of activation checkpointing, say), which `torch.func` rejects."""
    hooks = []
    while (top := _autograd._top_saved_tensors_default_hooks(True)) is not None:
        hooks.append(top)
        _autograd._pop_saved_tensors_default_hooks()
    try:
        yield
    finally:
        for pack, unpack in reversed(hooks):
            _autograd._push_saved_tensors_default_hooks(pack, unpack)
