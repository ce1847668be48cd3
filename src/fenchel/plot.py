"""Pictures of the maps and of the losses, as in the papers' figures.

Every function draws on the axes it is given, or on a new figure of its own, and returns them; save
with `fenchel.plot.curves(...).figure.savefig("curves.png")`. Nothing global is touched: no pyplot,
no settings, no window. Matplotlib (the extra `fenchel[plot]`) is loaded at the first picture.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor
from torch.nn import functional

import fenchel
from fenchel.errors import rule
from fenchel.plot_density import densities as densities
from fenchel.plot_density import density_over_text as density_over_text
from fenchel.plot_density import ellipse_over_image as ellipse_over_image
from fenchel.plot_structured import regions as regions
from fenchel.plot_structured import segments as segments
from fenchel.plot_structured import three_scores as three_scores
from fenchel.plot_structured import two_scores as two_scores

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from mpl_toolkits.mplot3d import Axes3D

Map = Callable[[Tensor], Tensor]

ALPHAS = (1.0, 1.25, 1.5, 2.0, 4.0)
SCORES = (0.1, -0.7, 1.5, 1.0, -1.3, 0.7, 1.4, -0.3, 0.4)
INK, FAINT, GRID = "#333333", "#8c8c8c", "#e6e6e6"
# Where 1 − 1/α puts a map between dense (0) and one-hot (1): softmax blue, sparsemax red.
ALPHA_RAMP = (
    (0.0, "#2166ac"),
    (0.2, "#2a9fb5"),
    (1 / 3, "#3a9d5d"),
    (0.5, "#d7301f"),
    (1, "#6a1b4d"),
)
OTHER_COLOURS = ("#7b5fb2", "#b8860b", "#5f6b73", "#c2569b")


def alpha_sweep(
    alphas: Sequence[float] = ALPHAS,
    scores: Sequence[float] = SCORES,
    *,
    figure: Figure | None = None,
) -> Figure:
    """α-entmax from dense to sparse: of two scores as curves, of one score vector as bars."""
    figure = new_figure(10.0, 4.0) if figure is None else figure
    left, right = figure.subplots(1, 2, gridspec_kw={"width_ratios": (1.0, 1.05)})
    alpha_curves(alphas, ax=left)
    alpha_bars(alphas, scores, ax=right)
    return figure


def alpha_curves(alphas: Sequence[float] = ALPHAS, *, ax: Axes | None = None) -> Axes:
    """t ↦ entmax_α([t, 0])₁ for several α; dots mark where a probability becomes exactly 0 or 1."""
    ax = new_figure(5.2, 4.0).subplots() if ax is None else ax
    reach = 1.15 * max([3.0, *(1 / (a - 1) for a in alphas if a >= 1.2)])
    first = True
    for alpha in sorted(alphas, reverse=True):
        colour = alpha_colour(alpha)
        t, p = _curve(lambda x, alpha=alpha: fenchel.entmax(x, alpha), reach)
        ax.plot(t, p, color=colour, linewidth=2, label=f"α = {alpha:g}")
        edge = 1 / (alpha - 1) if alpha > 1 else reach
        name = f"α = {alpha:g}" if first else f"{alpha:g}"
        if edge < reach:
            ax.plot([-edge, edge], [0, 1], "o", color=colour, markersize=5, zorder=3, clip_on=False)
            _note(ax, edge + 0.15 * first, 1.035, name, colour, ha="right" if first else "center")
        else:
            name = f"{name} (softmax)" if alpha == 1 else name
            _note(ax, reach, p[-1] - 0.11, name, colour, ha="right")
        first = False
    style_axes(ax, xlabel="score t", title=r"$\mathrm{entmax}_\alpha([t,\,0])_1$")
    ax.set(xlim=(-reach, reach), ylim=(-0.02, 1.14), yticks=(0, 0.5, 1))
    return ax


def alpha_bars(
    alphas: Sequence[float] = ALPHAS, scores: Sequence[float] = SCORES, *, ax: Axes | None = None
) -> Axes:
    """One score vector mapped with growing α, a row of bars each; a zero has no bar, only a dot."""
    ax = new_figure(5.2, 4.0).subplots() if ax is None else ax
    x = torch.tensor(scores, dtype=torch.float64)
    place = torch.arange(len(x)).numpy()
    rows = {alpha: fenchel.entmax(x, alpha) for alpha in sorted(alphas)}
    step = 1.12 * max(float(p.max()) for p in rows.values())
    for depth, (alpha, p) in enumerate(rows.items()):
        base, colour = -step * depth, alpha_colour(alpha)
        ax.axhline(base, color=GRID, linewidth=1, zorder=0)
        ax.bar(place, p.numpy(), bottom=base, width=0.72, color=colour)
        gone = place[(p == 0).numpy()]
        at_base = [base] * len(gone)
        ax.plot(gone, at_base, ".", color=FAINT, markersize=4, clip_on=False, in_layout=False)
        _note(ax, -0.75, base + 0.06 * step, f"α = {alpha:g}", colour, ha="right")
        count = f"{len(x) - len(gone)} of {len(x)}"
        _note(ax, len(x) - 0.25, base + 0.06 * step, count, colour, ha="left")
    _note(ax, len(x) - 0.25, 0.5 * step, "non-zero", FAINT, ha="left")
    style_axes(ax, title="one score vector, growing α")
    ax.set_xticks(place, [f"{s:g}" for s in scores], fontsize=9, color=FAINT)
    ax.set(xlim=(-2.6, len(x) + 1.7), ylim=(-step * (len(rows) - 1) - 0.02, step), yticks=())
    ax.set_xlabel("scores", color=INK)
    ax.grid(False)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    return ax


def curves(maps: Mapping[str, Map], *, reach: float = 3.0, ax: Axes | None = None) -> Axes:
    """t ↦ map([t, 0])₁ for every map of a dictionary from names to maps."""
    ax = new_figure(5.6, 4.0).subplots() if ax is None else ax
    for name, colour in zip(maps, colours(maps), strict=True):
        t, p = _curve(maps[name], reach)
        ax.plot(t, p, color=colour, linewidth=2, label=name)
    style_axes(ax, xlabel="score t", title=r"$p_1$ for the scores $[t,\,0]$")
    ax.set(xlim=(-reach, reach), ylim=(-0.02, 1.04), yticks=(0, 0.5, 1))
    key(ax, "upper left")
    return ax


def simplex_surface(
    map: Map, *, title: str = "", reach: float = 3.0, points: int = 121, ax: Axes3D | None = None
) -> Axes3D:
    """The surface of p₁ over the scores (t₁, t₂, 0); grey where it is exactly 0."""
    if ax is None:
        axes: Any = new_figure(4.6, 4.2).add_subplot(projection="3d")
    else:
        axes = ax
    from matplotlib import colormaps

    t1, t2, p1 = _surface(map, reach, points)
    corners = torch.stack((p1[:-1, :-1], p1[1:, :-1], p1[:-1, 1:], p1[1:, 1:]))
    faces = colormaps["viridis"](0.1 + 0.85 * corners.mean(0).numpy())
    faces[(corners == 0).all(0).numpy()] = (0.87, 0.87, 0.87, 1.0)
    axes.plot_surface(
        t1.numpy(), t2.numpy(), p1.numpy(), facecolors=faces, rstride=1, cstride=1,
        linewidth=0, antialiased=False, shade=False,
    )  # fmt: skip
    axes.view_init(elev=26, azim=-130)
    axes.set_zlim(0, 1)
    axes.set_title(title, color=INK, fontsize=12, pad=0)
    axes.set_xlabel("$t_1$", color=INK, labelpad=-6)
    axes.set_ylabel("$t_2$", color=INK, labelpad=-6)
    for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
        axis.pane.set_visible(False)
        axis._axinfo["grid"]["color"] = GRID
    axes.tick_params(labelsize=8, labelcolor=FAINT, pad=-2)
    axes.set(xticks=(-reach, 0, reach), yticks=(-reach, 0, reach), zticks=(0, 0.5, 1))
    axes.set_box_aspect(None, zoom=0.92)
    return axes


def losses(*, reach: float = 3.0, ax: Axes | None = None) -> Axes:
    """The losses of a binary decision with margin t: scores [t, 0], the first class is right.

    With t ≥ 1/(α−1) the α-entmax loss is exactly zero; sparsemax's is the modified Huber loss.
    """
    ax = new_figure(5.6, 4.0).subplots() if ax is None else ax
    t = torch.linspace(-reach, reach, 601, dtype=torch.float64)
    scores = torch.stack((t, torch.zeros_like(t)), -1)
    target = torch.zeros(len(t), dtype=torch.long)
    drawn = {
        "logistic (softmax)": (functional.cross_entropy(scores, target, reduction="none"), 1.0),
        "1.5-entmax": (fenchel.entmax_loss(scores, target, 1.5, reduction="none"), 1.5),
        "sparsemax (Huber)": (fenchel.sparsemax_loss(scores, target, reduction="none"), 2.0),
    }
    for name, (value, alpha) in drawn.items():
        ax.plot(t.numpy(), value.numpy(), color=alpha_colour(alpha), linewidth=2, label=name)
    ax.plot(
        t.numpy(), (1 - t).clamp(min=0).numpy(), "--", color=FAINT, linewidth=1.5, label="hinge"
    )
    style_axes(ax, xlabel="margin t", title="loss of the right class, two classes")
    ax.set(xlim=(-reach, reach), ylim=(-0.05, reach + 1))
    key(ax, "upper right")
    return ax


def alpha_colour(alpha: float) -> Any:
    """The colour of α-entmax in every picture: blue when dense, through green, red when sparse."""
    from matplotlib.colors import LinearSegmentedColormap

    ramp = LinearSegmentedColormap.from_list("alpha", ALPHA_RAMP, N=1024)
    return ramp(min(max(1 - 1 / alpha, 0.0), 1.0))


def colours(names: Mapping[str, Any]) -> list[Any]:
    """The family keeps its colours by name; anything else takes the next free one."""
    family = {"softmax": 1.0, "1.5-entmax": 1.5, "sparsemax": 2.0}
    others = iter(OTHER_COLOURS * (1 + len(names) // len(OTHER_COLOURS)))
    return [alpha_colour(family[name]) if name in family else next(others) for name in names]


def _curve(map: Map, reach: float) -> tuple[Any, Any]:
    t = torch.linspace(-reach, reach, 601, dtype=torch.float64)
    with torch.no_grad():
        return t.numpy(), map(torch.stack((t, torch.zeros_like(t)), -1))[:, 0].numpy()


def _surface(map: Map, reach: float, points: int) -> tuple[Tensor, Tensor, Tensor]:
    t = torch.linspace(-reach, reach, points, dtype=torch.float64)
    t1, t2 = torch.meshgrid(t, t, indexing="ij")
    with torch.no_grad():
        return t1, t2, map(torch.stack((t1, t2, torch.zeros_like(t1)), -1))[..., 0]


def new_figure(width: float, height: float) -> Figure:
    """An empty white figure of this size in inches, outside pyplot; the one place that needs it."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ModuleNotFoundError as missing:
        raise rule(
            "pictures need matplotlib",
            expected="the extra fenchel[plot] (pip install 'fenchel[plot]')",
            got=f"no module {missing.name}",
        ) from missing
    figure = Figure(figsize=(width, height), dpi=120, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def style_axes(ax: Axes, *, xlabel: str = "", title: str = "") -> None:
    """The look that all pictures share: a faint grid, two spines, quiet ticks."""
    ax.set_title(title, color=INK, fontsize=12)
    ax.set_xlabel(xlabel, color=INK)
    ax.grid(True, color=GRID, linewidth=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(FAINT)
    ax.tick_params(colors=FAINT)


def _note(ax: Axes, x: float, y: float, text: str, colour: Any, *, ha: str) -> None:
    """A label inside the axes, which the layout need not make room for."""
    ax.text(x, y, text, color=colour, ha=ha, va="bottom", fontsize=10, in_layout=False)


def key(ax: Axes, where: Literal["upper left", "upper right"]) -> None:
    """The names in the colours of their curves, in the corner that such curves leave empty."""
    ax.legend(loc=where, frameon=False, labelcolor="linecolor", handlelength=1.0, fontsize=10)
