"""`fenchel reproduce`: reproduce tables of the papers and compare the figures."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fenchel.cli.console import grid, note, notes, out, warn
from fenchel.errors import FenchelError
from fenchel.report import format_cell

if TYPE_CHECKING:
    from fenchel.recipes.reproductions.plan import Plan
    from fenchel.recipes.reproductions.results import Results
    from fenchel.recipes.reproductions.tables import Experiment, PaperTable


def reproduce(
    names: Annotated[
        list[str],
        typer.Argument(metavar="PAPER/TABLE", help="Tables, as named by the list command."),
    ],
    data: Annotated[
        Path,
        typer.Option(metavar="DIR", help="Folder of the public data sets: see the data command."),
    ] = Path("data"),
    results: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder of the result files.")
    ] = Path("results"),
    runs: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the trained models.")] = Path(
        "runs"
    ),
    only: Annotated[
        str,
        typer.Option(metavar="PATTERN", help="Select experiments by a regular expression."),
    ] = "",
    seeds: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            help="Runs per experiment; several are also measured as an ensemble.",
        ),
    ] = 1,
    jobs: Annotated[
        int,
        typer.Option(metavar="N", min=1, help="Runs trained in parallel, each in its own process."),
    ] = 1,
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a setting of all experiments."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Train tiny models on a few examples, as a test.")
    ] = False,
) -> None:
    """Train and measure the models of tables or figures of the papers.

    Results are written to results/PAPER/TABLE/metrics.json beside the paper's figures. Trained models
    are reused, and interrupted runs are resumed.
    """
    from fenchel.recipes.reproductions import paper_table
    from fenchel.recipes.reproductions.config import ReproductionConfig
    from fenchel.recipes.reproductions.plan import make_plan
    from fenchel.recipes.reproductions.results import (
        Results,
        commit,
        read_rows,
        reproduction_command,
    )

    selection = _select([paper_table(name) for name in dict.fromkeys(names)], only)
    config = ReproductionConfig(data, runs, tuple(overrides or ()), seeds, quick, results)
    commands = {table.name: reproduction_command(table, some, config) for table, some in selection}
    files = Results(results, commands, commit(), quick)
    failures = _run(make_plan(selection, config), jobs, files)
    for table, _ in selection:
        path = files.path(table)
        rows = [(row.name, row.ours, row.paper) for row in read_rows(path)]
        out.print(grid(table.summary, ["figure", "ours", "paper"], rows))
        note(f"{len(rows)} rows in {path}")
    for failure in failures:
        for line in failure.strip().split("\n"):
            warn(line)
    if failures:
        raise typer.Exit(1)


def _run(plan: Plan, jobs: int, results: Results) -> list[str]:
    """Run the plan and write the measurements. The messages of failed jobs are returned."""
    from fenchel.recipes.reproductions.jobs import Reporter
    from fenchel.recipes.reproductions.plan import FailedJob, run_plan

    reporter = Reporter(note, progress_bar=jobs == 1 and notes.is_terminal)
    failures = []
    with closing(run_plan(plan, jobs, reporter)) as outcomes:
        for outcome in outcomes:
            if isinstance(outcome, FailedJob):
                warn(f"{outcome.name} failed: {outcome.failure.reason}")
                failures.append(f"{outcome.name}: {outcome.failure.message}")
                continue
            table, measurements = outcome
            results.write(table, measurements)
            for each in measurements:
                ours, paper = format_cell(each.ours), format_cell(each.paper)
                note(f"{table.name}, {each.name} {ours}, paper {paper}")
    return failures


def _select(
    tables: Sequence[PaperTable], pattern: str
) -> list[tuple[PaperTable, list[Experiment]]]:
    """The tables with the experiments that match the pattern; tables without any are left out."""
    try:
        matching = re.compile(pattern)
    except re.error as error:
        message = f"--only must be a regular expression, got {pattern!r} ({error})"
        raise FenchelError(message) from error
    selection = [
        (table, [e for e in table.experiments if matching.search(e.name)]) for table in tables
    ]
    if not any(experiments for _, experiments in selection):
        known = "; ".join(dict.fromkeys(e.name for table in tables for e in table.experiments))
        raise FenchelError(f"--only must match an experiment ({known}), got {pattern!r}")
    return [(table, experiments) for table, experiments in selection if experiments]
