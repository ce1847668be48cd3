"""Elements of SVG pictures, with all text escaped."""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup

from fenchel.search.labels import display_width

CHARACTER = 7.2  # width of a character of the pictures' monospaced font at 12 px
VISIBLE = {" ": "␣", "\t": "⇥", "\n": "⏎", "\r": "⏎"}


def element(name: str, /, *children: str, **attributes: str | float) -> Markup:
    """An element; children and attributes that are not `Markup` are escaped.

    Underscores in attribute names become hyphens, trailing ones are dropped; numbers are rounded to two
    decimals.

    >>> element("text", "2 < 3", class_="tick", text_anchor="end", x=1 / 3)
    Markup('<text class="tick" text-anchor="end" x="0.33">2 &lt; 3</text>')
    """
    written = Markup("").join(
        Markup(' {}="{}"').format(
            key.rstrip("_").replace("_", "-"),
            value if isinstance(value, str) else f"{round(value, 2) + 0.0:g}",
        )
        for key, value in attributes.items()
    )
    return Markup("<{0}{1}>{2}</{0}>").format(name, written, Markup("").join(children))


def picture(
    width: float, height: float, title: str, content: Iterable[Markup], *, scrolls: bool = False
) -> Markup:
    """A whole picture. Screen readers read its title.

    On a narrow page the picture shrinks or, if `scrolls`, keeps its size and scrolls inside its box.
    """
    return element(
        "svg",
        element("title", title),
        *content,
        viewBox=f"0 0 {width:.0f} {height:.0f}",
        width=f"{width:.0f}",
        height=f"{height:.0f}",
        role="img",
        class_="scrolls" if scrolls else "shrinks",
    )


def label(x: float, y: float, text: str, anchor: str = "start", **attributes: str) -> Markup:
    """Text in a picture."""
    return element("text", visible(text), x=x, y=y, text_anchor=anchor, **attributes)


def visible(symbol: str) -> str:
    """A symbol, or a visible sign for a space, a tab or a line break.

    >>> visible(" "), visible("a")
    ('␣', 'a')
    """
    return VISIBLE.get(symbol, symbol)


def text_width(text: str) -> float:
    """The width of a text in a picture, in pixels.

    >>> text_width("abc"), text_width("日本")
    (21.6, 28.8)
    """
    return round(CHARACTER * display_width(text), 2)
