"""How it is shown: Markdown tables of the ratios to the baseline, to peers, to another commit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from benchmarks.rows import Row


def markdown(rows: Sequence[Row], base: Sequence[Row] = ()) -> str:
    """The tables of one commit's rows; with rows of an earlier commit, also the change since."""
    parts = ["# Benchmarks", _provenance(rows)]
    for group in _groups(rows):
        first = group[0]
        parts.append(f"## {first.family}, {first.dtype}, {first.direction}")
        parts.append(f"Time over the time of `{first.baseline}`: median (20 % to 80 % quantile).")
        parts.append(_table(group, _ratio))
        if any(row.speedup_q50 is not None for row in group):
            parts.append("How many times faster than the same map elsewhere (median):")
            parts.append(_table([row for row in group if row.peer], _speedup))
    notes = sorted(
        {
            f"- `{r.operation}`, {r.rows} × {r.columns}, {r.direction}: {r.note}"
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
    row = rows[0]
    tree = f"{row.commit} with local changes" if row.dirty else row.commit
    return (
        f"{row.hardware}, {row.cores} cores, {row.threads} threads; Python {row.python}, "
        f"torch {row.torch}, numba {row.numba}, fenchel {row.fenchel}; commit {tree}; {row.date}. "
        "All contenders of a table column took turns in one process; every ratio is of two calls "
        "of one round."
    )


def _groups(rows: Sequence[Row]) -> Iterable[list[Row]]:
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.family, row.dtype, row.direction), []).append(row)
    return groups.values()


def _table(group: Sequence[Row], cell: Callable[[Row], str]) -> str:
    shapes = sorted({(row.columns, row.rows) for row in group})
    cells = {(row.operation, row.columns, row.rows): cell(row) for row in group}
    head = ["operation", *(f"{rows} × {columns}" for columns, rows in shapes)]
    lines = [head, ["---", *("---:" for _ in shapes)]]
    lines += [
        [f"`{operation}`", *(cells.get((operation, *shape), "") for shape in shapes)]
        for operation in dict.fromkeys(row.operation for row in group)
    ]
    return _lines(lines)


def _lines(lines: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _ratio(row: Row) -> str:
    if row.ratio_q50 is None:
        return "left out" if row.note else "–"
    return f"{row.ratio_q50:.3g} ({row.ratio_q20:.3g}–{row.ratio_q80:.3g})"


def _speedup(row: Row) -> str:
    return "–" if row.speedup_q50 is None else f"{row.speedup_q50:.3g}"


def _comparison(rows: Sequence[Row], base: Sequence[Row]) -> str:
    """The ratios then and now; below one, it became faster."""
    earlier = {row.problem: row.ratio_q50 for row in base}
    lines = [("operation", "shape", "direction", "then", "now", "now / then")]
    lines.append(("---", "---", "---", "---:", "---:", "---:"))
    for row in rows:
        then = earlier.get(row.problem)
        if then is None or row.ratio_q50 is None or row.operation == row.baseline:
            continue
        shape = f"{row.rows} × {row.columns}"
        figures = (f"{then:.3g}", f"{row.ratio_q50:.3g}", f"{row.ratio_q50 / then:.2f}")
        lines.append((f"`{row.operation}`", shape, row.direction, *figures))
    return _lines(lines)
