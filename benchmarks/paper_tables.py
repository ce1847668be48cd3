"""Writes the figures of `results` into the pages of `docs`: `make tables` after `fenchel reproduce`.

A page marks the place of a table, and the lines between the marks are replaced:

    <!-- results 2016-martins/table3 -->
    <!-- end of results -->

The rows are experiments and the columns measures, with the paper's figures where there are some. The
first mark may go on with `by measure`, for one row per measure; with `pictures`, for the drawn figures
alone; and with `only PATTERN`, for the experiments that match a regular expression. The pictures beside
a result file follow its table.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import stdev

from benchmarks.environment import ROOT
from fenchel.recipes.reproductions import paper_table
from fenchel.recipes.reproductions.results import Row, read_rows

RESULTS = ROOT / "results"
MARKED = re.compile(
    r"(<!-- results (\S+)(?: (by measure|pictures))?(?: only (.+?))? -->\n)"
    r"(?:.*?\n)??(<!-- end of results -->)",
    flags=re.DOTALL,
)
MISSING = "–"
Figure = Callable[[float], str]


def pages() -> list[Path]:
    """The pages that may have tables."""
    return [*ROOT.glob("*.md"), *sorted((ROOT / "docs").glob("*.md"))]


def updated(page: Path, results: Path = RESULTS) -> str:
    """The text of a page with the figures of the result files."""

    def part(found: re.Match[str]) -> str:
        start, name, form, only, end = found.groups()
        folder = results / paper_table(name).name
        rows = [r for r in read_rows(folder / "metrics.json") if re.search(only or "", _key(r)[0])]
        parts = [] if form == "pictures" else _table(rows, by_measure=form == "by measure")
        parts = [*parts, *_pictures(folder, page), *_provenance(name, rows)]
        return start + "".join(f"\n{each}\n" for each in parts) + "\n" + end

    return MARKED.sub(part, page.read_text(encoding="utf-8"))


def _key(row: Row) -> tuple[str, str]:
    """The experiment and the measure of a row."""
    experiment, _, measure = row.name.partition(": ")
    return experiment, measure


def _table(rows: Sequence[Row], *, by_measure: bool) -> list[str]:
    """The table as Markdown; none without rows. All figures of a measure have the same digits."""
    order = -1 if by_measure else 1
    cells = {_key(row)[::order]: row for row in rows}
    lines, columns = ([*dict.fromkeys(key[place] for key in cells)] for place in (0, 1))
    measures = {
        _key(row)[1]: _figure([r for r in rows if _key(r)[1] == _key(row)[1]]) for row in rows
    }
    compared = {key[1] for key, row in cells.items() if row.paper is not None}
    heading = [""]
    for column in columns:
        heading += [column, "paper"] if column in compared else [column]
    table = [heading, ["---"] * len(heading)]
    for line in lines:
        texts = [line]
        for column in columns:
            row = cells.get((line, column))
            figure = measures[line if by_measure else column]
            texts.append(MISSING if row is None else _ours(row, figure))
            if column in compared:
                texts.append("" if row is None or row.paper is None else figure(row.paper))
        table.append(texts)
    return ["\n".join(f"| {' | '.join(each)} |" for each in table)] if rows else []


def _figure(rows: Sequence[Row]) -> Figure:
    """How figures of a measure are written: those up to 2 with three digits after the point."""
    largest = max(abs(each) for row in rows for each in (row.ours, row.paper or 0))
    digits = 3 if largest <= 2 else 2 if largest < 1000 else 0
    return lambda value: f"{value:,.{digits}f}"


def _ours(row: Row, figure: Figure) -> str:
    """Our figure, with the standard deviation over seeds if there are several."""
    deviation = f" ± {figure(stdev(row.runs))}" if len(row.runs) > 1 else ""
    return figure(row.ours) + deviation + ("" if row.finished else " (stopped early)")


def _pictures(folder: Path, page: Path) -> list[str]:
    return [
        f"![{path.stem.replace('-', ' ')}]({Path(os.path.relpath(path, page.parent)).as_posix()})"
        for path in sorted(folder.glob("*.png"))
    ]


def _provenance(name: str, rows: Sequence[Row]) -> list[str]:
    """How the figures were measured."""
    if not rows:
        return [f"Not measured yet: `fenchel reproduce {name}`."]
    seeds = {max(1, len(row.runs)) for row in rows}
    runs = "one run each" if seeds == {1} else f"{min(seeds)} to {max(seeds)} seeds"
    if len(seeds) == 1 and seeds != {1}:
        runs = f"mean and standard deviation of {max(seeds)} seeds"
    machines = "; ".join(dict.fromkeys(row.hardware for row in rows))
    commits = ", ".join(dict.fromkeys(row.commit for row in rows))
    return [f"`fenchel reproduce {name}`, {runs}, on {machines}; commit {commits}."]


def main() -> None:
    for page in pages():
        text = updated(page)
        if text != page.read_text(encoding="utf-8"):
            page.write_text(text, encoding="utf-8")
            print(page.relative_to(ROOT))


if __name__ == "__main__":
    main()
