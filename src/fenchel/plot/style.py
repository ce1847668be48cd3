"""The style of all figures: colours, new figures, axes, legends, images of weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar

import torch
from torch import Tensor

from fenchel.extras import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

Arguments = ParamSpec("Arguments")
Drawing = TypeVar("Drawing")

INK, FAINT, GRID = "#333333", "#8c8c8c", "#e6e6e6"
ROTATED_WORD_WIDTH = 0.22  # inches that a rotated word below an axis takes
# Colours of α-entmax at 1 − 1/α, from dense (0) to one-hot (1): softmax is blue, sparsemax red.
ALPHA_RAMP = (
    (0.0, "#2166ac"),
    (0.2, "#2a9fb5"),
    (1 / 3, "#3a9d5d"),
    (0.5, "#d7301f"),
    (1, "#6a1b4d"),
)
OTHER_COLOURS = ("#7b5fb2", "#b8860b", "#5f6b73", "#c2569b")


def requires_matplotlib(draw: Callable[Arguments, Drawing]) -> Callable[Arguments, Drawing]:
    """Make a function check that matplotlib is installed before it does anything else."""

    @wraps(draw)
    def checked(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Drawing:
        require("matplotlib", extra="plot")
        return draw(*args, **kwargs)

    return checked


def new_figure(width: float, height: float) -> Figure:
    """Create an empty white figure of this size in inches, without pyplot."""
    canvas = require("matplotlib.backends.backend_agg", extra="plot").FigureCanvasAgg
    Figure = require("matplotlib.figure", extra="plot").Figure
    figure = Figure(figsize=(width, height), dpi=120, facecolor="white", layout="constrained")
    canvas(figure)
    return figure


def alpha_colour(alpha: float) -> Any:
    """Return the colour of α-entmax in all figures: blue if dense, through green, red if sparse."""
    from matplotlib.colors import LinearSegmentedColormap

    ramp = LinearSegmentedColormap.from_list("alpha", ALPHA_RAMP, N=1024)
    return ramp(min(max(1 - 1 / alpha, 0.0), 1.0))


def colours(names: Mapping[str, Any]) -> list[Any]:
    """Return a colour per name: that of its α for softmax, 1.5-entmax and sparsemax."""
    family = {"softmax": 1.0, "1.5-entmax": 1.5, "sparsemax": 2.0}
    others = iter(OTHER_COLOURS * (1 + len(names) // len(OTHER_COLOURS)))
    return [alpha_colour(family[name]) if name in family else next(others) for name in names]


def line_styles(names: Mapping[str, Any]) -> list[str]:
    """Return a line style per name, so that lines of the same colour differ."""
    styles, uses = ("-", "--", ":", "-."), {}
    chosen = []
    for colour in map(tuple, colours(names)):
        uses[colour] = uses.get(colour, -1) + 1
        chosen.append(styles[uses[colour] % len(styles)])
    return chosen


def style_axes(ax: Axes, *, xlabel: str = "", title: str = "") -> None:
    """Set the title, the label, a faint grid, two spines and grey ticks."""
    ax.set_title(title, color=INK, fontsize=12)
    ax.set_xlabel(xlabel, color=INK)
    ax.grid(True, color=GRID, linewidth=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(FAINT)
    ax.tick_params(colors=FAINT)


def add_label(ax: Axes, x: float, y: float, text: str, colour: Any, *, ha: str) -> None:
    """Write a text inside the axes that the layout makes no room for."""
    ax.text(x, y, text, color=colour, ha=ha, va="bottom", fontsize=10, in_layout=False)


def add_legend(ax: Axes, location: Literal["upper left", "upper right"], size: float = 10) -> None:
    """Add a legend without a frame, with names in the colours of their lines."""
    ax.legend(loc=location, frameon=False, labelcolor="linecolor", handlelength=1.0, fontsize=size)


def draw_weights(ax: Axes, weights: Tensor, largest: float) -> AxesImage:
    """Draw weights (rows, columns) as an image, on a scale from 0 to `largest`; zeros are white."""
    blank_zeros = torch.where(weights > 0, weights, torch.nan)
    return ax.imshow(blank_zeros.numpy(), cmap=_weight_colours(), vmin=0, vmax=largest)


def add_colour_bar(image: AxesImage, axes: Any, label: str) -> None:
    """Add the colour bar of an image beside an axes or several axes."""
    figure: Any = image.get_figure()
    bar = figure.colorbar(image, ax=axes, pad=0.015, aspect=15)
    bar.outline.set_visible(False)
    bar.set_label(label, color=INK, fontsize=9)
    bar.ax.tick_params(labelsize=8, colors=FAINT, length=0)


def _weight_colours() -> Colormap:
    """Return the colour map of weights: exact zeros (NaN) are white, small weights light blue."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    visible = torch.linspace(0.15, 1.0, 256).numpy()  # 0 would be white as well
    return ListedColormap(colormaps["Blues"](visible)).with_extremes(bad="white")
