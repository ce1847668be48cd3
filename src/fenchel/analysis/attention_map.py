"""An attention map: a square for every weight that is not zero, and nothing at all where it is."""

from __future__ import annotations

from collections.abc import Sequence

from fenchel.analysis.markup import Markup, element
from fenchel.analysis.picture import label, picture, visible, width_of
from fenchel.errors import rule

CELL = 22.0
FAINTEST = 0.12  # so that the smallest non-zero weight is still seen


def attention_map(
    weights: Sequence[Sequence[float]], source: Sequence[str], target: Sequence[str]
) -> Markup:
    """The picture of one sequence's attention: rows are target symbols, columns source symbols.

    An exact zero leaves the paper blank; every other weight is a square, the darker the larger,
    whose value shows when it is pointed at.

    >>> picture = attention_map([[0.75, 0.25, 0.0]], ["d", "r", "a"], ["d"])
    >>> picture.count("<rect")
    2
    """
    if len(weights) != len(target) or any(len(row) != len(source) for row in weights):
        raise rule(
            "an attention map has a row for every target symbol and a column for every source symbol",
            expected=f"{len(target)} rows of {len(source)}",
            got=f"{len(weights)} rows of {sorted({len(row) for row in weights})}",
        )
    left = width_of([visible(symbol) for symbol in target]) + 10
    top = width_of([visible(symbol) for symbol in source]) + 10
    width, height = left + CELL * len(source) + 1, top + CELL * len(target) + 1
    used = sum(weight != 0 for row in weights for weight in row)
    return picture(
        width,
        height,
        f"attention of {' '.join(target)}: {used} of {len(source) * len(target)} weights are not zero",
        *(_source_label(left + CELL * (i + 0.5), top - 6, s) for i, s in enumerate(source)),
        *(label(left - 6, top + CELL * (j + 0.66), t, "end") for j, t in enumerate(target)),
        _grid(left, top, len(source), len(target)),
        *(
            _cell(left + CELL * i, top + CELL * j, weight, f"{t} ← {s}")
            for j, (row, t) in enumerate(zip(weights, target, strict=True))
            for i, (weight, s) in enumerate(zip(row, source, strict=True))
            if weight != 0
        ),
    )


def _cell(x: float, y: float, weight: float, what: str) -> Markup:
    opacity = FAINTEST + (1 - FAINTEST) * min(weight, 1.0)
    title = element("title", f"{what}  {weight:.3g}")
    size = CELL - 1
    return element(
        "rect", title, x=x + 0.5, y=y + 0.5, width=size, height=size, class_="w", opacity=opacity
    )


def _source_label(x: float, y: float, symbol: str) -> Markup:
    text = visible(symbol)
    if len(text) == 1:
        return label(x, y, text, "middle")
    turn = f"rotate(-90 {x:.1f} {y:.1f})"
    return label(x + 4, y, text, "start", transform=turn)


def _grid(left: float, top: float, columns: int, rows: int) -> Markup:
    """The thin lines between cells."""
    right, bottom = left + CELL * columns, top + CELL * rows
    across = "".join(f"M{left:.1f} {top + CELL * j:.1f}H{right:.1f}" for j in range(rows + 1))
    down = "".join(f"M{left + CELL * i:.1f} {top:.1f}V{bottom:.1f}" for i in range(columns + 1))
    return element("path", d=across + down, class_="grid")
