"""An SVG picture that scales with the page, reads in the dark, and says in words what it shows."""

from __future__ import annotations

from fenchel.analysis.markup import Markup, element
from fenchel.search.labels import columns

DRAWN = {" ": "␣", "\t": "⇥", "\n": "⏎", "\r": "⏎"}
CHARACTER = 7.2  # the width of one character of the pictures' font, at 12 pixels


def picture(width: float, height: float, title: str, *content: object) -> Markup:
    """The frame of a picture; its title is read aloud by screen readers."""
    return element(
        "svg",
        element("title", title),
        *content,
        viewBox=f"0 0 {width:.0f} {height:.0f}",
        width=f"{width:.0f}",
        height=f"{height:.0f}",
        role="img",
    )


def label(x: float, y: float, text: str, anchor: str = "start", **attributes: object) -> Markup:
    """A word of text in a picture."""
    return element("text", visible(text), x=x, y=y, text_anchor=anchor, **attributes)


def figure(content: Markup, caption: str) -> Markup:
    """A picture with its caption; a wide one scrolls by itself."""
    holder = element("div", content, class_="scroll", tabindex=0)
    return element("figure", holder, element("figcaption", caption))


def visible(symbol: str) -> str:
    """A symbol as it can be seen: spaces and the ends of lines are drawn.

    >>> visible(" "), visible("a")
    ('␣', 'a')
    """
    return DRAWN.get(symbol, symbol)


def width_of(texts: list[str]) -> float:
    """The room that the longest of some texts needs.

    >>> width_of(["a", "abc"])
    21.6
    >>> width_of(["日本"])
    28.8
    """
    return round(max(map(columns, texts), default=0) * CHARACTER, 2)
