"""Lines over numbers: training curves, and supports by position."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from fenchel.analysis.markup import Markup, element
from fenchel.analysis.picture import CHARACTER, label, picture
from fenchel.errors import rule

Series = Sequence[tuple[float, float]]
WIDTH, HEIGHT = 420.0, 240.0
LEFT, RIGHT, TOP, BOTTOM = 52.0, 12.0, 30.0, 40.0
COLOURS = 6


def line_chart(series: Mapping[str, Series], x_title: str, y_title: str) -> Markup:
    """The picture of some named lines; points that are not finite are left out.

    >>> chart = line_chart({"loss": [(1, 2.0), (2, 1.0)]}, "epoch", "loss")
    >>> "polyline" in chart
    True
    """
    lines = {
        name: [(x, y) for x, y in points if math.isfinite(x) and math.isfinite(y)]
        for name, points in series.items()
    }
    points = [point for line in lines.values() for point in line]
    if not points:
        raise rule("a chart needs points", expected="at least one finite point", got="none")
    x_ticks = ticks(min(x for x, _ in points), max(x for x, _ in points))
    lowest = min(0.0, min(y for _, y in points))
    y_ticks = ticks(lowest, max(y for _, y in points))
    scale = _Scale(x_ticks, y_ticks)
    return picture(
        WIDTH,
        HEIGHT,
        f"{y_title} by {x_title}: " + "; ".join(_in_words(name, lines[name]) for name in lines),
        *_axes(scale, x_ticks, y_ticks, x_title, y_title),
        *(_line(scale, line, k) for k, line in enumerate(lines.values())),
        *_legend(list(lines)),
    )


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Round numbers that cover an interval, about `count` of them.

    >>> ticks(0.0, 9.3)
    [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    >>> ticks(3.0, 3.0, count=2)
    [3.0, 3.5, 4.0]
    """
    if high <= low:
        high = low + 1
    raw = (high - low) / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = next((m * power for m in (1, 2, 5) if m * power >= raw * 0.999), 10 * power)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(step * k, 12) for k in range(first, last + 1)]


class _Scale:
    """From numbers to pixels."""

    def __init__(self, x_ticks: Sequence[float], y_ticks: Sequence[float]) -> None:
        self.x_range, self.y_range = (x_ticks[0], x_ticks[-1]), (y_ticks[0], y_ticks[-1])

    def x(self, value: float) -> float:
        low, high = self.x_range
        return LEFT + (value - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        low, high = self.y_range
        return HEIGHT - BOTTOM - (value - low) / (high - low) * (HEIGHT - TOP - BOTTOM)


def _axes(
    scale: _Scale, x_ticks: Sequence[float], y_ticks: Sequence[float], x_title: str, y_title: str
) -> list[Markup]:
    left, right, bottom = LEFT, WIDTH - RIGHT, HEIGHT - BOTTOM
    across = "".join(f"M{left:.0f} {scale.y(y):.1f}H{right:.0f}" for y in y_ticks)
    return [
        element("path", d=across, class_="grid"),
        *(label(scale.x(x), bottom + 16, f"{x:g}", "middle", class_="tick") for x in x_ticks),
        *(label(left - 6, scale.y(y) + 4, f"{y:g}", "end", class_="tick") for y in y_ticks),
        label((left + right) / 2, HEIGHT - 6, x_title, "middle", class_="tick"),
        label(4, 12, y_title, class_="tick"),
    ]


def _line(scale: _Scale, line: Series, k: int) -> Markup:
    colour = f"s{k % COLOURS}"
    if len(line) == 1:
        x, y = line[0]
        return element("circle", cx=scale.x(x), cy=scale.y(y), r=3, class_=f"{colour} dot")
    points = " ".join(f"{scale.x(x):.1f},{scale.y(y):.1f}" for x, y in line)
    return element("polyline", points=points, class_=colour)


def _legend(names: Sequence[str]) -> list[Markup]:
    parts, right = [], WIDTH - RIGHT
    for k, name in reversed(list(enumerate(names))):
        right -= CHARACTER * len(name)
        parts.append(label(right, 12, name, class_=f"s{k % COLOURS} key"))
        right -= 16
    return parts


def _in_words(name: str, line: Series) -> str:
    return f"{name} from {line[0][1]:.3g} to {line[-1][1]:.3g}" if line else f"{name}: no points"
