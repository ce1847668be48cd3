"""Curves of maps and losses of two scores, and α-entmax from dense to sparse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch.nn import functional

import fenchel
from fenchel.checks import check_number
from fenchel.plot.inputs import Map, apply_map, as_named_maps, as_numbers
from fenchel.plot.style import (
    FAINT,
    GRID,
    INK,
    add_label,
    add_legend,
    alpha_colour,
    colours,
    line_styles,
    new_figure,
    requires_matplotlib,
    style_axes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ALPHAS = (1.0, 1.25, 1.5, 2.0, 4.0)
SCORES = (0.1, -0.7, 1.5, 1.0, -1.3, 0.7, 1.4, -0.3, 0.4)
MAX_TICK_CHARACTERS = 48  # that fit below the bars


@requires_matplotlib
def curves(maps: Mapping[str, Map], *, reach: float = 3.0, ax: Axes | None = None) -> Axes:
    """Draw t ↦ map([t, 0])₁ for every map of a dictionary from names to maps."""
    maps, reach = as_named_maps(maps), check_number(reach, name="reach", above=0)
    ax = new_figure(5.6, 4.0).subplots() if ax is None else ax
    for name, colour, line in zip(maps, colours(maps), line_styles(maps), strict=True):
        t, p = _curve(maps[name], reach)
        ax.plot(t, p, line, color=colour, linewidth=2, label=name)
    style_axes(ax, xlabel="score t", title=r"$p_1$ for the scores $[t,\,0]$")
    ax.set(xlim=(-reach, reach), ylim=(-0.02, 1.04), yticks=(0, 0.5, 1))
    add_legend(ax, "upper left")
    return ax


@requires_matplotlib
def losses(*, reach: float = 3.0, ax: Axes | None = None) -> Axes:
    """Draw the losses of a binary decision with margin t: scores [t, 0], the first class is correct.

    For t ≥ 1/(α−1) the α-entmax loss is exactly zero; the sparsemax loss is the modified Huber loss.
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
    hinge = (1 - t).clamp(min=0)
    ax.plot(t.numpy(), hinge.numpy(), "--", color=FAINT, linewidth=1.5, label="hinge")
    style_axes(ax, xlabel="margin t", title="loss of the correct class, two classes")
    ax.set(xlim=(-reach, reach), ylim=(-0.05, reach + 1))
    add_legend(ax, "upper right")
    return ax


@requires_matplotlib
def alpha_sweep(
    alphas: Sequence[float] = ALPHAS,
    scores: Sequence[float] = SCORES,
    *,
    figure: Figure | None = None,
) -> Figure:
    """Draw α-entmax from dense to sparse: `alpha_curves` on the left, `alpha_bars` on the right."""
    alphas, scores = as_numbers(alphas, "alphas"), as_numbers(scores, "scores")
    figure = new_figure(10.0, 4.0) if figure is None else figure
    left, right = figure.subplots(1, 2, gridspec_kw={"width_ratios": (1.0, 1.05)})
    alpha_curves(alphas, ax=left)
    alpha_bars(alphas, scores, ax=right)
    return figure


@requires_matplotlib
def alpha_curves(alphas: Sequence[float] = ALPHAS, *, ax: Axes | None = None) -> Axes:
    """Draw t ↦ entmax_α([t, 0])₁ for several α; dots mark where it reaches exactly 0 or 1.

    Each curve is labelled with its α, or a legend is added if the labels would overlap.
    """
    alphas = as_numbers(alphas, "alphas")
    ax = new_figure(5.2, 4.0).subplots() if ax is None else ax
    reach = 1.15 * max([3.0, *(1 / (a - 1) for a in alphas if a >= 1.2)])
    first, labels, xlabel = True, [], "score t"
    for alpha in sorted(alphas, reverse=True):
        colour = alpha_colour(alpha)
        t, p = _curve(lambda x, alpha=alpha: fenchel.entmax(x, alpha), reach)
        ax.plot(t, p, color=colour, linewidth=2, label=f"α = {alpha:g}")
        edge = 1 / (alpha - 1) if alpha > 1 else reach
        text = f"α = {alpha:g}" if first else f"{alpha:g}"
        if edge < reach:
            ax.plot([-edge, edge], [0, 1], "o", color=colour, markersize=5, zorder=3, clip_on=False)
            xlabel = "score t (dots: reaches exactly 0 or 1)"
            ha = "right" if first else "center"
            labels.append(_Label(edge + 0.15 * first, 1.035, text, colour, ha))
        else:
            text = f"{text} (softmax)" if alpha == 1 else text
            labels.append(_Label(reach, float(p[-1]) - 0.11, text, colour, "right"))
        first = False
    if _overlap(labels, 0.035 * reach):
        add_legend(ax, "upper left")
    else:
        for label in labels:
            add_label(ax, label.x, label.y, label.text, label.colour, ha=label.ha)
    style_axes(ax, xlabel=xlabel, title=r"$\mathrm{entmax}_\alpha([t,\,0])_1$")
    ax.set(xlim=(-reach, reach), ylim=(-0.02, 1.14), yticks=(0, 0.5, 1))
    return ax


