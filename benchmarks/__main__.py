"""`python -m benchmarks [--quick] [--only PATTERN] [--device cpu|cuda] [--base COMMIT]`."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import torch
from rich.console import Console
from rich.markdown import Markdown
from rich.progress import Progress

from benchmarks.environment import RESULTS, describe
from benchmarks.picture import ratio_picture
from benchmarks.registry import OPERATIONS, Case, Operation, cases
from benchmarks.report import markdown
from benchmarks.rows import Row, make_rows, read, update
from benchmarks.runner import Effort, race
from benchmarks.timing import timer_for
from fenchel.errors import rule

FULL, QUICK = Effort(), Effort(rounds=8, seconds=0.2, slowest_call=0.2)
FULL_ELEMENTS, QUICK_ELEMENTS = 4_096_000, 256_000


def select(pattern: str, family: str, device: str) -> list[Operation]:
    """The operations whose name matches the pattern, and the baselines that they are divided by."""
    able = [o for o in OPERATIONS.values() if o.family == family and device in o.devices]
    chosen = [operation for operation in able if re.search(pattern, operation.name)]
    baselines = {operation.baseline for operation in chosen}
    return [operation for operation in able if operation in chosen or operation.name in baselines]


def measure(problems: Sequence[Case], pattern: str, effort: Effort, console: Console) -> list[Row]:
    environment = describe(problems[0].device)
    timer = timer_for(environment.device)
    rows: list[Row] = []
    with Progress(console=console) as progress:
        overall = progress.add_task("cases", total=len(problems))
        for case in problems:
            progress.update(overall, description=str(case))
            operations = select(pattern, case.family, case.device)
            if operations:
                calls = progress.add_task("  calls", total=None)
                result = race(case, operations, timer, effort, partial(progress.advance, calls))
                progress.remove_task(calls)
                rows += make_rows(case, result, environment)
            progress.advance(overall)
    return rows


def rows_of(commit: str, path: Path) -> list[Row]:
    """The rows of an earlier commit, whose name may be shortened."""
    rows = read(path)
    found = [row for row in rows if row.commit.startswith(commit)]
    if not found:
        known = f"one of {sorted({row.commit for row in rows})}"
        raise rule(f"--base must name a commit in {path.name}", expected=known, got=commit)
    return found


def write(rows: Sequence[Row], name: str, out: Path, base: Sequence[Row] = ()) -> str:
    """Write the CSV file, the Markdown tables and the picture; return the Markdown."""
    everything = update(out / f"{name}.csv", rows)
    current = [row for row in everything if row.commit == rows[0].commit]
    text = markdown(current, base)
    (out / f"{name}.md").write_text(text, encoding="utf-8")
    ratio_picture(current).savefig(out / f"{name}.png")
    return text


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser("python -m benchmarks", description="Time the operations.")
    parser.add_argument("--quick", action="store_true", help="smaller problems, fewer rounds")
    parser.add_argument(
        "--only", default="", metavar="PATTERN", help="a regular expression of names"
    )
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16", "float64"))
    parser.add_argument("--base", metavar="COMMIT", help="compare with that commit's rows")
    parser.add_argument("--elements", type=int, help="scores of a problem")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the results")
    options = parser.parse_args(arguments)
    name = f"{options.device}-quick" if options.quick else options.device
    base = rows_of(options.base, options.out / f"{name}.csv") if options.base else []
    console = Console()
    elements = options.elements or (QUICK_ELEMENTS if options.quick else FULL_ELEMENTS)
    problems = cases(elements, dtype=getattr(torch, options.dtype), device=options.device)
    rows = measure(problems, options.only, QUICK if options.quick else FULL, console)
    if not rows:
        raise rule("--only must match an operation", expected=list(OPERATIONS), got=options.only)
    console.print(Markdown(write(rows, name, options.out, base)))
    console.print(f"wrote {name}.csv, {name}.md and {name}.png in {options.out}")


if __name__ == "__main__":
    main()
