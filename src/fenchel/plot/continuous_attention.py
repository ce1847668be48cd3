"""Continuous attention: densities over a text, ellipses over an image, families of densities."""

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

from fenchel.continuous import (
    BetaGaussian,
    Mixture,
    Triangular,
    TruncatedParabola,
    TruncatedParaboloid,
)
from fenchel.errors import FenchelError
from fenchel.plot.inputs import as_image, as_words
from fenchel.plot.style import (
    FAINT,
    INK,
    ROTATED_WORD_WIDTH,
    add_legend,
    alpha_colour,
    new_figure,
    requires_matplotlib,
    style_axes,
)
from fenchel.plot.surfaces import draw_surface
from fenchel.search.labels import display_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

POINTS = 801  # of a curve
CHARACTER_WIDTH = 0.09  # inches
MAX_WIDTH = 24.0  # inches, unless rotated words need more
RINGS = (0.25, 0.5, 0.75)  # heights of the ellipses, relative to the mode


@requires_matplotlib
def density_over_text(
    words: Sequence[str],
    density: Distribution | Mixture,
    *,
    alpha: float = 2.0,
    ax: Axes | None = None,
) -> Axes:
    """Draw an attention density above the words of a text.

    Words with more than 0.1 % of the mass are bold, the others grey.

    Args:
        words: The words, spread evenly over [0, 1].
        density: A density on the real line, or one head of the `Mixture` that a layer returns,
            `mixture.at(item, head)`.
        alpha: The α of a `Mixture`.
        ax: The axes to draw on; a new figure by default.
    """
    words = as_words(words)
    density = _single_density(density, alpha, "the real line", [(), (1,)])
    if ax is None:
        width = max(4.0, min(0.55 * len(words), MAX_WIDTH), ROTATED_WORD_WIDTH * len(words))
        ax = new_figure(width, 2.6).subplots()
    t = torch.linspace(0, 1, POINTS, dtype=torch.float64)
    height = _heights(density, t)
    colour = alpha_colour(_alpha(density, alpha))
    ax.fill_between(t.numpy(), height.numpy(), color=colour, alpha=0.25, linewidth=0)
    ax.plot(t.numpy(), height.numpy(), color=colour, linewidth=2)
    centres = ((torch.arange(len(words), dtype=torch.float64) + 0.5) / len(words)).numpy()
    style_axes(ax)
    rotation: dict[str, Any] = {}
    if len(words) > 12 or _too_wide(words, ax):
        rotation = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
    ax.set_xticks(centres, words, parse_math=False, **rotation)
    for label, attended in zip(ax.get_xticklabels(), _attended(t, height, len(words)), strict=True):
        label.set_color(INK if attended else FAINT)
        label.set_fontweight("bold" if attended else "normal")
    ax.set(xlim=(0, 1), ylim=(0, 1.08 * float(height.max()) + 1e-12), yticks=())
    ax.grid(False)
    ax.spines["left"].set_visible(False)
    return ax


@requires_matplotlib
def ellipse_over_image(
    image: Any, density: Distribution | Mixture, *, alpha: float = 2.0, ax: Axes | None = None
) -> Axes:
    """Draw ellipses of an attention density over an image.

    The ellipses are where the density has ¼, ½ and ¾ of its largest value, and the boundary of its
    support.

    Args:
        image: (rows, columns) or (rows, columns, 3), anything that matplotlib can show.
        density: A density in the plane, with coordinates (x, y) from 0 to 1 and y pointing down, or
            one head of the `Mixture` that a layer returns, `mixture.at(item, head)`.
        alpha: The α of a `Mixture`.
        ax: The axes to draw on; a new figure by default.
    """
    density = _single_density(density, alpha, "the plane", [(2,)])
    pixels, colour = as_image(image), alpha_colour(_alpha(density, alpha))
    rows, columns = pixels.shape[:2]
    if ax is None:
        ax = new_figure(4.0, min(max(4.0 * rows / columns, 1.0), 12.0)).subplots()
    ax.imshow(pixels, extent=(0, 1, 1, 0), cmap="gray", aspect=rows / columns)
    for component, weight in _components(density):
        for width, edge in _ellipses(component):
            style: Any = {"color": colour, "alpha": 0.35 + 0.65 * weight}
            ax.plot(edge[0], edge[1], linewidth=width, **style)
        x, y = component.mean.tolist()
        ax.plot([x], [y], "+", color=colour, markersize=8)
    ax.set(xlim=(0, 1), ylim=(1, 0), xticks=(), yticks=())
    return ax


