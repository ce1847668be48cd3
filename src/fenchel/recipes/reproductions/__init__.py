"""The tables and figures of the papers that `fenchel reproduce` makes again."""

from __future__ import annotations

from fenchel.errors import unknown
from fenchel.recipes.reproductions import martins2020, niculae2017, peters2019
from fenchel.recipes.reproductions.table import PaperTable

TABLES: dict[str, PaperTable] = {
    table.name: table
    for table in (
        peters2019.TABLE1_MEDIUM,
        peters2019.TABLE1_HIGH,
        peters2019.TABLE2,
        peters2019.TABLE2_JAPANESE,
        peters2019.TABLE3,
        peters2019.FIGURE4,
        peters2019.FIGURE6,
        niculae2017.HEADLINES,
        martins2020.FIGURE2,
    )
}


def paper_table(name: str) -> PaperTable:
    """The table of that name, PAPER/TABLE."""
    if name not in TABLES:
        raise unknown("table", name, TABLES)
    return TABLES[name]
