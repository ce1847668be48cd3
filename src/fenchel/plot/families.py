"""Ω_α-regularized densities, dense and sparse: figure 1 of the 2020 paper."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.distributions import Distribution, Laplace, MultivariateNormal, Normal

from fenchel.plot.attended import POINTS, heights
from fenchel.plot.style import alpha_colour, new_figure, style_axes
from fenchel.plot.surfaces import draw_surface

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def densities(*, figure: Figure | None = None) -> Figure:
    """Figure 1 of the paper: Ω_α-regularized densities for α = 1 and α = 2, in one and two dimensions."""
    from fenchel import continuous

    figure = new_figure(11.0, 4.2) if figure is None else figure
    grid = figure.add_gridspec(2, 3, width_ratios=(1.1, 1, 1))
    zero, one = torch.tensor(0.0, dtype=torch.float64), torch.tensor(1.0, dtype=torch.float64)
    pairs = (
        (
            "Gaussian",
            Normal(zero, one),
            "truncated parabola",
            continuous.TruncatedParabola(zero, one),
        ),
        ("Laplace", Laplace(zero, one), "triangular", continuous.Triangular(zero, one)),
    )
    t = torch.linspace(-3, 3, POINTS, dtype=torch.float64)
    for row, (dense_name, dense, sparse_name, sparse) in enumerate(pairs):
        ax = figure.add_subplot(grid[row, 0])
        for name, density, alpha in ((dense_name, dense, 1.0), (sparse_name, sparse, 2.0)):
            label = f"{name} (α = {alpha:g})"
            height, colour = heights(density, t).numpy(), alpha_colour(alpha)
            ax.plot(t.numpy(), height, color=colour, linewidth=2, label=label)
        style_axes(ax)
        ax.set(xlim=(-3, 3), ylim=(0, 1.45 if row else 0.95))
        ax.legend(
            loc="upper right", frameon=False, labelcolor="linecolor", handlelength=1, fontsize=8
        )
    origin, eye = torch.zeros(2, dtype=torch.float64), torch.eye(2, dtype=torch.float64)
    planes = (
        (r"$\mathcal{N}(t;\,0,\,I)$", MultivariateNormal(origin, eye)),
        (r"$\mathrm{TP}(t;\,0,\,I)$", continuous.TruncatedParaboloid(origin, eye)),
    )
    for column, (title, density) in enumerate(planes, start=1):
        _surface(figure.add_subplot(grid[:, column], projection="3d"), density, title)
    return figure


def _surface(axes: Any, density: Distribution, title: str) -> None:
    t = torch.linspace(-2.5, 2.5, 101, dtype=torch.float64)
    x, y = torch.meshgrid(t, t, indexing="xy")
    height = heights(density, torch.stack((x, y), -1))
    draw_surface(axes, x, y, height, title=title, top=float(height.max()))
    axes.set(zlim=(0, 0.6), xticks=(-2, 0, 2), yticks=(-2, 0, 2), zticks=(0, 0.2, 0.4, 0.6))
    axes.view_init(elev=28, azim=-60)
    axes.set_box_aspect(None, zoom=0.95)
