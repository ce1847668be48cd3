"""Continuous attention: densities over a text, ellipses over an image."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.distributions import (
    Distribution,
    Laplace,
    MixtureSameFamily,
    MultivariateNormal,
    Normal,
)

from fenchel.errors import rule
from fenchel.plot.given import pixels, texts
from fenchel.plot.style import FAINT, INK, alpha_colour, new_figure, style_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fenchel.continuous import Mixture

POINTS = 801
LETTER = 0.09  # inches
TURNED = 0.22  # inches that a turned word takes
WIDEST = 24.0  # inches, unless there are so many words
RINGS = (0.25, 0.5, 0.75)  # of the density's height at its mode


def density_over_text(
    words: Sequence[str],
    density: Distribution | Mixture,
    *,
    alpha: float = 2.0,
    ax: Axes | None = None,
) -> Axes:
    """The density of an attention to a text, above its words; unattended words are grey.

    Args:
        words: the pieces of the text, spread evenly over [0, 1].
        density: a density on the line, or one head of the `Mixture` that a layer returns,
            `mixture.at(item, head)`.
        alpha: which density a `Mixture` has.
        ax: where to draw; a new figure unless given.
    """
    words = texts(words)
    density = _distribution(density, alpha, "the line", [(), (1,)])
    if ax is None:
        width = max(4.0, min(0.55 * len(words), WIDEST), TURNED * len(words))
        ax = new_figure(width, 2.6).subplots()
    t = torch.linspace(0, 1, POINTS, dtype=torch.float64)
    height = heights(density, t)
    colour = alpha_colour(_alpha(density, alpha))
    ax.fill_between(t.numpy(), height.numpy(), color=colour, alpha=0.25, linewidth=0)
    ax.plot(t.numpy(), height.numpy(), color=colour, linewidth=2)
    middles = (torch.arange(len(words), dtype=torch.float64) + 0.5) / len(words)
    style_axes(ax)
    ax.set_xticks(middles.numpy(), words, parse_math=False)
    if len(words) > 12 or _too_wide(words, ax):
        ax.set_xticks(
            middles.numpy(),
            words,
            rotation=45,
            ha="right",
            rotation_mode="anchor",
            parse_math=False,
        )
    for label, seen in zip(ax.get_xticklabels(), _touched(t, height, len(words)), strict=True):
        label.set_color(INK if seen else FAINT)
        label.set_fontweight("bold" if seen else "normal")
    ax.set(xlim=(0, 1), ylim=(0, 1.08 * float(height.max()) + 1e-12), yticks=())
    ax.grid(False)
    ax.spines["left"].set_visible(False)
    return ax


def ellipse_over_image(
    image: Any, density: Distribution | Mixture, *, alpha: float = 2.0, ax: Axes | None = None
) -> Axes:
    """An image and the ellipses of an attention to it: heights of ¼, ½, ¾, and the support's edge.

    Args:
        image: (rows, columns) or (rows, columns, 3), anything that matplotlib shows.
        density: a density in the plane, coordinates (x, y) from 0 to 1 with y pointing down, or one
            head of the `Mixture` that a layer returns, `mixture.at(item, head)`.
        alpha: which density a `Mixture` has.
        ax: where to draw; a new figure unless given.
    """
    density = _distribution(density, alpha, "the plane", [(2,)])
    shown, colour = pixels(image), alpha_colour(_alpha(density, alpha))
    modes = _modes(density)
    rows, columns = shown.shape[:2]
    if ax is None:
        ax = new_figure(4.0, min(max(4.0 * rows / columns, 1.0), 12.0)).subplots()
    ax.imshow(shown, extent=(0, 1, 1, 0), cmap="gray", aspect=rows / columns)
    for mode, weight in modes:
        for share, radius in _radii(mode):
            edge = _ellipse(mode, radius)
            style: Any = {"color": colour, "alpha": 0.35 + 0.65 * weight}
            ax.plot(edge[0], edge[1], linewidth=2.4 if share == 0 else 1.2, **style)
        x, y = mode.mean.tolist()
        ax.plot([x], [y], "+", color=colour, markersize=8)
    ax.set(xlim=(0, 1), ylim=(1, 0), xticks=(), yticks=())
    return ax


def _distribution(
    density: Distribution | Mixture, alpha: float, place: str, events: list[tuple[int, ...]]
) -> Distribution:
    """One density, on what `place` names, whose events have one of these shapes."""
    from fenchel.continuous import Mixture

    if not isinstance(density, Distribution | Mixture):
        expected, got = "a torch.distributions.Distribution or a Mixture", type(density).__name__
        raise rule("one density is drawn", expected=expected, got=got)
    if not isinstance(density, Distribution):
        parts = (part.detach().cpu() for part in density)
        density = type(density)(*parts).distribution(alpha)
    if density.batch_shape != () or tuple(density.event_shape) not in events:
        expected = f"a density on {place} without a batch, as mixture.at(item, head) is"
        got = f"batch {tuple(density.batch_shape)} of events {tuple(density.event_shape)}"
        raise rule("one density is drawn", expected=expected, got=got)
    return density


@torch.no_grad()
def heights(density: Distribution, points: Tensor) -> Tensor:
    """p at the points."""
    points = points.to(density.mean.dtype)
    if density.event_shape == (1,):  # a density on the line, written in one dimension
        points = points.unsqueeze(-1)
    return torch.exp(density.log_prob(points)).double()


def _touched(t: Tensor, height: Tensor, words: int) -> list[bool]:
    """Which words the density puts a visible mass on."""
    place = (t * words).long().clamp(max=words - 1)
    mass = torch.zeros(words, dtype=height.dtype).index_add_(0, place, height / len(t))
    return (mass > 1e-3).tolist()


def _too_wide(words: list[str], ax: Axes) -> bool:
    """Whether a word would reach into the next one."""
    from fenchel.search.labels import columns

    figure: Any = ax.get_figure(root=True)
    room = ax.get_position().width * figure.get_figwidth() / len(words)
    return LETTER * max(map(columns, words)) > room


def _alpha(density: Distribution, alpha: float) -> float:
    """The α that a density has, where it tells; it is drawn in the colour of that."""
    parts: Any = density
    if isinstance(density, MixtureSameFamily):
        parts = density.component_distribution
    if isinstance(parts, Normal | Laplace | MultivariateNormal):
        return 1.0
    own = getattr(parts, "alpha", None)
    return float(own.flatten()[0]) if isinstance(own, Tensor) else float(alpha)


def _modes(density: Distribution) -> list[tuple[Any, float]]:
    """The densities of a mixture and their weights relative to the heaviest."""
    from fenchel.continuous import BetaGaussian

    parts: Any = density
    if isinstance(density, MixtureSameFamily):
        parts = density.component_distribution
    if not isinstance(parts, MultivariateNormal | BetaGaussian):
        expected, got = "MultivariateNormal or BetaGaussian", type(parts).__name__
        raise rule("a density with ellipses is drawn", expected=expected, got=got)
    if not isinstance(density, MixtureSameFamily):
        return [(density, 1.0)]
    weights: Tensor = density.mixture_distribution.probs  # pyright: ignore[reportAssignmentType]
    pairs = zip(parts.loc, parts.covariance_matrix, weights / weights.max(), strict=True)
    alpha = getattr(parts, "alpha", None)
    return [
        (
            MultivariateNormal(loc, matrix)
            if alpha is None
            else type(parts)(loc, matrix, alpha.flatten()[0]),
            float(weight),
        )
        for loc, matrix, weight in pairs
    ]


def _radii(mode: Any) -> list[tuple[float, float]]:
    """Where the density has fallen to a share of its height, in units of Σ^½; 0 is the edge."""
    if isinstance(mode, MultivariateNormal):
        return [(share, math.sqrt(-2 * math.log(share))) for share in RINGS]
    edge, eps = mode.radius.item(), mode.alpha.item() - 1
    if not math.isfinite(edge):
        return [(share, math.sqrt(-2 * math.log(share))) for share in RINGS]
    return [(share, edge * math.sqrt(1 - share**eps)) for share in (0.0, *RINGS)]


@torch.no_grad()
def _ellipse(mode: Any, radius: float) -> Any:
    angle = torch.linspace(0, 2 * math.pi, 181, dtype=torch.float64)
    circle = torch.stack((torch.cos(angle), torch.sin(angle)))
    loc, tril = mode.loc.double(), mode.scale_tril.double()
    return (loc.unsqueeze(-1) + radius * (tril @ circle)).numpy()
