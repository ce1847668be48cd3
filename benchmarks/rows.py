"""What is kept: one row a contender and case, in CSV files that hold the rows of many commits."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from benchmarks.environment import Environment
from benchmarks.registry import Case
from benchmarks.runner import Measurement, Quantiles, quantiles, ratios


@dataclass(frozen=True)
class Row:
    """One contender on one case. Figures are empty where it was left out; `note` says why."""

    date: str
    commit: str
    dirty: bool
    hardware: str
    cores: int
    threads: int
    python: str
    torch: str
    numba: str
    fenchel: str
    device: str
    family: str
    operation: str
    rows: int
    columns: int
    dtype: str
    direction: str
    repetitions: int
    milliseconds_q20: float | None
    milliseconds_q50: float | None
    milliseconds_q80: float | None
    baseline: str
    ratio_q20: float | None
    ratio_q50: float | None
    ratio_q80: float | None
    peer: str
    speedup_q20: float | None
    speedup_q50: float | None
    speedup_q80: float | None
    note: str

    @property
    def problem(self) -> tuple[str | int, ...]:
        """What was measured, whatever the commit."""
        return (
            self.device, self.operation, self.rows, self.columns, self.dtype, self.direction
        )  # fmt: skip


def make_rows(case: Case, race: Sequence[Measurement], environment: Environment) -> list[Row]:
    """The rows of one race: times, ratios to the baseline, and how much faster than the peer."""
    times = {measurement.operation.name: measurement.times for measurement in race}
    result = []
    for measurement in race:
        operation = measurement.operation
        mine = measurement.times
        milliseconds = quantiles([1000 * seconds for seconds in mine])
        ratio = quantiles(ratios(mine, times.get(operation.baseline, [])))
        speedup = quantiles(ratios(times.get(operation.peer or "", []), mine))
        result.append(
            Row(
                **asdict(environment),
                family=case.family,
                operation=operation.name,
                rows=case.rows,
                columns=case.columns,
                dtype=case.dtype_name,
                direction=case.direction,
                repetitions=len(mine),
                baseline=operation.baseline,
                peer=operation.peer or "",
                note=measurement.note,
                **_columns("milliseconds", milliseconds),
                **_columns("ratio", ratio),
                **_columns("speedup", speedup),
            )
        )
    return result


def _columns(name: str, values: Quantiles | None) -> dict[str, Any]:
    digits: Any = [None] * 3 if values is None else [float(f"{value:.5g}") for value in values]
    return dict(zip((f"{name}_q20", f"{name}_q50", f"{name}_q80"), digits, strict=True))


def read(path: Path) -> list[Row]:
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return [_parse(line) for line in csv.DictReader(file)]


def _parse(line: dict[str, str]) -> Row:
    kinds = {
        "bool": lambda text: text == "True",
        "int": int,
        "float | None": lambda text: float(text) if text else None,
        "str": str,
    }
    return Row(**{field.name: kinds[str(field.type)](line[field.name]) for field in fields(Row)})


def _place(row: Row) -> tuple[str | int, ...]:
    return row.commit, row.device, row.operation, row.columns, row.dtype, row.direction


def update(path: Path, new: Iterable[Row]) -> list[Row]:
    """Put `new` in the place of what the same commit said of the same columns, keep the rest."""
    new = list(new)
    replaced = {_place(row) for row in new}
    kept = [row for row in read(path) if _place(row) not in replaced]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Row)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(row) for row in kept + new)
    return kept + new
