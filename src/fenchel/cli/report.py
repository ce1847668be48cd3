"""`fenchel report`: an HTML page about a run."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from fenchel.cli.console import note, progress_bar, warn_skipped, write
from fenchel.cli.options import (
    ColumnNames,
    Data,
    RunFolder,
    SkipBad,
    data_options,
    parse_columns,
)
from fenchel.data.bad_items import BadItems


def report(
    folder: RunFolder,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The page [default: RUN/report.html].")
    ] = None,
    data: Data = None,
    columns: ColumnNames = None,
    skip_bad: SkipBad = False,
    examples: Annotated[
        int, typer.Option(metavar="N", min=0, help="Number of examples shown.")
    ] = 6,
) -> None:
    """Write a page with metrics, training curves, attention and predictions.

    The page is a single file that needs no network.
    """
    from fenchel.analysis.run_report import run_report
    from fenchel.report import render
    from fenchel.tasks import load_run

    run = load_run(folder)
    bad = BadItems(skip_bad or run.source.skip_bad)
    split, measured = run.evaluation_examples(data or [], parse_columns(columns), bad)
    warn_skipped(bad)
    with progress_bar(f"evaluating {split}", len(measured)) as progress:
        evaluation = run.task.evaluate(run, measured, progress=progress)
    words = ["fenchel", "report", str(folder), *(["--out", str(out)] if out else [])]
    words += data_options(data, columns, skip_bad=skip_bad)
    command = shlex.join([*words, "--examples", str(examples)])
    title = ", ".join(data or [split])
    page = run_report(run, measured, title, evaluation, shown=examples, command=command)
    path = out or folder / "report.html"
    write_page(path, render(page))
    write(str(path))


def write_page(path: Path, content: str) -> None:
    """Write an HTML page and note its size."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
    note(f"{len(content.encode()) // 1024} KB")
