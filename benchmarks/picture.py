"""A picture of all ratios.

Maps are lines over the columns and losses are bars, with one row of panels per dtype; below them are the
structured maps and continuous attention.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.rows import Row
from benchmarks.styles import STYLES
from fenchel.plot.style import FAINT, INK, new_figure, style_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BOTH = "forward+backward"


class Panel(NamedTuple):
    draw: Callable[[Axes, Sequence[Row], str], None]
    rows: list[Row]
    title: str


def ratio_picture(rows: Sequence[Row]) -> Figure:
    """The medians of one commit: ratios to the baselines, and milliseconds by an image's regions."""
    drawn = [row for row in rows if row.operation in STYLES and row.clock == "device"]
    lines = [line for line in _layout(drawn) if line]
    wide, high = max(map(len, lines), default=1), max(len(lines), 1)
    figure = new_figure(4.2 * wide + 2.6, 3.4 * high + 0.4)
    grid: Any = figure.subplots(high, wide, squeeze=False)
    for axes, line in zip(grid, lines, strict=False):
        for ax, panel in zip(axes, line, strict=False):
            panel.draw(ax, panel.rows, panel.title)
        for ax in axes[len(line) :]:
            ax.set_axis_off()
    _legend(figure, grid[0])
    return figure


def _layout(rows: Sequence[Row]) -> list[list[Panel]]:
    """The panels of each row; losses are shown with gradients only."""
    measured = [row for row in rows if row.ratio_q50 is not None]
    core = (("maps", "forward", _ratios), ("maps", BOTH, _ratios), ("losses", BOTH, _bars))
    other = (
        ("attention", _ratios), ("attention-peaked", _ratios),
        ("structured", _named_ratios), ("continuous", _bars), ("continuous-regions", _milliseconds)
    )  # fmt: skip

    def panels(kinds: Sequence[tuple[str, str, Any]], dtype: str) -> list[Panel]:
        found = [
            Panel(
                draw,
                [r for r in measured if (r.family, r.direction, r.dtype) == (family, way, dtype)],
                f"{family.replace('-', ', ')}, {way}, {dtype}",
            )
            for family, way, draw in kinds
        ]
        return [panel for panel in found if panel.rows]

    dtypes = dict.fromkeys(row.dtype for row in measured)
    below = [(family, BOTH, draw) for family, draw in other]
    return [*(panels(core, dtype) for dtype in dtypes), panels(below, "float32")]


def _curves(ax: Axes, rows: Sequence[Row], value: Callable[[Row], float | None]) -> None:
    """One line per operation, over the columns."""
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    for operation, style in STYLES.items():
        some = sorted((r for r in rows if r.operation == operation), key=lambda row: row.columns)
        if some:
            ax.plot(
                [row.columns for row in some],
                [value(row) or 0.0 for row in some],
                linestyle=style.line,
                marker="o",
                markersize=4,
                color=style.colour(),
                label=style.label,
            )
    ticks = sorted({row.columns for row in rows})
    ax.set_xticks(ticks, [_short(count) for count in ticks], fontsize=8)
    ax.minorticks_off()


def _ratios(ax: Axes, rows: Sequence[Row], title: str) -> None:
    """Time / time of the baseline."""
    ax.axhline(1, color=FAINT, linewidth=1)
    _curves(ax, rows, lambda row: row.ratio_q50)
    ax.yaxis.set_major_formatter("{x:g}×")
    style_axes(ax, xlabel=f"columns; 1× is {rows[0].baseline}", title=title)


def _named_ratios(ax: Axes, rows: Sequence[Row], title: str) -> None:
    """The same, with a legend."""
    _ratios(ax, [row for row in rows if row.operation != row.baseline] or rows, title)
    ax.set_yscale("log", base=2)
    ax.yaxis.set_major_formatter("{x:g}×")
    ax.legend(frameon=False, labelcolor="linecolor", fontsize=8)


def _milliseconds(ax: Axes, rows: Sequence[Row], title: str) -> None:
    _curves(ax, rows, lambda row: row.milliseconds_q50)
    ax.yaxis.set_major_formatter("{x:g} ms")
    style_axes(ax, xlabel="regions of an image", title=title)
    ax.legend(frameon=False, labelcolor="linecolor", fontsize=8)


def _bars(ax: Axes, rows: Sequence[Row], title: str) -> None:
    """Time / time of the baseline, one bar per shape."""
    shapes = sorted({(row.columns, row.shape) for row in rows})
    operations = [o for o in STYLES if any(row.operation == o for row in rows)]
    height = 0.8 / max(len(shapes), 1)
    for i, (_, shape) in enumerate(shapes):
        for row in (row for row in rows if row.shape == shape):
            place = operations.index(row.operation) + (i - (len(shapes) - 1) / 2) * height
            length, colour = row.ratio_q50 or 0.0, STYLES[row.operation].colour()
            ax.barh(place, length, 0.9 * height, color=colour, alpha=1 - 0.35 * i)
            ax.text(length, place, f" {length:.2g}× ({shape})", va="center", fontsize=7, color=INK)
    ax.axvline(1, color=FAINT, linewidth=1)
    ax.set_yticks(range(len(operations)), [STYLES[o].label for o in operations], fontsize=8)
    ax.invert_yaxis()
    lengths = [row.ratio_q50 or 1.0 for row in rows]
    ax.set_xscale("log")
    ax.set_xlim(min(0.05, *lengths) / 2, max(lengths) * 30)
    ax.xaxis.set_major_formatter("{x:g}×")
    style_axes(ax, xlabel=f"1× is {rows[0].baseline}", title=title)


def _short(count: int) -> str:
    if count < 1000:
        return f"{count}"
    return f"{count // 1000}k" if count < 1_000_000 else f"{count // 1_000_000}M"


def _legend(figure: Figure, panels: Sequence[Axes]) -> None:
    """A legend for all panels without their own."""
    named = {
        label: handle
        for ax in panels
        if ax.get_legend() is None
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)
    }
    if named:
        figure.legend(
            list(named.values()), list(named), loc="outside right upper", frameon=False,
            labelcolor="linecolor", fontsize=9,
        )  # fmt: skip
