"""The one list of maps on which every law is tested."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

import fenchel
from tests.implementations import EVERYWHERE, placed

# What the library promises of one entry, and of the sum of a row, against exact arithmetic.
ACCURACY = {torch.float64: 1e-10, torch.float32: 1e-6}


@dataclass(frozen=True)
class Map:
    """A map with its parameter, the law of its total, and where it is implemented."""

    function: Callable[..., Tensor]
    parameters: dict[str, Any] = field(default_factory=dict)
    implementations: tuple[str, ...] = EVERYWHERE
    total: float = 1.0
    steepness: float | None = None  # |p_j − p_i| ≤ steepness · |x_j − x_i|, where there is a bound
    margin: float | None = None  # the lead from which one entry takes everything
    in_order: bool = False  # whether it matters which entries are neighbours
    fuses: bool = False  # whether entries that are close become equal, and move as one

    def __call__(self, scores: Tensor, dim: int = -1, mask: Tensor | None = None) -> Tensor:
        return self.function(scores, **self.parameters, dim=dim, mask=mask)

    def __str__(self) -> str:
        values = (float(v) if isinstance(v, Tensor) else v for v in self.parameters.values())
        kinds = ("tensor" if isinstance(v, Tensor) else "" for v in self.parameters.values())
        return self.function.__name__ + "".join(
            f"-{kind}{value:.7g}" for kind, value in zip(kinds, values, strict=True)
        )


def entmax_at(alpha: float | Tensor) -> Map:
    number = float(alpha)
    return Map(
        fenchel.entmax,
        {"alpha": alpha},
        steepness=1.0 if 1 <= number <= 2 else None,
        margin=1 / (number - 1) if number > 1 else None,
    )


ENTMAX_ALPHAS = (0.5, 1 - 1e-6, 1.0, 1 + 1e-6, 1.0001, 1.01, 1.2, 4 / 3, 1.5, 1.75, 2.0, 2.5, 4.0)


def tensor(value: float) -> Tensor:
    return torch.tensor(value, dtype=torch.float64)


ENTMAXES = [entmax_at(alpha) for alpha in (0.5, 1 - 1e-6, 1.01, 1.5, 1.75, 2.5, 10.0, tensor(1.3))]
NORMMAXES = [
    Map(fenchel.normmax, {"alpha": alpha}, margin=1.0) for alpha in (1.25, 2.0, tensor(3.0))
]
BUDGETS = [
    Map(fenchel.budget, {"k": k}, total=float(k), steepness=1.0) for k in (1, 2.5, tensor(3.0))
]
PNORMMAXES = [Map(fenchel.pnormmax, {"p": p}, margin=1.0) for p in (1.5, tensor(1.2))]
FUSEDMAXES = [
    Map(fenchel.fusedmax, {"strength": strength}, in_order=True, fuses=True)
    for strength in (0.1, tensor(0.7))
]
OSCARMAXES = [
    Map(fenchel.oscarmax, {"strength": strength}, steepness=1.0, fuses=True)
    for strength in (0.05, tensor(0.3))
]
MAPS = [
    Map(fenchel.softmax, steepness=0.5),
    Map(fenchel.sparsemax, steepness=1.0, margin=1.0),
    *ENTMAXES,
    *NORMMAXES,
    *BUDGETS,
    *PNORMMAXES,
    *FUSEDMAXES,
    *OSCARMAXES,
]


def on_every_implementation(maps: Sequence[Map] = MAPS) -> list[Any]:
    """`pytest.param(map, implementation)` for every pair that exists."""
    return [
        placed(implementation, each, name=str(each))
        for each in maps
        for implementation in each.implementations
    ]
