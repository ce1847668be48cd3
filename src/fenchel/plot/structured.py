"""Structured maps: figures 2 and 5 of Niculae and Blondel (2017), and weights over texts and images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

import fenchel
from fenchel.checks import check_count, check_number
from fenchel.errors import FenchelError
from fenchel.plot.inputs import Map, apply_map, as_named_maps, as_numbers, as_words
from fenchel.plot.map_curves import curves
from fenchel.plot.style import (
    GRID,
    INK,
    ROTATED_WORD_WIDTH,
    add_colour_bar,
    add_legend,
    colours,
    draw_weights,
    new_figure,
    requires_matplotlib,
    style_axes,
)
from fenchel.plot.surfaces import simplex_surface

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fenchel.regularizers import Regularizer

SENTENCE = "the coach said that a band is playing on stage at the concert tonight"
WORDS = SENTENCE.split()
WORD_SCORES = (-0.6, 0.5, 0.1, -0.5, 0.8, 1.5, 1.2, 1.4, 0.5, 0.6, -0.3, -0.2, 1.3, 0.0)
POINTS = 401  # of a curve


def regularizers(strength: float = 0.2) -> dict[str, Regularizer]:
    """Return the regularizers of the paper's figures, by the names of their maps."""
    return {
        "softmax": fenchel.Shannon(),
        "sparsemax": fenchel.Gini(),
        "pnormmax": fenchel.PNorm(1.5),
        "fusedmax": fenchel.Fused(strength),
        "oscarmax": fenchel.Oscar(strength),
    }


@requires_matplotlib
def two_scores(*, reach: float = 3.0, figure: Figure | None = None) -> Figure:
    """Draw Ω* and its gradient for the scores [t, 0]: smoothed maxima and maps (figure 2).

    Ω* is shifted by a constant so that it approaches max(t, 0) for large t. Oscarmax is left out:
    for two entries, oscarmax with strength 2λ is fusedmax with strength λ.
    """
    reach = check_number(reach, name="reach", above=0)
    figure = new_figure(10.0, 3.8) if figure is None else figure
    left, right = figure.subplots(1, 2)
    drawn = {name: omega for name, omega in regularizers().items() if name != "oscarmax"}
    t = torch.linspace(-reach, reach, POINTS, dtype=torch.float64)
    scores = torch.stack((t, torch.zeros_like(t)), -1)
    far = torch.tensor([40.0, 0.0], dtype=torch.float64)
    for name, colour in zip(drawn, colours(drawn), strict=True):
        value = drawn[name].max(scores) - drawn[name].max(far) + 40.0
        left.plot(t.numpy(), value.numpy(), color=colour, linewidth=2, label=name)
    style_axes(left, xlabel="score t", title=r"$\Omega^*([t,\,0])$ up to a constant")
    left.set(xlim=(-reach, reach))
    add_legend(left, "upper left")
    curves({name: omega.map for name, omega in drawn.items()}, reach=reach, ax=right)
    return figure


@requires_matplotlib
def three_scores(*, points: int = 121, figure: Figure | None = None) -> Figure:
    """Draw p₂ over the scores (t₁, t₂, 0), one surface per map (figure 5).

    The second entry has two neighbours, so fusedmax can join it to either side.
    """
    figure = new_figure(12.5, 3.0) if figure is None else figure
    omegas = regularizers()
    for place, (name, omega) in enumerate(omegas.items(), start=1):
        ax: Any = figure.add_subplot(1, len(omegas), place, projection="3d")
        simplex_surface(omega.map, entry=2, title=name, points=points, ax=ax)
    return figure


@requires_matplotlib
def weights_over_text(
    words: Sequence[str] = WORDS,
    scores: Sequence[float] = WORD_SCORES,
    maps: Mapping[str, Map] | None = None,
    *,
    ax: Axes | None = None,
) -> Axes:
    """Draw the weights of several maps over the words of a text, one row per map.

    Darker is larger and white is exactly zero. A white line separates neighbours whose weights
    differ, so words of a fused segment are joined.

    Args:
        words: The words.
        scores: One score per word.
        maps: A dictionary from names to maps; the structured maps and three others by default.
        ax: The axes to draw on; a new figure by default.
    """
    words, scores = as_words(words), as_numbers(scores, "scores")
    if len(words) != len(scores):
        raise FenchelError(f"scores must have one entry per word ({len(words)}), got {len(scores)}")
    if maps is None:
        omegas = {**regularizers(), "oscarmax": fenchel.Oscar(0.11)}
        maps = {name: omega.map for name, omega in omegas.items()}
    maps = as_named_maps(maps)
    if ax is None:
        width = max(10.0, ROTATED_WORD_WIDTH * len(words))
        ax = new_figure(width, 1.1 + 0.34 * len(maps)).subplots()
    x = torch.tensor(scores, dtype=torch.float64)
    weights = torch.stack([apply_map(each, x) for each in maps.values()])
    image = draw_weights(ax, weights, largest=weights.max().item())
    style_axes(ax)
    ax.set(aspect="auto", ylim=(len(maps) - 0.5, -0.5))
    ax.grid(False)
    for row, p in enumerate(weights.tolist()):
        ax.axhline(row - 0.5, color=GRID, linewidth=1.5)
        for place in range(1, len(words)):
            if p[place] != p[place - 1]:
                ax.plot([place - 0.5] * 2, [row - 0.46, row + 0.46], color="white", linewidth=2)
    places = range(len(words))
    ax.set_xticks(places, words, rotation=35, ha="right", fontsize=10, parse_math=False)
    ax.set_yticks(range(len(maps)), list(maps), fontsize=10, parse_math=False)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0, labelcolor=INK)
    add_colour_bar(image, ax, "weight (white: 0)")
    return ax


@requires_matplotlib
def regions(*, strength: float = 0.03, size: int = 14, figure: Figure | None = None) -> Figure:
    """Draw a noisy image of scores with two high regions, and the weights of three maps over it.

    Darker is larger; in the weights, white is exactly zero. The weights share one colour scale.
    """
    check_count(size, "size")
    figure = new_figure(10.0, 2.35) if figure is None else figure
    place = torch.arange(size, dtype=torch.float64)
    down, across = torch.meshgrid(place, place, indexing="ij")
    disc = ((down - 4).square() + (across - 4).square()).sqrt() < 3
    box = (down > 8) & (down < 12) & (across > 6)
    noise = torch.randn(size, size, generator=torch.Generator().manual_seed(0)).double()
    scores = 0.2 * disc + 0.18 * box + 0.04 * noise
    fused = fenchel.fusedmax2d(scores, strength)
    weights = {
        "softmax": fenchel.softmax(scores.flatten()).view_as(scores),
        "sparsemax": fenchel.sparsemax(scores.flatten()).view_as(scores),
        f"fusedmax2d, strength {strength:g}": fused,
    }
    largest = max(p.max().item() for p in weights.values())
    first, *others = figure.subplots(1, 1 + len(weights))
    scores_image = first.imshow(scores.numpy(), cmap="Greys")
    images = [draw_weights(ax, p, largest) for ax, p in zip(others, weights.values(), strict=True)]
    for ax, title in zip((first, *others), ("scores", *weights), strict=True):
        ax.set_title(title, color=INK, fontsize=11)
        ax.set(xticks=(), yticks=())
        ax.spines[:].set_color(GRID)
    add_colour_bar(scores_image, first, "score")
    add_colour_bar(images[-1], others, "weight (white: 0)")
    return figure
