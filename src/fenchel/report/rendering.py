"""From a report to an HTML page: its numbers as text, its blocks through the jinja2 templates."""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from fenchel.report.blocks import Block, Cell, Report, Table, is_empty, nested
from fenchel.report.charts import colour_class, line_chart
from fenchel.report.heads import HeadsView
from fenchel.report.heads_rendering import heads_data, heads_tables

SIGNIFICANT = 3  # digits shown of the smallest number of a column
LONGEST = 6  # digits shown of the largest one
LONG_TEXT = 60  # characters of a cell whose text may be broken anywhere


def render(report: Report) -> str:
    """The report as one HTML file, which loads nothing.

    It runs no script, except that of a `HeadsView` with something to show.

    >>> text = render(Report("A run", "Nothing was measured.", []))
    >>> text.startswith("<!doctype html>") and "https:" not in text
    True
    """
    sections = [section for section in report.sections if not section.is_empty]
    settings = Table("Settings of the run", ["setting", "value"], list(report.settings.items()))
    template = _environment().get_template("page.html")
    blocks = (block for section in sections for block in nested(section.blocks))
    interactive = any(isinstance(block, HeadsView) and not is_empty(block) for block in blocks)
    return template.render(
        report=report,
        sections=sections,
        settings=settings,
        script=_script() if interactive else None,
    )


def render_block(block: Block) -> Markup:
    """The HTML of a block: the macro of `blocks.html` with the name of its class."""
    if is_empty(block):
        return Markup()
    macros = _environment().get_template("blocks.html").module
    return getattr(macros, type(block).__name__)(block)


def format_cell(value: Cell) -> str:
    """A single value as text: at most four significant digits, None as a dash.

    >>> [format_cell(value) for value in (0.123456, 12, None, True)]
    ['0.1235', '12', '–', 'yes']
    """
    return f"{value:.4g}" if isinstance(value, float) else _format_exact(value)


def format_column(values: Sequence[Cell]) -> list[str]:
    """The values of a column as text; all floats have the same number of decimals.

    Integers are exact and have none. If fixed decimals would show a non-zero number as zero, the floats
    of the column are in scientific notation.

    >>> format_column([81.234, 2.5, 1000, None])
    ['81.23', '2.50', '1000', '–']
    >>> format_column([0.5, 1e-9])
    ['5.00e-01', '1.00e-09']
    """
    style = _float_style([value for value in values if isinstance(value, float)])
    return [
        f"{value:{style}}" if isinstance(value, float) else _format_exact(value) for value in values
    ]


def is_numeric(values: Sequence[Cell]) -> bool:
    """Whether a column holds numbers, apart from missing values."""
    present = [value for value in values if value is not None]
    return bool(present) and all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in present
    )


def _cells(table: Table) -> list[list[tuple[str, str]]]:
    """The rows of a table: the text of each cell and its CSS class."""
    columns = [list(column) for column in zip(*table.rows, strict=True)]
    shown = [
        [
            (text, "number" if is_numeric(column) else "long" if len(text) > LONG_TEXT else "")
            for text in format_column(column)
        ]
        for column in columns
    ]
    return [list(row) for row in zip(*shown, strict=True)]


def _format_exact(value: str | int | None) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _float_style(numbers: Sequence[float]) -> str:
    """The format specification that suits all of some floats."""
    sizes = [abs(number) for number in numbers if math.isfinite(number) and number]
    if not sizes:
        return ".0f"
    decimals = min(SIGNIFICANT - _digits(min(sizes)), LONGEST - _digits(max(sizes)))
    decimals = max(decimals, 0)
    if round(min(sizes), decimals) == 0:
        return f".{SIGNIFICANT - 1}e"
    while decimals and all(round(x, decimals) == round(x, decimals - 1) for x in sizes):
        decimals -= 1
    return f".{decimals}f"


def _digits(size: float) -> int:
    """The number of digits before the decimal point; negative for leading zeros after it.

    >>> [_digits(size) for size in (123.4, 1.0, 0.5, 0.012)]
    [3, 1, 0, -1]
    """
    return math.floor(math.log10(size)) + 1


@cache
def _script() -> dict[str, Markup]:
    """The script of interactive blocks, and the hash by which the page permits it alone."""
    text = (files("fenchel.report") / "templates" / "heads.js").read_text(encoding="utf-8")
    digest = b64encode(sha256(text.encode()).digest()).decode()
    return {"text": Markup(text), "hash": Markup(f"sha256-{digest}")}


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("fenchel.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "render": render_block,
        "cells": _cells,
        "line_chart": line_chart,
        "heads_data": heads_data,
        "heads_tables": heads_tables,
    }
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    environment.globals["colour_class"] = colour_class
    return environment
