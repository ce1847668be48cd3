"""Surfaces over the plane: probabilities of three scores, densities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from fenchel.checks import check_count, check_number
from fenchel.plot.binary import Map
from fenchel.plot.style import FAINT, GRID, INK, new_figure

if TYPE_CHECKING:
    from mpl_toolkits.mplot3d import Axes3D

NOTHING = (0.87, 0.87, 0.87, 1.0)  # where a surface is exactly zero


def simplex_surface(
    map: Map, *, title: str = "", reach: float = 3.0, points: int = 121, ax: Axes3D | None = None
) -> Axes3D:
    """The surface of p₁ over the scores (t₁, t₂, 0); grey where it is exactly 0."""
    reach = check_number(reach, name="reach", above=0)
    check_count(points, "a surface has points along an axis", least=2)
    if ax is None:
        axes: Any = new_figure(4.6, 4.2).add_subplot(projection="3d")
    else:
        axes = ax
    draw_surface(axes, *surface(map, reach, points), title=title)
    axes.view_init(elev=26, azim=-130)
    axes.set_zlim(0, 1)
    axes.set_xlabel("$t_1$", color=INK, labelpad=-6)
    axes.set_ylabel("$t_2$", color=INK, labelpad=-6)
    axes.set(xticks=(-reach, 0, reach), yticks=(-reach, 0, reach), zticks=(0, 0.5, 1))
    axes.set_box_aspect(None, zoom=0.92)
    return axes


def surface(map: Map, reach: float, points: int) -> tuple[Tensor, Tensor, Tensor]:
    """t₁, t₂, and map([t₁, t₂, 0])₁."""
    t = torch.linspace(-reach, reach, points, dtype=torch.float64)
    t1, t2 = torch.meshgrid(t, t, indexing="ij")
    with torch.no_grad():
        return t1, t2, map(torch.stack((t1, t2, torch.zeros_like(t1)), -1))[..., 0]


def draw_surface(axes: Any, x: Tensor, y: Tensor, z: Tensor, *, title: str, top: float = 1) -> None:
    """z over (x, y), coloured by its share of `top`, grey where all corners of a face are 0."""
    from matplotlib import colormaps

    corners = torch.stack((z[:-1, :-1], z[1:, :-1], z[:-1, 1:], z[1:, 1:]))
    faces = colormaps["viridis"](0.1 + 0.85 * (corners.mean(0) / top).numpy())
    faces[(corners == 0).all(0).numpy()] = NOTHING
    axes.plot_surface(
        x.numpy(), y.numpy(), z.numpy(), facecolors=faces, rstride=1, cstride=1,
        linewidth=0, antialiased=False, shade=False,
    )  # fmt: skip
    axes.set_title(title, color=INK, fontsize=12, pad=0)
    for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
        axis.pane.set_visible(False)
        axis._axinfo["grid"]["color"] = GRID
    axes.tick_params(labelsize=8, labelcolor=FAINT, pad=-2)
