"""Maps and losses of two scores [t, 0]."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import functional

import fenchel
from fenchel.checks import check_number
from fenchel.errors import rule
from fenchel.plot.given import named_maps
from fenchel.plot.style import (
    FAINT,
    alpha_colour,
    colours,
    key,
    new_figure,
    strokes,
    style_axes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Map = Callable[[Tensor], Tensor]


def curves(maps: Mapping[str, Map], *, reach: float = 3.0, ax: Axes | None = None) -> Axes:
    """t ↦ map([t, 0])₁ for every map of a dictionary from names to maps."""
    maps, reach = named_maps(maps), check_number(reach, name="reach", above=0)
    ax = new_figure(5.6, 4.0).subplots() if ax is None else ax
    for name, colour, stroke in zip(maps, colours(maps), strokes(maps), strict=True):
        t, p = curve(maps[name], reach)
        ax.plot(t, p, stroke, color=colour, linewidth=2, label=name)
    style_axes(ax, xlabel="score t", title=r"$p_1$ for the scores $[t,\,0]$")
    ax.set(xlim=(-reach, reach), ylim=(-0.02, 1.04), yticks=(0, 0.5, 1))
    key(ax, "upper left")
    return ax


def losses(*, reach: float = 3.0, ax: Axes | None = None) -> Axes:
    """The losses of a binary decision with margin t: scores [t, 0], the first class is right.

    With t ≥ 1/(α−1) the α-entmax loss is exactly zero; sparsemax's is the modified Huber loss.
    """
    reach = check_number(reach, name="reach", above=0)
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


def curve(map: Map, reach: float) -> tuple[Any, Any]:
    """t, and map([t, 0])₁."""
    t = torch.linspace(-reach, reach, 601, dtype=torch.float64)
    scores = torch.stack((t, torch.zeros_like(t)), -1)
    with torch.no_grad():
        p = map(scores)
    if not isinstance(p, Tensor) or p.shape != scores.shape:
        got = tuple(p.shape) if isinstance(p, Tensor) else type(p).__name__
        raise rule("a map gives every score a weight", expected=tuple(scores.shape), got=got)
    return t.numpy(), p[:, 0].numpy()
