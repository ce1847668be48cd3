"""The ratios as one picture: maps as lines over the columns, losses as bars; a row of panels a dtype."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarks.registry import COPY
from benchmarks.rows import Row
from fenchel.plot import FAINT, INK, alpha_colour, new_figure, style_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Style:
    """How an operation is drawn; what has no style is in the tables alone."""

    label: str
    colour: Callable[[], Any]
    line: Any = "-"


def _ours(label: str, alpha: float) -> Style:
    return Style(label, lambda: alpha_colour(alpha))


def _theirs(label: str, line: Any = "-") -> Style:
    return Style(label, lambda: FAINT, line)


STYLES = {
    COPY: Style("a copy of the scores", lambda: INK, ":"),
    "fenchel.sparsemax": _ours("sparsemax", 2.0),
    "fenchel.entmax(1.5)": _ours("1.5-entmax", 1.5),
    "fenchel.entmax(1.3)": _ours("1.3-entmax", 1.3),
    "fenchel.entmax(1.75)": _ours("1.75-entmax", 1.75),
    "fenchel.entmax(α a row)": Style("one learned α a row", lambda: "#b8860b"),
    "adasplash.triton_entmax(1.5)": _theirs("adasplash, 1.5-entmax", "-."),
    "entmax.entmax15(k=100)": _theirs("package entmax, 1.5, k = 100", "--"),
    "entmax.entmax15": _theirs("package entmax, 1.5", (0, (1, 1))),
    "fenchel.sparsemax_loss": _ours("sparsemax", 2.0),
    "fenchel.entmax_loss(1.5)": _ours("1.5-entmax", 1.5),
    "fenchel.entmax_loss(1.3)": _ours("1.3-entmax", 1.3),
    "entmax.entmax15_loss(k=100)": _theirs("package entmax, 1.5, k = 100"),
    "entmax.entmax15_loss": _theirs("package entmax, 1.5"),
}


def ratio_picture(rows: Sequence[Row]) -> Figure:
    """Ratios to torch.softmax and F.cross_entropy: the medians of one run."""
    drawn = [row for row in rows if _is_drawn(row)]
    kinds = list(dict.fromkeys(_kind(row) for row in drawn))
    dtypes = list(dict.fromkeys(row.dtype for row in drawn))
    figure = new_figure(4.2 * max(len(kinds), 1) + 2.6, 3.4 * max(len(dtypes), 1) + 0.4)
    panels: Any = figure.subplots(max(len(dtypes), 1), max(len(kinds), 1), squeeze=False)
    for line, dtype in zip(panels, dtypes, strict=False):
        for ax, kind in zip(line, kinds, strict=False):
            some = [row for row in drawn if row.dtype == dtype and _kind(row) == kind]
            if some:
                draw = _bars if some[0].family == "losses" else _lines
                draw(ax, some, f"{kind}, {dtype}")
    if drawn:
        _legend(figure, panels[0])
    return figure


def _is_drawn(row: Row) -> bool:
    """Losses only with their gradients: that is what they are for."""
    shown = row.operation in STYLES and row.clock == "device" and row.ratio_q50 is not None
    return shown and (row.family != "losses" or row.direction == "forward+backward")


def _kind(row: Row) -> str:
    return f"{row.family}, {row.direction}"


def _lines(ax: Axes, rows: Sequence[Row], title: str) -> None:
    """Time over torch.softmax's by the columns."""
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.axhline(1, color=FAINT, linewidth=1)
    for operation, style in STYLES.items():
        some = sorted((r for r in rows if r.operation == operation), key=lambda row: row.columns)
        if some:
            ax.plot(
                [row.columns for row in some],
                [row.ratio_q50 or 0.0 for row in some],
                linestyle=style.line,
                marker="o",
                markersize=4,
                color=style.colour(),
                label=style.label,
            )
    ax.yaxis.set_major_formatter("{x:g}×")
    ticks = sorted({row.columns for row in rows})
    ax.set_xticks(ticks, [f"{c}" if c < 1000 else f"{c // 1000}k" for c in ticks])
    ax.minorticks_off()
    style_axes(ax, xlabel="columns; 1× is torch.softmax", title=title)


def _bars(ax: Axes, rows: Sequence[Row], title: str) -> None:
    """Time over F.cross_entropy's, a bar a shape."""
    shapes = sorted({(row.columns, row.shape) for row in rows})
    operations = [o for o in STYLES if any(row.operation == o for row in rows)]
    height = 0.8 / max(len(shapes), 1)
    for i, (_, shape) in enumerate(shapes):
        for row in (row for row in rows if row.shape == shape):
            place = operations.index(row.operation) + (i - (len(shapes) - 1) / 2) * height
            length, colour = row.ratio_q50 or 0.0, STYLES[row.operation].colour()
            ax.barh(place, length, 0.9 * height, color=colour, alpha=1 - 0.35 * i)
            ax.text(length, place, f" {length:.2g}× ({shape})", va="center", fontsize=7, color=INK)
    ax.axvline(1, color=FAINT, linewidth=1)
    ax.set_yticks(range(len(operations)), [STYLES[o].label for o in operations], fontsize=8)
    ax.invert_yaxis()
    longest = max(row.ratio_q50 or 0.0 for row in rows)
    ax.set_xscale("log")
    ax.set_xlim(0.05, longest * 30)
    ax.xaxis.set_major_formatter("{x:g}×")
    style_axes(ax, xlabel="1× is F.cross_entropy", title=title)


def _legend(figure: Figure, panels: Sequence[Axes]) -> None:
    named = {
        label: handle
        for ax in panels
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)
    }
    figure.legend(
        list(named.values()), list(named), loc="outside right upper", frameon=False,
        labelcolor="linecolor", fontsize=9,
    )  # fmt: skip
