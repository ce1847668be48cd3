"""α-entmax from dense to sparse: curves of two scores, bars of one score vector."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

import fenchel
from fenchel.plot.binary import curve
from fenchel.plot.given import numbers
from fenchel.plot.style import FAINT, GRID, INK, alpha_colour, key, new_figure, note, style_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ALPHAS = (1.0, 1.25, 1.5, 2.0, 4.0)
SCORES = (0.1, -0.7, 1.5, 1.0, -1.3, 0.7, 1.4, -0.3, 0.4)
LETTERS = 48  # as many fit below the bars


class _Note(NamedTuple):
    x: float
    y: float
    text: str
    colour: Any
    ha: str

    def span(self, letter: float) -> tuple[float, float]:
        """From where to where the text goes, if a letter is so wide."""
        wide = letter * len(self.text)
        left = self.x - (wide if self.ha == "right" else wide / 2)
        return left, left + wide


def alpha_sweep(
    alphas: Sequence[float] = ALPHAS,
    scores: Sequence[float] = SCORES,
    *,
    figure: Figure | None = None,
) -> Figure:
    """α-entmax from dense to sparse: of two scores as curves, of one score vector as bars."""
    alphas, scores = numbers(alphas, "alphas"), numbers(scores, "scores")
    figure = new_figure(10.0, 4.0) if figure is None else figure
    left, right = figure.subplots(1, 2, gridspec_kw={"width_ratios": (1.0, 1.05)})
    alpha_curves(alphas, ax=left)
    alpha_bars(alphas, scores, ax=right)
    return figure


def alpha_curves(alphas: Sequence[float] = ALPHAS, *, ax: Axes | None = None) -> Axes:
    """t ↦ entmax_α([t, 0])₁ for several α; dots mark where a probability becomes exactly 0 or 1.

    The α stand at their curves, in a corner where that would be too narrow.
    """
    alphas = numbers(alphas, "alphas")
    ax = new_figure(5.2, 4.0).subplots() if ax is None else ax
    reach = 1.15 * max([3.0, *(1 / (a - 1) for a in alphas if a >= 1.2)])
    first, notes = True, []
    for alpha in sorted(alphas, reverse=True):
        colour = alpha_colour(alpha)
        t, p = curve(lambda x, alpha=alpha: fenchel.entmax(x, alpha), reach)
        ax.plot(t, p, color=colour, linewidth=2, label=f"α = {alpha:g}")
        edge = 1 / (alpha - 1) if alpha > 1 else reach
        name = f"α = {alpha:g}" if first else f"{alpha:g}"
        if edge < reach:
            ax.plot([-edge, edge], [0, 1], "o", color=colour, markersize=5, zorder=3, clip_on=False)
            ha = "right" if first else "center"
            notes.append(_Note(edge + 0.15 * first, 1.035, name, colour, ha))
        else:
            name = f"{name} (softmax)" if alpha == 1 else name
            notes.append(_Note(reach, float(p[-1]) - 0.11, name, colour, "right"))
        first = False
    if _apart(notes, reach):
        for each in notes:
            note(ax, each.x, each.y, each.text, each.colour, ha=each.ha)
    else:
        key(ax, "upper left")
    style_axes(ax, xlabel="score t", title=r"$\mathrm{entmax}_\alpha([t,\,0])_1$")
    ax.set(xlim=(-reach, reach), ylim=(-0.02, 1.14), yticks=(0, 0.5, 1))
    return ax


def alpha_bars(
    alphas: Sequence[float] = ALPHAS, scores: Sequence[float] = SCORES, *, ax: Axes | None = None
) -> Axes:
    """One score vector mapped with growing α, a row of bars each; a zero has no bar, only a dot."""
    alphas, scores = numbers(alphas, "alphas"), numbers(scores, "scores")
    ax = new_figure(5.2, 4.0).subplots() if ax is None else ax
    x = torch.tensor(scores, dtype=torch.float64)
    margin = len(x) / len(SCORES)  # of the axes, not of a bar
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
        note(ax, -0.5 - 0.25 * margin, base + 0.06 * step, f"α = {alpha:g}", colour, ha="right")
        count = f"{len(x) - len(gone)} of {len(x)}"
        note(ax, len(x) - 0.5 + 0.25 * margin, base + 0.06 * step, count, colour, ha="left")
    note(ax, len(x) - 0.5 + 0.25 * margin, 0.5 * step, "non-zero", FAINT, ha="left")
    style_axes(ax, title="one score vector, growing α")
    names = [f"{round(score, 2):g}" for score in scores]
    every = 1 + len(x) * max(map(len, names)) // LETTERS
    ax.set_xticks(place[::every], names[::every], fontsize=9, color=FAINT)
    ax.set(xlim=(-0.5 - 2.1 * margin, len(x) - 0.5 + 2.2 * margin))
    ax.set(ylim=(-step * (len(rows) - 1) - 0.02, step), yticks=())
    ax.set_xlabel("scores", color=INK)
    ax.grid(False)
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    return ax


def _apart(notes: list[_Note], reach: float) -> bool:
    """Whether no two notes lie over each other."""
    for one, other in combinations(notes, 2):
        (left, right), (start, end) = one.span(0.035 * reach), other.span(0.035 * reach)
        if abs(one.y - other.y) < 0.06 and left < end and start < right:
            return False
    return True
