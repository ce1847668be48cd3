"""Line charts as SVG, and those of the `log.csv` that training writes."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from fenchel.errors import FenchelError
from fenchel.report.blocks import Chart, Series
from fenchel.report.svg import element, label, picture

WIDTH, HEIGHT = 420.0, 230.0
LEFT, RIGHT, TOP, BOTTOM = 52.0, 12.0, 26.0, 40.0
COLOURS = 6  # classes s0, s1, … of templates/style.css

Log = Mapping[str, Series]


def read_log(path: Path) -> dict[str, Series]:
    """Every column of a log as points over epochs; no columns if there is no such file."""
    columns: dict[str, list[tuple[float, float]]] = {}
    if not path.is_file():
        return {}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                for name, value in row.items():
                    if name != "epoch" and value:
                        columns.setdefault(name, []).append((float(row["epoch"]), float(value)))
    except (LookupError, TypeError, ValueError, csv.Error) as error:
        raise FenchelError(
            f"{path} must be a table of numbers with a column epoch, got: {error}"
        ) from error
    return dict(columns)


def log_chart(log: Log, caption: str, y_title: str, names: Mapping[str, str]) -> Chart:
    """The chart of some columns of a log; `names` maps each column to its name in the legend.

    Columns that the log does not have are left out.

    >>> log = {"loss": [(1, 2.5), (2, 1.5)], "exact": [(1, 0.5)]}
    >>> log_chart(log, "Loss per symbol", "loss", {"train_loss": "training", "loss": "validation"})
    Chart(caption='Loss per symbol', x_title='epoch', y_title='loss', \
series={'validation': [(1, 2.5), (2, 1.5)]})
    """
    series = {shown: log[column] for column, shown in names.items() if column in log}
    return Chart(caption, "epoch", y_title, series)


def line_chart(chart: Chart) -> Markup:
    """The picture of a chart; the page adds the legend.

    >>> drawn = line_chart(Chart("Loss", "epoch", "loss", {"training": [(1, 2.0), (2, 1.0)]}))
    >>> drawn.count("<polyline")
    1
    """
    lines = chart.lines()
    if not lines:
        raise FenchelError("a chart must have at least one finite point, got none")
    xs, ys = zip(*(point for line in lines.values() for point in line), strict=True)
    span = (min(xs), max(xs)) if min(xs) < max(xs) else (min(xs), min(xs) + 1)
    x_axis = _Axis(ticks_within(xs), *span, LEFT, WIDTH - RIGHT)
    heights = ticks(min(0.0, *ys), max(ys))
    y_axis = _Axis(heights, heights[0], heights[-1], HEIGHT - BOTTOM, TOP)
    described = (
        f"{name} from {line[0][1]:.3g} to {line[-1][1]:.3g}" for name, line in lines.items()
    )
    return picture(
        WIDTH,
        HEIGHT,
        f"{chart.y_title} by {chart.x_title}: {'; '.join(described)}",
        [
            *_grid(x_axis, y_axis),
            label((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, chart.x_title, "middle", class_="tick"),
            label(4, 12, chart.y_title, class_="tick"),
            *(
                _line(line, x_axis, y_axis, _values(chart, name, line), colour_class(k))
                for k, (name, line) in enumerate(lines.items())
            ),
        ],
    )


def colour_class(k: int) -> str:
    """The CSS class that colours series number `k` and its name in the legend."""
    return f"s{k % COLOURS}"


def ticks(low: float, high: float, count: int = 5, *, whole: bool = False) -> list[float]:
    """About `count` round numbers that cover an interval; integers if `whole`.

    >>> ticks(0.0, 9.3)
    [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    >>> ticks(3.0, 3.0, count=2)
    [3.0, 3.5, 4.0]
    >>> ticks(1.0, 3.0, whole=True)
    [1.0, 2.0, 3.0]
    """
    if high <= low:
        high = low + 1
    raw = (high - low) / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = next((m * power for m in (1, 2, 5) if m * power >= raw * 0.999), 10 * power)
    if whole:
        step = max(step, 1.0)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(step * k, 12) for k in range(first, last + 1)]


def ticks_within(values: Sequence[float]) -> list[float]:
    """About six round numbers between the smallest and the largest of some values.

    >>> ticks_within([1, 5, 12])
    [2.0, 4.0, 6.0, 8.0, 10.0, 12.0]
    """
    low, high = min(values), max(values)
    whole = all(float(value).is_integer() for value in values)
    return [mark for mark in ticks(low, high, 6, whole=whole) if low <= mark <= high]


@dataclass(frozen=True)
class _Axis:
    """Maps numbers to pixels, `low` to `start` and `high` to `end`."""

    ticks: Sequence[float]
    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def _grid(x_axis: _Axis, y_axis: _Axis) -> list[Markup]:
    across = "".join(f"M{LEFT:.0f} {y_axis(y):.1f}H{WIDTH - RIGHT:.0f}" for y in y_axis.ticks)
    return [
        element("path", d=across, class_="grid"),
        *(
            label(x_axis(x), HEIGHT - BOTTOM + 16, f"{x:g}", "middle", class_="tick")
            for x in x_axis.ticks
        ),
        *(label(LEFT - 6, y_axis(y) + 4, f"{y:g}", "end", class_="tick") for y in y_axis.ticks),
    ]


def _values(chart: Chart, name: str, line: Series) -> list[str]:
    """What is shown when the pointer is over a point."""
    start = f"{name}: " if name else ""
    return [f"{start}{y:.4g} at {chart.x_title} {x:g}" for x, y in line]


def _line(line: Series, x_axis: _Axis, y_axis: _Axis, values: Sequence[str], colour: str) -> Markup:
    """A line with a point at each of its values, which is seen under the pointer or if it is alone."""
    places = [(x_axis(x), y_axis(y)) for x, y in line]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    kind = "point" if len(line) > 1 else "dot"
    points = [
        element("circle", element("title", value), cx=x, cy=y, r=4, class_=kind)
        for (x, y), value in zip(places, values, strict=True)
    ]
    return element("g", element("polyline", points=path), *points, class_=colour)
