"""`fenchel compare`: several runs on the same examples."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fenchel.cli.console import grid, note, out, warn_skipped, write, write_json
from fenchel.cli.evaluate import evaluate_run
from fenchel.cli.options import (
    AsJson,
    ColumnNames,
    Data,
    SkipBad,
    data_options,
    parse_columns,
)
from fenchel.cli.report import write_page
from fenchel.data.bad_items import BadItems
from fenchel.errors import FenchelError

if TYPE_CHECKING:
    from fenchel.training import Run


def compare(
    folders: Annotated[list[Path], typer.Argument(metavar="RUN", help="The folders of runs.")],
    data: Data = None,
    columns: ColumnNames = None,
    skip_bad: SkipBad = False,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write a page with examples.")
    ] = None,
    as_json: AsJson = False,
    examples: Annotated[
        int, typer.Option(metavar="N", min=0, help="Number of examples on the page.")
    ] = 6,
) -> None:
    """Evaluate several runs of one task on the same examples and print their metrics side by side.

    The examples are those of --data, else the test or development set of the first run.
    """
    from fenchel.analysis.run_report import comparison_report, comparison_table
    from fenchel.report import render
    from fenchel.tasks import load_run

    runs = {name: load_run(folder) for name, folder in _names(folders).items()}
    _check_tasks(runs)
    first = next(iter(runs.values()))
    bad = BadItems(skip_bad or first.source.skip_bad)
    split, measured = first.evaluation_examples(data or [], parse_columns(columns), bad)
    warn_skipped(bad)
    evaluations = {
        name: evaluate_run(run, measured, f"{split}: {name}", store=False)
        for name, run in runs.items()
    }
    if as_json:
        write_json({name: each.metrics for name, each in evaluations.items()})
    else:
        table = comparison_table(runs, evaluations)
        title = f"{len(measured)} examples ({', '.join(data or [split])})"
        texts = [row for row in table.rows if any(isinstance(cell, str) for cell in row[1:])]
        numbers = [row for row in table.rows if row not in texts]
        out.print(grid(title, table.columns, numbers))
        for name, *values in texts:  # they would make the table wide
            write(f"{name}: {' | '.join(dict.fromkeys(str(each) for each in values if each))}")
    if html is not None:
        chosen = data_options(data, columns, skip_bad=skip_bad)
        words = ["fenchel", "compare", *map(str, folders), *chosen]
        command = shlex.join([*words, "--html", str(html), "--examples", str(examples)])
        page = comparison_report(runs, measured, evaluations, shown=examples, command=command)
        write_page(html, render(page))
        (note if as_json else write)(str(html))  # with --json, standard output has JSON only


def _names(folders: list[Path]) -> dict[str, Path]:
    """A name for every folder: its last part, or the whole path where that is not unique."""
    short = [folder.resolve().name for folder in folders]
    unique = len(set(short)) == len(short)
    names = {name if unique else str(path): path for name, path in zip(short, folders, strict=True)}
    if len(names) < 2 or len(names) < len(folders):
        raise FenchelError(f"compare requires at least two different runs, got {len(names)}")
    return names


def _check_tasks(runs: dict[str, Run]) -> None:
    kinds = {name: run.task.kind for name, run in runs.items()}
    if len(set(kinds.values())) > 1:
        got = ", ".join(f"{name} ({kind})" for name, kind in kinds.items())
        raise FenchelError(f"all runs of a comparison must have the same task, got {got}")
