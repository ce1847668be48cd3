"""The answers of a sparse model as a lattice: one path for each, together where they agree."""

from __future__ import annotations

from dataclasses import dataclass, field

from fenchel.analysis.markup import Markup, element
from fenchel.analysis.picture import CHARACTER, label, picture, visible
from fenchel.search import Lattice
from fenchel.search.labels import Label, Symbols, columns, labels, percent
from fenchel.search.lattice import CUT, END, Edge

Following = dict[int, list[Edge]]
ROW, GAP, MARGIN = 34.0, 58.0, 14.0


@dataclass
class _Branch:
    """A run of symbols without a choice, then an end, a cut, or branches that share the mass."""

    word: str
    mass: float
    ending: str = ""
    branches: list[_Branch] = field(default_factory=list)
    x: float = 0.0
    y: float = 0.0

    @property
    def width(self) -> float:
        return CHARACTER * columns(self.word)


def lattice_picture(lattice: Lattice, symbols: Symbols, separator: str = "") -> Markup:
    """The picture of an answer's sequences, the most probable branch on top.

    Symbols that leave no choice are written together; where sequences part, a branch is the thicker the
    larger its share is. ■ ends a sequence, … marks one that was cut, with its probability.

    >>> from fenchel.search import Answer, Hypothesis
    >>> ways = (Hypothesis((0, 1), 0.75, -0.288, True), Hypothesis((0, 2), 0.25, -1.386, True))
    >>> "75.0 %" in lattice_picture(Lattice.of(Answer(ways, 0.0)), "abc")
    True
    """
    mass = sum(edge.mass for edge in lattice.following()[0])
    root = _grown(lattice.following(), [], 0, mass, labels(symbols), separator)
    rows = _place(root, MARGIN, 0)
    extent = [0.0]
    drawn = _drawn(root, extent)
    title = f"lattice of {'all' if lattice.complete else 'some'} answers"
    return picture(max(extent) + MARGIN, rows * ROW + 6, title, *drawn)


def _grown(
    following: Following, chain: list[str], node: int, mass: float, name: Label, separator: str
) -> _Branch:
    """The branch whose word begins with `chain` and goes on from a node."""
    while len(edges := following[node]) == 1 and edges[0].token is not None:
        chain.append(visible(name(edges[0].token)))
        node = edges[0].target
    branch = _Branch(separator.join(chain), mass)
    if len(edges) < 2:
        branch.ending = f"{END if edges else CUT} {percent(mass)}"
    for edge in edges if len(edges) > 1 else []:
        if edge.token is None:
            branch.branches.append(_Branch("", edge.mass, f"{END} {percent(edge.mass)}"))
            continue
        first = [visible(name(edge.token))]
        branch.branches.append(_grown(following, first, edge.target, edge.mass, name, separator))
    return branch


def _place(branch: _Branch, x: float, row: int) -> int:
    """Set the positions of a branch and of all after it; return the next free row."""
    branch.x, branch.y = x, ROW * (row + 0.6)
    next_row = row
    for follow in branch.branches:
        next_row = _place(follow, x + branch.width + GAP, next_row)
    return max(next_row, row + 1)


def _drawn(branch: _Branch, extent: list[float]) -> list[Markup]:
    end = branch.x + branch.width
    parts = [label(branch.x, branch.y + 4, branch.word)] if branch.word else []
    if branch.ending:
        begin = end + (8 if branch.word else 0)
        parts.append(label(begin, branch.y + 4, branch.ending, class_="tick"))
        extent.append(begin + CHARACTER * len(branch.ending))
    for follow in branch.branches:
        share = follow.mass / branch.mass if branch.mass else 0.0
        parts.append(_edge(end + 6, branch.y, follow.x - 6, follow.y, share))
        parts += _drawn(follow, extent)
    return parts


def _edge(x0: float, y0: float, x1: float, y1: float, share: float) -> Markup:
    middle = (x0 + x1) / 2
    curve = f"M{x0:.1f} {y0:.1f}C{middle:.1f} {y0:.1f} {middle:.1f} {y1:.1f} {x1:.1f} {y1:.1f}"
    title = element("title", f"{percent(share)} goes this way")
    return element("path", title, d=curve, class_="edge", stroke_width=0.8 + 3.2 * share)
