"""The table of heads as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, final

from fenchel.analysis.alphas import Histogram
from fenchel.analysis.roles import Record

if TYPE_CHECKING:
    from fenchel.analysis.head_table import HeadTable

Cell = str | float | int | None

MOST_SHOWN = 20  # heads with a role


@final
@dataclass(frozen=True)
class PlainTable:
    """A table that prints as text; numbers are set to the right, and None is a dash.

    >>> print(PlainTable("Layers", ["kind", "density"], [["encoder", 0.25], ["context", None]]))
    Layers
    kind     density
    encoder    0.250
    context        –
    """

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]

    def __str__(self) -> str:
        cells = [list(self.columns), *([_text(cell) for cell in row] for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        left = [any(isinstance(row[k], str) for row in self.rows) for k in range(len(self.columns))]
        lines = [
            "  ".join(
                cell.ljust(width) if to_left else cell.rjust(width)
                for cell, width, to_left in zip(row, widths, left, strict=True)
            ).rstrip()
            for row in cells
        ]
        return "\n".join([self.caption, *lines])


def printed_tables(table: HeadTable) -> list[PlainTable]:
    """Layers, roles, the heads with a role and, if it differs between heads, the spread of α."""
    records, histogram = table.records(), table.alpha_histogram()
    tables = [_layers(table, records), _roles(table)]
    notable = [record for record in records if record["role"] is not None]
    if notable:
        tables.append(_notable(notable))
    if histogram is not None and len({record["alpha"] for record in records}) > 1:
        tables.append(_alphas(histogram))
    return tables


def _layers(table: HeadTable, records: Sequence[Record]) -> PlainTable:
    columns = ["kind", "layer", "heads", "alpha", "density", "uncertainty", "diversity"]
    rows = []
    for layer in table.layers():
        place = layer["kind"], layer["layer"]
        heads = [record for record in records if (record["kind"], record["layer"]) == place]
        layer["alpha"] = _span([record["alpha"] for record in heads])
        rows.append([layer[name] for name in columns])
    return PlainTable(
        f"{table.model}: {len(records)} heads on {table.sentences} sentences", columns, rows
    )


def _roles(table: HeadTable) -> PlainTable:
    rows = [
        [_words(role["role"]), role["heads"], role["median_confidence"], role["highest"]]
        for role in table.roles()
    ]
    columns = ["role", "heads", "median confidence", "highest of all heads"]
    return PlainTable(f"Roles (confidence of at least {table.threshold:g})", columns, rows)


def _notable(records: Sequence[Record]) -> PlainTable:
    shown = sorted(records, key=lambda record: -record["confidence"])[:MOST_SHOWN]
    title = "Heads with a role"
    if len(records) > MOST_SHOWN:
        title += f", the {MOST_SHOWN} most confident of {len(records)}"
    columns = ["kind", "layer", "head", "alpha", "density", "role", "confidence"]
    rows = [[record[name] for name in columns] for record in shown]
    return PlainTable(title, columns, [[*row[:5], _words(row[5]), row[6]] for row in rows])


def _alphas(histogram: Histogram) -> PlainTable:
    edges, counts = histogram["edges"], histogram["counts"]
    rows = [
        [f"{low:.1f}–{high:.1f}", *(counts[kind][place] for kind in counts)]
        for place, (low, high) in enumerate(pairwise(edges))
    ]
    return PlainTable("Number of heads by alpha", ["alpha", *counts], rows)


def _span(values: Sequence[float | None]) -> str | None:
    """The least and the largest value.

    >>> _span([1.25, 1.5, None])
    '1.25–1.50'
    """
    known = [value for value in values if value is not None]
    ends = dict.fromkeys(f"{end:.2f}" for end in (min(known), max(known))) if known else ()
    return "–".join(ends) or None


def _words(name: str) -> str:
    return name.replace("_", " ")


def _text(cell: Cell) -> str:
    if cell is None:
        return "–"
    return f"{cell:.3f}" if isinstance(cell, float) else str(cell)
