"""The contents of a report, as plain data: sections of tables, charts, figures and predictions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

from markupsafe import Markup

from fenchel import __version__
from fenchel.errors import FenchelError
from fenchel.report.heads import HeadsView

Cell = str | float | int | None
GROUPINGS = (None, "segments", "clusters")
Series = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Table:
    """A table whose first column names the rows.

    The numbers of a column are shown with the same precision, None as a dash.
    """

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise FenchelError(
                    f"every row of the table {self.caption!r} must have {len(self.columns)} cells, "
                    f"got {len(row)}"
                )


@dataclass(frozen=True)
class Chart:
    """One line per series of (x, y) points."""

    caption: str
    x_title: str
    y_title: str
    series: Mapping[str, Series]

    def lines(self) -> dict[str, Series]:
        """The finite points of every series that has any."""
        finite = {
            name: [point for point in points if all(map(math.isfinite, point))]
            for name, points in self.series.items()
        }
        return {name: points for name, points in finite.items() if points}


@dataclass(frozen=True)
class Figure:
    """An SVG picture with a caption.

    Use it for any picture that this package does not draw. The picture follows the light and dark
    colours of the page if it is drawn in `currentColor` or in the variables of `templates/style.css`,
    such as `var(--mark)`; it shrinks with the page if it has a `viewBox`.

    >>> Figure(Markup('<svg viewBox="0 0 9 9"><circle r="9" fill="currentColor"/></svg>'), "A disk")
    ... # doctest: +ELLIPSIS
    Figure(svg=..., caption='A disk')
    """

    svg: Markup
    caption: str


@dataclass(frozen=True)
class HighlightedText:
    """Words of a text, shaded by their weights relative to the largest one.

    Words whose weight is exactly zero are dimmed. The weight of a word is shown on hover.

    Args:
        words: the words of the text.
        weights: one non-negative weight per word.
        caption: such as the predicted label and its probability.
        grouping: how words of equal weight are shown: "segments" joins neighbours under a bar, as those
            of fusedmax, "clusters" gives words a colour wherever they are, as those of oscarmax.

    >>> text = HighlightedText(["a", "superb", "film"], [0.0, 0.8, 0.2], "positive, 97.3 %")
    >>> text.shades()
    [('a', 0.0, 0.0), ('superb', 0.8, 1.0), ('film', 0.2, 0.25)]
    """

    words: Sequence[str]
    weights: Sequence[float]
    caption: str
    grouping: str | None = None

    def __post_init__(self) -> None:
        if self.grouping not in GROUPINGS:
            raise FenchelError(f"grouping must be one of {GROUPINGS}, got {self.grouping!r}")
        if len(self.words) != len(self.weights):
            raise FenchelError(
                "words and weights must have the same length, "
                f"got {len(self.words)} and {len(self.weights)}"
            )
        for weight in self.weights:
            if not 0 <= weight < math.inf:
                raise FenchelError(f"weights must be finite and non-negative, got {weight}")

    def shades(self) -> list[tuple[str, float, float]]:
        """Each word with its weight and with its shade in [0, 1]."""
        largest = max(self.weights, default=0.0) or 1.0
        pairs = zip(self.words, self.weights, strict=True)
        return [(word, weight, weight / largest) for word, weight in pairs]

    def groups(self) -> list[int | None]:
        """The number of the group of each word; None without grouping and for weight zero.

        Segments are numbered from the left, clusters from the largest weight on.

        >>> words, weights = ["a", "b", "c", "d"], [0.4, 0.1, 0.1, 0.4]
        >>> HighlightedText(words, weights, "", "segments").groups()
        [0, 1, 1, 2]
        >>> HighlightedText(words, weights, "", "clusters").groups()
        [0, 1, 1, 0]
        """
        if self.grouping is None:
            return [None] * len(self.words)
        places = [place for place, weight in enumerate(self.weights) if weight > 0]
        if self.grouping == "clusters":
            places.sort(key=lambda place: -self.weights[place])
        groups: list[int | None] = [None] * len(self.words)
        number, before = -1, None
        for place in places:
            apart = self.grouping == "segments" and before != place - 1
            if before is None or apart or not self._equal(before, place):
                number += 1
            groups[place], before = number, place
        return groups

    def runs(self) -> list[tuple[str, float, float, int | None]]:
        """Texts with weight, shade and group: words, or all words of a segment together."""
        runs: list[tuple[str, float, float, int | None]] = []
        for (word, weight, shade), group in zip(self.shades(), self.groups(), strict=True):
            if self.grouping == "segments" and group is not None and runs and runs[-1][3] == group:
                word = f"{runs.pop()[0]} {word}"
            runs.append((word, weight, shade, group))
        return runs

    def _equal(self, one: int, other: int) -> bool:
        return math.isclose(self.weights[one], self.weights[other], rel_tol=1e-5)


@dataclass(frozen=True)
class Columns:
    """Blocks side by side, or below each other where the page is narrow."""

    blocks: Sequence[Block]


@dataclass(frozen=True)
class Prediction:
    """An input with the model's answer, and blocks that explain it.

    Args:
        source: the input.
        answer: the model's answer.
        expected: the right answer, if it is known.
        blocks: what explains the answer.
        certified: whether the answer is proven to be the most probable one; None if no proof was tried.
    """

    source: str
    answer: str
    expected: str | None = None
    blocks: Sequence[Block] = ()
    certified: bool | None = None

    @property
    def is_wrong(self) -> bool:
        """Whether the answer is known to be wrong."""
        return self.expected is not None and self.answer != self.expected


Block = Table | Chart | Figure | HighlightedText | Columns | Prediction | HeadsView


@dataclass(frozen=True)
class Section:
    """A heading with some text and blocks; a section without contents is left out of the page."""

    title: str
    text: str = ""
    blocks: Sequence[Block] = ()

    @property
    def is_empty(self) -> bool:
        return not self.text and all(map(is_empty, self.blocks))

    @property
    def predictions(self) -> list[Prediction]:
        """All predictions of the section, also those in columns."""
        return [block for block in nested(self.blocks) if isinstance(block, Prediction)]


@dataclass(frozen=True)
class Report:
    """A page.

    Args:
        title: heading of the page.
        summary: the main finding, in one sentence.
        sections: the contents.
        command: the command that made the report.
        data: the data that were measured.
        settings: settings of the run, listed at the end of the page.
        date: when the report was made.
        version: the version of fenchel that made it.
    """

    title: str
    summary: str
    sections: Sequence[Section]
    command: str = ""
    data: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    date: date = field(default_factory=date.today)
    version: str = __version__


def is_empty(block: Block) -> bool:
    """Whether a block has nothing to show, such as a chart without finite points."""
    match block:
        case Table(rows=rows):
            return len(rows) == 0
        case Chart():
            return not block.lines()
        case HighlightedText(words=words):
            return len(words) == 0
        case Columns(blocks=blocks):
            return all(map(is_empty, blocks))
        case HeadsView():
            return block.is_empty
    return False


def nested(blocks: Sequence[Block]) -> Iterator[Block]:
    """Blocks and the blocks within them."""
    for block in blocks:
        yield block
        if isinstance(block, Columns | Prediction):
            yield from nested(block.blocks)
