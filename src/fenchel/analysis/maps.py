"""Pictures of the maps, and a table of their accuracy, sparsity and speed, for the demo."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

import fenchel
from fenchel import plot

if TYPE_CHECKING:
    from rich.table import Table

Map = Callable[[Tensor], Tensor]

MAPS: dict[str, Map] = {
    "softmax": fenchel.softmax,
    "1.5-entmax": fenchel.entmax,
    "sparsemax": fenchel.sparsemax,
    "normmax": fenchel.normmax,
    "budget": fenchel.budget,
}
TOTALS = {"budget": 2.0}  # every other map sums to one
MAX_SECONDS = 1.0  # per map, after three repetitions
# With two scores and k = 2, both entries would always be 1.
CURVES: dict[str, Map] = {
    **{name: map for name, map in MAPS.items() if name != "budget"},
    "budget (k = 1.5)": lambda scores: fenchel.budget(scores, k=1.5),
}


@dataclass(frozen=True)
class Figures:
    """A row of the table; speeds are times relative to `torch.softmax`."""

    name: str
    max_error: float
    row_sum_error: float
    nonzeros: float
    forward: float
    forward_backward: float


def draw(out: Path, points: int = 121) -> Iterator[Path]:
    """Draw every picture into `out`, one at a time, and yield its path."""
    out.mkdir(parents=True, exist_ok=True)
    pictures: dict[str, Callable[[], Any]] = {
        "alpha_sweep": plot.alpha_sweep,
        "curves": lambda: plot.curves(CURVES).figure,
        "losses": lambda: plot.losses().figure,
    }
    for name, map in MAPS.items():
        pictures[f"simplex_{name}"] = lambda name=name, map=map: (
            plot.simplex_surface(map, title=name, points=points).figure
        )
    for name, picture in pictures.items():
        path = out / f"{name}.png"
        picture().savefig(path)
        yield path


def measure(rows: int = 4096, columns: int = 512, repetitions: int = 15) -> list[Figures]:
    """Accuracy and sparsity of every map on normal scores, and its speed: one interleaved run."""
    scores = torch.randn(rows, columns, generator=torch.Generator().manual_seed(0))
    forward = _relative_times(_forward_step, scores, repetitions)
    forward_backward = _relative_times(_training_step, scores, repetitions)
    table = []
    for name, map in MAPS.items():
        p = map(scores)
        with fenchel.implementation("reference"):
            exact = map(scores.double())
        table.append(
            Figures(
                name=name,
                max_error=float((p - exact).abs().max()),
                row_sum_error=float((p.double().sum(-1) - TOTALS.get(name, 1.0)).abs().max()),
                nonzeros=float((p != 0).sum(-1).double().mean()),
                forward=forward[name],
                forward_backward=forward_backward[name],
            )
        )
    return table


def _relative_times(
    step: Callable[[Map, Tensor], Tensor], scores: Tensor, repetitions: int
) -> dict[str, float]:
    """The median time of every map divided by that of `torch.softmax`, measured in turns.

    Slow maps stop after `MAX_SECONDS` in total.
    """
    candidates: dict[str, Map] = {"torch.softmax": _torch_softmax, **MAPS}
    for map in candidates.values():
        step(map, scores)
    times: dict[str, list[float]] = {name: [] for name in candidates}
    for turn in range(repetitions):
        for name, map in candidates.items():
            if turn >= 3 and sum(times[name]) > MAX_SECONDS:
                continue
            start = time.perf_counter()
            step(map, scores)
            times[name].append(time.perf_counter() - start)
    baseline = median(times["torch.softmax"])
    return {name: median(times[name]) / baseline for name in MAPS}


def _torch_softmax(scores: Tensor) -> Tensor:
    return torch.softmax(scores, -1)


def _forward_step(map: Map, scores: Tensor) -> Tensor:
    return map(scores)


def _training_step(map: Map, scores: Tensor) -> Tensor:
    leaf = scores.detach().requires_grad_()
    return torch.autograd.grad(map(leaf), leaf, scores)[0]


def table(figures: Sequence[Figures], rows: int, columns: int) -> Table:
    """The figures as a table for the terminal."""
    from rich.table import Table

    result = Table(
        title=f"float32, {rows} × {columns} normal scores, {torch.get_num_threads()} threads",
        caption="errors: largest, against float64; speed: time / time of torch.softmax",
    )
    headings = (
        "map",
        "error",
        "row-sum error",
        "non-zeros per row",
        "forward",
        "forward + backward",
    )
    for heading in headings:
        result.add_column(heading, justify="left" if heading == "map" else "right")
    for row in figures:
        result.add_row(
            row.name,
            f"{row.max_error:.1e}",
            f"{row.row_sum_error:.1e}",
            f"{row.nonzeros:.1f}",
            f"{row.forward:.2f}×",
            f"{row.forward_backward:.2f}×",
        )
    return result
