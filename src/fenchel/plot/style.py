"""The look that all pictures share: colours, an empty figure, quiet axes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from fenchel.extras import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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


def strokes(names: Mapping[str, Any]) -> list[str]:
    """Where a colour comes again its lines are dashed, dotted, or both."""
    kinds, seen = ("-", "--", ":", "-."), {}
    drawn = []
    for colour in map(tuple, colours(names)):
        seen[colour] = seen.get(colour, -1) + 1
        drawn.append(kinds[seen[colour] % len(kinds)])
    return drawn


def new_figure(width: float, height: float) -> Figure:
    """An empty white figure of this size in inches, outside pyplot; the one place that needs it."""
    canvas = require("matplotlib.backends.backend_agg", extra="plot").FigureCanvasAgg
    Figure = require("matplotlib.figure", extra="plot").Figure
    figure = Figure(figsize=(width, height), dpi=120, facecolor="white", layout="constrained")
    canvas(figure)
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


def note(ax: Axes, x: float, y: float, text: str, colour: Any, *, ha: str) -> None:
    """A label inside the axes, which the layout need not make room for."""
    ax.text(x, y, text, color=colour, ha=ha, va="bottom", fontsize=10, in_layout=False)


def key(ax: Axes, where: Literal["upper left", "upper right"]) -> None:
    """The names in the colours of their curves, in the corner that such curves leave empty."""
    ax.legend(loc=where, frameon=False, labelcolor="linecolor", handlelength=1.0, fontsize=10)
