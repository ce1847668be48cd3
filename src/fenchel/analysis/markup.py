"""HTML and SVG elements as strings, with every text escaped."""

from __future__ import annotations

from html import escape


class Markup(str):
    """Text that is markup already; any other string is escaped when it becomes a child."""

    __slots__ = ()


def element(name: str, /, *children: object, **attributes: object) -> Markup:
    """One element. Underscores in attribute names become hyphens, a trailing one is dropped.

    An attribute that is None or False is left out; True gives the bare name.

    >>> element("p", "2 < 3", class_="note", aria_label="sum")
    '<p class="note" aria-label="sum">2 &lt; 3</p>'
    >>> element("rect", x=1.5, y=0.0)
    '<rect x="1.5" y="0"/>'
    """
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    inside = join(*children)
    if not inside and name in ("rect", "path", "line", "circle", "polyline", "meta"):
        return Markup(f"<{name}{written}/>")
    return Markup(f"<{name}{written}>{inside}</{name}>")


def join(*children: object) -> Markup:
    """The children one after the other; None is nothing, plain text is escaped."""
    return Markup("".join(_child(child) for child in children if child is not None))


def number(value: float) -> str:
    """At most two decimals and no trailing zeros: coordinates need no more.

    >>> number(12.0), number(3.14159)
    ('12', '3.14')
    """
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def _child(child: object) -> str:
    return child if isinstance(child, Markup) else escape(str(child), quote=False)


def _attribute(key: str, value: object) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-") if key != "viewBox" else key
    if value is True:
        return f" {name}"
    text = number(value) if isinstance(value, float) else str(value)
    return f' {name}="{escape(text)}"'
