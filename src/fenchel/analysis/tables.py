"""Tables of a report."""

from __future__ import annotations

from collections.abc import Sequence

from fenchel.analysis.markup import Markup, element

Cell = str | float | int | None


def table(caption: str, columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> Markup:
    """A table whose first column names the rows; numbers are set to the right, None is a dash.

    >>> table("scores", ["model", "accuracy"], [["softmax", 0.5]]).count("<td")
    1
    """
    head = element("tr", *(element("th", name, scope="col") for name in columns))
    body = [
        element("tr", element("th", shown(first), scope="row"), *(_cell(value) for value in rest))
        for first, *rest in rows
    ]
    return element(
        "div",
        element(
            "table",
            element("caption", caption),
            element("thead", head),
            element("tbody", *body),
        ),
        class_="scroll",
        tabindex=0,
    )


def shown(value: Cell) -> str:
    """A value of a table as text.

    >>> shown(0.123456), shown(12), shown(None), shown(True)
    ('0.1235', '12', '–', 'yes')
    """
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _cell(value: Cell) -> Markup:
    numeric = isinstance(value, int | float) and not isinstance(value, bool)
    return element("td", shown(value), class_="number" if numeric else None)
