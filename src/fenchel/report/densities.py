"""A density drawn over the words of a text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from fenchel.errors import FenchelError
from fenchel.report.blocks import Figure
from fenchel.report.svg import CHARACTER, element, label, picture, text_width, visible

WIDTH = 720.0  # of a line of words
HEIGHT, LINE = 40.0, 62.0  # of the curve, and of a line of words with its curve
FAINT = 1e-3  # share of the mass of an average word below which a word is dimmed


def density_over_words(
    words: Sequence[str], heights: Sequence[Sequence[float]], caption: str
) -> Figure:
    """The words in lines, with the curve of a density above them.

    Words that have nearly none of the mass are dimmed. The mass of a word is shown on hover.

    Args:
        words: The words, which fill [0, 1] in equal parts.
        heights: The density at evenly spaced places within each word, as many for every word.
        caption: Such as the predicted label and its probability.

    >>> drawn = density_over_words(["a", "superb", "film"], [[0.0, 0.1], [2.0, 2.0], [0.1, 0.0]], "")
    >>> drawn.svg.count("<polyline")
    1
    """
    if len(words) != len(heights):
        raise FenchelError(
            f"heights must have one entry per word ({len(words)}), got {len(heights)}"
        )
    highest = max((max(each) for each in heights), default=0.0) or 1.0
    shown = [visible(word) for word in words]
    lines = list(_lines(shown))
    parts: list[Markup] = []
    for row, places in enumerate(lines):
        base, left, points = LINE * row + HEIGHT + 4, 0.0, []
        for place in places:
            width = text_width(shown[place])
            mass = sum(heights[place]) / len(heights[place]) / len(words)
            dim = mass * len(words) < FAINT
            title = element("title", f"{mass:.3g}")
            word = label(left, base + 14, shown[place], class_="tick" if dim else "")
            parts.append(element("g", title, word))
            step = (width + CHARACTER) / len(heights[place])
            points += [
                (left + step * (k + 0.5), base - HEIGHT * height / highest)
                for k, height in enumerate(heights[place])
            ]
            left += width + CHARACTER
        parts.append(_curve(points, base))
    drawn = picture(WIDTH, LINE * len(lines) + 4, "density over the words", parts)
    return Figure(drawn, caption)


def _lines(words: Sequence[str]) -> Iterator[list[int]]:
    """The places of the words of each line."""
    line: list[int] = []
    right = 0.0
    for place, word in enumerate(words):
        width = text_width(word) + CHARACTER
        if line and right + width > WIDTH:
            yield line
            line, right = [], 0.0
        line.append(place)
        right += width
    if line:
        yield line


def _curve(points: Sequence[tuple[float, float]], base: float) -> Markup:
    """The curve through the points, and the area down to the words."""
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    first, last = points[0][0], points[-1][0]
    area = f"{first:.1f},{base:.1f} {path} {last:.1f},{base:.1f}"
    return element(
        "g", element("polygon", points=area), element("polyline", points=path), class_="density"
    )
