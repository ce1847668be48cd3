"""Pictures of sparse search: the figures 1 and 2 of Peters, Niculae and Martins (2019)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fenchel.errors import rule

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from fenchel.search import Answer, Completion, CompletionStep, Lattice
    from fenchel.search.labels import Label, Symbols

BLUE, LIGHT = "#2166ac", "#a9c4de"
LETTER, END = 0.13, "■"


def lattice(
    lattice: Lattice | Answer, symbols: Symbols, *, title: str = "", ax: Axes | None = None
) -> Axes:
    """All sequences of an answer, from left to right, with what they share drawn once.

    Conditional probabilities stand at the forks, those of whole sequences at the ends; a line is
    as thick as what goes along it is probable. A sequence that was cut ends with an ellipsis.
    """
    from fenchel import plot
    from fenchel.search import Answer, Lattice
    from fenchel.search.labels import labels, percent

    if not isinstance(lattice, Lattice | Answer):
        expected, got = "an Answer of a search, or a Lattice", type(lattice).__name__
        raise rule("an answer is drawn", expected=expected, got=got)
    drawn = Lattice.of(lattice) if isinstance(lattice, Answer) else lattice
    name, following = labels(symbols), drawn.following()
    heights, places = _heights(drawn), _places(drawn, name)
    rows, ends = 1 + max(heights.values()), _end_places(drawn, places, name)
    right = max([places[-1], *ends.values()])
    if ax is None:
        ax = plot.new_figure(1.2 + right, 0.5 + 0.5 * rows).subplots()
    for edge in drawn.edges:
        depths = [len(drawn.nodes[edge.source]), len(drawn.nodes[edge.target])]
        x, y = [places[d] for d in depths], [heights[edge.source], heights[edge.target]]
        if edge.token is None:
            continue
        _line(ax, x, y, edge.mass)
        ax.text(
            x[1], y[1], name(edge.token), ha="center", va="center", fontsize=11, color=plot.INK,
            parse_math=False,
            bbox={"boxstyle": "round,pad=0.25", "facecolor": "white", "edgecolor": BLUE}, zorder=3,
        )  # fmt: skip
        if len(following[edge.source]) > 1:
            middle = (x[1] - 0.16 - _width(name(edge.token)) / 2, y[1] - 0.12)
            ax.text(*middle, percent(edge.probability), ha="right", fontsize=8, color=plot.FAINT)
    _ends(ax, drawn, places, heights, ends)
    ax.set_title(title, color=plot.INK, fontsize=12, parse_math=False)
    ax.set(xlim=(-0.2, right + 0.9), ylim=(rows - 0.4, -0.6))
    ax.axis("off")
    return ax


def autocompletion(
    completion: Completion, symbols: Symbols, *, eos: int = 2, ax: Axes | None = None
) -> Axes:
    """What a model thinks possible at every step: a column a step, the token taken in bold.

    Consecutive steps at which only one token is possible share one border: they could be
    completed at once. The darker a box, the more probable its token; tokens of probability zero
    are not there, and a plus sign counts those that have no box.
    """
    from fenchel import plot
    from fenchel.search import Completion
    from fenchel.search.labels import labels

    if not isinstance(completion, Completion) or not completion.steps:
        told = "no steps" if isinstance(completion, Completion) else type(completion).__name__
        raise rule("a completion is drawn step by step", expected="a Completion", got=told)
    known = labels(symbols)

    def name(token: int) -> str:
        return END if token == eos else known(token)

    columns = [_column(step) for step in completion.steps]
    widths = [0.3 + max(_width(name(t)) for t, _ in column) for column in columns]
    rows = 1 + max(map(len, columns))
    if ax is None:
        ax = plot.new_figure(0.4 + sum(widths), 0.3 + 0.36 * rows).subplots()
    x, width_of = 0.0, iter(widths)
    for span in completion.spans():
        start = x
        for step in span:
            width = next(width_of)
            _words(ax, x + width / 2, step, name)
            x += width
        for height, (_, probability) in enumerate(_column(span[0])):
            _box(ax, start, x, height, probability)
    ax.set(xlim=(-0.05, x + 0.05), ylim=(rows - 0.6, -0.6))
    ax.axis("off")
    return ax


def _width(symbol: str) -> float:
    """The room that a symbol takes: a wide letter takes that of two, an accent none."""
    from fenchel.search.labels import columns

    return LETTER * columns(symbol)


def _column(step: CompletionStep) -> tuple[tuple[int, float], ...]:
    """The candidates of a step, and the token taken if it is not among them."""
    shown = any(token == step.token for token, _ in step.candidates)
    return step.candidates if shown else (*step.candidates, (step.token, step.probability))


def _box(ax: Any, left: float, right: float, height: int, probability: float) -> None:
    """The border around a candidate, or around a run of certain ones, and its shade."""
    from matplotlib.colors import to_rgba
    from matplotlib.patches import FancyBboxPatch

    from fenchel import plot

    box = FancyBboxPatch(
        (left + 0.05, height - 0.4), right - left - 0.1, 0.8,
        boxstyle="round,pad=0,rounding_size=0.08", zorder=0,
        facecolor=to_rgba(BLUE, 0.35 * probability), edgecolor=plot.FAINT,
    )  # fmt: skip
    ax.add_patch(box)


def _words(ax: Any, x: float, step: CompletionStep, name: Label) -> None:
    """The candidates of one step below each other, and how many are not shown."""
    from fenchel import plot

    centred: dict[str, Any] = {"ha": "center", "va": "center", "parse_math": False}
    column = _column(step)
    for height, (token, _) in enumerate(column):
        weight = "bold" if token == step.token else "normal"
        ax.text(x, height, name(token), fontsize=10, fontweight=weight, color=plot.INK, **centred)
    hidden = step.support - len(step.candidates)
    if hidden > 0:
        ax.text(x, len(column), f"+{hidden}", fontsize=8, color=plot.FAINT, **centred)


def _end_places(lattice: Lattice, places: list[float], name: Label) -> dict[int, float]:
    """Where the line behind the last token of every sequence ends."""
    following = lattice.following()
    ends = {}
    for edge in lattice.edges:
        if not following[edge.target]:
            tokens = lattice.nodes[edge.target]
            half = _width(name(tokens[-1])) / 2 if tokens else 0.0
            ends[edge.target] = places[len(tokens)] + half + 0.36
    return ends


def _ends(
    ax: Any,
    lattice: Lattice,
    places: list[float],
    heights: dict[int, int],
    ends: dict[int, float],
) -> None:
    """The probability of every sequence, behind its last token."""
    from fenchel import plot
    from fenchel.search.labels import percent

    following = lattice.following()
    into = {edge.target: edge for edge in lattice.edges}
    for node, edge in into.items():
        if following[node]:
            continue
        x, y = places[len(lattice.nodes[node])], heights[node]
        mark = END if edge.token is None else "…"
        _line(
            ax, [x, ends[node]], [heights[edge.source] if edge.token is None else y, y], edge.mass
        )
        text = f"{mark} {percent(edge.mass)}"
        ax.text(ends[node] + 0.03, y, text, va="center", fontsize=10, color=plot.INK)


def _line(ax: Any, x: list[float], y: list[int], mass: float) -> None:
    """From a symbol down to the row of the next one, then to the right."""
    corner = {"solid_joinstyle": "round", "solid_capstyle": "round"}
    width = 0.8 + 4 * mass
    ax.plot([x[0], *x], [y[0], y[1], y[1]], color=LIGHT, linewidth=width, zorder=1 + mass, **corner)


def _heights(lattice: Lattice) -> dict[int, int]:
    """The row of every node: that of the most probable sequence through it; forks go down."""
    following = lattice.following()
    heights: dict[int, int] = {}
    free, waiting = 0, [0]
    branches: list[int] = []
    while waiting or branches:
        if not waiting:
            free += 1
            waiting.append(branches.pop())
        node = waiting.pop()
        heights[node] = free
        first, *others = [edge.target for edge in following[node]] or [None]
        branches += [target for target in reversed(others) if target is not None]
        if first is not None:
            waiting.append(first)
    return heights


def _places(lattice: Lattice, name: Label) -> list[float]:
    """How far right every length is: there must be room for the longest of its symbols."""
    widest = [0.0] * (1 + max(map(len, lattice.nodes)))
    forks = [False] * len(widest)
    following = lattice.following()
    for edge in lattice.edges:
        if edge.token is not None:
            length = len(lattice.nodes[edge.target])
            widest[length] = max(widest[length], _width(name(edge.token)))
            forks[length] |= len(following[edge.source]) > 1
    places = [0.0]
    for length in range(1, len(widest)):
        room = 0.7 if forks[length] else 0.25
        places.append(places[-1] + room + (widest[length - 1] + widest[length]) / 2)
    return places
