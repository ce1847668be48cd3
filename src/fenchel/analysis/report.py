"""The report of a run: one HTML page that needs nothing else, from plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fenchel.analysis.attention_map import attention_map
from fenchel.analysis.lattice_picture import lattice_picture
from fenchel.analysis.line_chart import Series, line_chart
from fenchel.analysis.markup import Markup, element, join
from fenchel.analysis.picture import figure
from fenchel.analysis.style import STYLE
from fenchel.analysis.tables import Cell, table
from fenchel.search import Lattice
from fenchel.search.labels import Symbols


@dataclass(frozen=True)
class Table:
    """A table of the report; the first column names the rows."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]


@dataclass(frozen=True)
class Chart:
    """Lines over epochs or positions."""

    caption: str
    x_title: str
    y_title: str
    series: Mapping[str, Series]


@dataclass(frozen=True)
class Prediction:
    """One example: what came in, what should come out, all answers, and where the model looked.

    `symbols` name the lattice's tokens, with `separator` between them; `attention` is that of `best`.
    """

    source: str
    target: str | None
    best: str
    lattice: Lattice
    certificate: str
    symbols: Symbols
    separator: str = ""
    source_symbols: Sequence[str] = ()
    target_symbols: Sequence[str] = ()
    attention: Sequence[Sequence[float]] = ()


@dataclass(frozen=True)
class Section:
    """A heading with what belongs under it, in this order."""

    title: str
    text: str = ""
    tables: Sequence[Table] = ()
    charts: Sequence[Chart] = ()
    predictions: Sequence[Prediction] = ()


@dataclass(frozen=True)
class Report:
    """All that a page says."""

    title: str
    summary: str
    sections: Sequence[Section]
    settings: Mapping[str, str] = field(default_factory=dict)


def page(report: Report) -> str:
    """The whole page as text.

    >>> text = page(Report("A run", "Nothing was measured.", []))
    >>> text.startswith("<!doctype html>") and "http" not in text
    True
    """
    body = join(
        element("h1", report.title),
        element("p", report.summary, class_="faint"),
        *(_section(section) for section in report.sections if _holds_something(section)),
        _settings(report.settings),
    )
    head = join(
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width,initial-scale=1"),
        element("title", report.title),
        element("style", Markup(STYLE)),
    )
    html = element("html", element("head", head), element("body", element("main", body)), lang="en")
    return f"<!doctype html>\n{html}\n"


def _holds_something(section: Section) -> bool:
    return bool(section.text or section.tables or section.charts or section.predictions)


def _section(section: Section) -> Markup:
    charts = [
        figure(line_chart(chart.series, chart.x_title, chart.y_title), chart.caption)
        for chart in section.charts
        if any(chart.series.values())
    ]
    return element(
        "section",
        element("h2", section.title),
        element("p", section.text) if section.text else None,
        *(table(each.caption, each.columns, each.rows) for each in section.tables),
        element("div", *charts, class_="side") if charts else None,
        *(_prediction(each) for each in section.predictions),
    )


def _prediction(prediction: Prediction) -> Markup:
    verdict = None
    if prediction.target is not None:
        right = prediction.best == prediction.target
        said = "right" if right else join("expected ", _isolated(prediction.target))
        verdict = element("p", said, class_="yes" if right else None)
    drawn = lattice_picture(prediction.lattice, prediction.symbols, prediction.separator)
    pictures = [figure(drawn, prediction.certificate)]
    if len(prediction.attention):
        seen = attention_map(
            prediction.attention, prediction.source_symbols, prediction.target_symbols
        )
        pictures.append(figure(seen, "attention of this answer; blank squares are exact zeros"))
    return element(
        "article",
        element("h3", _isolated(prediction.source), " → ", _isolated(prediction.best)),
        verdict,
        element("div", *pictures, class_="side"),
    )


def _isolated(text: str) -> Markup:
    """A text in a direction of its own: one from right to left would else turn what is around it."""
    return element("bdi", text)


def _settings(settings: Mapping[str, str]) -> Markup | None:
    if not settings:
        return None
    rows = list(settings.items())
    listing = table("every setting of the run", ["setting", "value"], rows)
    return element("section", element("details", element("summary", "Settings"), listing))
