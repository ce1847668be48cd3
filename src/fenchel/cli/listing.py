"""`fenchel list`: what can be trained, and what can be reproduced."""

from __future__ import annotations

from typing import Annotated

import typer

from fenchel.cli.console import grid, out, write_json
from fenchel.cli.options import AsJson


def list_all(
    settings_of: Annotated[
        str | None,
        typer.Option("--settings", metavar="RECIPE", help="Every setting of a recipe, for --set."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the recipes and the tables of the papers that can be reproduced."""
    from fenchel.recipes import RECIPES, recipe, settings
    from fenchel.recipes.reading import COLUMNS
    from fenchel.recipes.reproductions import TABLES

    if settings_of is not None:
        values = settings(recipe(settings_of))
        if as_json:
            write_json(values)
        else:
            title = f"settings of {settings_of}, changed by --set key=value"
            out.print(grid(title, ["setting", "value"], [(k, repr(v)) for k, v in values.items()]))
        return
    made = [(name, make()) for name, make in RECIPES.items()]
    if as_json:
        recipes = {name: each.summary for name, each in made}
        write_json({"recipes": recipes, "tables": {n: t.summary for n, t in TABLES.items()}})
        return
    rows = [(name, each.summary, COLUMNS[each.data.format]) for name, each in made]
    out.print(grid("recipes: fenchel train RECIPE", ["recipe", "learns", "lines of a file"], rows))
    tables = [(name, table.summary) for name, table in TABLES.items()]
    out.print(grid("papers: fenchel reproduce PAPER/TABLE", ["table", "what it compares"], tables))
