"""`fenchel reproduce`: tables of the papers again, ours beside theirs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fenchel.analysis.tables import shown
from fenchel.cli.console import grid, note, notes, out, warn
from fenchel.errors import rule

if TYPE_CHECKING:
    from fenchel.recipes.reproductions.book import Book
    from fenchel.recipes.reproductions.rows import Finding
    from fenchel.recipes.reproductions.source import Source
    from fenchel.recipes.reproductions.table import Experiment, PaperTable, TimedTable
    from fenchel.recipes.reproductions.training import Occasion

    Chosen = list[tuple[PaperTable, list[Experiment]]]


def reproduce(
    names: Annotated[
        list[str],
        typer.Argument(metavar="PAPER/TABLE...", help="See the list command."),
    ],
    data: Annotated[
        Path,
        typer.Option(metavar="DIR", help="The public data, unpacked: see the data command."),
    ] = Path("data"),
    results: Annotated[Path, typer.Option(metavar="DIR", help="Where the rows go.")] = Path(
        "results"
    ),
    runs: Annotated[Path, typer.Option(metavar="DIR", help="Where the models go.")] = Path("runs"),
    only: Annotated[
        str,
        typer.Option(metavar="PATTERN", help="Some experiments: a regular expression of names."),
    ] = "",
    seeds: Annotated[
        int,
        typer.Option(
            metavar="N", min=1, help="Runs of every experiment; several also as an ensemble."
        ),
    ] = 1,
    jobs: Annotated[
        int,
        typer.Option(metavar="N", min=1, help="Runs side by side, each in a process of its own."),
    ] = 1,
    changes: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Any setting, for all.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Tiny models on a few examples: does everything work?")
    ] = False,
) -> None:
    """Train and measure what tables or figures of a paper compare.

    Rows go to results/PAPER/TABLE/metrics.json with the paper's figures beside ours. Models that were
    trained before are not trained again, and one that was stopped goes on.
    """
    from fenchel.recipes.reproductions import paper_table
    from fenchel.recipes.reproductions.book import Book
    from fenchel.recipes.reproductions.command import command
    from fenchel.recipes.reproductions.training import Occasion

    chosen = _chosen([paper_table(name) for name in dict.fromkeys(names)], only)
    occasion = Occasion(runs, tuple(changes or ()), quick)
    again = partial(command, seeds=seeds, changes=changes or (), quick=quick)
    commands = {table.name: again(table, experiments) for table, experiments in chosen}
    book = Book(results, commands.__getitem__, quick)
    sources = _sources_of_speeds(chosen, data, occasion)
    failures = _trained(chosen, data, occasion, seeds, jobs, book)
    failures += _timed(chosen, sources, occasion, book)
    for table, _ in chosen:
        rows = [(each.name, each.ours, each.paper) for each in book.findings(table)]
        out.print(grid(table.summary, ["figure", "ours", "paper"], rows))
        note(f"{len(rows)} rows in {book.path(table)}")
    for failure in failures:
        for line in failure.strip().split("\n"):
            warn(line)
    if failures:
        raise typer.Exit(1)


def _trained(
    chosen: Chosen, data: Path, occasion: Occasion, seeds: int, jobs: int, book: Book
) -> list[str]:
    """All tables of trained models, through one pool; what went wrong is returned."""
    from fenchel.cli.epochs import tell
    from fenchel.recipes.reproductions.job import Voice
    from fenchel.recipes.reproductions.plan import planned
    from fenchel.recipes.reproductions.table import TrainedTable
    from fenchel.recipes.reproductions.together import Failed, reproduced

    tables = [(table, some) for table, some in chosen if isinstance(table, TrainedTable)]
    made = planned(tables, data, occasion, seeds)
    has_bar = jobs == 1 and notes.is_terminal
    failures = []
    with closing(reproduced(made, jobs, Voice(note, None if has_bar else tell))) as steps:
        for step in steps:
            if isinstance(step, Failed):
                warn(f"{step.name} failed: {step.failure.reason}")
                failures.append(f"{step.name}: {step.failure.message}")
            else:
                comparison, findings = step
                book.keep(comparison.table, findings)
                for finding in findings:
                    ours, theirs = shown(finding.ours), shown(finding.paper)
                    note(f"{comparison.table.name}, {finding.name} {ours}, paper {theirs}")
    return failures


def _timed(chosen: Chosen, sources: dict[str, Source], occasion: Occasion, book: Book) -> list[str]:
    """The tables of speeds, one after the other, when nothing else runs; failures are returned."""
    from fenchel.recipes.reproductions.pool import Failure, attempt
    from fenchel.recipes.reproductions.table import TimedTable

    failures = []
    for table, experiments in chosen:
        if isinstance(table, TimedTable):
            outcome = attempt(partial(_speeds, table, experiments, sources[table.name], occasion))
            if isinstance(outcome, Failure):
                failures.append(f"{table.name}: {outcome.message}")
            else:
                book.keep(table, outcome)
    return failures


def _speeds(
    table: TimedTable, experiments: Sequence[Experiment], source: Source, occasion: Occasion
) -> list[Finding]:
    from fenchel.recipes.reproductions.timing import timed_figures

    found = source.splits()
    for sentence in found.notes:
        note(sentence)
    return timed_figures(table, experiments, found, occasion)


def _sources_of_speeds(chosen: Chosen, data: Path, occasion: Occasion) -> dict[str, Source]:
    """The data of the tables of speeds. What is wrong with them or a setting is told before training."""
    from fenchel.recipes.reproductions.source import Source
    from fenchel.recipes.reproductions.table import TimedTable
    from fenchel.recipes.reproductions.training import configured

    sources = {}
    for table, experiments in chosen:
        if isinstance(table, TimedTable):
            sources[table.name] = Source.of(table, data, quick=occasion.quick)
            for experiment in experiments:
                configured(table, experiment, occasion)
    return sources


def _chosen(tables: Sequence[PaperTable], pattern: str) -> Chosen:
    """The tables with those of their experiments that match, without those that have none."""
    try:
        wanted = re.compile(pattern)
    except re.error as error:
        got = f"{pattern!r} ({error})"
        raise rule("--only is a regular expression", expected="a valid one", got=got) from error
    chosen = [(table, [e for e in table.experiments if wanted.search(e.name)]) for table in tables]
    if not any(experiments for _, experiments in chosen):
        known = "; ".join(dict.fromkeys(e.name for table in tables for e in table.experiments))
        raise rule("--only matches an experiment", expected=f"some of: {known}", got=repr(pattern))
    return [(table, experiments) for table, experiments in chosen if experiments]
