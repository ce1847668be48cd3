"""Rows of results, one per operation and case, in CSV files with the rows of many commits."""

from __future__ import annotations

import csv
import os
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import torch

from benchmarks.environment import Environment
from benchmarks.problems import Case, shape_name
from benchmarks.registry import COPY
from benchmarks.runner import Measurement, Quantiles, quantiles, ratios

MIB = 2**20


@dataclass(frozen=True)
class Row(Environment):
    """The measurement of an operation on a case, and the environment.

    Figures are empty if the operation was left out; `note` has the reason. `ratio` is its time divided by
    the time of the baseline, `copies` its time divided by the time of a copy of the scores, and `speedup`
    the time of the fastest `peer` divided by its time, all as quantiles over rounds. `peak_mib` is the
    peak memory beyond the inputs, and `error` the largest error of the probabilities of a map.
    """

    family: str
    operation: str
    rows: int
    width: int
    columns: int
    dtype: str
    direction: str
    clock: str
    repetitions: int
    milliseconds_q20: float | None
    milliseconds_q50: float | None
    milliseconds_q80: float | None
    baseline: str
    ratio_q20: float | None
    ratio_q50: float | None
    ratio_q80: float | None
    copies_q20: float | None
    copies_q50: float | None
    copies_q80: float | None
    peer: str
    speedup_q20: float | None
    speedup_q50: float | None
    speedup_q80: float | None
    peak_mib: float | None
    error: float | None
    note: str

    @property
    def shape(self) -> str:
        return shape_name(self.rows, self.width, self.columns)

    @property
    def table(self) -> tuple[str, str, str, str]:
        """The table of the report that shows the row."""
        return self.family, self.dtype, self.direction, self.clock

    @property
    def problem(self) -> tuple[str | int, ...]:
        """What was measured, without the commit."""
        return (
            self.device, self.family, self.operation, self.rows, self.width, self.columns, self.dtype,
            self.direction, self.clock,
        )  # fmt: skip


def make_rows(case: Case, measured: Sequence[Measurement], environment: Environment) -> list[Row]:
    """The rows of a case: times, ratios to the baseline, and speedups over the fastest peer."""
    times = {measurement.operation.name: measurement.times for measurement in measured}
    result = []
    for measurement in measured:
        operation = measurement.operation
        mine = measurement.times
        milliseconds = quantiles([1000 * seconds for seconds in mine])
        ratio = quantiles(ratios(mine, times.get(operation.baseline, [])))
        peer = _fastest(operation.peers, times)
        speedup = quantiles(ratios(times.get(peer, []), mine))
        copies = quantiles(ratios(mine, times.get(COPY, [])))
        result.append(
            Row(
                **asdict(environment),
                family=case.family,
                operation=operation.name,
                rows=case.rows,
                width=case.width,
                columns=case.columns,
                dtype=case.dtype_name,
                direction=case.direction,
                clock=case.clock,
                repetitions=len(mine),
                baseline=operation.baseline,
                peer=peer,
                peak_mib=None if measurement.peak is None else round(measurement.peak / MIB, 1),
                error=None if measurement.error is None else float(f"{measurement.error:.3g}"),
                note=measurement.note,
                **_columns("milliseconds", milliseconds),
                **_columns("ratio", ratio),
                **_columns("copies", copies),
                **_columns("speedup", speedup),
            )
        )
    return result


def _fastest(peers: Sequence[str], times: dict[str, list[float]]) -> str:
    """The peer with the lowest median; the first one, or none, if they all were left out."""
    measured = [peer for peer in peers if times.get(peer)]
    if measured:
        return min(measured, key=lambda peer: statistics.median(times[peer]))
    return next((peer for peer in peers if peer in times), "")


def _columns(name: str, values: Quantiles | None) -> dict[str, Any]:
    digits: Any = [None] * 3 if values is None else [float(f"{value:.5g}") for value in values]
    return dict(zip((f"{name}_q20", f"{name}_q50", f"{name}_q80"), digits, strict=True))


def read(path: Path) -> list[Row]:
    """The rows of a file; columns that an older file does not have are empty."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return [_parse(line) for line in csv.DictReader(file)]


def newest(rows: Sequence[Row]) -> list[Row]:
    """For each table, the rows of the last commit that measured it."""
    last = {row.table: row.commit for row in rows}
    return [
        row for table in last for row in rows if (row.table, row.commit) == (table, last[table])
    ]


def _parse(line: dict[str, str]) -> Row:
    kinds = {
        "bool": lambda text: text == "True",
        "int": lambda text: int(text or 0),
        "float | None": lambda text: float(text) if text else None,
        "str": str,
    }
    values = {"clock": "device"} | {key: text for key, text in line.items() if text}
    return Row(
        **{field.name: kinds[str(field.type)](values.get(field.name, "")) for field in fields(Row)}
    )


def measured_before(path: Path, commit: str) -> set[tuple[Case, str]]:
    """The cases and operations for which a file has a row of this commit."""
    return {
        (
            Case(
                row.family, row.rows, row.columns, getattr(torch, row.dtype),
                row.direction != "forward", row.device, row.width, row.clock,
            ),
            row.operation,
        )
        for row in read(path)
        if row.commit == commit
    }  # fmt: skip


def _place(row: Row) -> tuple[str | int, ...]:
    return (
        row.commit, row.device, row.family, row.operation, row.width, row.columns, row.dtype,
        row.direction, row.clock,
    )  # fmt: skip


def update(path: Path, new: Iterable[Row]) -> list[Row]:
    """Add rows to a file; they replace those of the same commit, operation and shape.

    The file is replaced atomically.
    """
    new = list(new)
    replaced = {_place(row) for row in new}
    kept = [row for row in read(path) if _place(row) not in replaced]
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    with part.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Row)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(row) for row in kept + new)
    os.replace(part, path)
    return kept + new
