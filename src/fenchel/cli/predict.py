"""`fenchel predict`: predictions for a file, for standard input, or for typed lines."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from queue import Queue
from threading import Thread
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fenchel.cli.console import note, out, progress_bar, warn, warn_skipped, write, write_json
from fenchel.cli.options import (
    ColumnNames,
    RunFolder,
    SkipBad,
    parse_columns,
    task_options,
    with_task_options,
)
from fenchel.data.bad_items import BadItems
from fenchel.errors import FenchelError

if TYPE_CHECKING:
    from fenchel.training import Predictor

MOST_AT_ONCE = 256


@with_task_options("predict_options")
def predict(
    folder: RunFolder,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Lines to predict; - is standard input.")
    ] = "-",
    columns: ColumnNames = None,
    skip_bad: SkipBad = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object per line.")] = False,
    *,
    given: dict[str, Any],
) -> None:
    """Predict for the lines of a file or of standard input.

    Lines have the columns of the training files without the targets; the guide of the task explains the
    columns of the output. A pipe is answered as lines arrive.
    """
    from fenchel.tasks import load_run

    run = load_run(folder)
    options = task_options(run, "predict_options", given)
    output = "json" if as_json else "terminal" if out.is_terminal else "lines"
    predictor = run.task.predictor(run, options, output)
    if file == "-" and sys.stdin.isatty():
        _predict_typed_lines(predictor, as_json)
        return
    bad = BadItems(skip_bad)
    examples = predictor.read(file, parse_columns(columns), bad)
    for part in _parts_as_they_arrive(examples) if file == "-" else [list(examples)]:
        _predict(predictor, part, as_json, bad)
    warn_skipped(bad)


def _parts_as_they_arrive(examples: Iterator[Any]) -> Iterator[list[Any]]:
    """The examples in lists of those that have arrived, so that a pipe is answered without delay."""
    arrived: Queue[tuple[Any, BaseException | None]] = Queue(maxsize=MOST_AT_ONCE)

    def read() -> None:
        try:
            for example in examples:
                arrived.put((example, None))
            arrived.put((None, StopIteration()))
        except Exception as error:
            arrived.put((None, error))

    Thread(target=read, daemon=True).start()
    while True:
        part = [arrived.get()]
        while not arrived.empty():
            part.append(arrived.get())
        *_, (_, end) = part
        found = [example for example, error in part if error is None]
        if found:
            yield found
        if isinstance(end, StopIteration):
            return
        if end is not None:
            raise end


def _predict(predictor: Predictor, examples: Sequence[Any], as_json: bool, bad: BadItems) -> None:
    """Predict for the examples, and print an empty line for each that is None.

    Those are blank lines, and bad lines that are skipped.
    """
    present = [example for example in examples if example is not None]
    if len(present) < len(examples):
        count = len(examples) - len(present)
        kind = "blank and bad" if bad.count else "blank"
        warn(f"{kind} lines have no prediction: {count} of {len(examples)} lines")
    for warning in predictor.warnings(present):
        warn(warning)
    with progress_bar("predicting", len(present)) as progress:
        predictions = predictor.predict(present, progress) if present else []
    table = None
    if out.is_terminal and not as_json:
        table = predictor.to_table(present, predictions, out.width)
    if table is not None:
        out.print(table)
    else:
        remaining = iter(predictions)
        for example in examples:
            if example is None:
                write("null" if as_json else "")
            elif as_json:
                write_json(predictor.to_json(example, next(remaining)))
            else:
                write("\n".join(predictor.to_lines(example, next(remaining))))
    predictor.finish(present, predictions)


def _predict_typed_lines(predictor: Predictor, as_json: bool) -> None:
    """Predict line by line as a person types."""
    note(f"type {predictor.line_format}; Ctrl-D ends")
    for line in sys.stdin:
        if line.strip():
            try:
                example = predictor.parse(line)
            except FenchelError as error:
                warn(str(error))
                continue
            _predict(predictor, [example], as_json, BadItems())