@requires_matplotlib
def alpha_bars(
    alphas: Sequence[float] = ALPHAS, scores: Sequence[float] = SCORES, *, ax: Axes | None = None
) -> Axes:
    """Draw entmax_α of one score vector for growing α, one row of bars per α.

    A grey dot marks a probability that is exactly zero.
    """
    alphas, scores = as_numbers(alphas, "alphas"), as_numbers(scores, "scores")
    ax = new_figure(5.2, 4.0).subplots() if ax is None else ax
    x = torch.tensor(scores, dtype=torch.float64)
    margin = len(x) / len(SCORES)  # keeps the text at the sides in proportion to the axes
    place = torch.arange(len(x)).numpy()
    rows = {alpha: fenchel.entmax(x, alpha) for alpha in sorted(alphas)}
    step = 1.12 * max(float(p.max()) for p in rows.values())
    for depth, (alpha, p) in enumerate(rows.items()):
        base, colour = -step * depth, alpha_colour(alpha)
        ax.axhline(base, color=GRID, linewidth=1, zorder=0)
        ax.bar(place, p.numpy(), bottom=base, width=0.72, color=colour)
        zeros = place[(p == 0).numpy()]
        at_base = [base] * len(zeros)
        ax.plot(zeros, at_base, ".", color=FAINT, markersize=4, clip_on=False, in_layout=False)
        add_label(
            ax, -0.5 - 0.25 * margin, base + 0.06 * step, f"α = {alpha:g}", colour, ha="right"
        )
        count = f"{len(x) - len(zeros)} of {len(x)}"
        add_label(ax, len(x) - 0.5 + 0.25 * margin, base + 0.06 * step, count, colour, ha="left")
    add_label(ax, len(x) - 0.5 + 0.25 * margin, 0.5 * step, "non-zero", FAINT, ha="left")
    style_axes(ax, title="one score vector, growing α")
    ticks = [f"{round(score, 2):g}" for score in scores]
    every = 1 + len(x) * max(map(len, ticks)) // MAX_TICK_CHARACTERS
    ax.set_xticks(place[::every], ticks[::every], fontsize=9, color=FAINT)
    ax.set(xlim=(-0.5 - 2.1 * margin, len(x) - 0.5 + 2.2 * margin))
    ax.set(ylim=(-step * (len(rows) - 1) - 0.02, step), yticks=())
    has_zeros = any(bool((p == 0).any()) for p in rows.values())
    ax.set_xlabel("scores (grey dots: exactly 0)" if has_zeros else "scores", color=INK)
    ax.grid(False)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    return ax


def _curve(map: Map, reach: float) -> tuple[Any, Any]:
    """Return t and map([t, 0])₁."""
    t = torch.linspace(-reach, reach, 601, dtype=torch.float64)
    scores = torch.stack((t, torch.zeros_like(t)), -1)
    return t.numpy(), apply_map(map, scores)[:, 0].numpy()


class _Label(NamedTuple):
    x: float
    y: float
    text: str
    colour: Any
    ha: str

    def span(self, character: float) -> tuple[float, float]:
        """Return the left and right end of the text, for characters of this width."""
        width = character * len(self.text)
        left = self.x - (width if self.ha == "right" else width / 2)
        return left, left + width


def _overlap(labels: list[_Label], character: float) -> bool:
    """Whether two labels overlap, for characters of this width."""
    for one, other in combinations(labels, 2):
        (left, right), (start, end) = one.span(character), other.span(character)
        if abs(one.y - other.y) < 0.06 and left < end and start < right:
            return True
    return False
