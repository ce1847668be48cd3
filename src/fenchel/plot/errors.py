"""Curves of repeated measurements, with the deviation of each point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from fenchel.errors import FenchelError
from fenchel.plot.style import (
    add_legend,
    colours,
    line_styles,
    new_figure,
    requires_matplotlib,
    style_axes,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PANEL = 3.2  # inches
COLUMNS = 4


@requires_matplotlib
def courses_with_errors(
    panels: Mapping[str, Mapping[str, Sequence[tuple[float, Sequence[float]]]]], xlabel: str
) -> Figure:
    """Draw curves with the standard deviation of each point, a panel for each title.

    Args:
        panels: By title, curves by name: points with an x and the values measured there.
        xlabel: What x is.
    """
    if not panels:
        raise FenchelError("panels must have at least one panel, got none")
    columns = min(COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    figure = new_figure(PANEL * columns, 0.85 * PANEL * rows)
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for ax, (title, curves) in zip(axes, panels.items(), strict=False):
        styles = zip(curves.items(), colours(curves), line_styles(curves), strict=True)
        for (name, points), colour, style in styles:
            places = [x for x, _ in points]
            means = [fmean(values) for _, values in points]
            deviations = [stdev(values) if len(values) > 1 else 0.0 for _, values in points]
            options = {"label": name, "color": colour, "linestyle": style, "linewidth": 1.4}
            ax.errorbar(places, means, deviations, capsize=2, **options)
        style_axes(ax, xlabel=xlabel)
        ax.set_title(title, fontsize=9)
        ax.set_ylim(bottom=0)
    for ax in axes[len(panels) :]:
        ax.set_axis_off()
    add_legend(axes[0], "upper right", 8)
    return figure
