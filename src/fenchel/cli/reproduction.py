"""`fenchel reproduce`: a table of a paper again, ours beside theirs."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fenchel.cli.console import grid, note, out
from fenchel.errors import rule

if TYPE_CHECKING:
    from fenchel.recipes.reproductions.table import Experiment, PaperTable


def reproduce(
    name: Annotated[str, typer.Argument(metavar="PAPER/TABLE", help="See fenchel list.")],
    data: Annotated[
        Path, typer.Option(metavar="DIR", help="The public data, unpacked: see fenchel data.")
    ] = Path("data"),
    results: Annotated[Path, typer.Option(metavar="DIR", help="Where the rows go.")] = Path(
        "results"
    ),
    runs: Annotated[Path, typer.Option(metavar="DIR", help="Where the models go.")] = Path("runs"),
    only: Annotated[
        str,
        typer.Option(metavar="PATTERN", help="Some experiments: a regular expression of names."),
    ] = "",
    changes: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Any setting, for all.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Tiny models on a few examples: does everything work?")
    ] = False,
) -> None:
    """Train and measure what a table or figure of a paper compares.

    Rows go to results/PAPER/TABLE/metrics.json with the paper's figures beside ours. Models that were
    trained before are not trained again, and one that was stopped goes on.
    """
    from fenchel.cli.epochs import teller
    from fenchel.recipes.reproductions import paper_table
    from fenchel.recipes.reproductions.rows import Row, commit, hardware, update
    from fenchel.recipes.reproductions.table import TimedTable
    from fenchel.recipes.reproductions.timing import timed_figures
    from fenchel.recipes.reproductions.training import Occasion, loaded, trained_figures

    table = paper_table(name)
    chosen = _chosen(table, only)
    occasion = Occasion(runs, tuple(changes or ()), quick, note, teller())
    found = loaded(table, _folder(data, table.dataset), occasion)
    for sentence in found.notes:
        note(sentence)
    command = _command(name, only, changes or [], quick)
    path = results / name / ("quick.json" if quick else "metrics.json")
    if isinstance(table, TimedTable):
        stages = iter([(chosen, timed_figures(table, chosen, found, occasion))])
    else:
        stages = trained_figures(table, chosen, found, occasion)
    rows: list[Row] = []
    for _, figures in stages:
        made = [
            Row(*figure, command=command, commit=commit(), hardware=hardware())
            for figure in figures
        ]
        rows = update(path, made)
    shown = [(row.name, row.ours, row.paper) for row in rows]
    out.print(grid(table.summary, ["figure", "ours", "paper"], shown))
    note(f"{len(rows)} rows in {path}")


def _chosen(table: PaperTable, pattern: str) -> list[Experiment]:
    try:
        chosen = [each for each in table.experiments if re.search(pattern, each.name)]
    except re.error as error:
        raise rule("--only is a regular expression", expected="a valid one", got=error) from error
    if not chosen:
        known = "; ".join(each.name for each in table.experiments)
        raise rule("--only matches an experiment", expected=f"some of: {known}", got=repr(pattern))
    return chosen


def _folder(data: Path, dataset: str) -> Path:
    """The folder of a set: the one of its name inside, or the given one itself."""
    return data / dataset if (data / dataset).is_dir() else data


def _command(name: str, only: str, changes: list[str], quick: bool) -> str:
    """The command that makes the same rows; where data and models lie does not matter to them."""
    parts = ["fenchel", "reproduce", name]
    parts += ["--only", only] if only else []
    for change in changes:
        parts += ["--set", change]
    return shlex.join([*parts, *(["--quick"] if quick else [])])
