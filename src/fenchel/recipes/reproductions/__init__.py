"""The tables and figures of the papers that `fenchel reproduce` reproduces."""

from __future__ import annotations

from fenchel.errors import unknown
from fenchel.recipes.reproductions import (
    correia2019,
    martins2016,
    martins2020,
    niculae2017,
    peters2019,
)
from fenchel.recipes.reproductions.tables import PaperTable

TABLES: dict[str, PaperTable] = {
    table.name: table
    for table in (
        correia2019.TABLE1,
        correia2019.TABLE1_JAPANESE,
        correia2019.SPEEDS,
        correia2019.FIGURES,
        correia2019.FIGURES_JAPANESE,
        peters2019.TABLE1_MEDIUM,
        peters2019.TABLE1_HIGH,
        peters2019.TABLE2,
        peters2019.TABLE2_JAPANESE,
        peters2019.TABLE3,
        peters2019.FIGURE4,
        peters2019.FIGURE6,
        martins2016.TABLE2,
        martins2016.FIGURE3,
        martins2016.TABLE3,
        niculae2017.INFERENCE,
        niculae2017.HEADLINES,
        martins2020.TABLE1,
        martins2020.TABLE1_SPEEDS,
        martins2020.FIGURE2,
        martins2020.TABLE2,
        martins2020.TABLE2_EASY,
        martins2020.TABLE2_SPEEDS,
    )
}


def paper_table(name: str) -> PaperTable:
    """The table with this name, PAPER/TABLE."""
    if name not in TABLES:
        raise unknown("table", name, TABLES, "All tables: fenchel list")
    return TABLES[name]


__all__ = ["TABLES", "paper_table"]
