"""Accelerated projected gradient on the simplex, for many rows at once, and the Jacobian of its solution.

    p* = argmin_{p ∈ Δ} f(p) − ⟨p, x⟩,    f smooth and strongly convex.

FISTA: a gradient step from a point ahead of the last one, projected onto the simplex (sparsemax). Every
row has a step of its own, halved until it fits the curvature of f on its way, and its momentum starts
again when it points uphill (O'Donoghue & Candès 2015): then convergence is linear. Once it has found the
support a Newton step on it is nearly exact, so one is tried now and then. A row is done when a step of
size one no longer moves it: p = P_Δ(p − ∇f(p) + x) characterises the solution, and with f μ-strongly
convex and L-smooth a residual r bounds the distance to it by r (1 + L)/μ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from torch._C import _autograd
from torch._C._functorch import is_functorch_wrapped_tensor
from torch.func import grad, vjp, vmap

from fenchel.errors import rule
from fenchel.maps.entmax import ENTMAX

Function = Callable[[Tensor], Tensor]

GROWTH = 1.2  # of a step from one iteration to the next, before it is halved
SMALLEST_STEP = 1e-12
PATIENCE = 8  # iterations between two Newton steps


def minimise(fn: Function, scores: Tensor, tolerance: float, max_iterations: int) -> Tensor:
    """p* along the last dimension; −inf is left out, a row with nothing in it is zero."""
    if torch.is_inference_mode_enabled():  # gradients do not exist there, and the search needs them
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
            # fn need not exist beyond the simplex, so what lies ahead is projected too.
            moved = self._project(following + (momentum - 1) / next_momentum * (following - p))
            # A row that is done stays where it is.
            ahead = torch.where(residual <= self.tolerance, ahead, moved)
            p, momentum = following, next_momentum
        raise rule(
            f"fn must be smooth and strongly convex, so that {max_iterations} steps are enough",
            expected=f"a fixed-point residual of at most {self.tolerance:.3g}",
            got=f"{residual.max().item():.3g} ({int((residual > self.tolerance).sum())} rows)",
        )

    def _newton(self, p: Tensor, ahead: Tensor) -> Tensor:
        """A Newton step from p on its support, for the rows that it brings nearer than `ahead` is."""
        move = jacobian_product(self.fn, p, -self._slope(p))
        there = self._project(p + torch.where(move.isfinite(), move, 0.0))
        return torch.where(self._residual(there) < self._residual(ahead), there, ahead)

    def _residual(self, p: Tensor) -> Tensor:
        return (self._project(p - self._slope(p)) - p).abs().amax(-1, keepdim=True)

    def _descend(self, point: Tensor, slope: Tensor, step: Tensor) -> tuple[Tensor, Tensor]:
        """A projected gradient step from `point`, as long as the curvature on its way allows.

        The curvature is taken from gradients: values would differ by less than their rounding.
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
        raise rule(
            "fn must be smooth on the simplex",
            expected="a bounded curvature",
            got=f"steps below {SMALLEST_STEP}",
        )

    def _project(self, point: Tensor) -> Tensor:
        return ENTMAX.kernel(point.masked_fill(self.absent, -torch.inf), 2.0, None, -1)

    def _slope(self, p: Tensor) -> Tensor:
        """∇f(p) − x"""
        with torch.enable_grad():
            leaf = p.detach().requires_grad_()
            (slope,) = torch.autograd.grad(row_values(self.fn, leaf).sum(), leaf)
        slope = torch.where(self.absent, 0.0, slope)
        if not bool(slope.isfinite().all()):
            raise rule(
                "fn must be smooth on the simplex, its faces included",
                expected="finite gradients",
                got="a gradient that is not finite",
            )
        return slope - self.direction


def row_values(fn: Function, p: Tensor) -> Tensor:
    """fn(p), one value a row."""
    values = fn(p)
    if not isinstance(values, Tensor) or values.shape != p.shape[:-1]:
        got = tuple(values.shape) if isinstance(values, Tensor) else type(values).__name__
        raise rule(
            "fn maps probabilities (…, d) to one value a row",
            expected=f"shape {tuple(p.shape[:-1])} for probabilities of shape {tuple(p.shape)}",
            got=got,
        )
    return values


def gradient(fn: Function, p: Tensor) -> Tensor:
    """∇fn, row by row."""
    with _without_hooks():
        return grad(lambda q: row_values(fn, q).sum())(p)


def jacobian_product(fn: Function, p: Tensor, g: Tensor) -> Tensor:
    """J g for the Jacobian of p* in x: with S the support and H the Hessian of f there,

        [H 1; 1ᵀ 0] [J g; μ] = [g; 0] on S,    zero off it.

    J is symmetric, and this is Prop. 1 of Niculae & Blondel (2017) restricted to the support. The
    rows may differ in their supports, so all systems have the size of the largest.
    """
    if p.numel() == 0:
        return g * p
    columns = p.shape[-1]
    inside = p != 0
    # A transform such as vmap may have rows of its own, whose supports cannot be looked at.
    size = columns if is_functorch_wrapped_tensor(p) else int(inside.sum(-1).max().clamp(min=1))
    # Empty rows get somewhere harmless to evaluate the Hessian at.
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
    """The Hessian of fn at every row of p, in the entries that `index` (…, k) lists: (…, k, k)."""

    def column(place: Tensor) -> Tensor:
        direction = torch.zeros_like(p).scatter(-1, place, 1.0)
        return pull_back(direction)[0].gather(-1, index)

    with _without_hooks():
        pull_back = vjp(lambda q: gradient(fn, q), p)[1]
        return vmap(column, in_dims=-2)(index.unsqueeze(-1)).movedim(0, -1)


@contextmanager
def _without_hooks() -> Iterator[None]:
    """Where tensors are saved as they are: `torch.func` refuses the hooks of activation checkpointing."""
    hooks = []
    while (top := _autograd._top_saved_tensors_default_hooks(True)) is not None:
        hooks.append(top)
        _autograd._pop_saved_tensors_default_hooks()
    try:
        yield
    finally:
        for pack, unpack in reversed(hooks):
            _autograd._push_saved_tensors_default_hooks(pack, unpack)
