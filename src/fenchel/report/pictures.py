"""Figures that several tasks share: attention maps, and lattices of answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from fenchel.errors import FenchelError
from fenchel.report.blocks import Figure
from fenchel.report.svg import element, label, picture, text_width, visible
from fenchel.search import Edge, Lattice
from fenchel.search.labels import Label, Symbols, labels, percent
from fenchel.search.lattice import CUT, END

CELL = 22.0  # side of a square of an attention map
FAINTEST = 0.12  # opacity of the smallest weights, so that they can be told from zeros
ROW, GAP, MARGIN = 34.0, 58.0, 14.0  # of a lattice: height of a row, width of a fork, left margin


def attention_map(
    weights: Sequence[Sequence[float]],
    source: Sequence[str],
    target: Sequence[str],
    caption: str = "Attention weights",
) -> Figure:
    """One row per target symbol and one column per source symbol; the larger a weight, the darker.

    A target that is more than twice as long as the source has the columns instead, so that the map is
    not tall. Weights that are exactly zero are left blank, which the caption says if there are any. The
    value of a weight is shown on hover. A wide map scrolls inside its own box.

    >>> drawn = attention_map([[0.75, 0.25, 0.0]], ["d", "r", "a"], ["d"])
    >>> drawn.svg.count("<rect"), drawn.caption
    (2, 'Attention weights; blank squares are exact zeros')
    """
    if len(weights) != len(target) or any(len(row) != len(source) for row in weights):
        raise FenchelError(
            "weights must have one row per target symbol and one column per source symbol: "
            f"expected {len(target)} rows of {len(source)}, "
            f"got {len(weights)} rows of {sorted({len(row) for row in weights})}"
        )
    transposed = len(target) > 2 * len(source)
    sources, targets = ([visible(symbol) for symbol in symbols] for symbols in (source, target))
    above, beside = (targets, sources) if transposed else (sources, targets)
    left, top = (max(map(text_width, texts), default=0) + 10 for texts in (beside, above))
    columns = [_column_label(left + CELL * (i + 0.5), top - 6, t) for i, t in enumerate(above)]
    rows = [label(left - 6, top + CELL * (j + 0.66), t, "end") for j, t in enumerate(beside)]
    target_labels, source_labels = (columns, rows) if transposed else (rows, columns)

    def cell(t: int, s: int, weight: float) -> Markup:
        i, j = (t, s) if transposed else (s, t)
        title = f"{targets[t]} ← {sources[s]}  {weight:.3g}"
        return _cell(left + CELL * i, top + CELL * j, weight, title)

    groups = [
        element(
            "g",
            target_labels[t],
            *(cell(t, s, weight) for s, weight in enumerate(row) if weight != 0),
            class_="target",
        )
        for t, row in enumerate(weights)
    ]
    count = sum(weight != 0 for row in weights for weight in row)
    drawn = picture(
        left + CELL * len(above) + 1,
        top + CELL * len(beside) + 1,
        f"attention of {' '.join(target)}: "
        f"{count} of {len(source) * len(target)} weights are not zero",
        [*source_labels, _cell_borders(left, top, len(above), len(beside)), *groups],
        scrolls=True,
    )
    notes = [
        "one column per target symbol" if transposed else "",
        "blank squares are exact zeros" if count < len(source) * len(target) else "",
    ]
    return Figure(drawn, "; ".join(filter(None, [caption, *notes])))


def _cell(x: float, y: float, weight: float, title: str) -> Markup:
    opacity = FAINTEST + (1 - FAINTEST) * min(weight, 1.0)
    return element(
        "rect",
        element("title", title),
        x=x + 0.5,
        y=y + 0.5,
        width=CELL - 1,
        height=CELL - 1,
        class_="weight",
        opacity=opacity,
    )


def _column_label(x: float, y: float, text: str) -> Markup:
    if len(text) == 1:
        return label(x, y, text, "middle")
    return label(x + 4, y, text, transform=f"rotate(-90 {x + 4:.1f} {y:.1f})")


def _cell_borders(left: float, top: float, columns: int, rows: int) -> Markup:
    right, bottom = left + CELL * columns, top + CELL * rows
    across = "".join(f"M{left:.1f} {top + CELL * j:.1f}H{right:.1f}" for j in range(rows + 1))
    down = "".join(f"M{left + CELL * i:.1f} {top:.1f}V{bottom:.1f}" for i in range(columns + 1))
    return element("path", d=across + down, class_="grid")


def lattice_picture(
    lattice: Lattice, symbols: Symbols, separator: str = "", caption: str = "Answers"
) -> Figure:
    """The answers of a lattice as a tree, the most probable branch on top.

    Symbols without an alternative are written together, with `separator` between them. Where answers
    differ, the width of a branch shows its share of the probability. ■ ends an answer and … marks one
    that was cut off, each followed by its probability. The most probable answer is highlighted.

    >>> from fenchel.search import Answer, Hypothesis
    >>> ways = (Hypothesis((0, 1), 0.75, -0.288, True), Hypothesis((0, 2), 0.25, -1.386, True))
    >>> "75.0 %" in lattice_picture(Lattice.of(Answer(ways, 0.0)), "abc").svg
    True
    """
    following = lattice.following()
    mass = sum(edge.mass for edge in following[0])
    root = _grow(following, [], 0, mass, labels(symbols), separator)
    rows = _place(root, MARGIN, 0)
    root.choose()
    branches = list(root.walk())
    drawn = picture(
        max(branch.right for branch in branches) + MARGIN,
        rows * ROW + 6,
        f"lattice of {'all' if lattice.complete else 'some'} answers",
        [part for branch in branches for part in _draw(branch)],
        scrolls=True,
    )
    return Figure(drawn, "; ".join(filter(None, (caption, lattice.caption))))


@dataclass
class _Branch:
    """Symbols without an alternative, then an ending or the branches that continue them."""

    word: str
    mass: float
    ending: str = ""
    branches: list[_Branch] = field(default_factory=list)
    x: float = 0.0
    y: float = 0.0
    is_chosen: bool = False

    @property
    def best(self) -> float:
        """The probability of the most probable answer."""
        return max((branch.best for branch in self.branches), default=self.mass)

    def choose(self) -> None:
        """Mark the branches of the most probable answer."""
        self.is_chosen = True
        if self.branches:
            max(self.branches, key=lambda branch: branch.best).choose()

    @property
    def word_right(self) -> float:
        return self.x + text_width(self.word)

    @property
    def ending_left(self) -> float:
        return self.word_right + (8 if self.word else 0)

    @property
    def right(self) -> float:
        return self.ending_left + text_width(self.ending)

    def walk(self) -> Iterator[_Branch]:
        yield self
        for branch in self.branches:
            yield from branch.walk()


def _grow(
    following: dict[int, list[Edge]],
    chain: list[str],
    node: int,
    mass: float,
    name: Label,
    separator: str,
) -> _Branch:
    """The branch whose word begins with `chain` and continues from a node."""
    while len(edges := following[node]) == 1 and edges[0].token is not None:
        chain.append(visible(name(edges[0].token)))
        node = edges[0].target
    branch = _Branch(separator.join(chain), mass)
    if len(edges) < 2:
        branch.ending = f"{END if edges else CUT} {percent(mass)}"
        return branch
    for edge in edges:
        if edge.token is None:
            branch.branches.append(_Branch("", edge.mass, f"{END} {percent(edge.mass)}"))
        else:
            first = [visible(name(edge.token))]
            branch.branches.append(_grow(following, first, edge.target, edge.mass, name, separator))
    return branch


def _place(branch: _Branch, x: float, row: int) -> int:
    """Set the positions of a branch and of all after it; return the next free row."""
    branch.x, branch.y = x, ROW * (row + 0.6)
    next_row = row
    for follow in branch.branches:
        next_row = _place(follow, branch.word_right + GAP, next_row)
    return max(next_row, row + 1)


def _draw(branch: _Branch) -> Iterator[Markup]:
    """A branch, and the curves to those that continue it."""
    if branch.word:
        yield label(
            branch.x, branch.y + 4, branch.word, class_="chosen" if branch.is_chosen else ""
        )
    if branch.ending:
        yield label(branch.ending_left, branch.y + 4, branch.ending, class_="tick")
    for follow in branch.branches:
        yield _curve(branch, follow)


def _curve(branch: _Branch, follow: _Branch) -> Markup:
    share = follow.mass / branch.mass if branch.mass else 0.0
    x0, x1 = branch.word_right + 6, follow.x - 6
    middle = (x0 + x1) / 2
    return element(
        "path",
        element("title", f"{percent(share)} of the probability"),
        d=f"M{x0:.1f} {branch.y:.1f}C{middle:.1f} {branch.y:.1f} "
        f"{middle:.1f} {follow.y:.1f} {x1:.1f} {follow.y:.1f}",
        class_="branch chosen" if follow.is_chosen else "branch",
        stroke_width=0.8 + 3.2 * share,
    )
