"""`fenchel list`: what can be trained, and what can be reproduced."""

from __future__ import annotations

from typing import Annotated

import typer

from fenchel.cli.console import grid, out, write_json
from fenchel.cli.options import AsJson
from fenchel.cli.program import program

LABELS = ("name", "summary")


def list_all(
    settings_of: Annotated[
        str | None,
        typer.Option("--settings", metavar="RECIPE", help="Every setting of a recipe, for --set."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the recipes and the tables of the papers that can be reproduced."""
    from fenchel.recipes import RECIPES, make_recipe
    from fenchel.recipes.reproductions import TABLES
    from fenchel.settings import describe

    if settings_of is not None:
        settings = describe(make_recipe(settings_of))
        if as_json:
            write_json({each.path: each.value for each in settings})
        else:
            title = f"settings of {settings_of}, changed by --set key=value"
            rows = [
                (each.path, _written(each.value), each.meaning)
                for each in settings
                if each.path not in LABELS
            ]
            out.print(grid(title, ["setting", "value", "meaning"], rows))
        return
    made = [(name, make()) for name, make in RECIPES.items()]
    if as_json:
        recipes = {name: each.summary for name, each in made}
        write_json({"recipes": recipes, "tables": {n: t.summary for n, t in TABLES.items()}})
        return
    rows = [(name, each.summary, each.task.columns) for name, each in made]
    title = f"recipes: {program()} train RECIPE"
    out.print(grid(title, ["recipe", "learns", "lines of a file"], rows))
    tables = [(name, table.summary) for name, table in TABLES.items()]
    title = f"papers: {program()} reproduce PAPER/TABLE"
    out.print(grid(title, ["table", "what it compares"], tables))


def _written(value: object) -> str:
    """A value as --set takes it.

    >>> _written("halve"), _written(None), _written(True), _written(0.5), _written((1.0, 2.0))
    ('halve', 'none', 'true', '0.5', '1.0,2.0')
    """
    if isinstance(value, list | tuple):
        return ",".join(map(_written, value))
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)
