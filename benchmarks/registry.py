"""What is compared: every operation once, with its baseline and its peer.

To add one, append an `Operation`; to add a problem, a `Case` to `cases`. An operation names the
devices it runs on, so that a GPU needs nothing but more entries here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import entmax
import torch
from torch import Tensor
from torch.nn import functional

import fenchel

COLUMNS = (64, 512, 8192, 128_000)
CLASSES = 32_000
TOP_K = 100
OTHER_ALPHAS = (1.25, 1.75, 2.5)


@dataclass(frozen=True)
class Case:
    """One problem: what all contenders of a race are given."""

    family: str
    rows: int
    columns: int
    dtype: torch.dtype = torch.float32
    backward: bool = False
    device: str = "cpu"

    @property
    def direction(self) -> str:
        return "forward+backward" if self.backward else "forward"

    @property
    def dtype_name(self) -> str:
        return str(self.dtype).removeprefix("torch.")

    def __str__(self) -> str:
        shape = f"{self.rows} × {self.columns}"
        return f"{self.family} {shape} {self.dtype_name} {self.direction}"


@dataclass(frozen=True)
class Inputs:
    """The tensors of a case; `upstream` is the gradient that arrives at a map's output."""

    scores: Tensor
    alpha: Tensor
    target: Tensor
    upstream: Tensor


@dataclass(frozen=True)
class Operation:
    """One contender. `peer` computes the same values in another library."""

    name: str
    family: str
    baseline: str
    call: Callable[[Inputs], Tensor]
    peer: str | None = None
    learns_alpha: bool = False
    devices: tuple[str, ...] = ("cpu", "cuda")

    @property
    def optional(self) -> bool:
        """Whether it may be left out when slow: another library, and not the baseline."""
        return not self.name.startswith("fenchel.") and self.name != self.baseline

    def build(self, inputs: Inputs, *, backward: bool) -> Callable[[], object]:
        """The step to be timed: the call alone, or the call and its gradients."""
        if not backward:
            return lambda: self.call(inputs)
        scores = inputs.scores.detach().requires_grad_()
        alpha = inputs.alpha.detach().requires_grad_()
        leaves = (scores, alpha) if self.learns_alpha else (scores,)
        # An α that is not learned must not ask for its gradient.
        learned = replace(inputs, scores=scores, alpha=alpha if self.learns_alpha else inputs.alpha)

        def step() -> object:
            output = self.call(learned)
            upstream = inputs.upstream if output.ndim else None
            return torch.autograd.grad(output, leaves, upstream)

        return step


def make_inputs(case: Case, seed: int = 0) -> Inputs:
    """Normal scores, and one α in [1.25, 2] a row."""
    generator = torch.Generator().manual_seed(seed)
    shape = (case.rows, case.columns)
    scores = torch.randn(shape, generator=generator).to(case.device, case.dtype)
    alpha = 1.25 + 0.75 * torch.rand((case.rows, 1), generator=generator)
    target = torch.randint(case.columns, (case.rows,), generator=generator)
    upstream = torch.randn(shape, generator=generator).to(case.device, case.dtype)
    return Inputs(scores, alpha.to(case.device, case.dtype), target.to(case.device), upstream)


