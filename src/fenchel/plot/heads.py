"""Attention heads: the course and the spread of α, densities, diversity, and weights as matrices.

All functions take plain data, as the table of `fenchel.analysis.heads` has them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from fenchel.errors import FenchelError
from fenchel.plot.style import (
    FAINT,
    INK,
    add_colour_bar,
    alpha_colour,
    colours,
    draw_weights,
    new_figure,
    requires_matplotlib,
    style_axes,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Records = Sequence[Mapping[str, Any]]
Histogram = Mapping[str, Any]  # "edges", and "counts" by kind

TITLES = {
    "encoder": "encoder self-attention",
    "context": "attention to the source",
    "decoder": "decoder self-attention",
    "self": "self-attention",
}
PANEL = 3.2  # inches
CELL = 0.22  # inches of a token of a matrix


class HeadPanel(NamedTuple):
    """The attention of a head on a sentence: its title, tokens, and weights by key of each query."""

    title: str
    queries: Sequence[str]
    keys: Sequence[str]
    rows: Sequence[Mapping[int, float]]


@requires_matplotlib
def alpha_courses(trajectories: Mapping[str, Sequence[tuple[float, float]]]) -> Figure:
    """Draw the α of every head during training, a panel per kind of attention.

    Args:
        trajectories: (epoch, α) by heads such as "encoder.0.3", as `fenchel.analysis.alpha_trajectories`
            returns them.
    """
    _check_any(trajectories, "trajectories")
    kinds = list(dict.fromkeys(name.split(".")[0] for name in trajectories))
    figure, axes = _panels(1, len(kinds))
    for kind, ax in zip(kinds, axes[0], strict=True):
        for name, points in trajectories.items():
            if name.split(".")[0] == kind:
                epochs, alphas = zip(*points, strict=True)
                ax.plot(epochs, alphas, color=alpha_colour(alphas[-1]), linewidth=1.1, alpha=0.8)
        style_axes(ax, xlabel="epoch", title=TITLES.get(kind, kind))
        ax.set_ylim(0.98, 2.02)
    axes[0][0].set_ylabel("α", color=INK)
    return figure


@requires_matplotlib
def head_histograms(histograms: Mapping[str, Histogram], xlabel: str) -> Figure:
    """Draw histograms of α or of densities: a row per model, a panel per kind of attention.

    Args:
        histograms: By model, as `HeadTable.alpha_histogram` and `density_histogram` return them.
        xlabel: What the values are.
    """
    _check_any(histograms, "histograms")
    kinds = list(next(iter(histograms.values()))["counts"])
    figure, axes = _panels(len(histograms), len(kinds), height=2.2)
    chosen = colours(histograms)
    for (name, histogram), colour, row in zip(histograms.items(), chosen, axes, strict=True):
        edges = histogram["edges"]
        for kind, ax in zip(kinds, row, strict=True):
            counts = histogram["counts"][kind]
            width = edges[1] - edges[0]
            ax.bar(edges[:-1], counts, width, align="edge", color=colour, edgecolor="white")
            style_axes(ax)
            ax.set_xlim(edges[0], edges[-1])
        row[0].set_ylabel(name, color=INK)
    _label_columns(axes, kinds, xlabel)
    return figure


@requires_matplotlib
def head_densities(models: Mapping[str, Records]) -> Figure:
    """Draw the density of every head by layer, sorted: a row per model, a panel per kind of attention.

    A line joins the sparsest heads of all layers, another one the second sparsest, and so on.

    Args:
        models: By model, the records of its heads.
    """
    _check_any(models, "models")
    kinds = _kinds(models)
    figure, axes = _panels(len(models), len(kinds), height=2.4)
    for (name, records), colour, row in zip(models.items(), colours(models), axes, strict=True):
        for kind, ax in zip(kinds, row, strict=True):
            layers = sorted({each["layer"] for each in records if each["kind"] == kind})
            ranked = [
                sorted(
                    each["density"]
                    for each in records
                    if (each["kind"], each["layer"]) == (kind, layer)
                )
                for layer in layers
            ]
            for ranks in zip(*ranked, strict=True):
                ax.plot(layers, ranks, "o-", color=colour, markersize=3.5, linewidth=1, alpha=0.75)
            style_axes(ax)
            ax.set(ylim=(-0.03, 1.03), xticks=layers)
        row[0].set_ylabel(f"{name}\ndensity", color=INK)
    _label_columns(axes, kinds, "layer")
    return figure


@requires_matplotlib
def head_diversity(models: Mapping[str, Records]) -> Figure:
    """Draw the Jensen–Shannon divergence of the heads of each layer, a panel per kind of attention.

    Args:
        models: By model, the records of its layers.
    """
    _check_any(models, "models")
    kinds = _kinds(models)
    figure, axes = _panels(1, len(kinds))
    for kind, ax in zip(kinds, axes[0], strict=True):
        for (name, layers), colour in zip(models.items(), colours(models), strict=True):
            points = [(e["layer"], e["diversity"]) for e in layers if e["kind"] == kind]
            numbers, values = zip(*points, strict=True)
            ax.plot(numbers, values, "o-", color=colour, linewidth=2, label=name)
            ax.set_xticks(numbers)
        style_axes(ax, xlabel="layer", title=TITLES.get(kind, kind))
        ax.set_ylim(bottom=0)
    axes[0][0].set_ylabel("Jensen–Shannon divergence", color=INK)
    axes[0][0].legend(frameon=False, labelcolor="linecolor", fontsize=9)
    return figure


@requires_matplotlib
def head_matrices(panels: Sequence[HeadPanel], columns: int = 3) -> Figure:
    """Draw the weights of heads on sentences as matrices; queries are rows, exact zeros white."""
    _check_any(panels, "panels")
    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    tokens = max(max(len(panel.queries), len(panel.keys)) for panel in panels)
    size = max(PANEL, CELL * tokens + 1.2)
    figure = new_figure(columns * size + 0.6, rows * (size + 0.3))
    axes = figure.subplots(rows, columns, squeeze=False)
    image: Any = None
    for ax, panel in zip(axes.flat, panels, strict=False):
        weights = torch.zeros(len(panel.queries), len(panel.keys))
        for query, row in enumerate(panel.rows):
            for key, weight in row.items():
                weights[query, key] = weight
        image = draw_weights(ax, weights, 1.0)
        ax.set_title(panel.title, color=INK, fontsize=10)
        style: dict[str, Any] = {"fontsize": 8, "parse_math": False}
        ax.set_xticks(range(len(panel.keys)), panel.keys, rotation=90, **style)
        ax.set_yticks(range(len(panel.queries)), panel.queries, **style)
        ax.tick_params(length=0, colors=INK)
        for spine in ax.spines.values():
            spine.set_color(FAINT)
    for ax in axes.flat[len(panels) :]:
        ax.set_visible(False)
    add_colour_bar(image, axes, "weight")
    return figure


def _panels(rows: int, columns: int, height: float = PANEL) -> tuple[Figure, Any]:
    figure = new_figure(PANEL * 1.15 * columns, height * rows + 0.3)
    return figure, figure.subplots(rows, columns, squeeze=False, sharey="row")


def _label_columns(axes: Any, kinds: Sequence[str], xlabel: str) -> None:
    for kind, top, bottom in zip(kinds, axes[0], axes[-1], strict=True):
        top.set_title(TITLES.get(kind, kind), color=INK, fontsize=12)
        bottom.set_xlabel(xlabel, color=INK)


def _kinds(models: Mapping[str, Records]) -> list[str]:
    return list(dict.fromkeys(each["kind"] for records in models.values() for each in records))


def _check_any(values: Iterable[Any], name: str) -> None:
    if not values:
        raise FenchelError(f"{name} must not be empty")
