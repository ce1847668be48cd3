"""`fenchel evaluate`: the metrics of a run on its test set, or on any file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fenchel.cli.console import grid, out, progress_bar, warn, warn_skipped, write, write_json
from fenchel.cli.options import (
    AsJson,
    ColumnNames,
    Data,
    RunFolder,
    SkipBad,
    parse_columns,
    task_options,
    with_task_options,
)
from fenchel.data.bad_items import BadItems

if TYPE_CHECKING:
    from fenchel.training import Evaluation, Run

LONGEST_TABLE = 20


@with_task_options("evaluate_options")
def evaluate(
    folder: RunFolder,
    data: Data = None,
    columns: ColumnNames = None,
    skip_bad: SkipBad = False,
    as_json: AsJson = False,
    *,
    given: dict[str, Any],
) -> None:
    """Measure a run on its test set, or on a file.

    The metrics are stored in the run's folder unless --data or options are given.
    """
    from fenchel.tasks import load_run

    run = load_run(folder)
    options = task_options(run, "evaluate_options", given)
    bad = BadItems(skip_bad or run.source.skip_bad)
    split, examples = run.evaluation_examples(data or [], parse_columns(columns), bad)
    warn_skipped(bad)
    evaluation = evaluate_run(run, examples, split, options, store=not data and not given)
    if as_json:
        write_json(evaluation.metrics)
    else:
        show(run, evaluation, ", ".join(data or [split]))


def evaluate_run(
    run: Run, examples: Sequence[Any], split: str, options: Any = None, *, store: bool = True
) -> Evaluation:
    """Evaluate a run with a progress bar, and store the metrics in its folder."""
    with progress_bar(f"evaluating {split}", len(examples)) as progress:
        evaluation = run.task.evaluate(run, examples, options, progress)
    if store:
        try:
            run.save_metrics(f"{split}_evaluation", evaluation.metrics)
        except OSError as error:
            warn(f"the metrics cannot be stored in {run.path}: {error.strerror or error}")
    return evaluation


def show(run: Run, evaluation: Evaluation, title: str) -> None:
    """Print the metrics, the main one first; texts, which would make a table wide, below it."""
    for table in run.task.metric_tables(evaluation.metrics, title):
        numbers = [row for row in table.rows if not isinstance(row[1], str)]
        if len(numbers) > LONGEST_TABLE:
            warn(f"{table.caption}: {len(numbers)} rows are not shown; --json prints them")
            continue
        out.print(grid(table.caption, table.columns, numbers))
        for name, text, *_ in (row for row in table.rows if isinstance(row[1], str)):
            write(f"{name}: {text}")