def cases(elements: int, *, dtype: torch.dtype = torch.float32, device: str = "cpu") -> list[Case]:
    """Maps at about `elements` scores whatever the columns; losses at eight times as many."""
    shapes = [("maps", max(elements // columns, 1), columns) for columns in COLUMNS]
    shapes.append(("losses", max(8 * elements // CLASSES, 1), CLASSES))
    return [
        Case(family, rows, columns, dtype, backward, device)
        for family, rows, columns in shapes
        for backward in (False, True)
    ]


def _map(name: str, call: Callable[[Inputs], Tensor], peer: str | None = None) -> Operation:
    return Operation(name, "maps", "torch.softmax", call, peer)


def _loss(name: str, call: Callable[[Inputs], Tensor], peer: str | None = None) -> Operation:
    return Operation(name, "losses", "F.cross_entropy", call, peer)


def _entmax_at(alpha: float) -> Operation:
    peer = f"entmax.entmax_bisect({alpha:g})"
    return _map(f"fenchel.entmax({alpha:g})", lambda x: fenchel.entmax(x.scores, alpha), peer)


def _bisect_at(alpha: float) -> Operation:
    name = f"entmax.entmax_bisect({alpha:g})"
    return _map(name, lambda x: entmax.entmax_bisect(x.scores, alpha))


def _learned(operation: Operation) -> Operation:
    return replace(operation, learns_alpha=True)


_BISECT_ROWS = "entmax.entmax_bisect(α a row)"
_bisect_rows: Any = entmax.entmax_bisect  # its hint says that α is a number


MAPS = [
    _map("torch.softmax", lambda x: torch.softmax(x.scores, -1)),
    _map("fenchel.softmax", lambda x: fenchel.softmax(x.scores), "torch.softmax"),
    _map("fenchel.sparsemax", lambda x: fenchel.sparsemax(x.scores), "entmax.sparsemax"),
    _map("fenchel.entmax(1.5)", lambda x: fenchel.entmax(x.scores), "entmax.entmax15"),
    *map(_entmax_at, OTHER_ALPHAS),
    _learned(
        _map(
            "fenchel.entmax(α a row)",
            lambda x: fenchel.entmax(x.scores, x.alpha),
            _BISECT_ROWS,
        )
    ),
    _map("fenchel.normmax", lambda x: fenchel.normmax(x.scores), "entmax.normmax_bisect"),
    _map("fenchel.budget", lambda x: fenchel.budget(x.scores), "entmax.budget_bisect"),
    _map("entmax.sparsemax", lambda x: entmax.sparsemax(x.scores)),
    _map(f"entmax.sparsemax(k={TOP_K})", lambda x: entmax.sparsemax(x.scores, k=TOP_K)),
    _map("entmax.entmax15", lambda x: entmax.entmax15(x.scores)),
    _map(f"entmax.entmax15(k={TOP_K})", lambda x: entmax.entmax15(x.scores, k=TOP_K)),
    *map(_bisect_at, (1.5, *OTHER_ALPHAS)),
    _learned(_map(_BISECT_ROWS, lambda x: _bisect_rows(x.scores, x.alpha))),
    _map("entmax.normmax_bisect", lambda x: entmax.normmax_bisect(x.scores)),
    _map("entmax.budget_bisect", lambda x: entmax.budget_bisect(x.scores)),
]

LOSSES = [
    _loss("F.cross_entropy", lambda x: functional.cross_entropy(x.scores, x.target)),
    _loss(
        "fenchel.sparsemax_loss",
        lambda x: fenchel.sparsemax_loss(x.scores, x.target),
        "entmax.sparsemax_loss",
    ),
    _loss(
        "fenchel.entmax_loss(1.5)",
        lambda x: fenchel.entmax_loss(x.scores, x.target),
        "entmax.entmax15_loss",
    ),
    _loss(
        "fenchel.entmax_loss(1.25)",
        lambda x: fenchel.entmax_loss(x.scores, x.target, 1.25),
        "entmax.entmax_bisect_loss(1.25)",
    ),
    _loss("entmax.sparsemax_loss", lambda x: entmax.sparsemax_loss(x.scores, x.target).mean()),
    _loss("entmax.entmax15_loss", lambda x: entmax.entmax15_loss(x.scores, x.target).mean()),
    _loss(
        f"entmax.entmax15_loss(k={TOP_K})",
        lambda x: entmax.entmax15_loss(x.scores, x.target, TOP_K).mean(),
    ),
    _loss(
        "entmax.entmax_bisect_loss(1.25)",
        lambda x: entmax.entmax_bisect_loss(x.scores, x.target, 1.25).mean(),
    ),
]

OPERATIONS = {operation.name: operation for operation in MAPS + LOSSES}
