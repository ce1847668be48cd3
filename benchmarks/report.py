"""Markdown tables of rows: times, and ratios to the baseline, a copy, peers and another commit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from benchmarks.aims import table_of_aims
from benchmarks.errors import SAMPLE
from benchmarks.problems import ATTENTION_FAMILIES
from benchmarks.rows import Row

SHAPES = {
    "maps": "rows × columns",
    "losses": "rows × classes",
    "layers": "rows × width of the hidden states × classes",
    "structured": "rows × columns",
    "continuous": "densities over images × functions of the basis",
    "continuous-regions": "images × width of the values × regions, for a basis of 100 functions",
    "search": "sentences × width of the beam × prefixes at once",
    **dict.fromkeys(ATTENTION_FAMILIES, "queries × size of a head × keys, for 8 heads"),
    "decoder": "sentences × hidden size × symbols of a target",
}


def markdown(rows: Sequence[Row], base: Sequence[Row] = ()) -> str:
    """The tables of some rows; with rows of an earlier commit, also the change since."""
    parts = ["# Benchmarks", _provenance(rows)]
    if aims := table_of_aims(rows):
        parts += ["## Aims", "The median that is farthest from each:", _table_of_aims(aims)]
    for group in _groups(rows):
        parts += _section(group)
    notes = sorted(
        {
            f"- `{r.operation}`, {r.shape}, {r.dtype}, {r.direction}: {r.note}"
            for r in rows
            if r.note
        }
    )
    if notes:
        parts += ["## Left out", "\n".join(notes)]
    if base:
        parts += [f"## Against commit {base[0].commit}", _comparison(rows, base)]
    return "\n\n".join(parts) + "\n"


def _provenance(rows: Sequence[Row]) -> str:
    tables: dict[str, dict[str, None]] = {}
    for row in rows:
        tables.setdefault(_environment(row), {})[_title(row)] = None
    if len(tables) == 1:
        where = f"{_environment(rows[0])}."
    else:
        lines = [f"- {place}: {'; '.join(measured)}" for place, measured in tables.items()]
        where = "\n".join(lines) + "\n"
    return (
        f"{where}\nAll operations of a table column took turns in one process; every ratio is of two "
        "calls of one round."
    )


def _environment(row: Row) -> str:
    tree = f"{row.commit} with local changes" if row.dirty else row.commit
    machine = [row.hardware]
    if not row.device.startswith("cuda"):
        machine += [f"{row.cores} cores", f"{row.threads} threads"]
    compiler = f"Triton {row.triton}" if row.device.startswith("cuda") else f"numba {row.numba}"
    versions = [f"Python {row.python}", f"torch {row.torch}", compiler, f"fenchel {row.fenchel}"]
    versions += [row.peers] if row.peers else []
    return f"{', '.join(machine)}; {', '.join(versions)}; commit {tree}; {row.date}"


def _title(row: Row) -> str:
    what = "what a call costs the host" if row.clock == "host" else row.dtype
    return f"{row.family}, {what}, {row.direction}"


def _groups(rows: Sequence[Row]) -> Iterable[list[Row]]:
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in sorted(rows, key=lambda row: list(SHAPES).index(row.family)):
        groups.setdefault(row.table, []).append(row)
    return groups.values()


def _section(group: Sequence[Row]) -> Iterable[str]:
    first = group[0]
    on_host = first.clock == "host"
    yield f"## {_title(first)}"
    yield (
        f"Shapes are {SHAPES[first.family]}. "
        f"Time over the time of `{first.baseline}`: median (20 % to 80 % quantile)."
    )
    yield _table(group, _ratio)
    ours = [r for r in group if r.operation.startswith("fenchel.") or r.operation == r.baseline]
    if any(row.copies_q50 is not None for row in ours):
        yield "Time over the time of a copy of the scores (median):"
        yield _table(ours, lambda row: _figure(row.copies_q50))
    if any(row.speedup_q50 is not None for row in group):
        yield "How many times faster than the fastest that computes the same elsewhere (median):"
        yield _table([row for row in group if row.peer], _speedup)
    if any(row.error is not None for row in group):
        yield f"Largest error of a probability in {SAMPLE} rows, against float64:"
        yield _table(
            [row for row in group if row.error is not None], lambda row: f"{row.error:.1e}"
        )
    unit, scale = ("Microseconds", 1000) if on_host else ("Milliseconds", 1)
    yield f"{unit} (median):"
    yield _table(group, lambda row: _figure(row.milliseconds_q50, scale))
    if first.family == "search":
        yield "Sentences a second (median):"
        yield _table(group, lambda row: _figure(row.milliseconds_q50 and _a_second(row)))
    if first.family == "structured":
        yield "Nanoseconds a score (median), the same for all lengths where the cost is linear:"
        yield _table(group, _nanoseconds_a_score)
    if any(row.peak_mib is not None for row in group) and first.family != "maps":
        yield "Peak memory beyond the inputs, MiB:"
        yield _table(group, lambda row: "–" if row.peak_mib is None else f"{row.peak_mib:.0f}")


def _table(group: Sequence[Row], cell: Callable[[Row], str]) -> str:
    shapes = {row.shape: (row.columns, row.rows) for row in group}
    names = sorted(shapes, key=lambda name: shapes[name])
    cells = {(row.operation, row.shape): cell(row) for row in group}
    lines = [["operation", *names], ["---", *("---:" for _ in names)]]
    lines += [
        [f"`{operation}`", *(cells.get((operation, name), "") for name in names)]
        for operation in dict.fromkeys(row.operation for row in group)
    ]
    return _lines(lines)


def _table_of_aims(aims: Sequence[Sequence[str]]) -> str:
    head = ("aim", "bound", "worst", "holds", "where")
    return _lines([head, ("---", "---:", "---:", "---", "---"), *aims])


def _lines(lines: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _figure(value: float | None, scale: float = 1) -> str:
    return "–" if value is None else f"{scale * value:.3g}"


def _ratio(row: Row) -> str:
    if row.ratio_q50 is None:
        return "left out" if row.note else "–"
    return f"{row.ratio_q50:.3g} ({row.ratio_q20:.3g}–{row.ratio_q80:.3g})"


def _nanoseconds_a_score(row: Row) -> str:
    return _figure(row.milliseconds_q50, 1e6 / (row.rows * row.columns))


def _a_second(row: Row) -> float:
    return 1000 * row.rows / (row.milliseconds_q50 or 1.0)


def _speedup(row: Row) -> str:
    peer = re.split(r"[.,]", row.peer)[0]  # the package, or what is said in words
    return "–" if row.speedup_q50 is None else f"{row.speedup_q50:.3g} ({peer})"


def _comparison(rows: Sequence[Row], base: Sequence[Row]) -> str:
    """The ratios of two commits; a quotient below 1 means that the operation became faster."""
    earlier = {row.problem: row.ratio_q50 for row in base}
    lines = [("operation", "shape", "dtype", "direction", "then", "now", "now / then")]
    lines.append(("---", "---", "---", "---", "---:", "---:", "---:"))
    for row in rows:
        then = earlier.get(row.problem)
        if then is None or row.ratio_q50 is None or row.operation == row.baseline:
            continue
        figures = (f"{then:.3g}", f"{row.ratio_q50:.3g}", f"{row.ratio_q50 / then:.2f}")
        lines.append((f"`{row.operation}`", row.shape, row.dtype, row.direction, *figures))
    return _lines(lines)
