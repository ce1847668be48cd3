"""The ratios as one picture: a line a contender, a dot a shape, a panel a direction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from benchmarks.registry import OPERATIONS
from benchmarks.rows import Row
from fenchel.plot import FAINT, INK, new_figure, style_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHADES = ("#9ecae1", "#4a98c9", "#1764ab", "#08306b", "#d7301f")


def ratio_picture(rows: Sequence[Row]) -> Figure:
    """The ratio of every contender to its baseline, with whiskers from 20 to 80 %."""
    drawn = [row for row in rows if row.ratio_q50 is not None and row.operation != row.baseline]
    operations = [o for o in OPERATIONS if any(row.operation == o for row in drawn)]
    directions = list(dict.fromkeys(row.direction for row in drawn))
    figure = new_figure(10.0, 1.4 + 0.26 * len(operations))
    panels: Any = figure.subplots(1, max(len(directions), 1), sharey=True, squeeze=False)[0]
    shades = _shades(drawn)
    for ax, direction in zip(panels, directions, strict=False):
        _panel(ax, [row for row in drawn if row.direction == direction], operations, shades)
        style_axes(
            ax, xlabel="time / time of torch.softmax (losses: F.cross_entropy)", title=direction
        )
    if drawn:
        _finish(figure, panels[0], operations, shades)
    return figure


def _panel(ax: Axes, rows: Sequence[Row], operations: list[str], shades: dict[int, str]) -> None:
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter("{x:g}×")
    ax.axvline(1, color=FAINT, linewidth=1)
    for columns, shade in shades.items():
        some = [row for row in rows if row.columns == columns]
        x = [row.ratio_q50 or 0.0 for row in some]
        spread = [
            [middle - (row.ratio_q20 or 0.0) for middle, row in zip(x, some, strict=True)],
            [(row.ratio_q80 or 0.0) - middle for middle, row in zip(x, some, strict=True)],
        ]
        y = [operations.index(row.operation) for row in some]
        ax.errorbar(x, y, xerr=spread, fmt="o", color=shade, markersize=5, label=f"{columns}")


def _finish(figure: Figure, ax: Axes, operations: list[str], shades: dict[int, str]) -> None:
    ax.set_yticks(range(len(operations)), operations, color=INK, fontsize=9)
    ax.invert_yaxis()
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(
        handles, labels, title="columns", loc="outside upper center", ncols=len(shades),
        frameon=False, labelcolor="linecolor",
    )  # fmt: skip


def _shades(rows: Sequence[Row]) -> dict[int, str]:
    columns = sorted({(row.family == "losses", row.columns) for row in rows})
    return {columns: SHADES[i % len(SHADES)] for i, (_, columns) in enumerate(columns)}
