"""What the page of a `HeadsView` contains: the data of its script, and its tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fenchel.printable import one_line
from fenchel.report.blocks import Table
from fenchel.report.charts import ticks, ticks_within
from fenchel.report.heads import (
    KINDS,
    HeadEntry,
    HeadsView,
    ModelHeads,
    SentenceAttention,
    SparseRows,
)
from fenchel.report.svg import visible

UNITS = 10_000  # weights are embedded as integers, in units of 1 / UNITS
DIGITS = 4


def heads_data(view: HeadsView) -> dict[str, Any]:
    """The data of `templates/heads.js`, as JSON values."""
    used = {head.kind for model in view.models for head in model.heads}
    return {
        "kinds": [{"name": name, **kind._asdict()} for name, kind in KINDS.items() if name in used],
        "units": UNITS,
        "metrics": _metrics(view),
        "models": [_model(model, view.roles) for model in view.models],
    }


def heads_tables(view: HeadsView) -> list[Table]:
    """The heads of each model, one per row."""
    return [
        Table(
            f"Heads of {model.name}",
            ["head", "α", "density", *view.roles],
            [
                [
                    f"{KINDS[head.kind].title}, layer {head.layer}, head {head.head}",
                    head.alpha,
                    head.density,
                    *(head.roles.get(role) for role in view.roles),
                ]
                for head in _in_order(model)
            ],
        )
        for model in view.models
        if model.heads
    ]


def encode(rows: SparseRows, count: int) -> list[int]:
    """The weights of a matrix with `count` columns, read row by row.

    A number that is not negative is a weight in units of 1 / `UNITS`, 0 one that is too small for these
    units. A negative number stands for that many exact zeros. Zeros at the end are left out.

    >>> encode([{0: 0.75, 2: 0.25}, {1: 0.99999, 2: 1e-05}, {}], count=3)
    [7500, -1, 2500, -1, 10000, 0]
    """
    numbers, end = [], 0
    for query, row in enumerate(rows):
        for key in sorted(key for key, weight in row.items() if weight != 0):
            place = query * count + key
            if place > end:
                numbers.append(end - place)
            numbers.append(round(row[key] * UNITS))
            end = place + 1
    return numbers


def _metrics(view: HeadsView) -> list[dict[str, Any]]:
    """What the grid can show: α if any head has one, density and roles."""
    alphas = [
        alpha
        for model in view.models
        for alpha in (
            *(head.alpha for head in model.heads if head.alpha is not None),
            *(value for values in _trajectories(model).values() for value in values),
        )
    ]
    shares = [{"name": name, "low": 0, "high": 1, "share": True} for name in view.roles]
    density = {"name": "density", "low": 0, "high": 1, "share": True}
    if not alphas:
        return [density, *shares]
    low, high = min(1.0, *alphas), max(2.0, *alphas)
    marks = ticks(low, high)
    alpha = {"name": "α", "low": marks[0], "high": marks[-1], "share": False, "ticks": marks}
    return [alpha, density, *shares]


def _model(model: ModelHeads, roles: Sequence[str]) -> dict[str, Any]:
    heads = _in_order(model)
    data: dict[str, Any] = {
        "name": model.name,
        "heads": [
            {
                **head.key._asdict(),
                "values": {
                    "α": _rounded(head.alpha),
                    "density": _rounded(head.density),
                    **{role: _rounded(head.roles.get(role)) for role in roles},
                },
            }
            for head in heads
        ],
        "sentences": [_sentence(sentence, heads) for sentence in model.sentences],
    }
    if model.trajectories is not None and model.trajectories.x and model.trajectories.alpha:
        x = model.trajectories.x
        curves = [_trajectories(model).get(head.key) for head in heads]
        data["trajectories"] = {
            "title": model.trajectories.x_title,
            "x": list(x),
            "ticks": ticks_within(x),
            "alpha": [curve and [_rounded(value) for value in curve] for curve in curves],
        }
    return data


def _sentence(sentence: SentenceAttention, heads: Sequence[HeadEntry]) -> dict[str, Any]:
    """Tokens, and one list of numbers per head, None for heads without weights."""
    codes = [
        encode(sentence.weights[head.key], len(sentence.tokens(head.kind)[1]))
        if head.key in sentence.weights
        else None
        for head in heads
    ]
    return {
        "title": one_line(sentence.name),
        "source": [one_line(visible(token)) for token in sentence.source],
        "target": [one_line(visible(token)) for token in sentence.target],
        "weights": codes,
    }


def _trajectories(model: ModelHeads) -> dict[tuple[str, int, int], Sequence[float]]:
    return dict(model.trajectories.alpha) if model.trajectories else {}


def _in_order(model: ModelHeads) -> list[HeadEntry]:
    """Heads by kind, layer and number."""
    kinds = list(KINDS)
    return sorted(model.heads, key=lambda head: (kinds.index(head.kind), *head.key[1:]))


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, DIGITS)
