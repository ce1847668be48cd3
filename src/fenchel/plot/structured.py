"""The structured maps: the figures 2 and 5 of the 2017 paper, segments and regions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

import fenchel
from fenchel.checks import check_count, check_number
from fenchel.errors import rule
from fenchel.plot.attended import TURNED
from fenchel.plot.binary import curves
from fenchel.plot.given import named_maps, numbers, texts
from fenchel.plot.style import GRID, INK, colours, key, new_figure, style_axes
from fenchel.plot.surfaces import simplex_surface

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

    from fenchel.regularizers import Regularizer

WORDS = [
    "the",
    "coach",
    "said",
    "that",
    "a",
    "band",
    "is",
    "playing",
    "on",
    "stage",
    "at",
    "the",
    "concert",
    "tonight",
]
WORD_SCORES = (-0.6, 0.5, 0.1, -0.5, 0.8, 1.5, 1.2, 1.4, 0.5, 0.6, -0.3, -0.2, 1.3, 0.0)
POINTS = 401


def regularizers(strength: float = 0.2) -> dict[str, Regularizer]:
    """The Ω of the paper's figures by the names of their maps."""
    return {
        "softmax": fenchel.Shannon(),
        "sparsemax": fenchel.Gini(),
        "pnormmax": fenchel.PNorm(1.5),
        "fusedmax": fenchel.Fused(strength),
        "oscarmax": fenchel.Oscar(strength),
    }


def two_scores(*, reach: float = 3.0, figure: Figure | None = None) -> Figure:
    """Ω* and its gradient for the scores [t, 0]: smoothed maxima, and maps (figure 2).

    Ω* is drawn up to the constant that makes all of them meet max(t, 0) far out. Oscarmax is left
    out: with two entries it is fusedmax.
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
    style_axes(left, xlabel="score t", title=r"$\max_\Omega([t,\,0])$ up to a constant")
    left.set(xlim=(-reach, reach))
    key(left, "upper left")
    curves({name: omega.map for name, omega in drawn.items()}, reach=reach, ax=right)
    return figure


def three_scores(*, points: int = 121, figure: Figure | None = None) -> Figure:
    """The surfaces of p₁ over the scores (t₁, t₂, 0), one a map (figure 5): plateaus are groups."""
    figure = new_figure(12.5, 3.0) if figure is None else figure
    omegas = regularizers()
    for place, (name, omega) in enumerate(omegas.items(), start=1):
        ax: Any = figure.add_subplot(1, len(omegas), place, projection="3d")
        simplex_surface(omega.map, title=name, points=points, ax=ax)
    return figure


def segments(
    words: Sequence[str] = WORDS,
    scores: Sequence[float] = WORD_SCORES,
    maps: Mapping[str, Callable[[Tensor], Tensor]] | None = None,
    *,
    ax: Axes | None = None,
) -> Axes:
    """What each map attends to in a sentence: equal neighbours have no border, zeros no colour."""
    words, scores = texts(words), numbers(scores, "scores")
    if len(words) != len(scores):
        expected, got = f"{len(words)} scores", len(scores)
        raise rule("every word has a score", expected=expected, got=got)
    if ax is None:
        ax = new_figure(max(10.0, TURNED * len(words)), 2.6).subplots()
    if maps is None:
        omegas = {**regularizers(), "oscarmax": fenchel.Oscar(0.11)}
        maps = {name: omega.map for name, omega in omegas.items()}
    maps, shade = named_maps(maps), _shades()
    x = torch.tensor(scores, dtype=torch.float64)
    for depth, (_, each) in enumerate(maps.items()):
        p = each(x)
        for place, value in enumerate(p.tolist()):
            face = shade(min(value / 0.5, 1.0) if value > 0 else torch.nan)
            ax.bar(place, 0.84, width=1.0, bottom=-depth - 0.42, color=face)
            if place and value != p[place - 1].item():
                ax.plot([place - 0.5] * 2, [-depth - 0.42, -depth + 0.42], color="white", lw=2)
    style_axes(ax)
    places = range(len(words))
    ax.set_xticks(places, words, rotation=35, ha="right", fontsize=10, parse_math=False)
    ax.set_yticks([-depth for depth in range(len(maps))], list(maps), fontsize=10)
    ax.set(xlim=(-0.5, len(words) - 0.5), ylim=(-len(maps) + 0.5, 0.5))
    ax.grid(False)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0, labelcolor=INK)
    return ax


def regions(*, strength: float = 0.03, size: int = 14, figure: Figure | None = None) -> Figure:
    """A noisy image of scores with two high regions, and what is attended of it, on one scale."""
    check_count(size, "an image has pixels")
    figure = new_figure(9.0, 2.6) if figure is None else figure
    place = torch.arange(size, dtype=torch.float64)
    down, across = torch.meshgrid(place, place, indexing="ij")
    disc = ((down - 4).square() + (across - 4).square()).sqrt() < 3
    box = (down > 8) & (down < 12) & (across > 6)
    noise = torch.randn(size, size, generator=torch.Generator().manual_seed(0)).double()
    scores = 0.2 * disc + 0.18 * box + 0.04 * noise
    fused = fenchel.fusedmax2d(scores, strength)
    attended = {
        "softmax": fenchel.softmax(scores.flatten()).view_as(scores),
        "sparsemax": fenchel.sparsemax(scores.flatten()).view_as(scores),
        f"fusedmax2d, strength {strength:g}": fused,
    }
    largest = max(p.max().item() for p in attended.values())
    first, *others = figure.subplots(1, 1 + len(attended))
    first.imshow(scores.numpy(), cmap=_shades())
    for ax, p in zip(others, attended.values(), strict=True):
        shown = torch.where(p > 0, p, torch.nan)
        ax.imshow(shown.numpy(), cmap=_shades(), vmin=0, vmax=largest)
    for ax, title in zip((first, *others), ("scores", *attended), strict=True):
        ax.set_title(title, color=INK, fontsize=11)
        ax.set(xticks=(), yticks=())
        ax.spines[:].set_visible(False)
    return figure


def _shades() -> Colormap:
    """The scale of all weights here: larger is darker, and grey what has none."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    darker = torch.linspace(0.08, 0.88, 256).numpy()
    return ListedColormap(colormaps["viridis_r"](darker)).with_extremes(bad=GRID)
