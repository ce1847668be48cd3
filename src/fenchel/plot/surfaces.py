"""Surfaces over the plane: the probabilities of three scores, and densities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from fenchel.checks import check_count, check_number
from fenchel.errors import FenchelError
from fenchel.plot.inputs import Map, apply_map
from fenchel.plot.style import FAINT, GRID, INK, new_figure, requires_matplotlib

if TYPE_CHECKING:
    from mpl_toolkits.mplot3d import Axes3D

ZERO_GREY = (0.87, 0.87, 0.87, 1.0)  # where a surface is exactly zero


@requires_matplotlib
def simplex_surface(
    map: Map,
    *,
    entry: int = 1,
    title: str = "",
    reach: float = 3.0,
    points: int = 121,
    ax: Axes3D | None = None,
) -> Axes3D:
    """Draw one of p₁, p₂, p₃ as a surface over the scores (t₁, t₂, 0); exact zeros are grey.

    Args:
        map: The map from scores to probabilities.
        entry: Which of the three probabilities is drawn: 1, 2 or 3.
        title: The title of the axes.
        reach: t₁ and t₂ lie between −reach and reach.
        points: The number of points per axis.
        ax: The 3-d axes to draw on; a new figure by default.
    """
    if entry not in (1, 2, 3):
        raise FenchelError(f"entry must be 1, 2 or 3, got {entry!r}")
    reach = check_number(reach, name="reach", above=0)
    check_count(points, "points", least=2)
    if ax is None:
        axes: Any = new_figure(4.6, 4.2).add_subplot(projection="3d")
    else:
        axes = ax
    draw_surface(axes, *surface(map, reach, points, entry), title=title)
    axes.view_init(elev=26, azim=-130)
    axes.set_zlim(0, 1)
    axes.set_xlabel("$t_1$", color=INK, labelpad=-6)
    axes.set_ylabel("$t_2$", color=INK, labelpad=-6)
    axes.set(xticks=(-reach, 0, reach), yticks=(-reach, 0, reach), zticks=(0, 0.5, 1))
    axes.set_box_aspect(None, zoom=0.92)
    return axes


def surface(map: Map, reach: float, points: int, entry: int = 1) -> tuple[Tensor, Tensor, Tensor]:
    """Return t₁, t₂, and the given entry of map([t₁, t₂, 0])."""
    t = torch.linspace(-reach, reach, points, dtype=torch.float64)
    t1, t2 = torch.meshgrid(t, t, indexing="ij")
    scores = torch.stack((t1, t2, torch.zeros_like(t1)), -1)
    return t1, t2, apply_map(map, scores)[..., entry - 1]


def draw_surface(axes: Any, x: Tensor, y: Tensor, z: Tensor, *, title: str, top: float = 1) -> None:
    """Draw z over (x, y), coloured by z / top; faces whose corners are all zero are grey."""
    from matplotlib import colormaps

    corners = torch.stack((z[:-1, :-1], z[1:, :-1], z[:-1, 1:], z[1:, 1:]))
    faces = colormaps["viridis"](0.1 + 0.85 * (corners.mean(0) / top).numpy())
    faces[(corners == 0).all(0).numpy()] = ZERO_GREY
    axes.plot_surface(
        x.numpy(), y.numpy(), z.numpy(), facecolors=faces, rstride=1, cstride=1,
        linewidth=0, antialiased=False, shade=False,
    )  # fmt: skip
    axes.set_title(title, color=INK, fontsize=12, pad=0)
    for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
        axis.pane.set_visible(False)
        axis._axinfo["grid"]["color"] = GRID
    axes.tick_params(labelsize=8, labelcolor=FAINT, pad=-2)
