"""The α of the heads of a model: how it is spread, and how it was learned."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from typing import TypedDict

from torch import Tensor

Trajectories = dict[str, list[tuple[float, float]]]

PREFIX = "alpha."  # of the columns of a log
BINS = 10  # per unit of α


class Histogram(TypedDict):
    """Counts of values in bins with these edges, by kind of attention; the last bin has its end."""

    edges: list[float]
    counts: dict[str, list[int]]


def alphas_of_heads(alpha: float | Tensor | None, heads: int) -> list[float | None]:
    """The α of each head of a layer; None if there is none, or not one per head.

    >>> alphas_of_heads(1.5, heads=2)
    [1.5, 1.5]
    """
    if isinstance(alpha, Tensor):
        values = alpha.flatten().tolist()
        fits = len(values) in (1, heads)
        return (values * heads)[:heads] if fits else [None] * heads
    return [None if alpha is None else float(alpha)] * heads


def alpha_histogram(alphas: Mapping[str, Iterable[float]]) -> Histogram | None:
    """The numbers of heads by their α, in steps of 0.1 from 1 to 2, or farther where needed.

    >>> alpha_histogram({"encoder": [1.04, 1.06, 2.0]})["counts"]
    {'encoder': [2, 0, 0, 0, 0, 0, 0, 0, 0, 1]}
    """
    values = {kind: list(found) for kind, found in alphas.items()}
    every = [value for found in values.values() for value in found]
    if not every:
        return None
    low = min(BINS, math.floor(min(every) * BINS))
    high = max(2 * BINS, math.ceil(max(every) * BINS))
    edges = [step / BINS for step in range(low, high + 1)]
    counts = {kind: [0] * (len(edges) - 1) for kind in values}
    for kind, found in values.items():
        for value in found:
            counts[kind][min(bisect_right(edges, value), len(edges) - 1) - 1] += 1
    return {"edges": edges, "counts": counts}


def alpha_trajectories(log: Mapping[str, Iterable[tuple[float, float]]]) -> Trajectories:
    """The course of α in a log of training, by heads such as "encoder.0.3" (kind, layer, head).

    Args:
        log: The columns of a `log.csv`, as `fenchel.report.read_log` reads them.

    >>> alpha_trajectories({"loss": [(1, 2.5)], "alpha.encoder.0.3": [(1, 1.5), (2, 1.25)]})
    {'encoder.0.3': [(1, 1.5), (2, 1.25)]}
    """
    return {
        name.removeprefix(PREFIX): list(points)
        for name, points in log.items()
        if name.startswith(PREFIX)
    }
