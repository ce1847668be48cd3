"""The course of a training, as its log tells it."""

from __future__ import annotations

import csv
from pathlib import Path

from fenchel.analysis.report import Chart
from fenchel.errors import FenchelError

Columns = dict[str, list[tuple[float, float]]]


def read_log(path: Path) -> Columns:
    """Every column of a run's log as points over epochs; none where there is no log."""
    columns: Columns = {}
    if not path.is_file():
        return columns
    try:
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                for name, value in row.items():
                    if name != "epoch" and value:
                        columns.setdefault(name, []).append((float(row["epoch"]), float(value)))
    except (LookupError, TypeError, ValueError, csv.Error) as error:
        statement = f"{path} must be a table of numbers with a column epoch"
        raise FenchelError(f"{statement}, got: {error}") from error
    return columns


def history_charts(columns: Columns) -> list[Chart]:
    """Loss, accuracies and supports over the epochs."""

    def lines(**named: str) -> Columns:
        return {shown: columns[key] for shown, key in named.items() if key in columns}

    return [
        Chart("loss a symbol", "epoch", "loss", lines(training="train_loss", validation="loss")),
        Chart(
            "validation: right symbols, and sequences that are right as a whole",
            "epoch",
            "share",
            lines(symbols="accuracy", sequences="exact"),
        ),
        Chart(
            "validation: mean number of non-zeros in attention and at the output",
            "epoch",
            "non-zeros",
            lines(attention="attention_support", output="output_support"),
        ),
    ]
