"""Results of a search: figures 1 and 2 of Peters, Niculae and Martins (2019)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fenchel.errors import FenchelError
from fenchel.plot.style import FAINT, INK, new_figure, requires_matplotlib
from fenchel.search import EOS, Answer, Completion, CompletionStep, Lattice
from fenchel.search.labels import Label, Symbols, display_width, labels, percent
from fenchel.search.lattice import CUT, END

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLUE, LIGHT_BLUE = "#2166ac", "#a9c4de"
CHARACTER_WIDTH = 0.13  # inches


@requires_matplotlib
def lattice(
    lattice: Lattice | Answer, symbols: Symbols, *, title: str = "", ax: Axes | None = None
) -> Axes:
    """Draw the sequences of an answer from left to right, with shared prefixes drawn once.

    The percentages at forks are conditional on the prefix; if the answer is not complete they are
    relative to the answers found, and a caption says so. Those at the ends are the probabilities
    of whole sequences. Line widths are proportional to probabilities. A sequence that was cut at
    the length limit ends with an ellipsis.

    Args:
        lattice: A `Lattice`, or the `Answer` of a search.
        symbols: The text of each token: a function, or the list of all symbols.
        title: The title of the axes.
        ax: The axes to draw on; a new figure by default.
    """
    if not isinstance(lattice, Lattice | Answer):
        raise FenchelError(f"lattice must be a Lattice or an Answer, got {type(lattice).__name__}")
    tree = Lattice.of(lattice) if isinstance(lattice, Answer) else lattice
    label, following = labels(symbols), tree.following()
    heights, columns = _heights(tree), _columns(tree, label)
    rows, ends = 1 + max(heights.values()), _line_ends(tree, columns, label)
    right = max([columns[-1], *ends.values()])
    if ax is None:
        ax = new_figure(1.2 + right, 0.5 + 0.5 * rows + 0.2 * bool(tree.caption)).subplots()
    for edge in tree.edges:
        if edge.token is None:
            continue
        x = [columns[len(tree.nodes[node])] for node in (edge.source, edge.target)]
        y = [heights[edge.source], heights[edge.target]]
        _draw_line(ax, x, y, edge.mass)
        ax.text(
            x[1], y[1], label(edge.token), ha="center", va="center", fontsize=11, color=INK,
            parse_math=False,
            bbox={"boxstyle": "round,pad=0.25", "facecolor": "white", "edgecolor": BLUE}, zorder=3,
        )  # fmt: skip
        if len(following[edge.source]) > 1:
            before = (x[1] - 0.16 - _width(label(edge.token)) / 2, y[1] - 0.12)
            ax.text(*before, percent(edge.probability), ha="right", fontsize=8, color=FAINT)
    _draw_ends(ax, tree, columns, heights, ends)
    if tree.caption:
        ax.text(0, rows - 0.35, tree.caption, va="center", fontsize=8, color=FAINT)
    ax.set_title(title, color=INK, fontsize=12, parse_math=False)
    ax.set(xlim=(-0.2, right + 0.9), ylim=(rows - 0.4 + 0.3 * bool(tree.caption), -0.6))
    ax.axis("off")
    return ax


@requires_matplotlib
def autocompletion(
    completion: Completion, symbols: Symbols, *, eos: int = EOS, ax: Axes | None = None
) -> Axes:
    """Draw the candidates of a model at each step of a sequence, with the token taken in bold.

    There is one column per step. Consecutive steps with a single possible token share one box:
    they could be completed at once. Darker boxes are more probable; tokens of probability zero are
    not drawn, and +n counts further candidates.

    Args:
        completion: A result of `autocomplete`.
        symbols: The text of each token: a function, or the list of all symbols.
        eos: The end token, drawn as ■.
        ax: The axes to draw on; a new figure by default.
    """
    if not isinstance(completion, Completion):
        raise FenchelError(f"completion must be a Completion, got {type(completion).__name__}")
    if not completion.steps:
        raise FenchelError("completion must have at least one step, got none")
    symbol = labels(symbols)

    def label(token: int) -> str:
        return END if token == eos else symbol(token)

    columns = [_candidates(step) for step in completion.steps]
    widths = [0.3 + max(_width(label(token)) for token, _ in column) for column in columns]
    rows = 1 + max(map(len, columns))
    if ax is None:
        ax = new_figure(0.4 + sum(widths), 0.3 + 0.36 * rows).subplots()
    x, remaining_widths = 0.0, iter(widths)
    for span in completion.spans():
        start = x
        for step in span:
            width = next(remaining_widths)
            _draw_candidates(ax, x + width / 2, step, label)
            x += width
        for height, (_, probability) in enumerate(_candidates(span[0])):
            _draw_box(ax, start, x, height, probability)
    ax.set(xlim=(-0.05, x + 0.05), ylim=(rows - 0.6, -0.6))
    ax.axis("off")
    return ax


def _width(symbol: str) -> float:
    """Return the width of a symbol in inches."""
    return CHARACTER_WIDTH * display_width(symbol)


def _candidates(step: CompletionStep) -> tuple[tuple[int, float], ...]:
    """Return the candidates of a step, and the token taken if it is not one of them."""
    included = any(token == step.token for token, _ in step.candidates)
    return step.candidates if included else (*step.candidates, (step.token, step.probability))


def _draw_box(ax: Any, left: float, right: float, height: int, probability: float) -> None:
    """Draw the shaded box of a candidate, or of consecutive certain steps."""
    from matplotlib.colors import to_rgba
    from matplotlib.patches import FancyBboxPatch

    box = FancyBboxPatch(
        (left + 0.05, height - 0.4), right - left - 0.1, 0.8,
        boxstyle="round,pad=0,rounding_size=0.08", zorder=0,
        facecolor=to_rgba(BLUE, 0.35 * probability), edgecolor=FAINT,
    )  # fmt: skip
    ax.add_patch(box)


def _draw_candidates(ax: Any, x: float, step: CompletionStep, label: Label) -> None:
    """Write the candidates of one step in a column, and the number of those not shown."""
    centred: dict[str, Any] = {"ha": "center", "va": "center", "parse_math": False}
    column = _candidates(step)
    for height, (token, _) in enumerate(column):
        weight = "bold" if token == step.token else "normal"
        ax.text(x, height, label(token), fontsize=10, fontweight=weight, color=INK, **centred)
    hidden = step.support - len(step.candidates)
    if hidden > 0:
        ax.text(x, len(column), f"+{hidden}", fontsize=8, color=FAINT, **centred)


def _line_ends(lattice: Lattice, columns: list[float], label: Label) -> dict[int, float]:
    """Return where the line behind the last token of each sequence ends, by node."""
    following = lattice.following()
    ends = {}
    for edge in lattice.edges:
        if not following[edge.target]:
            tokens = lattice.nodes[edge.target]
            half = _width(label(tokens[-1])) / 2 if tokens else 0.0
            ends[edge.target] = columns[len(tokens)] + half + 0.36
    return ends


def _draw_ends(
    ax: Any,
    lattice: Lattice,
    columns: list[float],
    heights: dict[int, int],
    ends: dict[int, float],
) -> None:
    """Write the probability of each sequence behind its last token."""
    for edge in lattice.edges:
        node = edge.target
        if node not in ends:
            continue
        finished = edge.token is None
        x, y = columns[len(lattice.nodes[node])], heights[node]
        start = heights[edge.source] if finished else y
        _draw_line(ax, [x, ends[node]], [start, y], edge.mass)
        text = f"{END if finished else CUT} {percent(edge.mass)}"
        ax.text(ends[node] + 0.03, y, text, va="center", fontsize=10, color=INK)


def _draw_line(ax: Any, x: list[float], y: list[int], mass: float) -> None:
    """Draw a line from a symbol down to the row of the next one, then to the right."""
    corner = {"solid_joinstyle": "round", "solid_capstyle": "round"}
    style = {"color": LIGHT_BLUE, "linewidth": 0.8 + 4 * mass, "zorder": 1 + mass}
    ax.plot([x[0], *x], [y[0], y[1], y[1]], **style, **corner)


def _heights(lattice: Lattice) -> dict[int, int]:
    """Return the row of each node: that of the most probable sequence through it."""
    following = lattice.following()
    heights: dict[int, int] = {}
    row, stack = 0, [0]
    branches: list[int] = []
    while stack or branches:
        if not stack:
            row += 1
            stack.append(branches.pop())
        node = stack.pop()
        heights[node] = row
        targets = [edge.target for edge in following[node]]
        stack += targets[:1]
        branches += reversed(targets[1:])
    return heights


def _columns(lattice: Lattice, label: Label) -> list[float]:
    """Return the x coordinate of each prefix length, with room for the widest symbol."""
    widest = [0.0] * (1 + max(map(len, lattice.nodes)))
    forks = [False] * len(widest)
    following = lattice.following()
    for edge in lattice.edges:
        if edge.token is not None:
            length = len(lattice.nodes[edge.target])
            widest[length] = max(widest[length], _width(label(edge.token)))
            forks[length] |= len(following[edge.source]) > 1
    columns = [0.0]
    for length in range(1, len(widest)):
        room = 0.7 if forks[length] else 0.25
        columns.append(columns[-1] + room + (widest[length - 1] + widest[length]) / 2)
    return columns
