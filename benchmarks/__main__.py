"""`python -m benchmarks [--quick] [--only PATTERN] [--device cpu|cuda] [--base COMMIT]`."""

from __future__ import annotations

import argparse
import importlib.util
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch

from benchmarks.compilation import compile_ahead, tasks_of
from benchmarks.environment import RESULTS, Environment, describe
from benchmarks.peers import OPERATIONS
from benchmarks.problems import Case, cpu_cases, gpu_cases
from benchmarks.registry import Operation
from benchmarks.report import markdown
from benchmarks.rows import Row, make_rows, read, update
from benchmarks.runner import Effort, race
from benchmarks.timing import timer_for
from fenchel.errors import rule

EFFORT = {
    ("cpu", False): Effort(),
    ("cpu", True): Effort(rounds=8, seconds=0.2, slowest_call=0.2),
    ("cuda", False): Effort(rounds=20, seconds=0.4, slowest_call=0.5, fewest=5),
    ("cuda", True): Effort(rounds=8, seconds=0.1, slowest_call=0.1),
}
NAMES = {"cpu": "cpu", "cuda": "gpu"}
DTYPES = {"cpu": ["float32"], "cuda": ["float32", "bfloat16"]}
FULL_ELEMENTS, QUICK_ELEMENTS = 4_096_000, 256_000
QUICK_SHARE = 16

Problem = tuple[Case, list[Operation]]


def select(pattern: str, case: Case) -> list[Operation]:
    """The operations whose name matches the pattern, and the baselines that they are divided by."""
    able = [operation for operation in OPERATIONS.values() if operation.fits(case)]
    chosen = [operation for operation in able if re.search(pattern, operation.name)]
    baselines = {operation.baseline for operation in chosen}
    return [operation for operation in able if operation in chosen or operation.name in baselines]


def problems_of(options: argparse.Namespace) -> list[Problem]:
    dtypes = [getattr(torch, name) for name in options.dtype or DTYPES[options.device]]
    if options.device == "cuda":
        cases = gpu_cases(dtypes, QUICK_SHARE if options.quick else 1)
    else:
        default = QUICK_ELEMENTS if options.quick else FULL_ELEMENTS
        cases = cpu_cases(options.elements or default, dtypes)
    problems = [(case, select(options.only, case)) for case in cases]
    found = [(case, operations) for case, operations in problems if operations]
    if not found:
        raise rule("--only must match an operation", expected=list(OPERATIONS), got=options.only)
    return found


def measure(problems: Sequence[Problem], effort: Effort, environment: Environment) -> list[Row]:
    rows: list[Row] = []
    tasks = tasks_of(problems)
    with _progress(f"compiling {len(tasks)}", len(tasks)) as advance:
        compile_ahead(tasks, advance)
    with _progress("measuring", len(problems)) as advance:
        for case, operations in problems:
            advance(str(case))
            rows += make_rows(case, race(case, operations, timer_for(case), effort), environment)
    return rows


@contextmanager
def _progress(task: str, total: int) -> Iterator[Callable[[str], None]]:
    """A bar where rich is installed, lines where it is not."""
    if importlib.util.find_spec("rich") is None:
        yield lambda text: print(f"{task}: {text}", flush=True)
        return
    from rich.progress import Progress

    with Progress() as progress:
        bar = progress.add_task(task, total=total)
        yield lambda text: progress.update(bar, advance=1, description=f"{task}: {text}")


def rows_of(commit: str, path: Path) -> list[Row]:
    """The rows of an earlier commit, whose name may be shortened."""
    rows = read(path)
    found = [row for row in rows if row.commit.startswith(commit)]
    if not found:
        known = f"one of {sorted({row.commit for row in rows})}"
        raise rule(f"--base must name a commit in {path.name}", expected=known, got=commit)
    return found


def write(rows: Sequence[Row], name: str, out: Path, base: Sequence[Row] = ()) -> str:
    """Write the CSV file, the Markdown tables and the picture; return what to say about it."""
    everything = update(out / f"{name}.csv", rows)
    current = [row for row in everything if row.commit == rows[0].commit]
    text = markdown(current, base)
    (out / f"{name}.md").write_text(text, encoding="utf-8")
    if importlib.util.find_spec("matplotlib") is None:
        return f"{text}\nwrote {name}.csv and {name}.md in {out}; --draw adds the picture"
    from benchmarks.picture import ratio_picture

    ratio_picture(current).savefig(out / f"{name}.png")
    return f"{text}\nwrote {name}.csv, {name}.md and {name}.png in {out}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m benchmarks", description="Time the operations.")
    parser.add_argument("--quick", action="store_true", help="smaller problems, fewer rounds")
    parser.add_argument(
        "--only", default="", metavar="PATTERN", help="a regular expression of names"
    )
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--dtype", nargs="*", choices=("float32", "bfloat16", "float64"))
    parser.add_argument("--base", metavar="COMMIT", help="compare with that commit's rows")
    parser.add_argument("--commit", help="what is measured, where git does not say")
    parser.add_argument("--draw", action="store_true", help="measure nothing; tables from the file")
    parser.add_argument("--elements", type=int, help="scores of a problem on the CPU")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the results")
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    name = NAMES[options.device] + ("-quick" if options.quick else "")
    path = options.out / f"{name}.csv"
    base = rows_of(options.base, path) if options.base else []
    if options.draw:
        latest = read(path)[-1].commit
        rows = [row for row in read(path) if row.commit == latest]
    else:
        environment = describe(options.device, options.commit)
        rows = measure(problems_of(options), EFFORT[options.device, options.quick], environment)
    print(write(rows, name, options.out, base))


if __name__ == "__main__":
    main()