def ellipse_curves(
    density: Distribution | Mixture, *, alpha: float = 2.0
) -> list[tuple[float, list[tuple[float, float]]]]:
    """The ellipses that `ellipse_over_image` draws, as line widths and points (x, y).

    >>> from fenchel.continuous import TruncatedParaboloid
    >>> curves = ellipse_curves(TruncatedParaboloid(torch.zeros(2), torch.eye(2)))
    >>> [width for width, points in curves], len(curves[0][1])
    ([2.4, 1.2, 1.2, 1.2], 181)
    """
    components = _components(_single_density(density, alpha, "the plane", [(2,)]))
    drawn = (ellipse for component, _ in components for ellipse in _ellipses(component))
    return [(width, [*zip(*edge.tolist(), strict=True)]) for width, edge in drawn]


@requires_matplotlib
def densities(*, figure: Figure | None = None) -> Figure:
    """Draw Ω_α-regularized densities in one and two dimensions, for α = 1 and α = 2.

    This is figure 1 of Martins et al. (2020).
    """
    figure = new_figure(11.0, 4.2) if figure is None else figure
    grid = figure.add_gridspec(2, 3, width_ratios=(1.1, 1, 1))
    zero, one = torch.tensor(0.0, dtype=torch.float64), torch.tensor(1.0, dtype=torch.float64)
    panels = (
        {"Gaussian": Normal(zero, one), "truncated parabola": TruncatedParabola(zero, one)},
        {"Laplace": Laplace(zero, one), "triangular": Triangular(zero, one)},
    )
    t = torch.linspace(-3, 3, POINTS, dtype=torch.float64)
    for row, panel in enumerate(panels):
        ax = figure.add_subplot(grid[row, 0])
        for (name, density), alpha in zip(panel.items(), (1.0, 2.0), strict=True):
            label = f"{name} (α = {alpha:g})"
            height, colour = _heights(density, t).numpy(), alpha_colour(alpha)
            ax.plot(t.numpy(), height, color=colour, linewidth=2, label=label)
        style_axes(ax)
        ax.set(xlim=(-3, 3), ylim=(0, 1.45 if row else 0.95))
        add_legend(ax, "upper right", size=8)
    origin, eye = torch.zeros(2, dtype=torch.float64), torch.eye(2, dtype=torch.float64)
    planes = {
        r"$\mathcal{N}(t;\,0,\,I)$": MultivariateNormal(origin, eye),
        r"$\mathrm{TP}(t;\,0,\,I)$": TruncatedParaboloid(origin, eye),
    }
    for column, (title, density) in enumerate(planes.items(), start=1):
        _density_surface(figure.add_subplot(grid[:, column], projection="3d"), density, title)
    return figure


def _density_surface(axes: Any, density: Distribution, title: str) -> None:
    t = torch.linspace(-2.5, 2.5, 101, dtype=torch.float64)
    x, y = torch.meshgrid(t, t, indexing="xy")
    height = _heights(density, torch.stack((x, y), -1))
    draw_surface(axes, x, y, height, title=title, top=float(height.max()))
    axes.set(zlim=(0, 0.6), xticks=(-2, 0, 2), yticks=(-2, 0, 2), zticks=(0, 0.2, 0.4, 0.6))
    axes.view_init(elev=28, azim=-60)
    axes.set_box_aspect(None, zoom=0.95)


def _single_density(
    density: Distribution | Mixture, alpha: float, domain: str, events: list[tuple[int, ...]]
) -> Distribution:
    """Return the density as a distribution without a batch, whose event shape is in `events`."""
    if not isinstance(density, Distribution | Mixture):
        raise FenchelError(
            "density must be a torch.distributions.Distribution or a Mixture, "
            f"got {type(density).__name__}"
        )
    if not isinstance(density, Distribution):
        parts = (part.detach().cpu() for part in density)
        density = type(density)(*parts).distribution(alpha)
    if density.batch_shape != () or tuple(density.event_shape) not in events:
        raise FenchelError(
            f"density must be a single density on {domain}, such as mixture.at(item, head), "
            f"got batch shape {tuple(density.batch_shape)} "
            f"and event shape {tuple(density.event_shape)}"
        )
    return density


@torch.no_grad()
def _heights(density: Distribution, points: Tensor) -> Tensor:
    """Return the density at the points."""
    points = points.to(density.mean.dtype)
    if density.event_shape == (1,):
        points = points.unsqueeze(-1)
    return torch.exp(density.log_prob(points)).double()


def _attended(t: Tensor, height: Tensor, words: int) -> list[bool]:
    """Return which words have more than 0.1 % of the mass."""
    place = (t * words).long().clamp(max=words - 1)
    mass = torch.zeros(words, dtype=height.dtype).index_add_(0, place, height / len(t))
    return (mass > 1e-3).tolist()


def _too_wide(words: list[str], ax: Axes) -> bool:
    """Whether a word would overlap the next one."""
    room = ax.bbox.width / ax.figure.dpi / len(words)  # inches
    return CHARACTER_WIDTH * max(map(display_width, words)) > room


def _alpha(density: Distribution, alpha: float) -> float:
    """Return the α of a density, or `alpha` if the density has none."""
    parts: Any = density
    if isinstance(density, MixtureSameFamily):
        parts = density.component_distribution
    if isinstance(parts, Normal | Laplace | MultivariateNormal):
        return 1.0
    own = getattr(parts, "alpha", None)
    return float(own.flatten()[0]) if isinstance(own, Tensor) else float(alpha)


def _components(density: Distribution) -> list[tuple[Any, float]]:
    """Return the components of a mixture, with their weights relative to the largest."""
    parts: Any = density
    if isinstance(density, MixtureSameFamily):
        parts = density.component_distribution
    if not isinstance(parts, MultivariateNormal | BetaGaussian):
        raise FenchelError(
            "density must be a MultivariateNormal, a BetaGaussian or a mixture of these, "
            f"got {type(parts).__name__}"
        )
    if not isinstance(density, MixtureSameFamily):
        return [(density, 1.0)]
    weights: Tensor = density.mixture_distribution.probs  # pyright: ignore[reportAssignmentType]
    pairs = zip(parts.loc, parts.covariance_matrix, weights / weights.max(), strict=True)
    alpha = getattr(parts, "alpha", None)
    extra = () if alpha is None else (alpha.flatten()[0],)
    return [(type(parts)(loc, matrix, *extra), float(weight)) for loc, matrix, weight in pairs]


def _ellipses(component: Any) -> list[tuple[float, Any]]:
    """Return the ellipses of a component with the widths of their lines; the boundary's is wider."""
    return [
        (2.4 if share == 0 else 1.2, _ellipse(component, radius))
        for share, radius in _radii(component)
    ]


def _radii(component: Any) -> list[tuple[float, float]]:
    """Return pairs (share, radius): where the density is this share of its largest value.

    Radii are in units of Σ^½; a share of 0 is the boundary of the support.
    """
    if isinstance(component, MultivariateNormal):
        return [(share, math.sqrt(-2 * math.log(share))) for share in RINGS]
    edge, eps = component.radius.item(), component.alpha.item() - 1
    if not math.isfinite(edge):
        return [(share, math.sqrt(-2 * math.log(share))) for share in RINGS]
    return [(share, edge * math.sqrt(1 - share**eps)) for share in (0.0, *RINGS)]


@torch.no_grad()
def _ellipse(component: Any, radius: float) -> Any:
    angle = torch.linspace(0, 2 * math.pi, 181, dtype=torch.float64)
    circle = torch.stack((torch.cos(angle), torch.sin(angle)))
    loc, tril = component.loc.double(), component.scale_tril.double()
    return (loc.unsqueeze(-1) + radius * (tril @ circle)).numpy()
